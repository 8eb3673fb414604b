//! Predicts particles: half a kick, drift, and the destination of each particle that leaves its patch.
//!
//! A level moves the particles in its own leaves, and those in leaves of the next coarser level that are
//! entering or have left finer patches. A particle changes its level only here, at the start of a step of the
//! coarser level, when both levels are synchronised. A particle that would enter a finer patch in this step
//! is deferred to the finer level, which has shorter steps.

use super::boundary_zone::is_beyond;
use super::mass_quantum::MassQuantum;
use super::pages::{PAGE, Page, ParticlePages, ParticleReal};
use super::patch_exchange::{DriftResult, Escaped, Outgoing, exchange};
use super::species::{PatchParticles, Species, SpeciesMap};
use super::{Motion, device, wall_bits};
use crate::fields::SCALE_FACTOR;
use bevy_ecs::prelude::*;
use nestar_engine::comm::Comm;
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::data::{LevelRows, Precision};
use nestar_engine::mesh::{LevelClock, Topology, offset, parallel};
use nestar_engine::step::Remarks;
use nestar_engine::{Error, in_precision};
use nestar_kernels::mesh::{SELF, direction};
use nestar_kernels::particles::cloud::quanta_of;
use nestar_kernels::particles::motion::kicked;

/// Destination of a particle.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Destination {
    /// Stays in its patch.
    Stay,
    /// Moves to the neighbour patch in this direction (0 to 26).
    Patch(usize),
    /// Would enter a finer patch; unchanged, since the finer level moves it.
    Deferred,
    /// Leaves the domain.
    Escape,
    /// Has no finite position.
    Invalid,
}

/// Particles of a patch that change their list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transfer {
    /// Particles that would enter a finer patch.
    Deferred,
    /// Particles that stay in their patch.
    Staying,
}

/// Drift of the particles in patches of one level: the level of the step, or the next coarser one.
struct Drift<'a, R> {
    topology: &'a Topology,
    /// Level of the patches.
    level: usize,
    /// `true` if this is the level of the step.
    own: bool,
    /// Reflecting faces of the domain, `[axis][side]`.
    walls: [[bool; 2]; 3],
    /// Mass quanta per unit mass.
    quanta_per_mass: f64,
    /// Length of the kick.
    half: R,
    /// Step over patch width, by axis.
    rate: [R; 3],
}

/// The step of a level.
#[derive(Clone, Copy)]
struct PredictedStep {
    level: usize,
    dt: f64,
    /// Length of the kick: half the step times the factor of accelerations.
    half: f64,
}

impl PredictedStep {
    /// Returns the step of a clock. The stored accelerations are those of its begin.
    fn of(clock: &LevelClock) -> Self {
        Self {
            level: clock.level,
            dt: clock.dt,
            half: 0.5 * clock.dt * clock.numbers[SCALE_FACTOR],
        }
    }
}

/// Drifted particles of a page, before boundaries are applied.
struct PageMoves<R: ParticleReal> {
    offset: [[R::Offset; PAGE]; 3],
    velocity: [[R; PAGE]; 3],
    /// Destination directions (0 to 26); at least [`FAULT`] if the position is not finite.
    directions: [u32; PAGE],
}

/// Larger than any direction.
const FAULT: u32 = 32;

impl<'a, R: ParticleReal> Drift<'a, R> {
    fn of(
        topology: &'a Topology,
        level: usize,
        PredictedStep { dt, half, .. }: PredictedStep,
        own: bool,
        motion: &Motion,
        quanta_per_mass: f64,
    ) -> Self {
        let width = topology.domain.cell_width(level).map(|width| 8.0 * width);
        Self {
            topology,
            level,
            own,
            walls: motion.walls,
            quanta_per_mass,
            half: R::lit(half),
            rate: width.map(|width| R::lit(dt / width)),
        }
    }

    /// Kicks and drifts a page without a branch, so that the loops vectorise.
    #[inline(always)]
    fn moves(&self, page: &Page<R>) -> PageMoves<R> {
        let mut moves = PageMoves {
            offset: [*page.offset[0], *page.offset[1], *page.offset[2]],
            velocity: [*page.velocity[0], *page.velocity[1], *page.velocity[2]],
            directions: [0; PAGE],
        };
        // read all columns first, so that cache misses overlap
        for axis in 0..3 {
            for n in 0..PAGE {
                let velocity = &mut moves.velocity[axis][n];
                *velocity = kicked(*velocity, page.acceleration[axis][n], self.half);
            }
        }
        for (axis, stride) in [1, 3, 9].into_iter().enumerate() {
            for n in 0..PAGE {
                let by = (moves.velocity[axis][n] * self.rate[axis]).to_f64();
                let (offset, step) = R::moved(moves.offset[axis][n], by);
                moves.offset[axis][n] = offset;
                let fault = if by.abs() < 1.0 { 0 } else { FAULT };
                moves.directions[n] += (step + 1) as u32 * stride + fault;
            }
        }
        moves
    }

