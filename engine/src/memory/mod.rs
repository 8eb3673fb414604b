//! Memory: what the patches asked for will take, against what there is, before any of it is taken.

pub mod machine;

use crate::config::{OutOfMemory, PrecisionChoice};
use crate::device::ComputeDevice;
use crate::field::FieldRegistry;
use crate::mesh::Topology;
use crate::mesh::nesting::Changes;
use crate::patch::CELLS;
use crate::ranks::{Ranks, RanksError, Reduction};
use crate::run::diagnostics::resident_bytes;
use crate::simulation::Settings;
use bevy_ecs::prelude::*;
use std::fmt;

/// Bytes of a row in the tables of the topology.
const TABLES: u64 = 176;
/// Banks of every row: before and after the level's step.
const BANKS: u64 = 2;
/// Rows that a pool grows by.
const SLAB: u64 = 128;
/// The share of the memory found that is left to all else, such as flux registers and snapshots on their way: one part in so
/// many.
const RESERVE: u64 = 16;

/// Who says how much memory there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// `run.memory_limit`.
    Limit,
    /// The machine.
    Machine,
    /// The device.
    Device,
}

/// Memory that the fields and tables of a run may take in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes.
    pub bytes: u64,
    /// Who says so.
    pub holder: Holder,
}

/// Patches that do not fit into memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Bytes that fields and tables would take with them.
    pub needed: u64,
    /// What there is.
    pub room: Room,
    /// Level of the patches.
    pub level: usize,
    /// How many new patches were asked for.
    pub patches: u64,
    /// Whether a snapshot keeps the state before.
    pub resumable: bool,
}

impl Shortage {
    /// What does not fit.
    #[must_use]
    pub fn fact(&self) -> String {
        let there = match self.room.holder {
            Holder::Limit => "run.memory_limit allows",
            Holder::Machine => "this machine has",
            Holder::Device => "the device has",
        };
        format!(
            "with {} new patches of level {} the fields need {}, {there} {}",
            self.patches,
            self.level,
            shown(self.needed),
            shown(self.room.bytes)
        )
    }

    /// Where more memory comes from.
    #[must_use]
    pub fn more(&self) -> &'static str {
        match self.room.holder {
            Holder::Limit => "a larger run.memory_limit (MiB)",
            Holder::Machine => "a machine with more memory",
            Holder::Device => "a device with more memory",
        }
    }

    /// The same shortage, with the state before it in a snapshot.
    #[must_use]
    pub fn resumable(mut self) -> Self {
        self.resumable = true;
        self
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "too little memory: {}", self.fact())?;
        let cap = "run.out_of_memory = \"cap\" (the patches that fit)";
        let more = self.more();
        if self.resumable {
            write!(
                f,
                "\nthe run can be continued with {more} or {cap}: the latest snapshot has the state before"
            )
        } else if self.level == 0 {
            write!(
                f,
                "\ntake {more}, fewer domain.cells or run.precision = \"single\""
            )
        } else {
            write!(
                f,
                "\ntake {more}, {cap}, run.precision = \"single\", a lower mesh.max_level or criteria that refine less"
            )
        }
    }
}

/// What memory has denied so far.
#[derive(Resource, Clone, Debug, Default)]
pub struct MemoryGuard {
    /// Under `stop`: why no level is regridded any more; the run ends behind the present root step.
    pub shortage: Option<Shortage>,
    /// Under `cap`: the first refinement that was cut short.
    pub first_cap: Option<Shortage>,
    /// Under `cap`: patches that were not refined, every regrid counted.
    pub capped: u64,
}

/// Bytes that the fields and the tables take with `rows` rows, by a rule that is the same on every device: a run that a limit
/// caps gives the same bits everywhere.
#[must_use]
pub fn needed(world: &World, rows: usize) -> u64 {
    let fields = world.resource::<FieldRegistry>().operations();
    let size = match world.resource::<Settings>().run.precision {
        PrecisionChoice::Single => 4,
        PrecisionChoice::Double => 8,
    };
    let rows = rows as u64;
    let components = |field: &crate::field::FieldOperations| (field.components)(world).len() as u64;
    let values: u64 = fields.iter().map(components).sum::<u64>() * CELLS as u64;
    rows.next_multiple_of(SLAB) * BANKS * values * size + rows * TABLES
}

/// Memory that fields and tables may take, what they take already included; `None` where nobody says.
#[must_use]
pub fn room(world: &World) -> Option<Room> {
    let limit = world.resource::<Settings>().run.memory_limit;
    let limit = (limit > 0).then_some(Room {
        bytes: limit << 20,
        holder: Holder::Limit,
    });
    let (all, holder) = found(world);
    let found = all.map(|all| Room {
        bytes: all - all / RESERVE,
        holder,
    });
    limit.into_iter().chain(found).min_by_key(|room| room.bytes)
}

