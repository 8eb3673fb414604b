//! Finds the layers of halo patches that a step reads.
//!
//! An own patch reads as many layers of a neighbour as its step has ghost cells. At coarser neighbours it interpolates.
//! Then it reads the coarse cells under its ghost cells and one cell beside each, from the neighbours of its parent. If
//! the parent is a halo patch, any of its cells may be read.

use super::{HaloRoute, TransferList};
use crate::exchange_plan::{ExchangePlan, PeerRows};
use crate::{Ranks, RanksError};
use nestar_engine_data::HaloLayers;
use nestar_engine_data::Piece;
use nestar_engine_device::{Device, DeviceError};
use nestar_engine_mesh::Topology;
use nestar_engine_mesh::topology::offset;
use nestar_engine_mesh::topology::shared_hierarchy::NeighbourLevel;
use nestar_kernels::PATCH;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// First cell and end along each axis.
type CellBox = [[u32; 2]; 3];

const SIDE: u32 = PATCH as u32;
const WHOLE: CellBox = [[0, SIDE]; 3];

/// Sides from which own patches read a halo patch, as bits.
///
/// The low bits belong to gathers on its level, the high bits to gathers on the finer level. Each part has one bit for
/// each step -1, 0 and 1 along x, y and z from the reader to the halo patch.
#[derive(Clone, Copy)]
pub(crate) struct ReaderSides(u32);

/// Number of bits of each part.
const BITS: u32 = 9;

/// Step bits of each of the 27 directions.
const STEPS: [u32; 27] = {
    let (mut steps, mut d) = ([0; 27], 0);
    while d < 27 {
        let (step, mut a) = (offset(d), 0);
        while a < 3 {
            steps[d] |= 1 << (3 * a as i32 + step[a] + 1);
            a += 1;
        }
        d += 1;
    }
    steps
};

impl ReaderSides {
    /// Returns the cells that gathers with `ghosts` layers read; all cells if no side is known.
    fn bounds(self, ghosts: usize) -> CellBox {
        let (beside, around) = (self.0 & ((1 << BITS) - 1), self.0 >> BITS);
        let under_ghosts = || facing(around, ghosts.div_ceil(2) + 1);
        match (beside, around) {
            (0, 0) => WHOLE,
            (0, _) => under_ghosts(),
            (_, 0) => facing(beside, ghosts),
            _ => join(facing(beside, ghosts), under_ghosts()),
        }
    }
}

/// Returns the cells of a patch within `depth` of a reader from which these steps lead to the patch.
fn facing(steps: u32, depth: usize) -> CellBox {
    let depth = SIDE.min(depth as u32);
    std::array::from_fn(|axis| {
        let steps = steps >> (3 * axis);
        let first = if steps & 0b110 == 0 { SIDE - depth } else { 0 };
        let end = if steps & 0b011 == 0 { depth } else { SIDE };
        [first, end]
    })
}

/// Returns the smallest box that contains both boxes.
fn join(a: CellBox, b: CellBox) -> CellBox {
    std::array::from_fn(|axis| [a[axis][0].min(b[axis][0]), a[axis][1].max(b[axis][1])])
}

/// Sides from which halo patches are read, by row.
pub(crate) struct HaloReads(Vec<AtomicU32>);

impl HaloReads {
    /// Creates an empty table for the halo patches of `levels`.
    pub fn new(topology: &Topology, mut levels: Range<usize>) -> Self {
        let halo = levels.any(|level| !topology.copies(level).is_empty());
        let rows = if halo { topology.capacity() } else { 0 };
        let unknown = std::iter::repeat_with(AtomicU32::default);
        Self(unknown.take(rows).collect())
    }

    /// Records reads of the halo of `level` by gathers on this level and the finer one.
    pub fn record(&self, topology: &Topology, level: usize) {
        let near = topology.octets_near_others(level, NeighbourLevel::Same);
        near.for_each(|octet| {
            for row in octet.rows(octet.owned) {
                self.note(topology, row, 0);
            }
        });
        let near = topology.octets_near_others(level + 1, NeighbourLevel::Coarser);
        near.for_each(|octet| {
            if let Some(parent) = topology.parent(octet.first) {
                self.note(topology, parent, BITS);
            }
        });
    }

    /// Records reads of the halo patches at and around `row`.
    fn note(&self, topology: &Topology, row: u32, shift: u32) {
        for (&beside, steps) in topology.neighbours(row).iter().zip(STEPS) {
            let copy = u32::try_from(beside).ok();
            if let Some(copy) = copy.filter(|&copy| !topology.is_owned(copy)) {
                self.0[copy as usize].fetch_or(steps << shift, Ordering::Relaxed);
            }
        }
    }

