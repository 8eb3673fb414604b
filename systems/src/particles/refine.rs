//! Particles that want a finer mesh: by their number in a patch or a cell, by their mass in a cell.

use super::config::RefineConfig;
use super::deposit::{Deposit, Weights};
use super::species::AllSpecies;
use super::units::Units;
use crate::register::Register;
use bevy_ecs::prelude::*;
use nestar_device::{Lane, Real, device};
use nestar_engine::field::device::DeviceTopology;
use nestar_engine::field::{Component, Field, FieldSpec, LevelRows, Prolong, Restrict};
use nestar_engine::mesh::Topology;
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
    (refine, units): (Res<Refine>, Res<Units>),
    mut species: ResMut<AllSpecies>,
    mut marks: Write<ParticleMarks>,
    others: OtherRanks,
) -> Result<(), Error> {
    let level = rows.level();
    let beyond = (&others, rows.view().tables);
    let limit = Limits::of(&refine.0, level, units.scale);
    let own = topology.rows(level);
    let mut wanted = vec![false; own.len() * CELLS];
    if limit.counts() {
        let sums = in_cells(&topology, Weights::Ones, level, &mut species, beyond)?;
        let patches = sums.chunks_exact(CELLS).zip(wanted.chunks_exact_mut(CELLS));
        for (&row, (sums, wanted)) in own.iter().zip(patches) {
            let all = sums.iter().sum::<u64>() as f64 > limit.patch;
            let marks = wanted.iter_mut().zip(sums);
            marks.for_each(|(wanted, &sum)| *wanted |= all || sum as f64 > limit.cell);
            if !topology.is_leaf(row) {
                keep(sums, wanted, limit.kept);
            }
        }
    }
    if limit.mass < f64::INFINITY {
        let sums = in_cells(
            &topology,
            Weights::Masses(units.scale),
            level,
            &mut species,
            beyond,
        )?;
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

/// Marks the octants, each of which is a patch of the next finer level, that have more than `kept`; sums and marks are those of a patch.
fn keep(sums: &[u64], wanted: &mut [bool], kept: f64) {
    let octant = |cell: usize| [4, 32, 256].map(|half| cell & half != 0);
    let mut numbers = [0; 8];
    let number = |[x, y, z]: [bool; 3]| usize::from(x) | usize::from(y) << 1 | usize::from(z) << 2;
    for (cell, &sum) in sums.iter().enumerate() {
        numbers[number(octant(cell))] += sum;
    }
    for (cell, wanted) in wanted.iter_mut().enumerate() {
        *wanted |= numbers[number(octant(cell))] as f64 > kept;
    }
}

/// The sums of a level, all of a particle in its cell.
fn in_cells(
    topology: &Topology,
    weights: Weights,
    level: usize,
    species: &mut AllSpecies,
    (others, tables): (&OtherRanks, Option<&DeviceTopology>),
) -> Result<Vec<u64>, Error> {
    let mut deposit = Deposit::in_cells(topology, weights, level);
    deposit.add_all(species, tables)?;
    Ok(deposit.finish(others)?)
}

/// Most that a level bears.
struct Limits {
    patch: f64,
    /// Of a patch of the next finer level that is there.
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

    /// The finer patch that has many particles stays, and no other.
    #[test]
    fn patches_are_kept_by_what_they_have() {
        let mut sums = vec![0; CELLS];
        // in the octant at the right of x and z, by two cells
        let cell = |x: usize, y: usize, z: usize| x + 8 * (y + 8 * z);
        (sums[cell(4, 3, 7)], sums[cell(7, 0, 4)]) = (7, 6);
        sums[cell(0, 7, 0)] = 12;
        let mut wanted = vec![false; CELLS];
        keep(&sums, &mut wanted, 12.0);
        for n in 0..CELLS {
            let (x, y, z) = (n % 8, n / 8 % 8, n / 64);
            assert_eq!(wanted[n], x > 3 && y < 4 && z > 3, "{x} {y} {z}");
        }
    }
}
