//! Gathers forces with the cloud of the deposit, and applies the kicks of particles.
//!
//! A level kicks its particles at the end of its step; `drift.rs` applies the first kick by the stored acceleration. What pairs
//! of particles feel by a coarser level (see `gravity/particle_potentials.rs`) kicks the particles of the finer level at the start
//! and at the end of the step of the coarser level, so that both bodies of a pair are kicked at the same times.

use super::Motion;
use super::audit;
use super::boundary_zone::{BoundaryZone, Kick, KickPart, cell_of};
use super::deposit::{DeepParticles, DepositWeights, PredictedPositions, WIDE_CLOUD, WIDE_ZONE};
use super::device::KickContext;
use super::drift;
use super::mass_quantum::MassQuantum;
use super::pages::{PAGE, Page, ParticleColumns, ParticlePages, ParticleReal};
use super::species::{Species, SpeciesMap};
use super::time_step::MaxMagnitudes;
use super::vector_window::{PageClouds, REACH, VectorWindow, reached};
use crate::fields::{Acceleration, PairAcceleration, gravity_strength};
use crate::order::{Advance, Aligned, Ready, Synchronise};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_device::Lane;
use nestar_engine::comm::Comm;
use nestar_engine::data::{Field, LevelRows};
use nestar_engine::device::DeviceError;
use nestar_engine::device::parallel::PerThread;
use nestar_engine::mesh::{LevelClock, Levels, Topology, parallel};
use nestar_engine::step::{AlignedLevels, FieldView, Read, SystemOptions, Write};
use nestar_engine::{Engine, Error, in_precision};
use nestar_kernels::PATCH;
use nestar_kernels::particles::cloud::centre;
use nestar_kernels::particles::motion::{in_parent, kicked, moved};
use std::ops::RangeInclusive;

/// Accelerations of the coarser level before and after its step, or only at the time of the particles.
///
/// The acceleration of a particle is interpolated in time between the values that its cloud gathers at its
/// own position at both times. The coarse density then has the cloud at the position of the gather. One
/// common position would be offset from the cloud, which causes a self-force.
struct CoarserStates<R> {
    states: Vec<VectorWindow<R>>,
    /// Weight of the later state.
    weight: R,
    /// Inverse patch width of the coarser level.
    per_width: [R; 3],
}

impl<R: ParticleReal> CoarserStates<R> {
    /// Gathers the acceleration of a particle of the finer level, whose patch has these indices within its parent.
    fn at_child<const W: usize>(
        &self,
        page: &Page<R>,
        n: usize,
        sides: [u32; 3],
        has_coarse_cloud: impl Fn([u64; 3], [i32; 3]) -> bool,
    ) -> [R; 3] {
        let offset = page.offset_of(n);
        let offset = [0, 1, 2].map(|axis| in_parent(offset[axis], sides[axis]));
        let velocity = Page::vector(&page.velocity, n);
        self.at::<W>(offset, velocity, true, true, has_coarse_cloud)
    }

    /// Gathers the acceleration of a moving particle. `has_coarse_cloud` tells at which of its positions the
    /// coarser level deposits the particle with a cloud of this width. `wide` tells that the particle is on the finer level; its
    /// cloud is `W` cells wide there.
    fn at<const W: usize>(
        &self,
        offset: [u64; 3],
        velocity: [R; 3],
        wide: bool,
        own: bool,
        has_coarse_cloud: impl Fn([u64; 3], [i32; 3]) -> bool,
    ) -> [R; 3] {
        let state = |around: &VectorWindow<R>| {
            let (mut there, mut step) = (offset, [0; 3]);
            for axis in 0..3 {
                let by = velocity[axis] * (around.time_offset * self.per_width[axis]);
                (there[axis], step[axis]) = moved(offset[axis], by.to_f64(), 64);
            }
            let gathered = match wide && W < WIDE_CLOUD {
                true => around.at::<WIDE_CLOUD, REACH>(
                    there.map(|offset| centre(offset, 60)),
                    step,
                    own,
                ),
                false => around.at::<W, REACH>(there, step, own),
            };
            (gathered, has_coarse_cloud(there, step))
        };
        match &self.states[..] {
            [old, new] => match (state(old), state(new)) {
                ((_, false), (new, true)) => new,
                ((old, true), (_, false)) => old,
                ((old, _), (new, _)) => [0, 1, 2].map(|a| old[a] + self.weight * (new[a] - old[a])),
            },
            states => state(&states[0]).0,
        }
    }
}

