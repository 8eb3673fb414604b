//! Refines where a patch or cell contains many particles or much particle mass.

use super::config::{ParticlesConfig, RefineConfig};
use super::deposit::{Deposit, DepositWeights, all_are_on_device};
use super::device::ParticleKernels;
use super::initial::InitialCells;
use super::mass_quantum::MassQuantum;
use super::species::SpeciesMap;
use crate::order::Flag;
use crate::register::{Register, prepare_update};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_device::{Address, Lane, Number, Real, device};
use nestar_engine::comm::Comm;
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::data::{Component, Field, FieldSpec, LevelRows, Patches, Prolong, Restrict};
use nestar_engine::device::LaunchShape;
use nestar_engine::mesh::{RefinementFlags, Topology, parallel};
use nestar_engine::step::Write;
use nestar_engine::{Engine, Error, in_precision};
use nestar_kernels::CELLS;
use nestar_kernels::particles::device::MarkParameters;
use rayon::prelude::*;

/// Refinement flags: 1 in cells to be refined, else 0.
struct ParticleMarks;

impl Field for ParticleMarks {
    const NAME: &'static str = "particle_marks";
}

/// Cells flagged by particles.
#[device]
fn many_particles<R: Real>(mark: R) -> bool {
    mark > 0.5
}

/// Registers the field, the system that flags cells, and the criterion.
///
/// # Errors
/// A name of a species is unknown.
pub(super) fn register(sim: &mut Engine, particles: &ParticlesConfig) -> Result<(), Error> {
    let config = RefineConfig {
        near: Vec::new(),
        ..particles.refine.clone()
    };
    if config == RefineConfig::default() {
        return Ok(());
    }
    let known: Vec<&str> = particles.species.keys().map(String::as_str).collect();
    for (n, name) in config.species.iter().enumerate() {
        if !known.contains(&&**name) {
            let key = format!("particles.refine.species[{n}]");
            return Err(sim.deck.unknown_word_at(&key, name, &known).into());
        }
    }
    sim.register_field::<ParticleMarks>(FieldSpec {
        components: vec![Component::scalar("particle_mark")],
        prolong: Prolong::None,
        restrict: Restrict::None,
        stored: false,
        ..FieldSpec::cells(&[])
    })?;
    let mut cells = sim.world.resource_mut::<InitialCells>();
    cells.request(&config.species);
    sim.world.insert_resource(Refine(config));
    sim.system_in(Flag::Criteria, flag_by_particles)
        .in_sequence()
        .keeps_particles();
    sim.criterion::<ParticleMarks, many_particles>([]);
    prepare_update::<ParticleMarks, unmarked>(sim);
    Ok(())
}

#[derive(Resource)]
struct Refine(RefineConfig);

/// Clears a flag.
#[device]
fn unmarked<R: Real>(_mark: R) -> R {
    0.0
}

/// Input of the refinement by particles.
#[derive(SystemParam)]
struct RefinementInput<'w> {
    refine: Res<'w, Refine>,
    quantum: Res<'w, MassQuantum>,
    initial: Res<'w, InitialCells>,
}

/// Flags cells of the current level, including those of refined patches, since finer levels are synchronised.
fn flag_by_particles(
    rows: LevelRows,
    topology: Res<Topology>,
    RefinementInput {
        refine,
        quantum,
        initial,
    }: RefinementInput,
    mut species: ResMut<SpeciesMap>,
    mut marks: Write<ParticleMarks>,
    mut patches: Patches<&mut RefinementFlags>,
    others: Comm,
) -> Result<(), Error> {
    let level = rows.level();
    marks.update::<unmarked>(&rows, (), &[]);
    let limits = Limits::of(&refine.0, level, quantum.quanta_per_mass);
    let tables = rows.view().tables;
    if let Some((kernels, tables)) = species.kernels().zip(tables)
        && !rows.is_estimate()
        && limits
            .iter()
            .all(|limits| all_are_on_device(&species, limits.weights))
    {
        for limits in &limits {
            let deposit = Deposit::in_cells(&topology, limits.weights, level);
            let deposit = deposit.of_species(&refine.0.species);
            let view = marks.change_on(level);
            let to = view.device().bank(view.banks()[0]);
            let kept = kernels.mark(&deposit, limits, &mut species, tables, &others, to)?;
            keep_children(&mut patches, &kept);
        }
        return Ok(());
    }
    let mut wanted = vec![false; topology.rows(level).len() * CELLS];
    for limits in &limits {
        let sums = match rows.is_estimate() {
            true => initial.in_cells(&topology, limits.weights, level),
            false => {
                let deposit = Deposit::in_cells(&topology, limits.weights, level);
                let mut deposit = deposit.of_species(&refine.0.species);
                deposit.add_all(&mut species, tables)?;
                deposit.finish(&others)?
            }
        };
        let kept = limits.mark(topology.rows(level), &sums, &mut wanted);
        keep_children(&mut patches, &kept);
    }
    if !limits.is_empty() {
        in_precision!(marks.precision(), R => {
            let value = |wanted: &bool| R::lit(f64::from(u8::from(*wanted)));
            let values: Vec<R> = wanted.par_iter().map(value).collect();
            marks.store_on(level, topology.rows(level), &values)?;
        });
    }
    Ok(())
}

/// Keeps the children of the patches in `rows`.
fn keep_children(patches: &mut Patches<&mut RefinementFlags>, rows: &[u32]) {
    for &row in rows {
        if let Some(mut flags) = patches.get_mut(row) {
            flags.keep_children();
        }
    }
}

