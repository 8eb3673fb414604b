//! Diagnostics columns of gas with a temperature in kelvin.

use crate::fields::quantities::{WITH_UNITS, vocabulary};
use crate::fields::{Gas, GasModel};
use crate::register::Register;
use nestar_device::{Real, device};
use nestar_engine::Engine;
use nestar_engine::comm::Reduce;
use nestar_engine::data::DerivedInputs;
use nestar_engine::data::criteria::CellQuantity;
use nestar_kernels::hydro::Conserved;
use std::sync::Arc;

/// Temperature in kelvin.
#[device]
fn kelvins<R: Real>(u: (Conserved<R>, [R; 1])) -> R {
    let (_, [kelvin]) = u;
    kelvin
}

/// Adds the columns of the quantity `temperature_k`, if there is one.
pub(super) fn register(sim: &mut Engine, model: &GasModel) {
    let mut names = vocabulary(model).into_iter();
    let Some((_, temperature)) = names.find(|(name, _)| name == WITH_UNITS[0]) else {
        return;
    };
    let numbers = Arc::new(DerivedInputs::new(vec![CellQuantity::Named(temperature)]));
    for (name, reduce) in [
        ("temperature_k_least", Reduce::Smallest),
        ("temperature_k_largest", Reduce::Largest),
    ] {
        sim.with_numbers(&numbers)
            .column::<Gas, kelvins>(name, reduce, [])
            .unit("K");
    }
}