/// Returns the cell of a child, counted from its first cell, for an offset in or near the parent.
fn cell_in_child(offset: [u64; 3], step: [i32; 3], sides: [u32; 3]) -> [i32; 3] {
    let halves = offset.map(|offset| (offset >> 60) as i32);
    let side = PATCH as i32;
    [0, 1, 2].map(|a| halves[a] + 2 * side * step[a] - side * sides[a] as i32)
}

/// Accelerations of a particle by the coarser level and by its own, which are added up.
struct Parts<R> {
    coarser: Option<[R; 3]>,
    own: Option<[R; 3]>,
    /// `true` outside the boundary zone.
    is_deep: bool,
}

impl<R: ParticleReal> Parts<R> {
    /// Kicks a particle along an axis and changes its stored acceleration.
    fn apply(&self, axis: usize, kick: Kick, half: R, velocity: &mut R, stored: &mut R) {
        let zero = R::lit(0.0);
        let mut kept = if kick == Kick::Change { *stored } else { zero };
        let mut sum = match kick {
            Kick::Start | Kick::End if self.is_deep => *stored,
            _ => zero,
        };
        let parts = [&self.coarser, &self.own].into_iter().flatten();
        for (n, part) in parts.enumerate() {
            *velocity = kicked(*velocity, part[axis] - kept, half);
            kept = zero;
            sum = match kick {
                Kick::Start if self.is_deep => sum - part[axis],
                Kick::Start => zero,
                Kick::End if self.is_deep => sum + part[axis],
                _ if n == 0 => part[axis],
                _ => sum + part[axis],
            };
        }
        *stored = sum;
    }
}

/// Gathers forces and kicks the particles of a level.
struct ClosingKick<'a, R: ParticleReal, F: Field> {
    topology: &'a Topology,
    motion: &'a Motion,
    /// Width of the coarse-fine boundary zone in coarse cells.
    zone: usize,
    /// `true` to gather the acceleration by the own potential of each level, if the field has it.
    own_potential: bool,
    part: KickPart,
    field: &'a FieldView<'a, F>,
    /// Time of the closing kick.
    time: f64,
    /// Length of the kick: half the step.
    half: R,
    kick: Kick,
    /// Weights of particles at the end of a step of their level.
    deep: DeepParticles,
}