/// Limits of a level for one kind of deposit.
pub(super) struct Limits {
    pub weights: DepositWeights,
    pub per_cell: f64,
    pub per_patch: f64,
    /// Limit per octant of a patch, above which its children are kept.
    pub per_octant: f64,
}

impl Limits {
    /// Returns the limits of a level; `quanta_per_mass` is the number of mass quanta per unit mass.
    fn of(config: &RefineConfig, level: usize, quanta_per_mass: f64) -> Vec<Self> {
        let at = |limit: &Option<crate::declare::PerLevel<f64>>| {
            let limit = limit.as_ref().and_then(|limit| limit.at(level));
            limit.unwrap_or(f64::INFINITY)
        };
        let mass = if quanta_per_mass > 0.0 {
            quanta_per_mass
        } else {
            f64::INFINITY
        };
        let numbers = Self {
            weights: DepositWeights::Ones,
            per_cell: at(&config.per_cell),
            per_patch: at(&config.per_patch),
            per_octant: at(&config.kept_per_patch),
        };
        let masses = Self {
            weights: DepositWeights::Masses(quanta_per_mass),
            per_cell: at(&config.mass_per_cell) * mass,
            per_patch: f64::INFINITY,
            per_octant: f64::INFINITY,
        };
        let bounds = |limits: &Self| {
            let least = limits.per_cell.min(limits.per_patch);
            least.min(limits.per_octant) < f64::INFINITY
        };
        [numbers, masses].into_iter().filter(bounds).collect()
    }

    /// Flags cells by their sums, `[row][cell]`. Returns the rows whose children must be kept.
    fn mark(&self, rows: &[u32], sums: &[u64], wanted: &mut [bool]) -> Vec<u32> {
        let mut patches: Vec<_> = wanted.chunks_exact_mut(CELLS).collect();
        let kept = parallel::map_mut(&mut patches, |n, wanted| {
            let stays = self.mark_patch(&sums[n * CELLS..][..CELLS], wanted);
            stays.then_some(rows[n])
        });
        kept.into_iter().flatten().collect()
    }

    /// Flags cells of a patch by their sums. Returns `true` if its children must be kept.
    fn mark_patch(&self, sums: &[u64], wanted: &mut [bool]) -> bool {
        let mut octants = [0; 8];
        for (cell, &sum) in sums.iter().enumerate() {
            octants[cell >> 2 & 1 | cell >> 4 & 2 | cell >> 6 & 4] += sum;
        }
        let all = octants.iter().sum::<u64>() as f64 > self.per_patch;
        let marks = wanted.iter_mut().zip(sums);
        marks.for_each(|(wanted, &sum)| *wanted |= all || sum as f64 > self.per_cell);
        octants.iter().any(|&sum| sum as f64 > self.per_octant)
    }
}

/// Threads per block.
const THREADS: u32 = 128;

impl ParticleKernels {
    /// Marks cells of a level by the deposit of all species; `marks` is the address of the marks. Returns the
    /// rows whose children must be kept.
    ///
    /// # Errors
    /// The device fails; another rank or the transport has failed.
    pub fn mark(
        &self,
        deposit: &Deposit,
        limits: &Limits,
        all: &mut SpeciesMap,
        tables: &DeviceTopology,
        others: &Comm,
        marks: u64,
    ) -> Result<Vec<u32>, Error> {
        deposit.add_on_device(all, self, tables, None, others)?;
        let rows = deposit.topology.rows(deposit.level);
        let mut memory = self.memory();
        let slot_table = memory.slot_tables.get(&deposit.level);
        let slots = slot_table.map_or(0, |(_, slot_table)| slot_table.addresses()[0]);
        let needs_kept = limits.per_octant < f64::INFINITY;
        let kept = match needs_kept {
            true => memory.kept.provide(&self.device, rows.len())?.address(),
            false => 0,
        };
        let mark = MarkParameters::<Number> {
            rows: tables.rows(deposit.level).into(),
            slots: slots.into(),
            sums: memory.sums.address().into(),
            per_cell: limits.per_cell,
            per_patch: limits.per_patch,
            marks: marks.into(),
            kept: if needs_kept {
                kept.into()
            } else {
                Address::NONE
            },
            per_octant: limits.per_octant,
        };
        self.device
            .launch(&self.mark, LaunchShape::of(rows.len(), THREADS), &mark)?;
        let mut flags = vec![0; if needs_kept { rows.len() } else { 0 }];
        if let Some(buffer) = memory.kept.buffer().filter(|_| needs_kept) {
            self.device.download(buffer, 0, &mut flags)?;
        }
        let flags = rows.iter().zip(flags).filter(|(_, flags)| *flags > 0);
        Ok(flags.map(|(&row, _)| row).collect())
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
        let marks = |per_cell: f64, per_patch: f64, per_octant: f64| {
            let limits = Limits {
                weights: DepositWeights::Ones,
                per_cell,
                per_patch,
                per_octant,
            };
            let mut wanted = vec![false; CELLS];
            let stays = limits.mark_patch(&sums, &mut wanted);
            (wanted.iter().filter(|&&wanted| wanted).count(), stays)
        };
        assert_eq!(marks(10.0, 46.0, 13.0), (2, false));
        assert_eq!(marks(6.0, 46.0, 12.0), (4, true));
        assert_eq!(marks(12.0, 45.0, 40.0), (CELLS, false));
    }
}
