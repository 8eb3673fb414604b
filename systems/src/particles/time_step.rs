//! Limits the time step by the velocities and accelerations of particles.

use super::Motion;
use super::device::{DeviceParticles, ListId};
use super::pages::{PAGE, Page, ParticleColumns, ParticlePages, ParticleReal};
use super::species::{PatchParticles, Species, SpeciesMap};
use crate::fields::SCALE_FACTOR;
use bevy_ecs::prelude::*;
use nestar_engine::data::LevelRows;
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::{LevelClock, Topology, parallel};
use nestar_engine::step::StepLimits;
use nestar_engine::{Error, in_precision};
use nestar_kernels::PATCH;

/// Largest velocity and acceleration over the cell width, among the particles of a level and all finer ones.
#[derive(Clone, Copy, Debug, Default)]
struct MaxRates {
    velocity: f64,
    acceleration: f64,
}

impl MaxRates {
    /// Returns the rates for magnitudes of velocities, then accelerations, by axis.
    fn of(sizes: [f64; 6], width: [f64; 3]) -> Self {
        let along = |axis: usize| Self {
            velocity: sizes[axis] / width[axis],
            acceleration: sizes[axis + 3] / width[axis],
        };
        along(0).with(along(1)).with(along(2))
    }

    /// Returns the maximum of both; NaN is kept.
    fn with(self, other: Self) -> Self {
        let larger = |a: f64, b: f64| if a >= b || a.is_nan() { a } else { b };
        Self {
            velocity: larger(self.velocity, other.velocity),
            acceleration: larger(self.acceleration, other.acceleration),
        }
    }
}

/// Proposes the time step of the current level. A particle may cross at most `courant` cells along an axis,
/// and its acceleration is limited by `acceleration`; tracers have the limits of the gas. Particles of finer
/// levels are included, since this level's deposit predicts them to the end of its step.
pub(super) fn limit_by_particles(
    rows: LevelRows,
    topology: Res<Topology>,
    clock: Res<LevelClock>,
    mut motion: ResMut<Motion>,
    mut all: ResMut<SpeciesMap>,
    mut limits: ResMut<StepLimits>,
) -> Result<(), Error> {
    if rows.is_estimate() {
        limits.leave_out("particles");
        limits.leave_out("particle acceleration");
        return Ok(());
    }
    let width = topology.domain.cell_width(rows.level());
    let mut fastest = MaxRates::default();
    let tables = rows.view().tables;
    for species in all.falling() {
        if let Some((lists, tables)) = species.upload(&topology, tables)?.zip(tables) {
            fastest = fastest.with(on_device(lists, &topology, tables, rows.level(), width)?);
            continue;
        }
        in_precision!(species.precision(), R => {
            fastest = fastest.with(of_level::<R>(species, &topology, rows.level(), width));
        });
    }
    if limits.wants_places() {
        tell_fastest(&mut all, &topology, &rows, &mut limits)?;
    }
    motion.fastest = fastest.velocity;
    limits.propose("particles", motion.courant / fastest.velocity);
    if motion.acceleration > 0.0 {
        let dt = motion.acceleration / (fastest.acceleration * clock.numbers[SCALE_FACTOR]).sqrt();
        limits.propose("particle acceleration", dt);
    }
    Ok(())
}

/// Returns the rates of a level for particles on a device.
fn on_device(
    lists: &mut DeviceParticles,
    topology: &Topology,
    tables: &DeviceTopology,
    level: usize,
    width: [f64; 3],
) -> Result<MaxRates, DeviceError> {
    let mut fastest = MaxRates::default();
    for host in level.saturating_sub(1)..=topology.finest() {
        for list in [0, 1].into_iter().filter(|list| host + list >= level) {
            let largest = lists.largest(topology, tables, ListId { level: host, list })?;
            fastest = fastest.with(MaxRates::of(largest, width));
        }
    }
    Ok(fastest)
}

/// Returns the rates of a level for particles on the host.
fn of_level<R: ParticleReal>(
    species: &mut Species,
    topology: &Topology,
    level: usize,
    width: [f64; 3],
) -> MaxRates {
    let columns = species.pool.columns;
    let mut fastest = MaxRates::default();
    for host in level.saturating_sub(1)..=topology.finest() {
        let mut detached = species.take_patches(topology.rows(host).iter().copied());
        // in the next coarser level only the particles that this level moves
        let of_patch = |_, (_, patch): &mut (u32, PatchParticles)| {
            let lists = patch[usize::from(host < level)..].iter_mut();
            let found =
                lists.map(|rows| rows.largest(|rows| MaxMagnitudes::<R>::of(rows, columns)));
            found.fold(MaxRates::default(), |all, sizes| {
                all.with(MaxRates::of(sizes, width))
            })
        };
        let patches = parallel::map_mut(&mut detached, of_patch);
        fastest = patches.into_iter().fold(fastest, MaxRates::with);
        species.restore_patches(detached);
    }
    fastest
}