impl<R: ParticleReal, F: Field> ClosingKick<'_, R, F> {
    /// Returns `true` if the coarser level is at another time and has nothing to correct.
    fn is_redundant(&self) -> bool {
        let has_coarser = self.field.level() > 0;
        self.kick == Kick::Change && has_coarser && self.field.coarser_time() > self.time
    }

    /// Returns the positions of particles at the times of the states of [`DeepParticles`].
    fn zone_positions(&self) -> PredictedPositions<R> {
        let width = self.topology.domain.cell_width(self.field.level());
        let cells = PATCH as f64;
        PredictedPositions {
            dt: R::lit(0.0),
            per_width: width.map(|width| R::lit(1.0 / (cells * width))),
            most: 1.0 / cells,
            weights: DepositWeights::Ones,
            one: 1,
            zone_times: self.deep.states.map(R::lit),
            newer: self.deep.newer,
        }
    }

    /// Reads the accelerations around a patch of the level.
    fn read_own(&self, row: u32, own: &mut VectorWindow<R>) -> Result<(), DeviceError> {
        self.field.window(row, (REACH, u32::MAX), &mut own.values)?;
        own.extrapolate::<REACH>(self.topology.neighbours(row), self.motion.walls);
        Ok(())
    }

    /// Reads the accelerations around a patch of the coarser level.
    fn coarser_states(&self, row: u32) -> Result<CoarserStates<R>, DeviceError> {
        let states = self.field.coarser_windows::<R>(row, REACH, self.time)?;
        let weight = match states[..] {
            [(old, _), (new, _)] => (self.time - old) / (new - old),
            _ => 1.0,
        };
        let is_only_state = states.len() == 1;
        let level = self.field.level() - 1;
        let width = self.topology.domain.cell_width(level);
        let neighbours = self.topology.neighbours(row);
        let around = |(time, values): (f64, Vec<R>)| {
            let time_offset = R::lit(if is_only_state { 0.0 } else { time - self.time });
            let mut window = VectorWindow {
                values,
                time_offset,
            };
            window.extrapolate::<REACH>(neighbours, self.motion.walls);
            window
        };
        Ok(CoarserStates {
            states: states.into_iter().map(around).collect(),
            weight: R::lit(weight),
            per_width: width.map(|width| R::lit(1.0 / (PATCH as f64 * width))),
        })
    }

    /// Kicks the particles of an own leaf and stores their accelerations; clouds are `W` cells wide.
    fn kick_leaf<const W: usize>(
        &self,
        columns: ParticleColumns,
        row: u32,
        rows: &mut ParticlePages,
        own: &mut VectorWindow<R>,
    ) -> Result<(), DeviceError> {
        if self.part != KickPart::All && self.field.level() > 0 {
            return self.kick_part_of_leaf::<W>(columns, row, rows, own);
        }
        let zone = BoundaryZone::of(self.topology, row, self.zone);
        let around = self.topology.neighbours(row);
        if !zone.has_inner() && around.iter().all(|&beside| beside >= 0) {
            let pages = rows.read_pages::<R>(columns);
            let wanted = pages.fold(0, |all, (page, count)| all | reached::<R, W>(&page, count));
            self.field.window(row, (1, wanted), &mut own.values)?;
            let own = own.components::<1>(self.own_potential);
            self.kick(columns, rows, |page| {
                let clouds = PageClouds::<R, W, 1>::of(page);
                move |_: &Page<R>, n| clouds.gather_cloud(own, n)
            });
            return Ok(());
        }
        self.read_own(row, own)?;
        let is_redundant = self.is_redundant();
        let parent = match self.topology.parent(row) {
            Some(parent) if zone.has_inner() && !is_redundant => Some(self.coarser_states(parent)?),
            _ => None,
        };
        let sides = self.topology.index(row).map(|i| (i & 1) as u32);
        let (own, parent, zone) = (&*own, parent.as_ref(), &zone);
        self.kick(columns, rows, |_| {
            move |page: &Page<R>, n| {
                let offset = page.offset_of(n);
                let is_inner = zone.is_inner(cell_of(offset, [0; 3]));
                match parent.filter(|_| is_inner) {
                    Some(parent) => parent.at_child::<W>(page, n, sides, |offset, step| {
                        self.zone >= WIDE_ZONE || zone.is_inner(cell_in_child(offset, step, sides))
                    }),
                    None if is_inner && is_redundant => Page::vector(&page.acceleration, n),
                    None => own.at::<W, REACH>(offset, [0; 3], self.own_potential),
                }
            }
        });
        Ok(())
    }

    /// Kicks the particles of an own leaf that are in the boundary zone, or those that are not.
    fn kick_part_of_leaf<const W: usize>(
        &self,
        columns: ParticleColumns,
        row: u32,
        rows: &mut ParticlePages,
        own: &mut VectorWindow<R>,
    ) -> Result<(), DeviceError> {
        let (deep, zone) = (
            self.part == KickPart::Deep,
            BoundaryZone::of(self.topology, row, self.zone),
        );
        if !deep && !zone.has_inner() {
            return Ok(());
        }
        if self.kick == Kick::Level {
            return self.kick_by_own_level::<W>(columns, row, rows, own);
        }
        // at another time, the coarser level has no part in the stored acceleration
        let parent = (self.topology.parent(row)).filter(|_| !self.is_redundant());
        let parent = parent.map(|parent| self.coarser_states(parent));
        let parent = parent.transpose()?;
        let has_own = deep && !matches!(self.kick, Kick::Start | Kick::End);
        if has_own {
            self.read_own(row, own)?;
        }
        let sides = self.topology.index(row).map(|i| (i & 1) as u32);
        let (own, parent, zone) = (&*own, parent.as_ref(), &zone);
        let own = |page: &Page<R>, n| own.at::<W, REACH>(page.offset_of(n), [0; 3], false);
        self.kick_parts(columns, rows, |page, n| {
            let is_deep = !zone.is_inner(cell_of(page.offset_of(n), [0; 3]));
            let is_kicked = is_deep == deep && (has_own || parent.is_some());
            is_kicked.then(|| Parts {
                coarser: parent.map(|parent| parent.at_child::<W>(page, n, sides, |_, _| true)),
                own: has_own.then(|| own(page, n)),
                is_deep,
            })
        });
        Ok(())
    }

    /// Kicks the particles of an own leaf by its level, with the weights that they have in the source of the potential.
    fn kick_by_own_level<const W: usize>(
        &self,
        columns: ParticleColumns,
        row: u32,
        rows: &mut ParticlePages,
        own: &mut VectorWindow<R>,
    ) -> Result<(), DeviceError> {
        self.read_own(row, own)?;
        let zone = BoundaryZone::of(self.topology, row, self.zone);
        let (own, seen) = (&*own, self.zone_positions());
        self.kick_parts(columns, rows, |page, n| {
            let part = match zone.has_inner() {
                true => seen.deep_part(page, n, &zone, 1 << 32),
                false => 1 << 32,
            };
            let weight = R::lit(part as f64 / 4_294_967_296.0);
            let weighted = || {
                let a = own.at::<W, REACH>(page.offset_of(n), [0; 3], false);
                a.map(|a| a * weight)
            };
            Some(Parts {
                coarser: None,
                own: (part > 0).then(weighted),
                is_deep: part > 0,
            })
        });
        Ok(())
    }

    /// Kicks those particles for which `gathered` returns accelerations, and caches the largest velocities.
    fn kick_parts(
        &self,
        columns: ParticleColumns,
        rows: &mut ParticlePages,
        gathered: impl Fn(&Page<R>, usize) -> Option<Parts<R>>,
    ) {
        let mut largest = MaxMagnitudes::default();
        for (page, count) in rows.pages::<R>(columns) {
            for n in 0..count {
                let Some(parts) = gathered(&page, n) else {
                    continue;
                };
                for axis in 0..3 {
                    let (velocity, stored) =
                        (&mut page.velocity[axis][n], &mut page.acceleration[axis][n]);
                    parts.apply(axis, self.kick, self.half, velocity, stored);
                }
            }
            largest.include(&page, count);
        }
        rows.cache_largest(largest.sizes());
    }

    /// Kicks the particles that the level moves in a leaf of the coarser level.
    fn kick_coarser_leaf<const W: usize>(
        &self,
        columns: ParticleColumns,
        row: u32,
        rows: &mut ParticlePages,
    ) -> Result<(), DeviceError> {
        if self.is_redundant() {
            return Ok(());
        }
        let around = &self.coarser_states(row)?;
        let gathered = |page: &Page<R>, n| {
            let (offset, velocity) = (page.offset_of(n), Page::vector(&page.velocity, n));
            around.at::<W>(offset, velocity, false, self.own_potential, |_, _| true)
        };
        match self.part {
            KickPart::All => self.kick(columns, rows, |_| gathered),
            _ => self.kick_parts(columns, rows, |page, n| {
                Some(Parts {
                    coarser: Some(gathered(page, n)),
                    own: None,
                    is_deep: false,
                })
            }),
        }
        Ok(())
    }

    /// Kicks particles page by page with the accelerations that `gathered` returns, and caches the largest
    /// velocities.
    #[inline(always)]
    fn kick<G: Fn(&Page<R>, usize) -> [R; 3]>(
        &self,
        columns: ParticleColumns,
        rows: &mut ParticlePages,
        gathered: impl Fn(&Page<R>) -> G,
    ) {
        let mut largest = MaxMagnitudes::default();
        for (page, count) in rows.pages::<R>(columns) {
            let (gathered, mut all) = (gathered(&page), [[R::lit(0.0); PAGE]; 3]);
            for n in 0..count {
                let a = gathered(&page, n);
                for axis in 0..3 {
                    all[axis][n] = a[axis];
                }
            }
            // whole pages, so that the loops vectorise
            for (axis, a) in all.iter().enumerate() {
                for n in 0..PAGE {
                    let kept = if self.kick == Kick::Change {
                        page.acceleration[axis][n]
                    } else {
                        R::lit(0.0)
                    };
                    let velocity = &mut page.velocity[axis][n];
                    *velocity = kicked(*velocity, a[n] - kept, self.half);
                }
                *page.acceleration[axis] = *a;
            }
            largest.include(&page, count);
        }
        rows.cache_largest(largest.sizes());
    }

    /// Kicks all particles that the level moves; clouds are `W` cells wide.
    fn all<const W: usize>(&self, species: &mut Species, level: usize) -> Result<(), DeviceError> {
        let columns = species.pool.columns;
        let blocks = PerThread::new(|| VectorWindow {
            values: Vec::new(),
            time_offset: R::lit(0.0),
        });
        for (level, own) in [(Some(level), true), (level.checked_sub(1), false)] {
            let rows = level.map_or(&[][..], |level| self.topology.rows(level));
            let mut detached = species.take_patches(rows.iter().copied());
            let kicked = parallel::map_mut(&mut detached, |_, (row, [here, fine])| match own {
                true if here.count() > 0 => {
                    self.kick_leaf::<W>(columns, *row, here, &mut blocks.get())
                }
                false if fine.count() > 0 && self.part != KickPart::Deep => {
                    self.kick_coarser_leaf::<W>(columns, *row, fine)
                }
                _ => Ok(()),
            });
            let kicked: Result<(), DeviceError> = kicked.into_iter().collect();
            species.restore_patches(detached);
            kicked?;
        }
        Ok(())
    }
}

