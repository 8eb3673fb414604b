//! Diagnostics of gravity: energies, angular momentum, residuals, and reports of non-finite cells.

use crate::fields::{Gas, GasModel, Matter, Potential};
use crate::register::Register;
use crate::units::Units;
use bevy_ecs::prelude::*;
use nestar_device::{Place, Real, device};
use nestar_engine::comm::{DiagnosticColumns, Reduce};
use nestar_engine::data::{Field, LevelRows};
use nestar_engine::step::FieldView;
use nestar_engine::{Engine, Error, in_precision};
use nestar_kernels::hydro::{Conserved, kinetic_energy};
use nestar_kernels::{CELLS, PATCH};
use std::fmt;

/// Per level: largest residual in leaf cells over the largest right-hand side of the level, after the latest root step.
#[derive(Resource)]
pub(super) struct Residuals(pub Vec<f64>);

/// Gravitational energy density: half of density times potential.
#[device]
fn potential_energy<R: Real>(u: (R, R)) -> R {
    let (density, potential) = u;
    0.5 * density * potential
}

/// Kinetic energy density, from density and momentum.
#[device]
fn kinetic<R: Real>(u: [R; 4]) -> R {
    kinetic_energy(Conserved::<R> {
        density: u[0],
        momentum: [u[1], u[2], u[3]],
        energy: 0.0,
    })
}

/// Thermal energy density.
#[device]
fn thermal<R: Real>(u: Conserved<R>) -> R {
    u.energy - kinetic_energy(u)
}

/// Angular momentum density along an axis, about the origin.
#[device]
fn angular_momentum<R: Real>(u: [R; 4], at: &Place<R>, axis: R) -> R {
    let m = [u[1], u[2], u[3]];
    let x = at.centre;
    if axis < 0.5 {
        x[1] * m[2] - x[2] * m[1]
    } else if axis < 1.5 {
        x[2] * m[0] - x[0] * m[2]
    } else {
        x[0] * m[1] - x[1] * m[0]
    }
}

/// Adds the columns.
pub(super) fn register(sim: &mut Engine) {
    let energy = "mass*length**2/time**2";
    let of_gravity = Units::of_gravity(sim, energy);
    sim.column::<(Gas, Potential), potential_energy>("energy_potential", Reduce::Integral, [])
        .unit(&of_gravity);
    sim.column::<Gas, kinetic>("energy_kinetic", Reduce::Integral, [])
        .unit(energy);
    if sim.world.resource::<GasModel>().equation.has_energy() {
        sim.column::<Gas, thermal>("energy_thermal", Reduce::Integral, [])
            .unit(energy);
    }
    for (axis, name) in [
        "angular_momentum_x",
        "angular_momentum_y",
        "angular_momentum_z",
    ]
    .into_iter()
    .enumerate()
    {
        sim.column::<Gas, angular_momentum>(name, Reduce::Integral, [axis as f64])
            .unit("mass*length**2/time");
    }
    let levels = sim.levels();
    sim.world.insert_resource(Residuals(vec![0.0; levels]));
    for level in 0..levels {
        let value = move |world: &World| world.resource::<Residuals>().0[level];
        DiagnosticColumns::add_number(&mut sim.world, format!("gravity_residual_{level}"), value);
    }
}

/// A cell in which the density or the potential is not finite.
#[derive(Debug)]
struct NonFiniteCell {
    what: &'static str,
    value: f64,
    level: usize,
    patch: [i32; 3],
    cell: [usize; 3],
    centre: [f64; 3],
    time: f64,
    advice: &'static str,
}

impl std::error::Error for NonFiniteCell {}

impl fmt::Display for NonFiniteCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is {} in cell {:?} of patch {:?} on level {} at (x, y, z) = {:?}, t = {}: {}",
            self.what,
            self.value,
            self.cell,
            self.patch,
            self.level,
            self.centre,
            self.time,
            self.advice
        )
    }
}

/// Stops the run after the schedule and reports the first non-finite cell of this rank. A non-finite density is reported
/// on the finest level that has one, because coarser levels contain its averages. Otherwise the potential is reported, on
/// the coarsest such level.
///
/// # Errors
/// The device fails.
pub(super) fn report_non_finite<'a>(
    rows: &LevelRows,
    matter: impl Fn(usize) -> FieldView<'a, Matter>,
    potential: impl Fn(usize) -> FieldView<'a, Potential>,
) -> Result<(), Error> {
    let levels = 0..=rows.finest();
    for level in levels.clone().rev() {
        let what = "the total density of matter";
        let advice =
            "check the sources of gravity (`gravity_source` of a plugin) and the gas in this cell";
        if let Some(found) = find_non_finite(rows, &matter(level), what, advice)? {
            rows.fail(found);
            return Ok(());
        }
    }
    for level in levels {
        let what = "the gravitational potential";
        let advice = "the density is finite on this rank: sums of the solver overflow, or another rank has a non-finite density; \
             choose units in which the density times gravity.constant is closer to 1, or run.precision = \"double\"";
        if let Some(found) = find_non_finite(rows, &potential(level), what, advice)? {
            rows.fail(found);
            return Ok(());
        }
    }
    Ok(())
}

/// Finds the first cell of a level in which a field is not finite.
fn find_non_finite<F: Field>(
    rows: &LevelRows,
    field: &FieldView<F>,
    what: &'static str,
    advice: &'static str,
) -> Result<Option<NonFiniteCell>, Error> {
    let level = field.level();
    let place = rows.view_of(level);
    for &row in field.rows() {
        let wrong = in_precision!(field.precision(), R => {
            let values = field.host::<R>(&[row])?;
            let values = values.iter().map(|value| Real::to_f64(*value)).take(CELLS);
            values.enumerate().find(|(_, value)| !value.is_finite())
        });
        let Some((cell, value)) = wrong else {
            continue;
        };
        let patch = field.index(row);
        let cell = [cell % PATCH, cell / PATCH % PATCH, cell / (PATCH * PATCH)];
        let left = place.topology.domain.left_edge;
        let centre = std::array::from_fn(|axis| {
            let index = f64::from(patch[axis]) * PATCH as f64 + cell[axis] as f64;
            left[axis] + (index + 0.5) * place.clock.cell_width[axis]
        });
        return Ok(Some(NonFiniteCell {
            what,
            value,
            level,
            patch,
            cell,
            centre,
            time: place.clock.time,
            advice,
        }));
    }
    Ok(None)
}
