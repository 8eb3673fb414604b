//! Whether the finished hierarchy holds the energy that the initial state was to put into it.

use super::initial::{Fill, InitialGas, Injection, fill_patch};
use crate::fields::{GAS_COMPONENTS, Gas, GasModel};
use bevy_ecs::prelude::*;
use nestar_engine::comm::Ranks;
use nestar_engine::data::{Element, Pool, Precision};
use nestar_engine::mesh::Topology;
use nestar_engine::{Error, in_precision};
use nestar_kernels::{CELLS, PATCH};

/// Refuses a hierarchy whose leaf cells have another energy than the initial state was to inject. All ranks call this.
///
/// # Errors
/// What was injected in place of what the deck says, and the remedy; another rank has failed.
pub fn require_injection(world: &World) -> Result<(), Error> {
    let Some(injection) = world.resource::<InitialGas>().0.injection() else {
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
    // in single precision each cell is rounded
    let tolerance = match precision {
        Precision::Single => 1e-6,
        Precision::Double => 1e-10,
    };
    let (key, wanted) = (injection.key, injection.energy);
    if (found - wanted).abs() <= tolerance * wanted {
        return Ok(());
    }
    Err(Error::Setup(format!(
        "{key}: {wanted:e} was to be injected, but the cells that were to take it have {found:e}; {}",
        injection.remedy
    )))
}

/// The energy that leaf cells of this rank that belong to the injection have been filled with.
fn injected<R: Element>(world: &World, injection: &Injection) -> Result<f64, Error> {
    let (topology, model) = (world.resource::<Topology>(), world.resource::<GasModel>());
    let fill = Fill::new(world.resource::<InitialGas>(), model, topology);
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

/// The cells of a patch whose centres belong to the injection.
fn cells_within(topology: &Topology, level: usize, row: u32, injection: &Injection) -> Vec<usize> {
    let block = super::initial::block_of(topology, row, level);
    let centre = |n: usize| block.centre([n % PATCH, n / PATCH % PATCH, n / (PATCH * PATCH)]);
    (0..CELLS)
        .filter(|&cell| (injection.within)(centre(cell)))
        .collect()
}
