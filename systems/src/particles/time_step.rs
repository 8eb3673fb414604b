//! Limits the time step by the velocities and accelerations of particles.

use super::Motion;
use super::device::{DeviceParticles, ListId};
use super::pages::{PAGE, Page, ParticleColumns, ParticlePages, ParticleReal};
use super::species::{PatchParticles, Species, SpeciesMap};
use bevy_ecs::prelude::*;
use nestar_engine::data::LevelRows;
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::{Topology, parallel};
use nestar_engine::step::StepLimits;
use nestar_engine::{Error, in_precision};

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
    motion.fastest = fastest.velocity;
    limits.propose("particles", motion.courant / fastest.velocity);
    if motion.acceleration > 0.0 {
        let dt = motion.acceleration / fastest.acceleration.sqrt();
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