    /// Finds the destination of particle `n` and corrects its move: reflects it at walls and undoes the move
    /// if it is deferred.
    fn resolve(
        &self,
        around: &[i32; 27],
        page: &Page<R>,
        moves: &mut PageMoves<R>,
        n: usize,
    ) -> Destination {
        let destination = match moves.directions[n] {
            FAULT.. => Destination::Invalid,
            d => self.destination(around, offset(d as usize), moves, n),
        };
        if matches!(destination, Destination::Deferred | Destination::Invalid) {
            for axis in 0..3 {
                moves.offset[axis][n] = page.offset[axis][n];
                moves.velocity[axis][n] = page.velocity[axis][n];
            }
        }
        destination
    }

    /// Finds the destination of a particle that has moved by `step` patches.
    fn destination(
        &self,
        around: &[i32; 27],
        mut step: [i32; 3],
        moves: &mut PageMoves<R>,
        n: usize,
    ) -> Destination {
        let mut is_out = false;
        for axis in 0..3 {
            let (offset, velocity) = (&mut moves.offset[axis][n], &mut moves.velocity[axis][n]);
            if step[axis] != 0 && is_beyond(around, axis, step[axis]) {
                match self.walls[axis][usize::from(step[axis] > 0)] {
                    true => {
                        *offset = R::narrow(!R::widen(*offset));
                        *velocity = -*velocity;
                        step[axis] = 0;
                    }
                    false => is_out = true,
                }
            }
        }
        let d = direction(step);
        let beside = u32::try_from(around[d]);
        match d {
            _ if is_out => Destination::Escape,
            _ if self.own && beside.is_ok_and(|beside| !self.topology.is_leaf(beside)) => {
                Destination::Deferred
            }
            SELF => Destination::Stay,
            _ => Destination::Patch(d),
        }
    }

    /// Drifts the particles of a patch.
    fn patch(&self, species: &Species, row: u32, [here, fine]: &mut PatchParticles) -> Outgoing {
        let (pool, mut outgoing) = (&species.pool, Outgoing::default());
        if self.own {
            let mut back = ParticlePages::default();
            let staying = Some((&mut back, Transfer::Staying));
            self.drift_pages(species, row, fine, staying, &mut outgoing);
            let deferred = Some((fine, Transfer::Deferred));
            self.drift_pages(species, row, here, deferred, &mut outgoing);
            back.append_to(pool, here);
        } else {
            self.drift_pages(species, row, fine, None, &mut outgoing);
        }
        let (bytes, list) = (pool.columns.bytes(), u8::from(!self.own));
        outgoing.address(self.topology, self.level, row, bytes, list);
        outgoing
    }

    /// Drifts the particles of one list of a patch. `other` receives those that change the list.
    fn drift_pages(
        &self,
        species: &Species,
        row: u32,
        rows: &mut ParticlePages,
        mut other: Option<(&mut ParticlePages, Transfer)>,
        outgoing: &mut Outgoing,
    ) {
        if rows.count() == 0 {
            return;
        }
        let pool = &species.pool;
        let transfer = other.as_ref().map(|(_, transfer)| *transfer);
        let departing = self.move_pages(species, row, rows, transfer, outgoing);
        outgoing.reserve(departing.len(), pool.columns.bytes());
        // from the last to the first, since the last particle replaces a removed one
        for &(n, destination) in departing.iter().rev() {
            match (destination, &mut other) {
                (Destination::Patch(d), _) => outgoing.take(pool, rows, n, d),
                (Destination::Stay | Destination::Deferred, Some((other, _))) => {
                    rows.move_to(pool, n, other)
                }
                _ => rows.remove(pool, n),
            }
        }
    }

    /// Drifts particles in their pages. Returns those that leave the patch or change the list.
    fn move_pages(
        &self,
        species: &Species,
        row: u32,
        rows: &mut ParticlePages,
        transfer: Option<Transfer>,
        outgoing: &mut Outgoing,
    ) -> Vec<(usize, Destination)> {
        let around = self.topology.neighbours(row);
        let all = transfer == Some(Transfer::Staying);
        let mut departing = Vec::with_capacity(PAGE);
        for (number, (page, count)) in rows.pages::<R>(species.pool.columns).enumerate() {
            let mut moves = self.moves(&page);
            let mut marks = if all {
                u32::MAX
            } else {
                marks(&moves.directions)
            };
            marks &= u32::MAX >> (PAGE - count);
            while marks != 0 {
                let n = marks.trailing_zeros() as usize;
                marks &= marks - 1;
                let destination = self.resolve(around, &page, &mut moves, n);
                let goes = match destination {
                    Destination::Stay => transfer == Some(Transfer::Staying),
                    Destination::Deferred => transfer == Some(Transfer::Deferred),
                    Destination::Patch(_) => true,
                    Destination::Escape => {
                        let own = page.mass.get(n).map(|mass| mass.to_f64());
                        outgoing.lost.count += 1;
                        outgoing.escaped.push(page.id[n]);
                        outgoing.lost.mass +=
                            quanta_of(own.unwrap_or(species.mass), self.quanta_per_mass);
                        true
                    }
                    Destination::Invalid => {
                        outgoing.fault = outgoing.fault.max(Some(page.id[n]));
                        false
                    }
                };
                departing.extend(goes.then_some((PAGE * number + n, destination)));
            }
            for axis in 0..3 {
                *page.offset[axis] = moves.offset[axis];
                *page.velocity[axis] = moves.velocity[axis];
            }
        }
        departing
    }

