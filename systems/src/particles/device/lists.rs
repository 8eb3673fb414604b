//! Stores the particles of a species on a device: one page array per level and list.

use super::super::pages::{PAGE, PagePool, ParticleColumns, ParticlePages, PatchParticles};
use super::kernels::{KernelBuffers, ListLaunch, ParticleKernels};
use nestar_engine::device::{DeviceError, Growable, Kernel, LaunchShape, ReusableBuffer};
use nestar_engine::mesh::{Topology, parallel};
use nestar_kernels::particles::device::{
    CHUNK, HierarchyTables, InsertPagesParameters, PageArray, ParticleList,
};
use std::sync::Arc;

/// Lists of up to this number of particles are double-buffered, and take one or two batches.
pub(super) const DOUBLE_BUFFER_LIMIT: usize = 1 << 21;

/// Rows of the particles of a patch.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::particles) struct RowSpan {
    pub first: u32,
    pub count: u32,
}

/// Identifies a list of particles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::particles) struct ListId {
    /// Level of the patches.
    pub level: usize,
    /// 0 for particles that the level of the patches moves, 1 for those that the next finer level moves.
    pub list: usize,
}

impl ListId {
    /// Returns both lists of a level.
    pub fn both(level: usize) -> [Self; 2] {
        [0, 1].map(|list| Self { level, list })
    }
}

/// Rows of the particles of a patch, by list, and the level of the patch.
#[derive(Clone, Copy, Default)]
pub(in crate::particles) struct PatchSpans {
    pub level: usize,
    pub lists: [RowSpan; 2],
}

impl PatchSpans {
    pub(super) fn count(&self) -> usize {
        self.lists.iter().map(|list| list.count as usize).sum()
    }
}

/// Page array of one list of a level.
#[derive(Default)]
pub(in crate::particles) struct PageBuffer {
    pub(super) words: Option<Growable<u64>>,
    /// First row in use.
    pub first: usize,
    /// Rows in use.
    pub used: usize,
    pub(super) chunks: ReusableBuffer<u32>,
    /// Launch shape, one block per chunk; `None` if the chunks are out of date.
    pub(super) shape: Option<LaunchShape>,
    /// Largest velocity, then acceleration, along each axis; `None` if unknown.
    pub largest: Option<[f64; 6]>,
}

impl PageBuffer {
    pub fn page_array(&self, columns: ParticleColumns) -> PageArray {
        self.words
            .as_ref()
            .map_or_else(PageArray::default, |words| PageArray {
                words: words.address().into(),
                page: 8 * columns.page_words() as i64,
            })
    }

    /// Forgets all particles and keeps the memory.
    pub(super) fn empty(&mut self) {
        (self.first, self.used) = (0, 0);
        (self.shape, self.largest) = (None, None);
    }
}

/// Particles of a species on a device.
pub struct DeviceParticles {
    pub(in crate::particles) kernels: Arc<ParticleKernels>,
    /// Kernel that moves the particles.
    pub(super) mover: Kernel,
    pub(in crate::particles) columns: ParticleColumns,
    /// Page arrays, `[level][list]`.
    pub(in crate::particles) buffers: Vec<[PageBuffer; 2]>,
    /// Rows of the particles of each patch.
    pub(in crate::particles) patches: Vec<PatchSpans>,
    /// Rows of the particles of patches that are about to be removed.
    pub(super) detached: Vec<PatchSpans>,
    /// Rows with neighbours other than own leaves, and the revision of the topology tables.
    pub(super) border: (u64, Vec<bool>),
    /// Lists of up to this number of particles have memory for all of them twice.
    pub(in crate::particles) double_buffer_limit: usize,
}

impl DeviceParticles {
    /// Creates an empty store; the second kernel moves the particles.
    #[must_use]
    pub fn new(
        kernels: Arc<ParticleKernels>,
        mover: Kernel,
        columns: ParticleColumns,
        levels: usize,
    ) -> Self {
        Self {
            kernels,
            mover,
            columns,
            buffers: (0..levels).map(|_| <[PageBuffer; 2]>::default()).collect(),
            patches: Vec::new(),
            detached: Vec::new(),
            border: (0, Vec::new()),
            double_buffer_limit: DOUBLE_BUFFER_LIMIT,
        }
    }

    /// Returns the kernels.
    #[must_use]
    pub fn kernels(&self) -> &Arc<ParticleKernels> {
        &self.kernels
    }

    /// Resizes the table of patches to the rows of the hierarchy.
    pub fn resize_rows(&mut self, rows: usize) {
        self.patches.resize(rows, PatchSpans::default());
    }

    /// Counts the particles of a patch.
    #[must_use]
    pub fn count(&self, row: u32) -> usize {
        self.patches[row as usize].count()
    }

    /// Returns the page array at an address.
    pub(super) fn page_array_at(&self, address: u64) -> PageArray {
        PageArray {
            words: address.into(),
            page: 8 * self.columns.page_words() as i64,
        }
    }

    /// Returns a page array in a reusable buffer; its contents are undefined.
    pub(super) fn pages(
        &self,
        kept: &mut ReusableBuffer<u64>,
        particles: usize,
    ) -> Result<PageArray, DeviceError> {
        let words = particles.div_ceil(PAGE) * self.columns.page_words();
        let words = kept.provide(&self.kernels.device, words)?;
        Ok(self.page_array_at(words.address()))
    }

