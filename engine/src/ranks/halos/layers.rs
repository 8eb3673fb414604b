//! What a step reads of a copy: the layers of cells towards the own patches beside it.
//!
//! An own patch reads as many layers of a neighbour as its step has ghost cells. Where a neighbour is coarser it interpolates:
//! of what surrounds its parent it reads the coarse cells under the ghosts and one beside each, of the parent, if that is a
//! copy, any.

use super::list::{CopyList, Route};
use crate::device::{Device, DeviceError};
use crate::field::pieces::{Piece, RowShape};
use crate::mesh::Topology;
use crate::mesh::topology::octet::Near;
use crate::mesh::topology::offset;
use crate::ranks::plan::{PeerRows, Plan};
use crate::ranks::{Message, Ranks, RanksError};
use nestar_kernels::PATCH;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// First cell and end along each axis.
type Bounds = [[u32; 2]; 3];

const SIDE: u32 = PATCH as u32;
const WHOLE: Bounds = [[0, SIDE]; 3];

/// What is read of copies, ascending by row.
pub(in crate::ranks) struct Reads(Vec<(u32, Bounds)>);

impl Reads {
    /// What is read of `row`; all of it where nothing is known.
    fn of(&self, row: u32) -> Bounds {
        let found = self.0.binary_search_by_key(&row, |(row, _)| *row);
        found.map_or(WHOLE, |at| self.0[at].1)
    }

    /// Cells that are read of `row`.
    pub(in crate::ranks) fn cells(&self, row: u32) -> u64 {
        let lengths = self.of(row).map(|[first, end]| u64::from(end - first));
        lengths.iter().product()
    }
}

/// The layers of the copies of `level` that gathers of so many layers of ghost cells read, on that level and on the finer one;
/// depth by depth.
pub(in crate::ranks) fn read(topology: &Topology, level: usize, depths: &[usize]) -> Vec<Reads> {
    let near = topology.near_others(level, Near::Beside);
    let rows = near.flat_map_iter(|octet| octet.rows(octet.owned));
    let beside = facing_copies(topology, rows);
    let near = topology.near_others(level + 1, Near::Beneath);
    let parents = near.filter_map(|octet| topology.parent(octet.first));
    let around = facing_copies(topology, parents);
    let read = |&ghosts: &usize| {
        let boxes = |of: &[(u32, u8)], depth: usize| -> Vec<(u32, Bounds)> {
            let of = of.iter();
            of.map(|&(row, d)| (row, facing(offset(usize::from(d)), depth as u32)))
                .collect()
        };
        let mut all = boxes(&beside, ghosts);
        all.extend(boxes(&around, ghosts.div_ceil(2) + 1));
        // two ascending runs: the stable sort merges them
        all.sort_by_key(|(row, _)| *row);
        all.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = join(kept.1, next.1);
            }
            same
        });
        Reads(all)
    };
    depths.iter().map(read).collect()
}

/// The copies around `rows`, ascending, each with the directions in which it lies.
fn facing_copies(topology: &Topology, rows: impl ParallelIterator<Item = u32>) -> Vec<(u32, u8)> {
    let copies = rows.flat_map_iter(|row| {
        let around = topology.neighbours(row).iter().enumerate();
        around.filter_map(|(d, &beside)| {
            let copy = u32::try_from(beside).ok();
            let copy = copy.filter(|&copy| !topology.is_owned(copy))?;
            Some((copy, d as u8))
        })
    });
    let mut copies: Vec<(u32, u8)> = copies.collect();
    copies.par_sort_unstable();
    copies.dedup();
    copies
}

/// The cells of a neighbour, `step` patches away, within `depth` of the patch; no step away, all of them.
fn facing(step: [i32; 3], depth: u32) -> Bounds {
    let depth = depth.min(SIDE);
    step.map(|step| match step {
        -1 => [SIDE - depth, SIDE],
        1 => [0, depth],
        _ => [0, SIDE],
    })
}

/// The least box around two.
fn join(a: Bounds, b: Bounds) -> Bounds {
    std::array::from_fn(|axis| [a[axis][0].min(b[axis][0]), a[axis][1].max(b[axis][1])])
}

/// Boxes of the rows of a plan's peers, `[peer][row]`.
type PeerBoxes = Vec<Vec<Bounds>>;

