//! Diagnostics columns of gas with physical units.

use crate::fields::quantities::WITH_UNITS;
use crate::fields::{Gas, GasModel, GasUnits};
use crate::register::Register;
use nestar_device::{Real, device};
use nestar_engine::Engine;
use nestar_engine::comm::Reduce;
use nestar_kernels::hydro::{Conserved, kinetic_energy};

/// Temperature in kelvin.
#[device]
fn kelvins<R: Real>(u: Conserved<R>, gamma: R, kelvin: R) -> R {
    (gamma - 1.0) * (u.energy - kinetic_energy(u)) / u.density * kelvin
}

/// Adds the columns, unless a plugin defines its own temperature.
pub(super) fn register(sim: &mut Engine, model: &GasModel, physical: &GasUnits) {
    let better = |name: &str| model.derived.iter().any(|derived| derived.name == name);
    if better(WITH_UNITS[0]) {
        return;
    }
    let given = [model.gamma, physical.kelvin];
    for (name, reduce) in [
        ("temperature_k_least", Reduce::Smallest),
        ("temperature_k_largest", Reduce::Largest),
    ] {
        sim.column::<Gas, kelvins>(name, reduce, given).unit("K");
    }
}
