//! The first half of a step: kick and drift, and where particles go that leave their patch.
//!
//! A level moves the particles in its own leaves, and those in leaves of the next coarser level that are on their way to or from finer
//! patches. Which level moves a particle changes only here, where the step of a level begins and the finer levels stand at the same time:
//! who would come into a finer patch by this step is left to the finer level, whose steps are shorter.

use super::Motion;
use super::columns::{Page, Precise};
use super::device;
use super::rows::Rows;
use super::species::{AllSpecies, Patch, Species};
use super::units::{Lost, Units};
use bevy_ecs::prelude::*;
use nestar_engine::device::DeviceError;
use nestar_engine::field::device::DeviceTopology;
use nestar_engine::field::{LevelRows, Parcel};
use nestar_engine::mesh::offset;
use nestar_engine::mesh::{LevelClock, Topology};
use nestar_engine::ranks::OtherRanks;
use nestar_engine::{Error, in_precision};
use nestar_kernels::mesh::{SELF, direction};
use nestar_kernels::particles::cloud::units_of;
use nestar_kernels::particles::motion::{kicked, moved};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Where a particle goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It stays in its patch.
    Stays,
    /// To the patch in this direction of a table of 27.
    To(usize),
    /// Into a finer patch, to which the finer level moves it: it is as it was.
    Waits,
    /// Out of the box.
    Out,
    /// It has no finite place.
    Lost,
}

/// A step of a level over the particles of its own patches, or of those that it moves in patches of the next coarser level.
struct Drift<'a, R> {
    topology: &'a Topology,
    /// The level of the patches.
    level: usize,
    /// Whether that is the level whose step it is.
    own: bool,
    /// Which faces reflect, `[axis][side]`.
    walls: [[bool; 2]; 3],
    /// Units of a mass of 1.
    scale: f64,
    /// Half of the step.
    half: R,
    /// The step over the width of a patch along each axis.
    rate: [R; 3],
}

/// What leaves a patch: records by direction, and what has left the box.
#[derive(Default)]
struct Leavers {
    records: BTreeMap<usize, Vec<u8>>,
    lost: Lost,
    /// The identity of one that has no finite place.
    fault: Option<u64>,
}

