//! What `run.audit` says of deposits: not a unit of mass is lost or counted twice.

use super::columns::Precise;
use super::species::{AllSpecies, Species};
use bevy_ecs::prelude::*;
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::{AuditError, LevelClock, Topology};
use nestar_engine::ranks::OtherRanks;
use nestar_engine::{Error, in_precision};
use nestar_kernels::particles::cloud::units_of;
use nestar_kernels::{CELLS, PATCH};

/// What the level before had in the cells that the next one covers.
#[derive(Resource, Default)]
pub(super) struct Covered {
    level: usize,
    time: f64,
    units: u64,
}

/// Checks the sums of a level, `[own row][cell]`: those of the root level are all the mass there is; where levels stand at one time, those of
/// a finer level are what the coarser one has in the cells that it covers.
///
/// # Errors
/// They are not; another rank has failed.
pub(super) fn check(
    (level, sums): (usize, &[u64]),
    (topology, clock, others): (&Topology, &LevelClock, &OtherRanks),
    (all, scale): (&mut AllSpecies, f64),
    before: &mut Covered,
) -> Result<(), Error> {
    let expected = match level {
        0 => {
            let own: Result<u64, DeviceError> =
                all.0.iter_mut().map(|species| units(species, scale)).sum();
            Some(others.sum(own?)?)
        }
        _ if clock.level < level && (before.level, before.time) == (level - 1, clock.end) => {
            Some(before.units)
        }
        _ => None,
    };
    let found = others.sum(sums.iter().sum())?;
    *before = Covered {
        level,
        time: clock.end,
        units: others.sum(covered(topology, level, sums))?,
    };
    match expected {
        Some(expected) if expected != found => Err(Error::Audit(AuditError(format!(
            "the cells of level {level} have {found} units of particles' mass, {expected} are theirs"
        )))),
        _ => Ok(()),
    }
}

/// Units in cells that have children.
fn covered(topology: &Topology, level: usize, sums: &[u64]) -> u64 {
    debug_assert_eq!(CELLS, PATCH * PATCH * PATCH);
    let rows = topology.rows(level).iter().zip(sums.chunks_exact(CELLS));
    let refined = rows.filter(|(row, _)| !topology.is_leaf(**row));
    refined.flat_map(|(_, cells)| cells).sum()
}

/// Units of all particles of a species.
///
/// # Errors
/// The device fails.
pub(super) fn units(species: &mut Species, scale: f64) -> Result<u64, DeviceError> {
    if !species.has_mass() {
        return Ok(0);
    }
    species.fetch()?;
    Ok(in_precision!(species.precision(), R => units_in::<R>(species, scale)))
}

fn units_in<R: Precise>(species: &mut Species, scale: f64) -> u64 {
    let (columns, one) = (species.pool.columns, units_of(species.mass, scale));
    let mut sum = 0;
    species.each(|_, patch| {
        for (page, count) in patch.iter_mut().flat_map(|rows| rows.pages::<R>(columns)) {
            sum += match columns.masses {
                true => page.mass[..count]
                    .iter()
                    .map(|&mass| units_of(mass, scale))
                    .sum(),
                false => one * count as u64,
            };
        }
    });
    sum
}
