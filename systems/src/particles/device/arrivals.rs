//! Collects records that arrive in the middle of a step, until a kernel inserts them.

use super::lists::ListId;
use nestar_engine::mesh::Topology;
use nestar_kernels::particles::device::CHUNK;

/// Records with their destination patches.
#[derive(Default)]
pub struct Arrivals {
    pub(super) records: Vec<u8>,
    /// Bytes of a record.
    width: usize,
    pub(super) pieces: Vec<ArrivalSegment>,
    /// Segments of records that came from devices of other ranks.
    pub(super) received: Vec<ArrivalSegment>,
}

/// Contiguous records of a list of a patch.
#[derive(Clone, Copy)]
pub(super) struct ArrivalSegment {
    pub row: u32,
    pub list: usize,
    /// Index among the lists of the step.
    pub page_array: u32,
    /// First byte.
    pub first: usize,
    pub count: usize,
}

impl ArrivalSegment {
    /// Splits the segment into chunks for thread blocks.
    pub fn parts(self, width: usize) -> impl Iterator<Item = Self> {
        (0..self.count).step_by(CHUNK).map(move |n| Self {
            first: self.first + n * width,
            count: CHUNK.min(self.count - n),
            ..self
        })
    }
}

impl Arrivals {
    /// Adds records of `width` bytes. The last byte of a record is its list.
    pub fn put(&mut self, row: u32, records: &[u8], width: usize) {
        self.width = width;
        let mut first = self.records.len();
        self.records.extend_from_slice(records);
        let all: Vec<&[u8]> = records.chunks_exact(width).collect();
        for segment in all.chunk_by(|a, b| a[width - 1] == b[width - 1]) {
            let piece = ArrivalSegment {
                row,
                list: usize::from(segment[0][width - 1] > 0),
                page_array: 0,
                first,
                count: segment.len(),
            };
            self.pieces.extend(piece.parts(width));
            first += segment.len() * width;
        }
    }

    /// Returns `true` if there are no arrivals.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.received.is_empty()
    }

    /// Assigns segments to the lists of a step, given by level and list. Returns the records that belong to
    /// none of them, by row.
    pub(super) fn assign_lists(
        &mut self,
        topology: &Topology,
        lists: &[ListId],
    ) -> Vec<(u32, Vec<u8>)> {
        let mut rest = Vec::new();
        let (records, width) = (&self.records, self.width);
        self.pieces.retain_mut(|piece| {
            let level = topology.level(piece.row);
            let at = lists
                .iter()
                .position(|at| Some(at.level) == level && at.list == piece.list);
            piece.page_array = at.unwrap_or_default() as u32;
            if at.is_none() {
                let records = &records[piece.first..][..piece.count * width];
                rest.push((piece.row, records.to_vec()));
            }
            at.is_some()
        });
        rest
    }

    /// Adds the arrivals to the counts per row, `[list][rows]`.
    pub(super) fn count(&self, counts: &mut [u32], rows: usize) {
        for piece in self.pieces.iter().chain(&self.received) {
            counts[piece.list * rows + piece.row as usize] += piece.count as u32;
        }
    }
}