impl<'a, R: Precise> Drift<'a, R> {
    fn of(
        (topology, level): (&'a Topology, usize),
        dt: f64,
        own: bool,
        (motion, scale): (&Motion, f64),
    ) -> Self {
        let width = topology.domain.cell_width(level).map(|width| 8.0 * width);
        Self {
            topology,
            level,
            own,
            walls: motion.walls,
            scale,
            half: R::lit(0.5 * dt),
            rate: width.map(|width| R::lit(dt / width)),
        }
    }

    /// Kicks and moves a particle of the patch of `row`; where it goes. One that goes to a finer patch stays as it was.
    fn advance(&self, row: u32, page: &mut Page<R>, n: usize) -> Way {
        let (mut velocity, acceleration) = (
            Page::vector(&page.velocity, n),
            Page::vector(&page.acceleration, n),
        );
        let (mut place, mut step) = (page.place_of(n), [0; 3]);
        let mut is_out = false;
        for axis in 0..3 {
            velocity[axis] = kicked(velocity[axis], acceleration[axis], self.half);
            let by = (velocity[axis] * self.rate[axis]).to_f64();
            if by.abs() >= 1.0 || by.is_nan() {
                return Way::Lost;
            }
            (place[axis], step[axis]) = moved(place[axis], by, R::BITS);
            let side = usize::from(step[axis] > 0);
            if step[axis] != 0 && self.is_beyond(row, axis, step[axis]) {
                match self.walls[axis][side] {
                    true => {
                        place[axis] = R::whole(R::kept(!place[axis]));
                        velocity[axis] = -velocity[axis];
                        step[axis] = 0;
                    }
                    false => is_out = true,
                }
            }
            is_out |= step[axis] == 0 && self.is_outermost(row, axis, place[axis]);
        }
        if is_out {
            return Way::Out;
        }
        let d = direction(step);
        let beside = u32::try_from(self.topology.neighbours(row)[d]);
        if self.own && beside.is_ok_and(|beside| !self.topology.is_leaf(beside)) {
            return Way::Waits;
        }
        for axis in 0..3 {
            page.place[axis][n] = R::kept(place[axis]);
            page.velocity[axis][n] = velocity[axis];
        }
        if d == SELF { Way::Stays } else { Way::To(d) }
    }

    /// Whether a step along an axis leaves the domain.
    fn is_beyond(&self, row: u32, axis: usize, step: i32) -> bool {
        let mut way = [0; 3];
        way[axis] = step;
        let index = self.topology.index(row);
        self.topology.place_beside(self.level, index, way).is_none()
    }

    /// Whether a place is in the outermost cell before a face that lets particles out: a part of the cloud would be beyond it.
    fn is_outermost(&self, row: u32, axis: usize, place: u64) -> bool {
        let step = match place >> 61 {
            0 => -1,
            7 => 1,
            _ => return false,
        };
        !self.walls[axis][usize::from(step > 0)] && self.is_beyond(row, axis, step)
    }

    /// The step of a patch.
    fn patch(&self, species: &Species, row: u32, [here, ahead]: &mut Patch) -> Leavers {
        let mut leavers = Leavers::default();
        if !self.own {
            self.pass((species, row), ahead, None, (1, &mut leavers));
            return leavers;
        }
        let mut back = Rows::default();
        self.pass(
            (species, row),
            ahead,
            Some((&mut back, false)),
            (0, &mut leavers),
        );
        self.pass((species, row), here, Some((ahead, true)), (0, &mut leavers));
        back.drain_into(&species.pool, here);
        leavers
    }

    /// Moves particles of a patch, from the last to the first. To `other` go those that wait (`true`) or those that stay (`false`); leavers
    /// are marked as the level that moves them says.
    fn pass(
        &self,
        (species, row): (&Species, u32),
        rows: &mut Rows,
        mut other: Option<(&mut Rows, bool)>,
        (mark, leavers): (u8, &mut Leavers),
    ) {
        let pool = &species.pool;
        for n in (0..rows.count()).rev() {
            let (mut page, within) = rows.page_of::<R>(pool.columns, n);
            let way = self.advance(row, &mut page, within);
            let mass = page
                .mass
                .get(within)
                .map_or(species.mass, |mass| mass.to_f64());
            match way {
                Way::Stays | Way::Waits => {
                    if let Some((other, takes)) = &mut other
                        && *takes == (way == Way::Waits)
                    {
                        rows.hand_over(pool, n, other);
                    }
                }
                Way::To(d) => {
                    let records = leavers.records.entry(d).or_default();
                    rows.take(pool, n, records);
                    records.push(mark);
                }
                Way::Out => {
                    leavers.lost.count += 1;
                    leavers.lost.mass += units_of(mass, self.scale);
                    rows.remove(pool, n);
                }
                Way::Lost => leavers.fault = Some(page.id[within]),
            }
        }
    }

    /// The step of all patches of the level.
    fn all(&self, species: &mut Species) -> Drifted {
        let rows = self.topology.rows(self.level);
        let mut lifted = species.lift(rows.iter().copied());
        let lent = &*species;
        let leavers = lifted
            .par_iter_mut()
            .map(|(row, patch)| (*row, self.patch(lent, *row, patch)));
        let leavers: Vec<(u32, Leavers)> = leavers.collect();
        species.lower(lifted);
        let mut drifted = Drifted::default();
        for (row, leavers) in leavers {
            drifted.lost.count += leavers.lost.count;
            drifted.lost.mass += leavers.lost.mass;
            drifted.fault = drifted.fault.max(leavers.fault);
            let index = self.topology.index(row);
            for (d, records) in leavers.records {
                let place = self.topology.place_beside(self.level, index, offset(d));
                drifted.parcels.extend(place.map(|index| Parcel {
                    level: self.level,
                    index,
                    records,
                }));
            }
        }
        drifted
    }
}

/// What leaves the patches of a level.
#[derive(Default)]
pub(super) struct Drifted {
    pub parcels: Vec<Parcel>,
    pub lost: Lost,
    /// The identity of one that has no finite place.
    pub fault: Option<u64>,
}

/// The step of a level over the particles that it moves, wherever they are.
fn step(
    (topology, tables): (&Topology, Option<&DeviceTopology>),
    clock: &LevelClock,
    (motion, scale): (&Motion, f64),
    species: &mut Species,
) -> Result<Drifted, DeviceError> {
    let mass = species.mass;
    if let Some((lists, tables)) = species.settled(topology, tables)?.zip(tables) {
        let walls = motion.walls.as_flattened().iter().enumerate();
        return lists.step(&device::Step {
            topology,
            tables: device::tables(tables),
            level: clock.level,
            dt: clock.dt,
            walls: walls.map(|(n, &wall)| u32::from(wall) << n).sum(),
            scale,
            mass,
        });
    }
    let given = (motion, scale);
    Ok(in_precision!(species.precision(), R => drifted::<R>(topology, clock, given, species)))
}

/// The same on the host.
fn drifted<R: Precise>(
    topology: &Topology,
    clock: &LevelClock,
    given: (&Motion, f64),
    species: &mut Species,
) -> Drifted {
    let own = Drift::<R>::of((topology, clock.level), clock.dt, true, given);
    let mut all = own.all(species);
    if let Some(below) = clock.level.checked_sub(1) {
        let coarser = Drift::<R>::of((topology, below), clock.dt, false, given).all(species);
        all.parcels.extend(coarser.parcels);
        all.lost.count += coarser.lost.count;
        all.lost.mass += coarser.lost.mass;
        all.fault = all.fault.max(coarser.fault);
    }
    all
}

/// Kicks the particles that the level at hand moves by half of its step, and moves them to the end of it.
pub(super) fn drift(
    rows: LevelRows,
    topology: Res<Topology>,
    clock: Res<LevelClock>,
    mut all: ResMut<AllSpecies>,
    (mut motion, mut units): (ResMut<Motion>, ResMut<Units>),
    mut others: OtherRanks,
) -> Result<(), Error> {
    let mut lost = vec![Lost::default(); all.0.len()];
    for (n, species) in all.0.iter_mut().enumerate() {
        if motion.shuffle && !species.is_on_device() {
            species.shuffle();
        }
        let given = (&*motion, units.scale);
        let Drifted {
            parcels,
            lost: left,
            fault,
        } = step((&topology, rows.view().tables), &clock, given, species)?;
        lost[n] = left;
        let name = &species.name;
        let wrong = fault.map(|id| {
            format!(
                "particle {id} of particles.species.{name} would move by more than a patch in a step of {} of level {}, or to no finite place: \
                 its velocity or acceleration is no number or too large",
                clock.dt, clock.level
            )
        });
        if let Some(why) = others.first_message(wrong)? {
            return Err(Error::Setup(why));
        }
        others.deliver(&topology, species, parcels)?;
    }
    motion.moved(rows.level(), clock.end);
    Ok(units.lose(&lost, &others)?)
}
