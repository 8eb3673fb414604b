//! Audits particles (`run.audit`): checks that particle counts and deposited mass are conserved to the last
//! quantum.

use super::device::ReductionContext;
use super::mass_quantum::MassQuantum;
use super::pages::ParticleReal;
use super::species::{Inventory, Species, SpeciesMap};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_engine::comm::Comm;
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::{AuditError, LevelClock, Levels, Topology};
use nestar_engine::step::AlignedLevels;
use nestar_engine::{Error, in_precision};
use nestar_kernels::particles::cloud::quanta_of;
use nestar_kernels::{CELLS, PATCH};

/// Deposited mass of the previous level in the cells that the next level covers.
#[derive(Resource, Default)]
pub(super) struct CoveredQuanta {
    level: usize,
    time: f64,
    quanta: u64,
}

/// Data read by the audit of all particles.
#[derive(SystemParam)]
pub(super) struct ParticleAudit<'w> {
    topology: Res<'w, Topology>,
    tables: Option<Res<'w, DeviceTopology>>,
    clock: Res<'w, LevelClock>,
    quantum: Res<'w, MassQuantum>,
    all: ResMut<'w, SpeciesMap>,
}

impl ParticleAudit<'_> {
    /// Checks that no species has gained or lost particles or mass since the last check, except through the
    /// domain faces. `when` describes the time for the message.
    ///
    /// # Errors
    /// The check fails; the device or another rank has failed.
    fn check_all(&mut self, others: &Comm, when: impl Fn() -> String) -> Result<(), Error> {
        let context = ReductionContext {
            topology: &self.topology,
            tables: self.tables.as_deref(),
            quanta_per_mass: self.quantum.quanta_per_mass,
        };
        for (species, lost) in self.all.0.iter_mut().zip(&self.quantum.lost) {
            let found = Inventory {
                count: others.sum(context.number(species))? + lost.count,
                quanta: others.sum(context.quanta(species)?)? + lost.mass,
            };
            let is_unknown = others.any(species.audited.is_none())?;
            let known = match species.audited {
                Some(known) if !is_unknown => known,
                _ => *species.audited.insert(found),
            };
            if known != found {
                return Err(Error::Audit(AuditError(change_message(
                    &species.name,
                    known,
                    found,
                    &when(),
                ))));
            }
        }
        Ok(())
    }

    fn step(&self) -> String {
        let LevelClock {
            level, step, end, ..
        } = *self.clock;
        format!("step {step} of level {level} to time {end}")
    }
}

/// Returns the message about a species whose count or mass has changed.
fn change_message(species: &str, known: Inventory, found: Inventory, when: &str) -> String {
    let (known, found, what) = match known.count == found.count {
        false => (known.count, found.count, "particles"),
        true => (known.quanta, found.quanta, "mass quanta"),
    };
    let (off, way) = (
        known.abs_diff(found),
        ["few", "many"][usize::from(found > known)],
    );
    format!(
        "{when}: particles.species.{species} has {found} {what}, including those that have left the domain, {off} \
         too {way}; a plugin that creates or removes particles must call `Species::recount`"
    )
}

/// Checks particles before a level drifts: a loss here happened between steps.
///
/// # Errors
/// As [`ParticleAudit::check_all`].
pub(super) fn check_particles_before_drift(
    mut audit: ParticleAudit,
    others: Comm,
) -> Result<(), Error> {
    let step = audit.step();
    audit.check_all(&others, || format!("before {step}"))
}

/// Checks particles after a level has drifted.
///
/// # Errors
/// As [`ParticleAudit::check_all`].
pub(super) fn check_particles_after_drift(
    mut audit: ParticleAudit,
    others: Comm,
) -> Result<(), Error> {
    let step = audit.step();
    audit.check_all(&others, || format!("after the drift of {step}"))
}

