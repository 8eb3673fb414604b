//! The second half of a step: what accelerates particles at the end of it, by the cloud that they attract with, and the closing kick.

use super::columns::{Page, Precise};
use super::species::{AllSpecies, Patch, Species};
use super::units::Units;
use super::zone::{Zone, cell_of};
use super::Motion;
use crate::fields::Acceleration;
use bevy_ecs::prelude::*;
use nestar_device::Lane;
use nestar_engine::device::DeviceError;
use nestar_engine::field::LevelRows;
use nestar_engine::mesh::{LevelClock, Topology};
use nestar_engine::ranks::OtherRanks;
use nestar_engine::step::{Read, View, Write};
use nestar_engine::{Error, in_precision};
use nestar_kernels::PATCH;
use nestar_kernels::particles::cloud::{lowest, share, weights};
use nestar_kernels::particles::motion::{in_parent, kicked};
use rayon::prelude::*;

/// Layers of cells beyond a patch that clouds reach.
const REACH: usize = 1;
const SIDE: usize = PATCH + 2 * REACH;
const BLOCK: usize = SIDE * SIDE * SIDE;

/// The accelerations in and around a patch, `[component][z][y][x]`.
struct Around<R> {
    values: Vec<R>,
}

impl<R: Precise> Around<R> {
    /// What a cloud at a place feels; `own`: by the level's own potential, where that is known.
    #[inline(always)]
    fn at(&self, place: [u64; 3], cloud: i32, own: bool) -> [R; 3] {
        let first = if own && self.values.len() > 3 * BLOCK { 3 } else { 0 };
        let corner = place.map(|place| (lowest(place, cloud) + REACH as i32) as usize);
        let along = place.map(|place| weights::<R>(share(place, cloud), cloud));
        let start = corner[0] + SIDE * (corner[1] + SIDE * corner[2]);
        let cells = cloud as usize;
        let mut sums = [R::lit(0.0); 3];
        for (component, sum) in sums.iter_mut().enumerate() {
            let values = &self.values[(first + component) * BLOCK + start..];
            for k in 0..cells {
                let mut plane = R::lit(0.0);
                for j in 0..cells {
                    let line = &values[SIDE * (j + SIDE * k)..][..cells];
                    let mut row = R::lit(0.0);
                    for i in 0..cells {
                        row = row + along[0][i] * line[i];
                    }
                    plane = plane + along[1][j] * row;
                }
                *sum = *sum + along[2][k] * plane;
            }
        }
        sums
    }
}

/// What accelerates the particles of a level.
struct Force<'a, R: Precise> {
    topology: &'a Topology,
    motion: &'a Motion,
    field: &'a View<'a, Acceleration>,
    /// Time of the closing kick: half of the step.
    half: R,
}

impl<R: Precise> Force<'_, R> {
    /// Kicks the particles of a list of an own leaf of the level, or of the coarser one, and leaves their accelerations with them.
    fn patch(&self, species: &Species, row: u32, patch: &mut Patch, coarser: bool) -> Result<(), DeviceError> {
        let list = usize::from(coarser);
        if patch[list].count() == 0 {
            return Ok(());
        }
        let zone = Zone::of(self.topology, row, self.motion.zone);
        let cloud = self.motion.cloud;
        let own = match coarser {
            true => self.field.coarser_window(row, REACH)?,
            false => self.field.window(row, REACH)?,
        };
        let own = Around { values: own };
        let parent = match self.topology.parent(row) {
            Some(parent) if zone.has_inner() && !coarser => Some(Around {
                values: self.field.coarser_window(parent, REACH)?,
            }),
            _ => None,
        };
        let sides = self.topology.index(row).map(|i| (i & 1) as u32);
        for (mut page, count) in patch[list].pages::<R>(species.pool.columns) {
            for n in 0..count {
                let place = page.place_of(n);
                let cell = cell_of(place);
                let a = match &parent {
                    Some(parent) if zone.is_inner(cell) => {
                        let wide = [0, 1, 2].map(|axis| in_parent(place[axis], sides[axis]));
                        parent.at(wide, cloud, true)
                    }
                    _ => own.at(place, cloud, zone.is_outer(cell)),
                };
                self.kick(&mut page, n, a);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn kick(&self, page: &mut Page<R>, n: usize, a: [R; 3]) {
        for axis in 0..3 {
            page.velocity[axis][n] = kicked(page.velocity[axis][n], a[axis], self.half);
            page.acceleration[axis][n] = a[axis];
        }
    }

    /// Kicks all particles that the level moves.
    fn all(&self, species: &mut Species, level: usize) -> Result<(), DeviceError> {
        let own = self.topology.rows(level).iter().map(|&row| (row, false));
        let below = level.checked_sub(1).map_or(&[][..], |below| self.topology.rows(below));
        let below = below.iter().map(|&row| (row, true));
        for (rows, coarser) in [(own.collect::<Vec<_>>(), false), (below.collect(), true)] {
            let mut lifted = species.lift(rows.into_iter().map(|(row, _)| row));
            let lent = &*species;
            let kicks = lifted.par_iter_mut();
            let kicked = kicks.map(|(row, patch)| self.patch(lent, *row, patch, coarser));
            let kicked: Result<(), DeviceError> = kicked.collect();
            species.lower(lifted);
            kicked?;
        }
        Ok(())
    }
}

/// The closing kick of the particles that the level at hand moves.
pub(super) fn close(
    topology: Res<Topology>,
    clock: Res<LevelClock>,
    motion: Res<Motion>,
    mut species: ResMut<AllSpecies>,
    field: Read<Acceleration, REACH>,
) -> Result<(), Error> {
    let field = field.get(REACH)?;
    for species in &mut species.0 {
        in_precision!(species.precision(), R => {
            let force = Force::<R> {
                topology: &topology,
                motion: &motion,
                field: &field,
                half: R::lit(0.5 * clock.dt),
            };
            force.all(species, clock.level)?;
        });
    }
    Ok(())
}

/// Before the first step: the accelerations of all particles, unless they were restored.
pub(super) fn begin(
    rows: LevelRows,
    (topology, motion): (Res<Topology>, Res<Motion>),
    mut species: ResMut<AllSpecies>,
    mut units: ResMut<Units>,
    mut field: Write<Acceleration, REACH>,
    mut others: OtherRanks,
) -> Result<(), Error> {
    let finest = rows.finest();
    if rows.in_parts() || rows.level() < finest {
        return Ok(());
    }
    for level in 0..=finest {
        field.refresh_on(&mut others, level)?;
    }
    if std::mem::replace(&mut units.begun, true) {
        return Ok(());
    }
    for level in 0..=finest {
        let field = field.get_on(level, REACH)?;
        for species in &mut species.0 {
            in_precision!(species.precision(), R => {
                let half = R::lit(0.0);
                let force = Force::<R> { topology: &topology, motion: &motion, field: &field, half };
                force.all(species, level)?;
            });
        }
    }
    Ok(())
}