/// A field of accelerations.
trait KickField: Field {
    /// Particles that the field kicks if there is [`PairAcceleration`].
    const PART: KickPart;
}

impl KickField for Acceleration {
    const PART: KickPart = KickPart::Others;
}

impl KickField for PairAcceleration {
    const PART: KickPart = KickPart::Deep;
}

/// Time and length of a kick.
#[derive(Clone, Copy)]
struct KickStep {
    time: f64,
    half: f64,
    kick: Kick,
    /// Weights of particles at the end of a step of their level.
    deep: DeepParticles,
}

/// Kicks the particles of a species that a level moves, on the host or on a device. `strength` is the factor of accelerations.
fn kick<F: KickField>(
    species: &mut Species,
    topology: &Topology,
    motion: &Motion,
    field: &FieldView<F>,
    step: KickStep,
    strength: f64,
) -> Result<(), DeviceError> {
    let (tables, zone) = (field.place().tables, motion.zone_of(species));
    let part = match motion.has_pairs && zone > 0 {
        true => F::PART,
        false if F::PART == KickPart::Deep => return Ok(()),
        false => KickPart::All,
    };
    let KickStep {
        time,
        half,
        kick,
        deep,
    } = step;
    let half = half * strength;
    if !part.receives(kick, field.level()) {
        return Ok(());
    }
    if let Some((lists, tables)) = species.upload(topology, tables)?.zip(tables) {
        return lists.kick(&KickContext {
            topology,
            tables,
            motion,
            zone,
            part,
            field,
            time,
            half,
            kick,
            deep,
        });
    }
    in_precision!(species.precision(), R => {
        let force = ClosingKick::<R, F> {
            topology,
            motion,
            zone,
            own_potential: zone > 0,
            part,
            field,
            time,
            half: R::lit(half),
            kick,
            deep,
        };
        let level = field.level();
        match motion.cloud {
            1 => force.all::<1>(species, level),
            2 => force.all::<2>(species, level),
            _ => force.all::<3>(species, level),
        }
    })
}

