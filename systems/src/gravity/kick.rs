//! Gas under the acceleration of the potential: kicks before and after each step of the gas, and the step that they allow.

use super::beyond::ExteriorPotential;
use super::faults;
use super::grids::{Due, Equation, Solver, each};
use super::systems::Gravity;
use crate::fields::{Gas, GasModel, Matter, Potential};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_device::{Address, Lane, Number};
use nestar_engine::data::{Element, Field, LevelRows};
use nestar_engine::mesh::LevelClock;
use nestar_engine::step::{FieldView, Read, StepLimits, Write};
use nestar_engine::{Error, in_precision};
use nestar_kernels::CELLS;
use nestar_kernels::gravity::{self, Fall, Part};
use nestar_kernels::multigrid::ghost_values::PotentialSlopes;
use rayon::prelude::*;

/// Layers of cells that slopes reach.
pub(super) const REACH: usize = 2;

/// What slopes of the level at hand are made of on the host.
pub(super) fn slopes<'a, R: Element, P: Field>(
    potential: &FieldView<'a, P>,
    matter: &FieldView<'a, Matter>,
    (beyond, equation): (&'a ExteriorPotential<P>, Equation),
) -> PotentialSlopes<'a, R> {
    let place = potential.place();
    PotentialSlopes {
        view: potential.ghosts::<R>(),
        exterior: beyond.on_host(potential.weights_on(0)[1]),
        source: equation.on_host(matter),
        first_child: place.topology.first_child_table(),
        width: place.clock.cell_width.map(R::lit),
    }
}

/// The same on a device.
pub(super) fn fall<P: Field>(
    potential: &FieldView<P>,
    matter: &FieldView<Matter>,
    (gravity, beyond, equation): (&Gravity, &ExteriorPotential<P>, Equation),
    largest: u64,
) -> Fall<Number> {
    let place = potential.place();
    Fall {
        view: potential.on_device(),
        exterior: beyond.on_device(potential.weights_on(0)[1]),
        source: equation.on_device(matter),
        rows: place.on_device().rows(potential.level()).into(),
        largest: Address::from(largest),
        width: place.clock.cell_width,
        count: potential.rows().len() as i32,
        fourth: gravity.config.order == 4,
    }
}

/// What kicks read and write.
#[derive(SystemParam)]
pub(super) struct Kick<'w, 's> {
    pub clock: Res<'w, LevelClock>,
    gravity: Res<'w, Gravity>,
    equation: Res<'w, Equation>,
    beyond: Res<'w, ExteriorPotential>,
    solver: Res<'w, Solver>,
    potential: Read<'w, 's, Potential, REACH>,
    matter: Read<'w, 's, Matter, REACH>,
    gas: Write<'w, 's, Gas>,
    model: Res<'w, GasModel>,
}

/// Kicks the gas of the level over the length of the step at hand, which is half of the level's.
pub(super) fn kick(mut kick: Kick) -> Result<(), Error> {
    kick.act(Part::Any)
}

/// Where what is due lies, and the number of the part.
fn on_device(part: &Part<&FieldView<Due>>) -> (Address<Number>, i32) {
    match part {
        Part::Any => (Address::NONE, 0),
        Part::First(due) => (due.device().bank(0).into(), 1),
        Part::Last(due) => (due.device().bank(0).into(), 2),
    }
}

impl Kick<'_, '_> {
    /// The kick, as a part of a step for what the gas is due.
    pub fn act(&mut self, part: Part<&FieldView<Due>>) -> Result<(), Error> {
        let (potential, matter) = (self.potential.get(REACH)?, self.matter.get(REACH)?);
        let (gravity, given) = (&self.gravity, (&*self.beyond, *self.equation));
        let (gas, dt) = (self.gas.change(), self.clock.dt);
        let internal = self.model.internal_energy().is_some();
        if let Some(kernels) = &self.solver.kernels {
            let fall = fall(
                &potential,
                &matter,
                (gravity, given.0, given.1),
                kernels.words(),
            );
            let rows = fall.count as usize;
            let (due, part) = on_device(&part);
            let given = gravity::Kick {
                fall,
                gas: gas.device().bank(gas.banks()[0]).into(),
                dt,
                components: gas.components() as i32,
                due,
                part,
                internal,
            };
            kernels.kick.count_work(rows * CELLS, rows * CELLS * 8 * 11);
            return kernels.launch(&kernels.kick, rows, &given);
        }
        in_precision!(gas.precision(), R => {
            let slopes = slopes::<R, _>(&potential, &matter, given);
            let how = (gravity.config.order == 4, R::lit(dt), internal);
            let rows = gas.present::<R>();
            let part = match part {
                Part::Any => Part::Any,
                Part::First(due) => Part::First(due.present::<R>()),
                Part::Last(due) => Part::Last(due.present::<R>()),
            };
            // SAFETY: distinct rows.
            each(gas.rows(), |row| unsafe { gravity::kick(&slopes, &rows, row, how, &part) });
        });
        Ok(())
    }
}

/// Limit: gas is accelerated through no more than so many widths of a cell in a step.
pub(super) fn limit(
    rows: LevelRows,
    gravity: Res<Gravity>,
    equation: Res<Equation>,
    beyond: Res<ExteriorPotential>,
    solver: Res<Solver>,
    read_potential: Read<Potential, REACH>,
    read_matter: Read<Matter, REACH>,
    mut limits: ResMut<StepLimits>,
) -> Result<(), Error> {
    // there is no potential yet
    if rows.is_estimate() {
        limits.leave_out("gravity");
        return Ok(());
    }
    let (potential, matter) = (read_potential.get(REACH)?, read_matter.get(REACH)?);
    let fourth = gravity.config.order == 4;
    let rate = if let Some(kernels) = &solver.kernels {
        kernels.fall_rate(&fall(
            &potential,
            &matter,
            (&gravity, &beyond, *equation),
            kernels.words(),
        ))?
    } else {
        in_precision!(potential.precision(), R => {
            let slopes = slopes::<R, _>(&potential, &matter, (&beyond, *equation));
            let rates = potential.rows().par_iter().map(|&row| gravity::largest(&slopes, row, fourth));
            rates.reduce(|| 0.0, |a, b| if a >= b || a.is_nan() { a } else { b })
        })
    };
    if !rate.is_finite() {
        let (matter, potential) = (&read_matter, &read_potential);
        faults::report(
            &rows,
            |level| matter.own_on(level),
            |level| potential.own_on(level),
        )?;
    }
    // all ranks propose: one that is not finite ends the run where no cell was found
    let dt = (gravity.config.limit / rate).sqrt();
    limits.propose("gravity", dt);
    Ok(())
}