/// Bytes that the fields and tables of the present patches leave of the room they may take.
#[must_use]
pub fn spare(world: &World) -> u64 {
    let taken = needed(world, world.resource::<Topology>().capacity());
    room(world).map_or(u64::MAX, |room| room.bytes.saturating_sub(taken))
}

/// Memory where the fields live, free or taken by them.
fn found(world: &World) -> (Option<u64>, Holder) {
    match &world.resource::<ComputeDevice>().device {
        Some(device) => {
            let fields = world.resource::<FieldRegistry>().operations();
            let taken: usize = fields.iter().map(|field| (field.bytes)(world)).sum();
            // a device that does not tell is asked again when the memory is taken
            let free = device.memory().ok().map(|memory| memory.free);
            (free.map(|free| free + taken as u64), Holder::Device)
        }
        None => {
            let free = machine::free();
            (free.map(|free| free + resident_bytes()), Holder::Machine)
        }
    }
}

/// Why `rows` rows cannot be had, if so: those of `patches` new patches of `level` among them.
#[must_use]
pub fn shortage(world: &World, rows: usize, level: usize, patches: usize) -> Option<Shortage> {
    let needed = needed(world, rows);
    let room = room(world).filter(|room| room.bytes < needed)?;
    Some(Shortage {
        needed,
        room,
        level,
        patches: patches as u64,
        resumable: false,
    })
}

/// Keeps the changes of `level`'s patches within memory, as `run.out_of_memory` says: what does not fit is an error, or not
/// refined.
///
/// # Errors
/// Under `stop`: what is missing; nothing was changed.
pub fn restrain(world: &mut World, level: usize, changes: &mut Changes) -> Result<(), Shortage> {
    let wanted = changes.refine.len();
    let topology = world.resource::<Topology>();
    let rows = |octets: usize| topology.rows_with(octets, changes.coarsen.len());
    let held = topology.capacity();
    if rows(wanted) == held {
        return Ok(());
    }
    let Some(shortage) = shortage(world, rows(wanted), level + 1, 8 * wanted) else {
        return Ok(());
    };
    if world.resource::<Settings>().run.out_of_memory == OutOfMemory::Stop {
        return Err(shortage);
    }
    let counts: Vec<usize> = (0..wanted).collect();
    let fits =
        |octets: usize| rows(octets) == held || needed(world, rows(octets)) <= shortage.room.bytes;
    // as many as fit: with none, the hierarchy does not grow
    let most = counts.partition_point(|&octets| fits(octets));
    changes.refine.truncate(most.saturating_sub(1));
    let mut guard = world.resource_mut::<MemoryGuard>();
    guard.capped += (wanted - changes.refine.len()) as u64;
    guard.first_cap.get_or_insert(shortage);
    Ok(())
}

/// The largest shortage of the ranks, which all of them take for theirs.
///
/// # Errors
/// Another rank has failed, or the transport has.
pub fn agreed(ranks: &Ranks, own: Option<Shortage>) -> Result<Option<Shortage>, RanksError> {
    if ranks.are_alone() {
        return Ok(own);
    }
    let holders = [Holder::Limit, Holder::Machine, Holder::Device];
    let code = |s: &Shortage| {
        holders
            .iter()
            .position(|&h| h == s.room.holder)
            .unwrap_or(0) as u64
    };
    let numbers = |s: &Shortage| {
        [
            1,
            s.needed,
            s.room.bytes,
            code(s),
            s.level as u64,
            s.patches,
        ]
    };
    let mut largest = own.as_ref().map_or([0; 6], numbers);
    ranks.communicator().reduce(Reduction::Max, &mut largest)?;
    let [any, needed, bytes, holder, level, patches] = largest;
    Ok((any > 0).then(|| Shortage {
        needed,
        room: Room {
            bytes,
            holder: holders[holder as usize],
        },
        level: level as usize,
        patches,
        resumable: false,
    }))
}

/// A number of bytes for people.
#[must_use]
pub fn shown(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    for larger in units {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    if unit == "B" {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {unit}")
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_are_shown_in_the_fitting_unit() {
        assert_eq!(super::shown(1023), "1023 B");
        assert_eq!(super::shown(40 << 10), "40.0 KiB");
        assert_eq!(super::shown(3 << 29), "1.5 GiB");
        assert_eq!(super::shown(5 << 50), "5120.0 TiB");
    }
}