    /// Drifts the particles of all patches of the level.
    fn all(&self, species: &mut Species) -> DriftResult {
        let rows = self.topology.rows(self.level);
        let mut patches = species.take_all_patches(rows.iter().copied());
        let shared = &*species;
        let outgoing = parallel::map_mut(&mut patches, |_, (row, patch)| {
            self.patch(shared, *row, patch)
        });
        let list = usize::from(!self.own);
        let drifted = exchange(self.topology, &shared.pool, &mut patches, list, outgoing);
        species.restore_patches(patches);
        drifted
    }
}

/// Returns the particles of a page that do not stay, as bits.
#[inline(always)]
fn marks(directions: &[u32; PAGE]) -> u32 {
    let mut marks = 0;
    for n in 0..PAGE {
        marks |= u32::from(directions[n] != SELF as u32) << n;
    }
    marks
}

/// Returns the drift step of a species on a device, if kernels move it.
fn device_step<'a>(
    topology: &'a Topology,
    tables: Option<&DeviceTopology>,
    taken: PredictedStep,
    motion: &Motion,
    quanta_per_mass: f64,
    species: &Species,
    others: &Comm,
) -> Option<device::DeviceStep<'a>> {
    let tables = tables.filter(|_| species.is_on_device())?;
    Some(device::DeviceStep {
        topology,
        tables: device::tables(tables),
        revision: tables.revision(),
        level: taken.level,
        dt: taken.dt,
        half: taken.half,
        walls: wall_bits(motion.walls),
        quanta_per_mass,
        mass: species.mass,
        follow: others.tracks_entities(species),
    })
}

/// Drifts a species on the host.
fn drift_on_host<R: ParticleReal>(
    topology: &Topology,
    taken: PredictedStep,
    motion: &Motion,
    quanta_per_mass: f64,
    species: &mut Species,
) -> DriftResult {
    let own = Drift::<R>::of(topology, taken.level, taken, true, motion, quanta_per_mass);
    let mut all = own.all(species);
    if let Some(below) = taken.level.checked_sub(1) {
        let coarser =
            Drift::<R>::of(topology, below, taken, false, motion, quanta_per_mass).all(species);
        all.parcels.extend(coarser.parcels);
        all.lost.count += coarser.lost.count;
        all.lost.mass += coarser.lost.mass;
        all.escaped.extend(coarser.escaped);
        all.fault = all.fault.max(coarser.fault);
    }
    all
}

/// Applies the opening half kick to the particles that the current level moves and drifts them to the end of
/// the step.
pub(super) fn drift_particles(
    rows: LevelRows,
    topology: Res<Topology>,
    clock: Res<LevelClock>,
    mut all: ResMut<SpeciesMap>,
    mut motion: ResMut<Motion>,
    mut quantum: ResMut<MassQuantum>,
    mut remarks: ResMut<Remarks>,
    mut others: Comm,
) -> Result<(), Error> {
    let mut lost = vec![Escaped::default(); all.0.len()];
    let tables = rows.view().tables;
    let taken = PredictedStep::of(&clock);
    for (n, species) in all.0.iter_mut().enumerate() {
        if motion.shuffle && clock.level == 0 {
            species.shuffle()?;
        }
        let quanta_per_mass = quantum.quanta_per_mass;
        let step = device_step(
            &topology,
            tables,
            taken,
            &motion,
            quanta_per_mass,
            species,
            &others,
        );
        let (mut drifted, counted) = match tables.zip(step.as_ref()) {
            Some((tables, step)) => species.begin_device_step(step, tables)?,
            None => in_precision!(species.precision(), R => {
                (drift_on_host::<R>(&topology, taken, &motion, quanta_per_mass, species), None)
            }),
        };
        lost[n] = drifted.lost;
        species.escaped.extend(drifted.escaped);
        species.forget_rows();
        let name = &species.name;
        let wrong = drifted.fault.map(|id| {
            format!(
                "particle {id} of particles.species.{name} would move by more than one patch in a step of {} of \
                 level {}, or to a position that is not finite: its velocity or acceleration is too large or not \
                 a number",
                clock.dt, clock.level
            )
        });
        if let Some(why) = others.first_error(wrong)? {
            return Err(Error::Setup(why));
        }
        let device_step = step.zip(counted);
        if let Some((step, counted)) = &device_step {
            let parcels = species.exchange(step, counted, &others)?;
            drifted.parcels.extend(parcels);
        }
        others.migrate(&topology, species, drifted.parcels)?;
        if let Some((step, counted)) = device_step {
            species.finish_device_step(&step, counted)?;
        }
    }
    motion.set_time(rows.level(), clock.end);
    let in_single = |species: &Species| species.precision() == Precision::Single;
    if all.falling().any(|species| in_single(species)) {
        remarks.0.extend(motion.coarse_positions(clock.dt));
    }
    remarks.0.extend(quantum.add_escaped(&lost, &others)?);
    Ok(())
}
