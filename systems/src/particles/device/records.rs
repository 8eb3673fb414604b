//! Downloads particles from a device as records.

use super::lists::RowSpan;
use super::lists::{DeviceParticles, ListId, PatchSpans};
use nestar_engine::device::{DeviceError, LaunchShape};
use nestar_kernels::particles::device::{PackParameters, PageArray};
use std::ops::Range;

/// Bytes downloaded at a time, unless a patch has more.
const AT_ONCE: usize = 1 << 28;

impl DeviceParticles {
    /// Returns the records of the particles of patches, each followed by its list.
    ///
    /// # Errors
    /// The device fails or its memory does not suffice.
    pub fn records(&self, rows: &[u32]) -> Result<Vec<Vec<u8>>, DeviceError> {
        let patches: Vec<PatchSpans> = rows.iter().map(|&row| self.patches[row as usize]).collect();
        self.records_of(&patches)
    }

    /// Returns the records of the particles at these rows.
    pub(super) fn records_of(
        &self,
        mut patches: &[PatchSpans],
    ) -> Result<Vec<Vec<u8>>, DeviceError> {
        let mut all = Vec::with_capacity(patches.len());
        while !patches.is_empty() {
            let mut bytes = 0;
            let fits = patches.iter().take_while(|patch| {
                bytes += patch.count() * self.record_bytes();
                bytes <= AT_ONCE
            });
            let (next, later) = patches.split_at(fits.count().max(1));
            self.append_records(next, &mut all)?;
            patches = later;
        }
        Ok(all)
    }

    /// Appends records with a single download, and one launch for all particles that are consecutive in a list.
    fn append_records(
        &self,
        patches: &[PatchSpans],
        all: &mut Vec<Vec<u8>>,
    ) -> Result<(), DeviceError> {
        let (kernels, width) = (&*self.kernels, self.record_bytes());
        let runs = [0, 1].map(|list| runs(patches, list));
        let counts = runs
            .each_ref()
            .map(|runs| runs.iter().map(|run| run.rows.len()).sum::<usize>());
        let mut bytes = vec![0; counts.iter().sum::<usize>() * width];
        if !bytes.is_empty() {
            let mut memory = kernels.memory();
            let out = memory.records.provide(&kernels.device, bytes.len())?;
            let mut next = out.address();
            for (list, run) in [0, 1]
                .iter()
                .flat_map(|&list| runs[list].iter().map(move |run| (list, run)))
            {
                let page_array = self.buffers[run.level][list].page_array(self.columns);
                self.pack(page_array, run.rows.clone(), list, self.numbers(), next)?;
                next += (run.rows.len() * width) as u64;
            }
            kernels.device.download(out, 0, &mut bytes)?;
        }
        let (mut own, mut others) = bytes.split_at(counts[0] * width);
        let mut next = |list: usize, count: usize| {
            let rest = if list == 0 { &mut own } else { &mut others };
            rest.split_off(..count * width).unwrap_or_default()
        };
        all.extend(patches.iter().map(|patch| {
            let lists = patch.lists.iter().enumerate();
            lists
                .map(|(list, span)| next(list, span.count as usize))
                .collect::<Vec<_>>()
                .concat()
        }));
        Ok(())
    }

    /// Returns the records of a range of a page array, each followed by a mark.
    pub(in crate::particles) fn packed(
        &self,
        page_array: PageArray,
        range: Range<usize>,
        mark: usize,
    ) -> Result<Vec<u8>, DeviceError> {
        self.packed_in_part(page_array, range, mark, self.numbers())
    }

    /// Returns records with only the first `numbers` columns after the identity.
    fn packed_in_part(
        &self,
        page_array: PageArray,
        range: Range<usize>,
        mark: usize,
        numbers: i32,
    ) -> Result<Vec<u8>, DeviceError> {
        let kernels = &*self.kernels;
        let width = 8 + numbers as usize * self.columns.number + 1;
        let mut bytes = vec![0; range.len() * width];
        let (mut memory, mut next) = (kernels.memory(), range.start);
        for portion in bytes.chunks_mut(AT_ONCE / width * width) {
            let end = next + portion.len() / width;
            let out = memory.records.provide(&kernels.device, portion.len())?;
            self.pack(page_array, next..end, mark, numbers, out.address())?;
            kernels.device.download(out, 0, portion)?;
            next = end;
        }
        Ok(bytes)
    }

