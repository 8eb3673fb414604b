//! Particles that want a finer mesh: by their number in a patch or a cell, by their mass in a cell.

use super::config::RefineConfig;
use super::deposit::{Deposit, Weights};
use super::initial::Ahead;
use super::species::AllSpecies;
use super::units::Units;
use crate::register::Register;
use bevy_ecs::prelude::*;
use nestar_device::{Lane, Real, device};
use nestar_engine::field::{Component, Field, FieldSpec, LevelRows, Prolong, Restrict};
use nestar_engine::mesh::{RefineRequests, Topology};
use nestar_engine::ranks::OtherRanks;
use nestar_engine::step::Write;
use nestar_engine::{Engine, Error, in_precision};
use nestar_kernels::CELLS;

/// 1 in cells that want a finer mesh, else 0.
struct ParticleMarks;

impl Field for ParticleMarks {
    const NAME: &'static str = "particle_marks";
}

/// Cells with many particles.
#[device]
fn many_particles<R: Real>(mark: R) -> bool {
    mark > 0.5
}

/// Enters the field, what marks cells, and the criterion.
pub(super) fn register(sim: &mut Engine, config: RefineConfig) -> Result<(), Error> {
    if config == RefineConfig::default() {
        return Ok(());
    }
    sim.register_field::<ParticleMarks>(FieldSpec {
        components: vec![Component::scalar("particle_mark")],
        prolong: Prolong::None,
        restrict: Restrict::None,
        stored: false,
        ..FieldSpec::cells(&[])
    })?;
    sim.world.insert_resource(Refine(config));
    sim.world.resource_mut::<Ahead>().want();
    sim.system_in(crate::order::Flag::Criteria, mark);
    sim.criterion::<ParticleMarks, many_particles>([]);
    Ok(())
}

#[derive(Resource)]
struct Refine(RefineConfig);

/// Marks the cells of the level at hand, those of refined patches too: finer levels stand at the same time.
fn mark(
    rows: LevelRows,
    topology: Res<Topology>,
    (refine, units, ahead): (Res<Refine>, Res<Units>, Res<Ahead>),
    mut species: ResMut<AllSpecies>,
    mut marks: Write<ParticleMarks>,
    mut requests: ResMut<RefineRequests>,
    others: OtherRanks,
) -> Result<(), Error> {
    let level = rows.level();
    let limit = Limits::of(&refine.0, level, units.scale);
    let own = topology.rows(level);
    // all of a particle in its cell
    let mut in_cells = |weights: Weights| -> Result<Vec<u64>, Error> {
        if rows.in_parts() {
            return Ok(ahead.in_cells(&topology, weights, level));
        }
        let mut deposit = Deposit::in_cells(&topology, weights, level);
        deposit.add_all(&mut species, rows.view().tables)?;
        Ok(deposit.finish(&others)?)
    };
    let mut wanted = vec![false; own.len() * CELLS];
    if limit.counts() {
        let sums = in_cells(Weights::Ones)?;
        let patches = sums.chunks_exact(CELLS).zip(wanted.chunks_exact_mut(CELLS));
        for (&row, (sums, wanted)) in own.iter().zip(patches) {
            let all = sums.iter().sum::<u64>() as f64 > limit.patch;
            let marks = wanted.iter_mut().zip(sums);
            marks.for_each(|(wanted, &sum)| *wanted |= all || sum as f64 > limit.cell);
            if most_of_children(sums) as f64 > limit.kept {
                requests.keep(row);
            }
        }
    }
    if limit.mass < f64::INFINITY {
        let sums = in_cells(Weights::Masses(units.scale))?;
        let marks = wanted.iter_mut().zip(sums);
        marks.for_each(|(wanted, sum)| *wanted |= sum as f64 > limit.mass);
    }
    in_precision!(marks.precision(), R => {
        let one = |&wanted: &bool| R::lit(f64::from(u8::from(wanted)));
        let values: Vec<R> = wanted.iter().map(one).collect();
        marks.store_on(level, own, &values)?;
    });
    Ok(())
}

/// Most that an octant of a patch has, which is a patch of the next finer level.
fn most_of_children(sums: &[u64]) -> u64 {
    let mut octants = [0; 8];
    for (cell, &sum) in sums.iter().enumerate() {
        octants[cell >> 2 & 1 | cell >> 4 & 2 | cell >> 6 & 4] += sum;
    }
    octants.into_iter().max().unwrap_or(0)
}

/// Most that a level bears.
struct Limits {
    patch: f64,
    /// Of a patch of the next finer level that is there, or its siblings.
    kept: f64,
    cell: f64,
    /// In units of deposits.
    mass: f64,
}

impl Limits {
    fn of(config: &RefineConfig, level: usize, scale: f64) -> Self {
        let at = |limit: &Option<crate::declare::PerLevel<f64>>| {
            let limit = limit.as_ref().and_then(|limit| limit.at(level));
            limit.unwrap_or(f64::INFINITY)
        };
        let mass = at(&config.mass_per_cell);
        Self {
            patch: at(&config.per_patch),
            kept: at(&config.kept_per_patch),
            cell: at(&config.per_cell),
            mass: if scale > 0.0 {
                mass * scale
            } else {
                f64::INFINITY
            },
        }
    }

    fn counts(&self) -> bool {
        self.patch.min(self.cell).min(self.kept) < f64::INFINITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_octants_of_cells() {
        let cell = |x: usize, y: usize, z: usize| x + 8 * (y + 8 * z);
        let mut sums = vec![0; CELLS];
        (sums[cell(4, 3, 7)], sums[cell(7, 0, 4)]) = (7, 6);
        (
            sums[cell(3, 7, 0)],
            sums[cell(4, 7, 0)],
            sums[cell(0, 4, 4)],
        ) = (10, 12, 11);
        assert_eq!(most_of_children(&sums), 13);
    }
}
