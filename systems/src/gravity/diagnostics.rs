//! Diagnostics of gravity: energies, angular momentum and residuals.

use crate::fields::{Gas, Potential};
use crate::register::Register;
use bevy_ecs::prelude::*;
use nestar_device::{Place, Real, device};
use nestar_engine::Engine;
use nestar_engine::comm::{DiagnosticColumns, Reduce};
use nestar_kernels::hydro::{Conserved, kinetic_energy};

/// Per level: largest residual in leaf cells over the largest right-hand side of the level, after the latest root step.
#[derive(Resource)]
pub(super) struct Residuals(pub Vec<f64>);

/// Gravitational energy density: half of density times potential.
#[device]
fn potential_energy<R: Real>(u: (Conserved<R>, R)) -> R {
    let (gas, potential) = u;
    0.5 * gas.density * potential
}

/// Kinetic energy density.
#[device]
fn kinetic<R: Real>(u: Conserved<R>) -> R {
    kinetic_energy(u)
}

/// Thermal energy density.
#[device]
fn thermal<R: Real>(u: Conserved<R>) -> R {
    u.energy - kinetic_energy(u)
}

/// Angular momentum density along an axis, about the origin.
#[device]
fn angular_momentum<R: Real>(u: Conserved<R>, at: &Place<R>, axis: R) -> R {
    let m = u.momentum;
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
    sim.column::<(Gas, Potential), potential_energy>("energy_potential", Reduce::Integral, [])
        .unit(energy);
    sim.column::<Gas, kinetic>("energy_kinetic", Reduce::Integral, [])
        .unit(energy);
    sim.column::<Gas, thermal>("energy_thermal", Reduce::Integral, [])
        .unit(energy);
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