/// Registers the systems of the kicks.
pub(super) fn register(sim: &mut Engine) {
    let has_pairs = sim.world.resource::<Motion>().has_pairs;
    exchanges_own_halos(&mut sim.system_in(Ready::Recompute, set_initial_acceleration));
    sim.system_in(Advance::Correct, close_kick)
        .keeps_particles()
        .optional::<PairAcceleration>();
    exchanges_own_halos(&mut sim.system_in(Aligned::Correct, correct_kick));
    if has_pairs {
        exchanges_own_halos(
            sim.system_in(Advance::Predict, start_coarser_kick)
                .after(drift::drift_particles)
                .after(audit::check_particles_after_drift),
        );
        exchanges_own_halos(&mut sim.system_in(Synchronise::Correct, end_coarser_kick));
    }
}

/// Declares that a system with [`KickFields`] exchanges their halos itself.
fn exchanges_own_halos(system: &mut SystemOptions) {
    system
        .keeps_particles()
        .manages_own_halo::<PairAcceleration>()
        .manages_own_halo::<Acceleration>()
        .optional::<PairAcceleration>();
}

/// Particles that fall, and what their kicks depend on.
#[derive(SystemParam)]
struct FallingParticles<'w> {
    topology: Res<'w, Topology>,
    levels: Res<'w, Levels>,
    motion: Res<'w, Motion>,
    species: ResMut<'w, SpeciesMap>,
}