/// What is read of a level's copies by one list of layers: of others' patches here, and of own ones elsewhere.
pub(super) struct Asked {
    receives: PeerBoxes,
    sends: PeerBoxes,
}

/// What is read of the copies of several levels, `[level][list]`: who keeps copies tells their owners, all in one message. All
/// ranks call this.
pub(super) fn ask(
    plans: &[Plan],
    reads: &[Vec<Reads>],
    ranks: &Ranks,
) -> Result<Vec<Vec<Asked>>, RanksError> {
    let wanted = |(plan, reads): (&Plan, &Vec<Reads>)| -> Vec<Asked> {
        let of =
            |reads: &Reads, from: &PeerRows| from.rows.iter().map(|&row| reads.of(row)).collect();
        let asked = |reads| Asked {
            receives: plan.receives.iter().map(|from| of(reads, from)).collect(),
            sends: Vec::new(),
        };
        reads.iter().map(asked).collect()
    };
    let mut asked: Vec<Vec<Asked>> = plans.iter().zip(reads).map(wanted).collect();
    let mut messages: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    for (plan, lists) in plans.iter().zip(&asked) {
        for list in lists {
            for (from, boxes) in plan.receives.iter().zip(&list.receives) {
                let ends = boxes.iter().flatten().flatten().map(|&i| i as u8);
                messages.entry(from.peer).or_default().extend(ends);
            }
        }
    }
    let messages = messages
        .into_iter()
        .map(|(peer, bytes)| Message { peer, bytes });
    let received = ranks.communicator().exchange(messages.collect())?;
    let mut left: BTreeMap<usize, &[u8]> =
        received.iter().map(|m| (m.peer, &m.bytes[..])).collect();
    for (plan, lists) in plans.iter().zip(&mut asked) {
        for list in lists {
            let taken = plan
                .sends
                .iter()
                .map(|to| taken(left.get_mut(&to.peer), to));
            list.sends = taken.collect::<Result<_, _>>()?;
        }
    }
    Ok(asked)
}

/// Bytes of a box in a message.
const BOX: usize = 6;

/// What a rank asks of the rows that go to it, from the front of its message.
fn taken(message: Option<&mut &[u8]>, to: &PeerRows) -> Result<Vec<Bounds>, RanksError> {
    let bytes = message.and_then(|left| left.split_off(..BOX * to.rows.len()));
    let bytes = bytes.ok_or_else(|| {
        let (peer, rows) = (to.peer, to.rows.len());
        RanksError::Transport(format!(
            "rank {peer} does not tell about all of its {rows} copies"
        ))
    })?;
    let ends = |&[a, b, c, d, e, f]: &[u8; BOX]| [[a, b], [c, d], [e, f]].map(|e| e.map(u32::from));
    Ok(bytes.as_chunks().0.iter().map(ends).collect())
}

/// Lists what is read of the copies of `plan` in stores of `shape`.
pub(super) fn list(
    route: &mut Route,
    shape: RowShape,
    plan: &Plan,
    asked: &Asked,
    device: Option<&Device>,
) -> Result<(), DeviceError> {
    let Route { sends, receives } = route;
    set(receives, shape, &plan.receives, &asked.receives, device)?;
    set(sends, shape, &plan.sends, &asked.sends, device)
}

/// Makes the pieces of a list from the rows of a plan and what is wanted of them.
fn set(
    list: &mut CopyList,
    shape: RowShape,
    plan: &[PeerRows],
    wanted: &PeerBoxes,
    device: Option<&Device>,
) -> Result<(), DeviceError> {
    let pieces = |(to, boxes): (&PeerRows, &Vec<Bounds>)| {
        let rows = to.rows.iter().copied();
        (to.peer, rows.zip(boxes.iter().copied()).collect())
    };
    let lists: Vec<(usize, Vec<(u32, Bounds)>)> = plan.iter().zip(wanted).map(pieces).collect();
    let lists = lists.iter().map(|(peer, pieces)| (*peer, &pieces[..]));
    let piece = |(row, bounds): &(u32, Bounds), before| {
        let bounds = bounds.map(|ends| shape.holding(ends));
        let length = bounds.map(|[first, end]| end - first);
        Piece::part(*row, before, bounds.map(|[first, _]| first), length)
    };
    list.set(device, shape, lists, piece)
}
