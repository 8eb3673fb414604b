//! Adds the particle density to the source of gravity.

use super::Motion;
use super::audit::{self, CoveredQuanta, LevelDeposit};
use super::deposit::{DeepParticles, Deposit, all_are_on_device};
use super::mass_quantum::MassQuantum;
use super::pages::ParticleReal;
use super::species::SpeciesMap;
use crate::fields::{InnerMatter, Matter, OuterMatter, ParticleDensity};
use crate::register::{GravitySources, prepare_update};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_device::{Real, device};
use nestar_engine::comm::Comm;
use nestar_engine::data::{Component, Field, FieldSpec, LevelRows, Prolong, Restrict};
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::{LevelClock, Levels, Topology, parallel};
use nestar_engine::step::{Read, Settings, Write};
use nestar_engine::{Engine, Error, in_precision};
use nestar_kernels::CELLS;

/// Total density including particles.
#[device]
fn with_particles<R: Real>(u: (R, R)) -> R {
    let (matter, particles) = u;
    matter + particles
}

fn spec() -> FieldSpec {
    let component = Component {
        units: "mass/length**3".into(),
        dimension: [-3, 1, 0],
        long_name: "density of particles".into(),
        ..Component::scalar("particle_density")
    };
    FieldSpec {
        components: vec![component],
        prolong: Prolong::None,
        restrict: Restrict::None,
        stored: false,
        ..FieldSpec::cells(&[])
    }
}

/// Registers the particle density and the system that computes it.
pub(super) fn register(sim: &mut Engine) -> Result<(), Error> {
    sim.register_field::<ParticleDensity>(spec())?;
    sim.world.insert_resource(CoveredQuanta::default());
    sim.world.init_resource::<CheckedTotal>();
    sim.gravity_source("particles", add_particle_density);
    if sim.deck.has("gravity") {
        prepare_update::<(Matter, ParticleDensity), with_particles>(sim);
    }
    if sim.world.resource::<Motion>().has_pairs {
        prepare_update::<(InnerMatter, Matter), without_particles>(sim);
        prepare_update::<(OuterMatter, Matter), without_particles>(sim);
        sim.gravity_source("pairs of particles", set_pair_densities);
    }
    Ok(())
}

/// Records that the total mass was checked once after the start.
#[derive(Resource, Default)]
struct CheckedTotal(bool);

/// Input of the particle density.
#[derive(SystemParam)]
struct DepositInput<'w> {
    topology: Res<'w, Topology>,
    clock: Res<'w, LevelClock>,
    levels: Res<'w, Levels>,
    motion: ResMut<'w, Motion>,
    quantum: Res<'w, MassQuantum>,
    settings: Res<'w, Settings>,
    covered: ResMut<'w, CoveredQuanta>,
    checked_total: ResMut<'w, CheckedTotal>,
}

/// Adds the particle density of a level to the total density, at the time of the level or the end of its
/// step.
fn add_particle_density(
    In(level): In<usize>,
    mut rows: LevelRows,
    mut input: DepositInput,
    mut species: ResMut<SpeciesMap>,
    mut density: Write<ParticleDensity>,
    mut matter: Write<Matter>,
    others: Comm,
) -> Result<(), Error> {
    if !rows.is_estimate() && !std::mem::replace(&mut input.checked_total.0, true) {
        input.quantum.check_total(&mut species, &others)?;
    }
    if !rows.is_estimate() {
        input.quantum.check_growth(&mut species, &others)?;
    }
    if rows.is_estimate() || input.quantum.quanta_per_mass == 0.0 {
        return Ok(());
    }
    rows.visit(level);
    if is_current(&input.topology, &input.levels, &input.motion, level) {
        matter.update::<with_particles>(&rows, &density, &[]);
        return Ok(());
    }
    input.motion.has_changed[level] = false;
    let time_offsets = input.motion.time_offsets(&input.levels, input.clock.end);
    let mut deposit = Deposit::new(
        &input.topology,
        &input.motion,
        input.quantum.quanta_per_mass,
        level,
        time_offsets,
    );
    let per_unit = 1.0 / (input.quantum.quanta_per_mass * input.topology.domain.cell_volume(level));
    let tables = rows.view().tables;
    if let Some(on) = species.kernels().zip(tables)
        && all_are_on_device(&species, deposit.clouds.weights)
        && !input.settings.run.audit
    {
        let view = density.change_on(level);
        let to = (view.device().bank(view.banks()[0]), per_unit);
        deposit.add_on_device(&mut species, &on.0, on.1, Some(to), &others)?;
        matter.update::<with_particles>(&rows, &density, &[]);
        return Ok(());
    }
    deposit.add_all(&mut species, tables)?;
    let sums = deposit.finish(&others)?;
    if input.settings.run.audit {
        let deposit = LevelDeposit {
            topology: &input.topology,
            level,
            sums: &sums,
            quanta_per_mass: input.quantum.quanta_per_mass,
        };
        audit::check_level(
            &deposit,
            &input.clock,
            &mut species,
            &mut input.covered,
            &others,
        )?;
    }
    in_precision!(density.precision(), R => {
        store_densities::<R, ParticleDensity>(&mut density, level, input.topology.rows(level), &sums, per_unit)?;
    });
    matter.update::<with_particles>(&rows, &density, &[]);
    Ok(())
}