/// Particle with the largest velocity or acceleration over the cell width.
struct Fastest {
    rate: f64,
    text: String,
}

/// Describes the fastest particle of this rank, and the one with the largest acceleration, for messages.
fn tell_fastest(
    all: &mut SpeciesMap,
    topology: &Topology,
    rows: &LevelRows,
    limits: &mut StepLimits,
) -> Result<(), DeviceError> {
    let names = ["particles", "particle acceleration"];
    let mut found: [Option<Fastest>; 2] = [None, None];
    for species in all.falling() {
        species.fetch()?;
        in_precision!(species.precision(), R => fastest_of::<R>(species, topology, rows.level(), &mut found));
    }
    for (name, found) in names.into_iter().zip(found) {
        if let Some(Fastest { rate, text }) = found {
            limits.place(name, 1.0 / rate, text);
        }
    }
    Ok(())
}

/// Replaces the particles in `found` by faster ones of a species on the host.
fn fastest_of<R: ParticleReal>(
    species: &mut Species,
    topology: &Topology,
    level: usize,
    found: &mut [Option<Fastest>; 2],
) {
    let (columns, name) = (species.pool.columns, species.name.clone());
    let width = topology.domain.cell_width(level);
    let visit = |row: u32, patch: &mut PatchParticles| {
        let host = topology.level(row).unwrap_or(0);
        if host + 1 < level {
            return;
        }
        let own = topology.domain.cell_width(host);
        let corner = topology.origin(row);
        for list in &mut patch[usize::from(host < level)..] {
            for (page, count) in list.read_pages::<R>(columns) {
                for n in 0..count {
                    let vectors = [&page.velocity, &page.acceleration];
                    let vectors = vectors.map(|of| Page::vector(of, n).map(|v| v.to_f64()));
                    for ((vector, what), found) in (vectors.into_iter())
                        .zip(["velocity", "acceleration"])
                        .zip(found.iter_mut())
                    {
                        let rates = [0, 1, 2].map(|a| (vector[a] / width[a]).abs());
                        let is_number = rates.iter().all(|rate| rate.is_finite());
                        let rate = match is_number {
                            true => rates.into_iter().fold(0.0, f64::max),
                            false => f64::INFINITY,
                        };
                        if found.as_ref().is_some_and(|found| rate <= found.rate) {
                            continue;
                        }
                        let offset = page.offset_of(n);
                        let place: [f64; 3] = std::array::from_fn(|a| {
                            let cells = offset[a] as f64 / u64::MAX as f64 * PATCH as f64;
                            topology.domain.left_edge[a] + (f64::from(corner[a]) + cells) * own[a]
                        });
                        let text = format!(
                            "particle {} of particles.species.{name} at {place:?} with {what} {vector:?}",
                            page.id[n]
                        );
                        *found = Some(Fastest { rate, text });
                    }
                }
            }
        }
    };
    species.for_each_patch(visit);
}

/// Lanes that are compared independently.
const SIDES: usize = 8;

/// Largest magnitudes of velocities, then accelerations, by axis and lane, as ordered integers.
pub struct MaxMagnitudes<R: ParticleReal>([[R::Offset; SIDES]; 6]);

impl<R: ParticleReal> Default for MaxMagnitudes<R> {
    fn default() -> Self {
        Self([[R::ordered(R::lit(0.0)); SIDES]; 6])
    }
}

impl<R: ParticleReal> MaxMagnitudes<R> {
    /// Returns the largest magnitudes of a list of a patch.
    pub fn of(rows: &mut ParticlePages, columns: ParticleColumns) -> [f64; 6] {
        let mut largest = Self::default();
        for (page, count) in rows.read_pages::<R>(columns) {
            largest.include(&page, count);
        }
        largest.sizes()
    }

    /// Includes the first particles of a page.
    #[inline(always)]
    pub fn include(&mut self, page: &Page<R>, count: usize) {
        let numbers = page.velocity.iter().chain(&page.acceleration);
        let each = self.0.iter_mut().zip(numbers);
        each.for_each(|(largest, values)| enlarge::<R>(largest, values, count));
    }

    /// Returns the magnitudes; NaN if there is one.
    pub fn sizes(self) -> [f64; 6] {
        let none = R::ordered(R::lit(0.0));
        let largest = |sides: [R::Offset; SIDES]| sides.into_iter().fold(none, Ord::max);
        self.0.map(|sides| R::size(largest(sides)).to_f64())
    }
}

/// Includes the first numbers of a column, lane by lane, so that the loop vectorises.
#[inline(always)]
fn enlarge<R: ParticleReal>(sides: &mut [R::Offset; SIDES], values: &[R; PAGE], count: usize) {
    let none = R::ordered(R::lit(0.0));
    for first in (0..PAGE).step_by(SIDES) {
        for (n, side) in sides.iter_mut().enumerate() {
            let size = R::ordered(values[first + n]);
            *side = (*side).max(if first + n < count { size } else { none });
        }
    }
}
