//! Checks the sets of scalars of a restored state against the deck.

use crate::fields::{Gas, GasModel, SET_TOLERANCE};
use bevy_ecs::prelude::*;
use nestar_engine::Error;
use nestar_engine::data::{Pool, Precision, Store};
use nestar_engine::mesh::Topology;

/// Number of patches that are checked together.
const ROWS_AT_A_TIME: usize = 256;

/// Checks that the fractions of each set sum to 1 to within round-off.
///
/// # Errors
/// The fractions in a cell do not; a device fails.
pub fn require_sets(world: &World) -> Result<(), Error> {
    let topology = world.resource::<Topology>();
    if world.resource::<GasModel>().sets.count() == 0 {
        return Ok(());
    }
    let parts = (0..=topology.finest()).flat_map(|level| {
        let parts = topology.rows(level).chunks(ROWS_AT_A_TIME);
        parts.map(move |rows| (level, rows))
    });
    for (level, rows) in parts {
        if let Some(why) = wrong(world, level, rows)? {
            return Err(Error::Setup(format!(
                "the state of the snapshot on level {level}, with hydro.scalar_sets, run.added and run.dropped applied: {why}"
            )));
        }
    }
    Ok(())
}

/// Describes the first invalid set in some patches of a level.
fn wrong(world: &World, level: usize, rows: &[u32]) -> Result<Option<String>, Error> {
    let (gas, model) = (Pool::<Gas>::of(world), world.resource::<GasModel>());
    let tolerance = match gas.precision() {
        Precision::Single => 1e3 * SET_TOLERANCE,
        Precision::Double => SET_TOLERANCE,
    };
    let column = |c| gas.save(level, c, rows).map(|values| values.into_f64());
    let density = column(0)?;
    let first = model.first_scalar();
    let components = first..first + model.scalars.len();
    let scalars = components.map(column).collect::<Result<Vec<_>, _>>()?;
    let mut cells = 0..density.len();
    Ok(cells.find_map(|n| {
        // flux corrections may leave slightly negative fractions
        let fraction = |s: usize| match scalars[s][n] / density[n] {
            trace if trace < 0.0 && trace > -tolerance => 0.0,
            fraction => fraction,
        };
        model.invalid_set(tolerance, fraction)
    }))
}
