//! Whether a restored state has the sets of scalars that the deck says.

use crate::fields::{Gas, GasModel, SET_TOLERANCE};
use bevy_ecs::prelude::*;
use nestar_engine::Error;
use nestar_engine::data::{Pool, Precision, Store};
use nestar_engine::mesh::Topology;

/// Patches that are looked at together.
const ROWS_AT_A_TIME: usize = 256;

/// Refuses a state in which the fractions of a set do not sum to 1 but for what round-off has made of it.
///
/// # Errors
/// The fractions in a cell; a device fails.
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
                "the state of the snapshot on level {level}, as hydro.scalar_sets, run.added and run.dropped make it: {why}"
            )));
        }
    }
    Ok(())
}

/// What is wrong with the fractions in some patches of a level.
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
        // corrections may leave a trace below 0
        let fraction = |s: usize| match scalars[s][n] / density[n] {
            trace if trace < 0.0 && trace > -tolerance => 0.0,
            fraction => fraction,
        };
        model.wrong_set(tolerance, fraction)
    }))
}