impl FallingParticles<'_> {
    /// Kicks the particles that the level of a field moves.
    fn kick<F: KickField>(&mut self, field: &FieldView<F>, step: KickStep) -> Result<(), Error> {
        let strength = gravity_strength(&self.levels, step.time);
        for species in self.species.falling() {
            kick(species, &self.topology, &self.motion, field, step, strength)?;
        }
        Ok(())
    }
}

/// The acceleration fields; the pair acceleration exists only if particles use the pair potentials.
#[derive(SystemParam)]
struct KickFields<'w, 's> {
    of_pairs: Option<Write<'w, 's, PairAcceleration, REACH>>,
    of_all: Write<'w, 's, Acceleration, REACH>,
    ranks: Comm<'w>,
}

impl KickFields<'_, '_> {
    /// Updates the halos of some levels and kicks particles on the levels of `steps`, first by the field of pairs.
    fn kick(
        &mut self,
        particles: &mut FallingParticles,
        levels: RangeInclusive<usize>,
        steps: &[(usize, KickStep)],
    ) -> Result<(), Error> {
        if let Some(field) = &mut self.of_pairs {
            kick_by(field, &mut self.ranks, particles, levels.clone(), steps)?;
        }
        kick_by(&mut self.of_all, &mut self.ranks, particles, levels, steps)
    }
}

/// Updates the halos of a field on some levels and kicks particles by it on the levels of `steps`.
fn kick_by<F: KickField>(
    field: &mut Write<F, REACH>,
    ranks: &mut Comm,
    particles: &mut FallingParticles,
    mut levels: RangeInclusive<usize>,
    steps: &[(usize, KickStep)],
) -> Result<(), Error> {
    levels.try_for_each(|level| field.refresh_on(ranks, level))?;
    let mut steps = steps.iter();
    steps.try_for_each(|&(level, step)| particles.kick(&field.get_on(level, REACH)?, step))
}

