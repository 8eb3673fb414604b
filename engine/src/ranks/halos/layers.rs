//! What a step reads of a copy: the layers of cells towards the own patches beside it.
//!
//! An own patch reads as many layers of a neighbour as its step has ghost cells. Where a neighbour is coarser it interpolates:
//! of what surrounds its parent it reads the coarse cells under the ghosts and one beside each, of the parent, if that is a
//! copy, any.

use super::list::{CopyList, Route};
use crate::device::Device;
use crate::field::pieces::Piece;
use crate::mesh::Topology;
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

/// The layers of the copies of `level` that gathers of `ghosts` layers of ghost cells read, on that level and on the finer one.
pub(in crate::ranks) fn read(topology: &Topology, level: usize, ghosts: usize) -> Reads {
    let beneath = ghosts.div_ceil(2) + 1;
    let rows = topology.rows(level).par_iter().with_min_len(512);
    let beside = rows.flat_map_iter(|&row| facing_copies(topology, row, ghosts));
    let octets = topology.octets(level + 1).par_iter().with_min_len(512);
    let parents = octets.filter(|octet| octet.owned != 0);
    let parents = parents.filter_map(|octet| topology.parent(octet.first));
    let around = parents.flat_map_iter(|row| facing_copies(topology, row, beneath));
    let mut all: Vec<(u32, Bounds)> = beside.chain(around).collect();
    all.par_sort_unstable_by_key(|(row, _)| *row);
    all.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = join(kept.1, next.1);
        }
        same
    });
    Reads(all)
}

/// The copies around `row`, and `depth` layers of each that face it.
fn facing_copies(
    topology: &Topology,
    row: u32,
    depth: usize,
) -> impl Iterator<Item = (u32, Bounds)> {
    let around = topology.neighbours(row).iter().enumerate();
    around.filter_map(move |(d, &beside)| {
        let copy = u32::try_from(beside).ok();
        let copy = copy.filter(|&copy| !topology.is_owned(copy))?;
        Some((copy, facing(offset(d), depth as u32)))
    })
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

/// Lists what is read of the copies of `plan`, route by route as `reads` says: who keeps copies tells their owners. All ranks
/// call this.
pub(super) fn list(
    routes: &mut [Route<Piece>],
    plan: &Plan,
    reads: &[Reads],
    device: Option<&Device>,
    ranks: &Ranks,
) -> Result<(), RanksError> {
    let mut own: Vec<BTreeMap<usize, Vec<Bounds>>> = vec![BTreeMap::new(); reads.len()];
    let mut messages = Vec::new();
    for &PeerRows { peer, ref rows } in &plan.receives {
        let mut bytes = Vec::with_capacity(BOX * rows.len() * reads.len());
        for (read, own) in reads.iter().zip(&mut own) {
            let list: Vec<Bounds> = rows.iter().map(|&row| read.of(row)).collect();
            bytes.extend(list.iter().flatten().flatten().map(|&i| i as u8));
            own.insert(peer, list);
        }
        messages.push(Message { peer, bytes });
    }
    let received = ranks.communicator().exchange(messages)?;
    for (n, (route, own)) in routes.iter_mut().zip(&own).enumerate() {
        let asked = received
            .iter()
            .map(|message| asked_of(message, n, reads.len()));
        set(&mut route.receives, &plan.receives, own, device)?;
        set(&mut route.sends, &plan.sends, &asked.collect(), device)?;
    }
    Ok(())
}

/// Bytes of a box in a message.
const BOX: usize = 6;

/// What a rank asks of its copies here for list `n` of `lists`, in the order of the plan.
fn asked_of(message: &Message, n: usize, lists: usize) -> (usize, Vec<Bounds>) {
    let entries = message.bytes.as_chunks::<BOX>().0;
    let own = entries.len() / lists;
    let one =
        |&[a, b, c, d, e, f]: &[u8; BOX]| [[a, b], [c, d], [e, f]].map(|ends| ends.map(u32::from));
    (
        message.peer,
        entries[n * own..][..own].iter().map(one).collect(),
    )
}

/// Makes the pieces of a list from the rows of a plan and what is wanted of them.
fn set(
    list: &mut CopyList<Piece>,
    plan: &[PeerRows],
    wanted: &BTreeMap<usize, Vec<Bounds>>,
    device: Option<&Device>,
) -> Result<(), RanksError> {
    let mut lists = Vec::with_capacity(plan.len());
    for &PeerRows { peer, ref rows } in plan {
        let bounds = wanted.get(&peer).map_or(&[][..], |list| list);
        if bounds.len() != rows.len() {
            return Err(RanksError::Transport(format!(
                "rank {peer} tells about {} of {} copies",
                bounds.len(),
                rows.len()
            )));
        }
        let rows = rows.iter().copied();
        let pieces: Vec<(u32, Bounds)> = rows.zip(bounds.iter().copied()).collect();
        lists.push((peer, pieces));
    }
    let lists = lists.iter().map(|(peer, pieces)| (*peer, &pieces[..]));
    let piece = |(row, bounds): &(u32, Bounds), before| {
        let length = bounds.map(|[first, end]| end - first);
        Piece::part(*row, before, bounds.map(|[first, _]| first), length)
    };
    Ok(list.set(device, lists, piece)?)
}