/// Density of all matter without that of some particles.
#[device]
fn without_particles<R: Real>(u: (R, R)) -> R {
    let (particles, matter) = u;
    matter - particles
}

/// Sets the densities of a level that the potentials of pairs need, at the time of the level or the end of its step.
fn set_pair_densities(
    In(level): In<usize>,
    mut rows: LevelRows,
    input: DepositInput,
    mut species: ResMut<SpeciesMap>,
    matter: Read<Matter>,
    (mut inner, mut outer): (Write<InnerMatter>, Write<OuterMatter>),
    others: Comm,
) -> Result<(), Error> {
    if rows.is_estimate() || input.quantum.quanta_per_mass == 0.0 {
        return Ok(());
    }
    rows.visit(level);
    if level > 0 {
        let deep = DeepParticles::in_step(level, input.clock.end, &input.levels);
        input.set_density(&rows, level, deep, &mut species, &mut inner, &others)?;
        inner.update::<without_particles>(&rows, &matter, &[]);
    }
    if level < rows.finest() {
        let deep = DeepParticles::now(level + 1);
        input.set_density(&rows, level, deep, &mut species, &mut outer, &others)?;
        outer.update::<without_particles>(&rows, &matter, &[]);
    }
    Ok(())
}

impl DepositInput<'_> {
    /// Sets a density on a level to that of all particles but some.
    fn set_density<F: Field>(
        &self,
        rows: &LevelRows,
        level: usize,
        deep: DeepParticles,
        species: &mut SpeciesMap,
        density: &mut Write<F>,
        others: &Comm,
    ) -> Result<(), Error> {
        let (topology, per_mass) = (&*self.topology, self.quantum.quanta_per_mass);
        let time_offsets = self.motion.time_offsets(&self.levels, self.clock.end);
        let mut deposit = Deposit::new(topology, &self.motion, per_mass, level, time_offsets);
        deposit = deposit.without(deep);
        let per_unit = 1.0 / (per_mass * topology.domain.cell_volume(level));
        let tables = rows.view_of(level).tables;
        if let Some(on) = species.kernels().zip(tables)
            && all_are_on_device(species, deposit.clouds.weights)
        {
            let view = density.change_on(level);
            let to = (view.device().bank(view.banks()[0]), per_unit);
            return deposit.add_on_device(species, &on.0, on.1, Some(to), others);
        }
        deposit.add_all(species, tables)?;
        let sums = deposit.finish(others)?;
        in_precision!(density.precision(), R => {
            store_densities::<R, F>(density, level, topology.rows(level), &sums, per_unit)?;
        });
        Ok(())
    }
}

/// Returns `true` if the density of the latest step is still valid: the level is the finest and unchanged
/// since.
fn is_current(topology: &Topology, levels: &Levels, motion: &Motion, level: usize) -> bool {
    let is_fresh = |level: usize| levels.clock(level).since_regrid == 0;
    let lost_children = level < topology.max_level && is_fresh(level);
    let regridded = lost_children || (level > 0 && is_fresh(level - 1));
    let is_same = motion.is_at(level, levels.time(level)) && !motion.has_changed[level];
    level == topology.finest() && !regridded && is_same
}

/// Converts mass quanta, `[row][cell]`, to densities of a level.
fn store_densities<R: ParticleReal, F: Field>(
    density: &mut Write<F>,
    level: usize,
    rows: &[u32],
    sums: &[u64],
    per_unit: f64,
) -> Result<(), DeviceError> {
    let of = |&sum: &u64| R::lit(sum as i64 as f64 * per_unit);
    let view = density.change_on(level);
    if view.is_on_device() {
        let densities: Vec<R> = sums.iter().map(of).collect();
        return density.store_on(level, rows, &densities);
    }
    let present = view.present::<R>();
    parallel::for_each_index(rows.len(), 16, &|n| {
        // SAFETY: each row is visited once, and nothing else accesses the field.
        let densities = unsafe { present.row_mut(rows[n]) };
        let sums = &sums[n * CELLS..][..CELLS];
        densities
            .iter_mut()
            .zip(sums)
            .for_each(|(density, sum)| *density = of(sum));
    });
    Ok(())
}
