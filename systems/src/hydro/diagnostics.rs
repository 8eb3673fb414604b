//! Diagnostics columns of gas with a magnetic field or a temperature in kelvin, and the check that the hierarchy holds the energy that
//! the initial state injects.

use super::initial::{InitialFill, InitialGas, Injection, fill_patch};
use crate::fields::quantities::{WITH_UNITS, vocabulary};
use crate::fields::{GAS_COMPONENTS, Gas, GasModel};
use crate::register::Register;
use bevy_ecs::prelude::*;
use nestar_device::math::sum3;
use nestar_device::{Place, Real, Stencil, device};
use nestar_engine::comm::{Ranks, Reduce};
use nestar_engine::data::criteria::CellQuantity;
use nestar_engine::data::{DerivedInputs, Element, Pool, Precision};
use nestar_engine::mesh::Topology;
use nestar_engine::{Engine, Error, in_precision};
use nestar_kernels::hydro::magnetic::magnetic_energy;
use nestar_kernels::{CELLS, PATCH};
use std::sync::Arc;

/// Temperature in kelvin.
#[device]
fn kelvins<R: Real>(u: (R, [R; 1])) -> R {
    let (_, [kelvin]) = u;
    kelvin
}

/// Energy density of the magnetic field.
#[device]
fn energy_magnetic<R: Real>(u: [R; 8]) -> R {
    magnetic_energy(&[u[5], u[6], u[7]])
}

/// Cross helicity: velocity times magnetic field.
#[device]
fn cross_helicity<R: Real>(u: [R; 8]) -> R {
    sum3(u[1] * u[5], u[2] * u[6], u[3] * u[7]) / u[0]
}

/// Divergence of the magnetic field by central differences, times the smallest cell width and over the mean field of the six neighbours; 0
/// without a field.
#[device]
fn divergence_error<R: Real>(u: &Stencil<R, [R; 8], 1>, at: &Place<R>) -> R {
    let [w, e] = [u.at(-1, 0, 0), u.at(1, 0, 0)];
    let [s, n] = [u.at(0, -1, 0), u.at(0, 1, 0)];
    let [b, t] = [u.at(0, 0, -1), u.at(0, 0, 1)];
    let width = at.width[0].min(at.width[1]).min(at.width[2]);
    let x = (e[5] - w[5]) * (width / at.width[0]);
    let y = (n[6] - s[6]) * (width / at.width[1]);
    let z = (t[7] - b[7]) * (width / at.width[2]);
    let strength = sum3(
        energy_magnetic(w).sqrt() + energy_magnetic(e).sqrt(),
        energy_magnetic(s).sqrt() + energy_magnetic(n).sqrt(),
        energy_magnetic(b).sqrt() + energy_magnetic(t).sqrt(),
    );
    // the root of the energy is the field over the root of 2
    let mean = 1.4142135623730951 * strength / 6.0;
    if mean > 0.0 {
        (0.5 * sum3(x, y, z)).abs() / mean
    } else {
        0.0
    }
}

/// Adds the columns of a magnetic field.
fn register_field(sim: &mut Engine, model: &GasModel) {
    sim.column::<Gas, energy_magnetic>("energy_magnetic", Reduce::Integral, [])
        .unit("mass*length**2/time**2");
    sim.column::<Gas, cross_helicity>("cross_helicity", Reduce::Integral, [])
        .unit("(mass*length)**0.5*length**3/time**2");
    // a field on faces has a column of its own
    if !model.has_face_field() {
        sim.column::<Gas, divergence_error>("divergence_error", Reduce::Largest, []);
    }
}

/// Adds the columns of a magnetic field and of the quantity `temperature_k`, if there are such.
pub(super) fn register(sim: &mut Engine, model: &GasModel) {
    if model.magnetic.is_some() {
        register_field(sim, model);
    }
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

/// Checks the injected energy in leaf cells against the deck. Collective over all ranks.
///
/// # Errors
/// The energy differs (the message has the remedy); another rank has failed.
pub fn require_injection(world: &World) -> Result<(), Error> {
    let has_energy = world.resource::<GasModel>().equation.has_energy();
    let injection = world.resource::<InitialGas>().0.injection();
    let Some(injection) = injection.filter(|_| has_energy) else {
        return Ok(());
    };
    let precision = Pool::<Gas>::of(world).precision();
    let own = in_precision!(precision, R => injected::<R>(world, &injection))?;
    let all = world
        .resource::<Ranks>()
        .communicator()
        .all_gather(&own.to_le_bytes())?;
    let read = |bytes: &Vec<u8>| bytes.first_chunk().map_or(0.0, |b| f64::from_le_bytes(*b));
    let found: f64 = all.iter().map(read).sum();
    // each cell is rounded in single precision
    let tolerance = match precision {
        Precision::Single => 1e-6,
        Precision::Double => 1e-10,
    };
    let (key, wanted) = (injection.key, injection.energy);
    if (found - wanted).abs() <= tolerance * wanted {
        return Ok(());
    }
    Err(Error::Setup(format!(
        "{key}: the energy to be injected is {wanted:e}, but the cells of the injection region hold {found:e}; {}",
        injection.remedy
    )))
}

/// Returns the injected energy in the leaf cells of this rank.
fn injected<R: Element>(world: &World, injection: &Injection) -> Result<f64, Error> {
    let (topology, model) = (world.resource::<Topology>(), world.resource::<GasModel>());
    let fill = InitialFill::new(world.resource::<InitialGas>(), model, topology);
    let mut values = vec![R::lit(0.0); fill.row_length()];
    let mut energy = 0.0;
    for level in 0..=topology.finest() {
        let volume = topology.domain.cell_volume(level);
        let rows = topology.rows(level).iter();
        for &row in rows.filter(|row| topology.is_leaf(**row)) {
            let cells = cells_within(topology, level, row, injection);
            if cells.is_empty() {
                continue;
            }
            fill_patch(&fill, row, &mut values).map_err(Error::Setup)?;
            let energies = &values[(GAS_COMPONENTS - 1) * CELLS..];
            let sum: f64 = cells.iter().map(|&cell| energies[cell].to_f64()).sum();
            energy += sum * volume;
        }
    }
    Ok(energy)
}

/// Returns the cells of a patch whose centres lie in the injection region.
fn cells_within(topology: &Topology, level: usize, row: u32, injection: &Injection) -> Vec<usize> {
    let block = super::initial::block_of(topology, row, level);
    let centre = |n: usize| block.centre([n % PATCH, n / PATCH % PATCH, n / (PATCH * PATCH)]);
    (0..CELLS)
        .filter(|&cell| (injection.within)(centre(cell)))
        .collect()
}