/// Applies the closing kick to the particles that the current level moves.
fn close_kick(
    mut particles: FallingParticles,
    clock: Res<LevelClock>,
    of_pairs: Option<Read<PairAcceleration, REACH>>,
    of_all: Read<Acceleration, REACH>,
) -> Result<(), Error> {
    let step = KickStep {
        time: clock.end,
        half: 0.5 * clock.dt,
        kick: Kick::Level,
        deep: DeepParticles::in_step(clock.level, clock.end, &particles.levels),
    };
    if let Some(field) = of_pairs {
        particles.kick(&field.get(REACH)?, step)?;
    }
    particles.kick(&of_all.get(REACH)?, step)
}

/// Kicks all particles that the level finer than the current one moves, by half a step of the current level.
fn kick_finer(
    particles: &mut FallingParticles,
    clock: &LevelClock,
    fields: &mut KickFields,
    kick: Kick,
) -> Result<(), Error> {
    let finer = clock.level + 1;
    // the initial hierarchy is synchronised without a step
    if finer > particles.topology.finest() || clock.dt == 0.0 {
        return Ok(());
    }
    let step = KickStep {
        time: particles.levels.time(finer),
        half: 0.5 * clock.dt,
        kick,
        deep: DeepParticles::now(finer),
    };
    fields.kick(particles, clock.level..=finer, &[(finer, step)])
}

/// Kicks the particles of the next finer level at the start of the step of a level.
fn start_coarser_kick(
    mut particles: FallingParticles,
    clock: Res<LevelClock>,
    mut fields: KickFields,
) -> Result<(), Error> {
    kick_finer(&mut particles, &clock, &mut fields, Kick::Start)
}

/// Kicks the particles of the next finer level at the end of the step of a level, which they have reached.
fn end_coarser_kick(
    mut particles: FallingParticles,
    clock: Res<LevelClock>,
    mut fields: KickFields,
) -> Result<(), Error> {
    kick_finer(&mut particles, &clock, &mut fields, Kick::End)
}

/// Corrects the closing kicks when levels are synchronised. At a closing kick a level does not yet know the
/// contribution of finer levels to its potential. It uses that of the step before.
fn correct_kick(
    mut particles: FallingParticles,
    aligned: Res<AlignedLevels>,
    mut fields: KickFields,
) -> Result<(), Error> {
    if aligned.coarsest >= aligned.finest {
        return Ok(());
    }
    let step = |level: usize| {
        // an error of the potential around a level grows through the step of the coarser one
        let since = level.saturating_sub(1).max(aligned.coarsest);
        let step = KickStep {
            time: particles.levels.time(level),
            half: 0.5 * particles.levels.clock(since).dt,
            kick: Kick::Change,
            deep: DeepParticles::now(level),
        };
        (level, step)
    };
    let steps: Vec<(usize, KickStep)> = aligned.levels().map(step).collect();
    fields.kick(&mut particles, aligned.levels(), &steps)
}

/// Computes the accelerations of all particles before the first step, unless they were restored.
fn set_initial_acceleration(
    rows: LevelRows,
    mut particles: FallingParticles,
    mut quantum: ResMut<MassQuantum>,
    mut fields: KickFields,
) -> Result<(), Error> {
    let finest = rows.finest();
    if rows.is_estimate() || rows.level() < finest {
        return Ok(());
    }
    let step = |level: usize| {
        let step = KickStep {
            time: particles.levels.time(level),
            half: 0.0,
            kick: Kick::Whole,
            deep: DeepParticles::now(level),
        };
        (level, step)
    };
    let mut steps: Vec<(usize, KickStep)> = (0..=finest).map(step).collect();
    if std::mem::replace(&mut quantum.has_accelerations, true) {
        steps.clear();
    }
    fields.kick(&mut particles, 0..=finest, &steps)
}