    fn of(&self, row: u32) -> ReaderSides {
        ReaderSides(self.0[row as usize].load(Ordering::Relaxed))
    }

    /// Returns the number of cells of `row` that gathers with `ghosts` layers read.
    pub fn cells(&self, row: u32, ghosts: usize) -> u64 {
        let lengths = self.of(row).bounds(ghosts);
        let lengths = lengths.map(|[first, end]| u64::from(end - first));
        lengths.iter().product()
    }
}

/// Rows by peer, each with the sides from which it is read.
type PeerSides = Vec<(usize, Vec<(u32, ReaderSides)>)>;

/// Sides from which the halo of a level is read: halo patches here, and own patches on other ranks.
pub(super) struct RequestedSides {
    receives: PeerSides,
    sends: PeerSides,
}

/// Sends the sides from which halo patches of several levels are read to their owners, in one message per peer.
/// Collective.
pub(super) fn exchange_sides(
    plans: &[ExchangePlan],
    reads: &HaloReads,
    ranks: &Ranks,
) -> Result<Vec<RequestedSides>, RanksError> {
    let of = |from: &PeerRows| {
        let rows = from.rows.iter();
        (from.peer, rows.map(|&row| (row, reads.of(row))).collect())
    };
    let wanted = |plan: &ExchangePlan| RequestedSides {
        receives: plan.receives.iter().map(of).collect(),
        sends: Vec::new(),
    };
    let mut requests: Vec<RequestedSides> = plans.iter().map(wanted).collect();
    let mut messages: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    for (peer, rows) in requests.iter().flat_map(|request| &request.receives) {
        let sides = rows.iter().flat_map(|(_, sides)| sides.0.to_le_bytes());
        messages.entry(*peer).or_default().extend(sides);
    }
    let received = ranks.exchange_bytes(messages)?;
    let mut unread: BTreeMap<usize, &[u8]> =
        received.iter().map(|m| (m.peer, &m.bytes[..])).collect();
    for (plan, requests) in plans.iter().zip(&mut requests) {
        let sends = plan.sends.iter();
        let requested =
            sends.map(|to| Ok((to.peer, requested_sides(unread.get_mut(&to.peer), to)?)));
        requests.sends = requested.collect::<Result<_, RanksError>>()?;
    }
    Ok(requests)
}

/// Decodes the sides of the rows sent to one peer from the front of its message.
fn requested_sides(
    message: Option<&mut &[u8]>,
    to: &PeerRows,
) -> Result<Vec<(u32, ReaderSides)>, RanksError> {
    let bytes = message.and_then(|unread| unread.split_off(..size_of::<u32>() * to.rows.len()));
    let bytes = bytes.ok_or_else(|| {
        let (peer, rows) = (to.peer, to.rows.len());
        RanksError::Transport(format!(
            "rank {peer} did not send the sides of all {rows} halo patches"
        ))
    })?;
    let sides = bytes
        .as_chunks()
        .0
        .iter()
        .map(|&sides| ReaderSides(u32::from_le_bytes(sides)));
    Ok(to.rows.iter().copied().zip(sides).collect())
}

/// Lists the pieces that gathers with `layers` read.
pub(super) fn list(
    route: &mut HaloRoute,
    layers: &HaloLayers,
    requests: &RequestedSides,
    device: Option<&Device>,
) -> Result<(), DeviceError> {
    let HaloRoute { sends, receives } = route;
    set(receives, layers, &requests.receives, device)?;
    set(sends, layers, &requests.sends, device)
}

/// Creates the pieces of a list from the sides of its rows.
fn set(
    list: &mut TransferList,
    layers: &HaloLayers,
    wanted: &PeerSides,
    device: Option<&Device>,
) -> Result<(), DeviceError> {
    let (shape, ghosts) = (layers.shape, layers.cells());
    let lists = wanted.iter().map(|(peer, rows)| (*peer, &rows[..]));
    let piece = |(row, sides): &(u32, ReaderSides), before| {
        let bounds = sides.bounds(ghosts).map(|ends| shape.holding(ends));
        let length = bounds.map(|[first, end]| end - first);
        Piece::part(*row, before, bounds.map(|[first, _]| first), length)
    };
    list.set(device, shape, lists, piece)
}
