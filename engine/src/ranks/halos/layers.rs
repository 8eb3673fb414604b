//! What a step reads of a copy: the layers of cells towards the own patches beside it.
//!
//! An own patch reads as many layers of a neighbour as its step has ghost cells. Where a neighbour is coarser it interpolates:
//! of what surrounds its parent it reads the coarse cells under the ghosts and one beside each, of the parent, if that is a
//! copy, any.

use super::lane::{Lane, Route};
use crate::device::Device;
use crate::field::pieces::Piece;
use crate::mesh::Topology;
use crate::mesh::topology::offset;
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

/// The layers of the copies of `level` that steps with `ghosts` layers of ghost cells read.
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

/// Lists what steps `read` of the copies, of which `copies` lists whole rows: who keeps copies tells their owners. All ranks
/// call this.
pub(super) fn list(
    layers: &mut Route<Piece>,
    copies: &Route<Piece>,
    read: &Reads,
    device: Option<&Device>,
    ranks: &Ranks,
) -> Result<(), RanksError> {
    let wanted = |piece: &Piece| read.of(piece.row);
    let mut own = BTreeMap::new();
    let mut messages = Vec::new();
    for stretch in &copies.receives.stretches {
        let pieces = &copies.receives.entries[stretch.entries.clone()];
        let list: Vec<Bounds> = pieces.iter().map(wanted).collect();
        let bytes = list.iter().flatten().flatten().map(|&i| i as u8).collect();
        let peer = stretch.peer;
        messages.push(Message { peer, bytes });
        own.insert(peer, list);
    }
    let received = ranks.communicator().exchange(messages)?;
    let asked: BTreeMap<usize, Vec<Bounds>> = received.iter().map(asked_of).collect();
    set(&mut layers.receives, &copies.receives, &own, device)?;
    set(&mut layers.sends, &copies.sends, &asked, device)
}

/// What a rank asks of its copies here, in the order of the plan.
fn asked_of(message: &Message) -> (usize, Vec<Bounds>) {
    let entries = message.bytes.as_chunks::<6>().0.iter();
    let one =
        |&[a, b, c, d, e, f]: &[u8; 6]| [[a, b], [c, d], [e, f]].map(|ends| ends.map(u32::from));
    (message.peer, entries.map(one).collect())
}

/// Makes the pieces of a lane from its whole rows and what is wanted of them.
fn set(
    lane: &mut Lane<Piece>,
    whole: &Lane<Piece>,
    wanted: &BTreeMap<usize, Vec<Bounds>>,
    device: Option<&Device>,
) -> Result<(), RanksError> {
    let mut lists = Vec::with_capacity(whole.stretches.len());
    for stretch in &whole.stretches {
        let rows = whole.entries[stretch.entries.clone()].iter();
        let bounds = wanted.get(&stretch.peer).map_or(&[][..], |list| list);
        if bounds.len() != rows.len() {
            let (peer, rows) = (stretch.peer, rows.len());
            return Err(RanksError::Transport(format!(
                "rank {peer} tells about {} of {rows} copies",
                bounds.len()
            )));
        }
        let list: Vec<(u32, Bounds)> = rows.map(|p| p.row).zip(bounds.iter().copied()).collect();
        lists.push((stretch.peer, list));
    }
    let lists = lists.iter().map(|(peer, list)| (*peer, &list[..]));
    let piece = |(row, bounds): &(u32, Bounds), before| {
        let length = bounds.map(|[first, end]| end - first);
        Piece::part(*row, before, bounds.map(|[first, _]| first), length)
    };
    Ok(lane.set(device, lists, piece)?)
}