    /// Bytes of a record with its mark.
    pub(super) fn record_bytes(&self) -> usize {
        self.columns.bytes() + 1
    }

    /// Packs a non-empty range of a page array to an address.
    pub(super) fn pack(
        &self,
        page_array: PageArray,
        range: Range<usize>,
        mark: usize,
        numbers: i32,
        out: u64,
    ) -> Result<(), DeviceError> {
        let args = PackParameters {
            page_array,
            out: out.into(),
            first: range.start as i64,
            count: range.len() as i64,
            numbers,
            mark: mark as i32,
        };
        let shape = LaunchShape::of(range.len().div_ceil(128).min(1 << 14), 128);
        let kernels = &*self.kernels;
        kernels.device.launch(&kernels.pack, shape, &args)
    }

    /// Passes the records of all particles to `give`, by row and list, and forgets the particles.
    ///
    /// # Errors
    /// The device fails.
    pub fn fetch(&mut self, mut give: impl FnMut(usize, usize, &[u8])) -> Result<(), DeviceError> {
        for at in (0..self.buffers.len()).flat_map(ListId::both) {
            let ListId { level, list } = at;
            let width = self.record_bytes();
            let records = self.records_on(at, self.numbers())?;
            self.each_on(at, |row, of_row| {
                give(
                    row,
                    list,
                    &records[of_row.start * width..of_row.end * width],
                );
            });
            self.buffers[level][list].empty();
            let of_level = self.patches.iter_mut().filter(|patch| patch.level == level);
            of_level.for_each(|patch| patch.lists[list] = RowSpan::default());
        }
        Ok(())
    }

    /// Returns the records of a list of a level, with the first `numbers` columns after the identity.
    fn records_on(
        &self,
        ListId { level, list }: ListId,
        numbers: i32,
    ) -> Result<Vec<u8>, DeviceError> {
        let buffer = &self.buffers[level][list];
        let rows = buffer.first..buffer.first + buffer.used;
        self.packed_in_part(buffer.page_array(self.columns), rows, list, numbers)
    }

    /// Passes each row with particles on a list of a level to `give`, with their range in the list.
    fn each_on(&self, ListId { level, list }: ListId, mut give: impl FnMut(usize, Range<usize>)) {
        let begin = self.buffers[level][list].first;
        for (row, patch) in self.patches.iter().enumerate() {
            let RowSpan { first, count } = patch.lists[list];
            if patch.level == level && count > 0 {
                let first = first as usize - begin;
                give(row, first..first + count as usize);
            }
        }
    }
}

impl DeviceParticles {
    /// Returns the identities of the particles of a patch.
    ///
    /// # Errors
    /// The device fails.
    pub fn identities_of(&self, row: u32) -> Result<Vec<u64>, DeviceError> {
        let records = self.records(&[row])?.concat();
        Ok(identities(&records, self.record_bytes()))
    }

    /// Returns the identities of all particles with their rows.
    ///
    /// # Errors
    /// The device fails.
    pub fn identities(&self) -> Result<Vec<(u64, u32)>, DeviceError> {
        let mut all = Vec::new();
        for at in (0..self.buffers.len()).flat_map(ListId::both) {
            let identities = identities(&self.records_on(at, 0)?, 8 + 1);
            self.each_on(at, |row, of_row| {
                all.extend(identities[of_row].iter().map(|&id| (id, row as u32)));
            });
        }
        Ok(all)
    }
}

/// Consecutive rows of a list of a level.
struct Run {
    level: usize,
    rows: Range<usize>,
}

/// Returns the rows of a list of some patches in their order; consecutive rows are joined.
fn runs(patches: &[PatchSpans], list: usize) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for patch in patches.iter().filter(|patch| patch.lists[list].count > 0) {
        let RowSpan { first, count } = patch.lists[list];
        let rows = first as usize..(first + count) as usize;
        match runs.last_mut() {
            Some(run) if run.level == patch.level && run.rows.end == rows.start => {
                run.rows.end = rows.end;
            }
            _ => runs.push(Run {
                level: patch.level,
                rows,
            }),
        }
    }
    runs
}

/// Extracts the identities, which come first in records of `width` bytes.
fn identities(records: &[u8], width: usize) -> Vec<u64> {
    let first = records.chunks_exact(width).filter_map(<[u8]>::first_chunk);
    first.map(|id| u64::from_le_bytes(*id)).collect()
}
