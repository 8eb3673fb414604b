//! The step that the particles of a level allow.

use super::Motion;
use super::columns::{PAGE, Precise};
use super::device::OnDevice;
use super::species::{AllSpecies, Patch, Species};
use bevy_ecs::prelude::*;
use nestar_engine::device::DeviceError;
use nestar_engine::field::LevelRows;
use nestar_engine::field::device::DeviceTopology;
use nestar_engine::mesh::Topology;
use nestar_engine::step::StepLimits;
use nestar_engine::{Error, in_precision};
use rayon::prelude::*;

/// Numbers that are compared side by side.
const SIDES: usize = 8;

/// The largest velocity over the width of a patch along an axis, and the largest acceleration over it, of what a level and all finer ones move.
#[derive(Clone, Copy, Debug, Default)]
struct Fastest {
    velocity: f64,
    acceleration: f64,
}

impl Fastest {
    /// With another; a NaN stays.
    fn with(self, other: Self) -> Self {
        let larger = |a: f64, b: f64| if a >= b || a.is_nan() { a } else { b };
        Self {
            velocity: larger(self.velocity, other.velocity),
            acceleration: larger(self.acceleration, other.acceleration),
        }
    }
}

/// Proposes the step of the level at hand: a particle moves along an axis by no more than `courant` cells, and is accelerated through no more than
/// so many; tracers, as gas may. Particles of finer levels count too, which stand still while this level's deposit looks ahead to the end of its step.
pub(super) fn limit(
    rows: LevelRows,
    topology: Res<Topology>,
    motion: Res<Motion>,
    mut all: ResMut<AllSpecies>,
    mut limits: ResMut<StepLimits>,
) -> Result<(), Error> {
    if rows.in_parts() {
        limits.leave_out("particles");
        limits.leave_out("particle acceleration");
        return Ok(());
    }
    let width = topology.domain.cell_width(rows.level());
    let mut fastest = Fastest::default();
    let tables = rows.view().tables;
    for species in all.falling() {
        if let Some((lists, tables)) = species.settled(&topology, tables)?.zip(tables) {
            fastest = fastest.with(on_device(lists, (&topology, tables), rows.level(), width)?);
            continue;
        }
        in_precision!(species.precision(), R => {
            fastest = fastest.with(of_level::<R>(species, &topology, rows.level(), width));
        });
    }
    limits.propose("particles", motion.courant / fastest.velocity);
    if motion.acceleration > 0.0 {
        let dt = motion.acceleration / fastest.acceleration.sqrt();
        limits.propose("particle acceleration", dt);
    }
    Ok(())
}

/// As [`of_level`] of particles on a device.
fn on_device(
    lists: &mut OnDevice,
    place: (&Topology, &DeviceTopology),
    level: usize,
    width: [f64; 3],
) -> Result<Fastest, DeviceError> {
    let mut fastest = Fastest::default();
    for host in level.saturating_sub(1)..=place.0.finest() {
        for list in [0, 1].into_iter().filter(|list| host + list >= level) {
            let largest = lists.largest(place, (host, list))?;
            for axis in 0..3 {
                fastest = fastest.with(Fastest {
                    velocity: largest[axis] / width[axis],
                    acceleration: largest[axis + 3] / width[axis],
                });
            }
        }
    }
    Ok(fastest)
}

/// Over widths of a cell.
fn of_level<R: Precise>(
    species: &mut Species,
    topology: &Topology,
    level: usize,
    width: [f64; 3],
) -> Fastest {
    let columns = species.pool.columns;
    let mut fastest = Fastest::default();
    for host in level.saturating_sub(1)..=topology.finest() {
        let mut lifted = species.lift(topology.rows(host).iter().copied());
        // of the next coarser level those alone that this one moves there
        let of_patch = |(_, patch): &mut (u32, Patch)| {
            let lists = patch[usize::from(host < level)..].iter_mut();
            let mut largest = [[R::lit(0.0); SIDES]; 6];
            for (page, count) in lists.flat_map(|rows| rows.pages::<R>(columns)) {
                let numbers = page.velocity.iter().chain(&page.acceleration);
                let each = largest.iter_mut().zip(numbers);
                each.for_each(|(largest, values)| enlarge(largest, values, count));
            }
            of_sides(largest, width)
        };
        let patches = lifted.par_iter_mut().map(of_patch);
        fastest = fastest.with(patches.reduce(Fastest::default, Fastest::with));
        species.lower(lifted);
    }
    fastest
}

/// Of the largest sizes, those of velocities along the axes, then of accelerations.
fn of_sides<R: Precise>(sides: [[R; SIDES]; 6], width: [f64; 3]) -> Fastest {
    let largest = sides.map(|sides| sides.into_iter().fold(R::lit(0.0), larger).to_f64());
    let mut fastest = Fastest::default();
    for axis in 0..3 {
        fastest = fastest.with(Fastest {
            velocity: largest[axis] / width[axis],
            acceleration: largest[axis + 3] / width[axis],
        });
    }
    fastest
}

/// The larger one, or a NaN if there is one.
#[inline(always)]
fn larger<R: Precise>(most: R, size: R) -> R {
    match size > most || size.is_nan() {
        true => size,
        false => most,
    }
}

/// Enlarges numbers to the sizes of the first numbers of a column, side by side, so that vectors of them go together.
#[inline(always)]
fn enlarge<R: Precise>(sides: &mut [R; SIDES], values: &[R; PAGE], count: usize) {
    for first in (0..PAGE).step_by(SIDES) {
        for (n, side) in sides.iter_mut().enumerate() {
            let size = values[first + n].abs();
            *side = larger(*side, if first + n < count { size } else { R::lit(0.0) });
        }
    }
}