    /// Number of columns besides the identity.
    pub(in crate::particles) fn numbers(&self) -> i32 {
        self.columns.widths().count() as i32 - 1
    }

    /// Forgets the particles of a patch.
    pub fn forget(&mut self, row: u32) {
        let patch = &mut self.patches[row as usize];
        for (list, span) in patch.lists.iter_mut().enumerate() {
            if std::mem::take(span).count > 0 {
                let buffer = &mut self.buffers[patch.level][list];
                (buffer.shape, buffer.largest) = (None, None);
            }
        }
    }

    /// Returns a list of a level with its launch shape.
    pub(in crate::particles) fn list(
        &mut self,
        topology: &Topology,
        tables: HierarchyTables,
        level: usize,
        list: usize,
    ) -> Result<ListLaunch, DeviceError> {
        let (numbers, masses) = (self.numbers(), self.columns.masses);
        let buffer = &mut self.buffers[level][list];
        let shape = match buffer.shape {
            Some(shape) => shape,
            None => {
                let patches = &self.patches;
                let spans = topology.rows(level).iter();
                let spans = spans.map(|&row| (row, patches[row as usize].lists[list]));
                let chunks: Vec<u32> = spans.flat_map(|(row, span)| pieces(row, span)).collect();
                buffer.chunks.set(&self.kernels.device, &chunks)?;
                let count = chunks.len() / 3;
                let each = (buffer.used / count.max(1)).next_power_of_two() as u32;
                *buffer
                    .shape
                    .insert(LaunchShape::of(count, each.clamp(64, 256)))
            }
        };
        let list = ParticleList {
            page_array: buffer.page_array(self.columns),
            chunks: buffer.chunks.address().into(),
            tables,
            numbers,
            masses,
        };
        Ok(ListLaunch {
            list,
            shape,
            particles: buffer.used,
        })
    }

    /// Returns `true` if a list of a level may have particles.
    pub(in crate::particles) fn holds(&self, level: usize, list: usize) -> bool {
        self.buffers[level][list].used > 0
    }

    /// Uploads particles from host pages to a list of a level.
    ///
    /// # Errors
    /// The device fails or its memory does not suffice.
    pub fn insert_from_host(
        &mut self,
        topology: &Topology,
        ListId { level, list }: ListId,
        pages: &mut [PatchParticles],
        pool: &PagePool,
    ) -> Result<(), DeviceError> {
        let rows = topology.rows(level);
        let coming = |row: u32| pages[row as usize][list].count();
        if rows.iter().all(|&row| coming(row) == 0) {
            return Ok(());
        }
        let at = ListId { level, list };
        let new = self.append(topology, at, None, |row| coming(row) as u32)?;
        let kernels = self.kernels.clone();
        let mut memory = kernels.memory();
        let coming = rows.iter().map(|&row| (row, &pages[row as usize][list]));
        self.insert_pages(&mut memory, coming, self.page_array_of(at, &new))?;
        drop(memory);
        self.commit(topology, at, new)?;
        for &row in rows {
            pages[row as usize][list].clear(pool);
        }
        Ok(())
    }

    /// Inserts host pages after the particles of their rows.
    fn insert_pages<'a>(
        &self,
        memory: &mut KernelBuffers,
        coming: impl Iterator<Item = (u32, &'a ParticlePages)>,
        to: PageArray,
    ) -> Result<(), DeviceError> {
        let (kernels, width) = (&*self.kernels, self.columns.page_words());
        let mut pages = coming.flat_map(|(row, rows)| {
            let count_in = move |n: usize| (rows.count() - n * PAGE).min(PAGE) as u32;
            let pages = rows.words().enumerate();
            pages.map(move |(n, page)| ([row, count_in(n)], page))
        });
        let mut words = Vec::new();
        loop {
            let (page_rows, portion): (Vec<_>, Vec<_>) = pages.by_ref().take(PORTION).unzip();
            if portion.is_empty() {
                return Ok(());
            }
            words.resize(portion.len() * width, 0);
            parallel::for_each_chunk(&mut words, width, 1, |n, words| {
                words.copy_from_slice(portion[n]);
            });
            memory.pages.set(&kernels.device, &words)?;
            memory
                .page_rows
                .set(&kernels.device, page_rows.as_flattened())?;
            let insert_pages = InsertPagesParameters {
                pages: memory.pages.address().into(),
                page_rows: memory.page_rows.address().into(),
                to,
                cursors: memory.cursors.address().into(),
                page_words: width as i32,
                numbers: self.numbers(),
            };
            let shape = LaunchShape::of(page_rows.len(), PAGE as u32);
            kernels
                .device
                .launch(&kernels.insert_pages, shape, &insert_pages)?;
        }
    }
}

/// Pages uploaded at a time, some hundred megabytes.
const PORTION: usize = 1 << 15;

/// Splits the particles of a row into chunks of similar size: row, first, count.
pub(super) fn pieces(row: u32, span: RowSpan) -> impl Iterator<Item = u32> {
    let number = span.count.div_ceil(CHUNK as u32);
    let each = span.count.div_ceil(number.max(1)).next_multiple_of(32);
    let starts = (0..number).map(move |n| n * each);
    starts.flat_map(move |n| [row, span.first + n, each.min(span.count - n)])
}

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