/// Checks particles when levels are synchronised.
///
/// # Errors
/// As [`ParticleAudit::check_all`].
pub(super) fn check_particles_of_aligned_levels(
    aligned: Res<AlignedLevels>,
    levels: Res<Levels>,
    mut audit: ParticleAudit,
    others: Comm,
) -> Result<(), Error> {
    // no inventory is known before the first step, and a dry run has no particles
    let mut all = audit.all.0.iter();
    if others.any(all.any(|species| species.audited.is_none()))? {
        return Ok(());
    }
    let level = *aligned.levels().start();
    let time = levels.time(level);
    audit.check_all(&others, || {
        format!("after synchronisation of levels {level} and finer at time {time}")
    })
}

/// Deposited mass of a level.
pub(super) struct LevelDeposit<'a> {
    pub topology: &'a Topology,
    pub level: usize,
    /// Mass quanta, `[own row][cell]`.
    pub sums: &'a [u64],
    /// Mass quanta per unit mass.
    pub quanta_per_mass: f64,
}

/// Checks the deposited mass of a level.
///
/// The root level must hold all mass. When levels are synchronised, a finer level must hold the mass that the
/// coarser level has in the covered cells.
///
/// # Errors
/// The check fails; another rank has failed.
pub(super) fn check_level(
    deposit: &LevelDeposit,
    clock: &LevelClock,
    all: &mut SpeciesMap,
    before: &mut CoveredQuanta,
    others: &Comm,
) -> Result<(), Error> {
    let &LevelDeposit {
        topology,
        level,
        sums,
        quanta_per_mass,
    } = deposit;
    let expected = match level {
        0 => {
            let own: Result<u64, DeviceError> = all
                .0
                .iter_mut()
                .map(|species| quanta(species, quanta_per_mass))
                .sum();
            Some(others.sum(own?)?)
        }
        _ if clock.level < level && (before.level, before.time) == (level - 1, clock.end) => {
            Some(before.quanta)
        }
        _ => None,
    };
    let found = others.sum(sums.iter().sum())?;
    *before = CoveredQuanta {
        level,
        time: clock.end,
        quanta: others.sum(covered(topology, level, sums))?,
    };
    match expected {
        Some(expected) if expected != found => Err(Error::Audit(AuditError(format!(
            "the cells of level {level} contain {found} mass quanta of particles instead of {expected}"
        )))),
        _ => Ok(()),
    }
}

/// Sums the mass quanta in cells that have children.
fn covered(topology: &Topology, level: usize, sums: &[u64]) -> u64 {
    debug_assert_eq!(CELLS, PATCH * PATCH * PATCH);
    let rows = topology.rows(level).iter().zip(sums.chunks_exact(CELLS));
    let refined = rows.filter(|(row, _)| !topology.is_leaf(**row));
    refined.flat_map(|(_, cells)| cells).sum()
}

/// Returns the mass of all particles of a species on this rank, in quanta.
///
/// # Errors
/// The device fails.
pub(super) fn quanta(species: &mut Species, quanta_per_mass: f64) -> Result<u64, DeviceError> {
    if !species.has_mass() {
        return Ok(0);
    }
    species.fetch()?;
    Ok(in_precision!(species.precision(), R => quanta_in::<R>(species, quanta_per_mass)))
}

fn quanta_in<R: ParticleReal>(species: &mut Species, quanta_per_mass: f64) -> u64 {
    let (columns, one) = (
        species.pool.columns,
        quanta_of(species.mass, quanta_per_mass),
    );
    let mut sum = 0;
    species.for_each_patch(|_, patch| {
        for (page, count) in patch
            .iter_mut()
            .flat_map(|rows| rows.read_pages::<R>(columns))
        {
            sum += match columns.masses {
                true => page.mass[..count]
                    .iter()
                    .map(|&mass| quanta_of(mass, quanta_per_mass))
                    .sum(),
                false => one * count as u64,
            };
        }
    });
    sum
}
