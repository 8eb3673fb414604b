//! Stores the particles of a patch in pages of 32; all pages but the last are full. The order has no meaning.

use super::columns::{PAGE, Page, ParticleColumns, ParticleReal};
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// A page: the columns of up to `PAGE` particles.
type Words = Box<[u64]>;

/// Pool of free pages of a species.
pub struct PagePool {
    /// Columns of a particle.
    pub columns: ParticleColumns,
    free: Mutex<Vec<Words>>,
}

impl PagePool {
    /// Creates an empty pool.
    #[must_use]
    pub fn new(columns: ParticleColumns) -> Self {
        Self {
            columns,
            free: Mutex::default(),
        }
    }

    fn page(&self) -> Words {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.pop()
            .unwrap_or_else(|| vec![0; self.columns.page_words()].into())
    }

    fn give_back(&self, page: Words) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(page);
    }
}

/// Particles of a patch that one level moves.
#[derive(Default)]
pub struct ParticlePages {
    pages: Vec<Words>,
    count: usize,
    /// Cached largest magnitudes of velocities, then accelerations, by axis.
    largest: Option<[f64; 6]>,
}

/// Particles of a patch by the level that moves them: list 0 by the level of the patch, list 1 by the next
/// finer level, for particles that are entering or have left finer patches.
pub type PatchParticles = [ParticlePages; 2];

impl ParticlePages {
    /// Number of particles.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Caches the largest magnitudes of velocities, then accelerations, until particles change.
    pub fn cache_largest(&mut self, largest: [f64; 6]) {
        self.largest = Some(largest);
    }

    /// Returns these magnitudes, computed by `find` if not cached.
    pub fn largest(&mut self, find: impl FnOnce(&mut Self) -> [f64; 6]) -> [f64; 6] {
        let known = self.largest.unwrap_or_else(|| find(self));
        *self.largest.insert(known)
    }

    /// Returns the pages for writing, each with its number of particles.
    pub fn pages<R: ParticleReal>(
        &mut self,
        columns: ParticleColumns,
    ) -> impl Iterator<Item = (Page<'_, R>, usize)> {
        self.largest = None;
        self.read_pages(columns)
    }

    /// Returns the pages for reading, each with its number of particles.
    pub fn read_pages<R: ParticleReal>(
        &mut self,
        columns: ParticleColumns,
    ) -> impl Iterator<Item = (Page<'_, R>, usize)> {
        let (mut left, mut pages) = (self.count, &mut self.pages[..]);
        prefetch(pages.first());
        std::iter::from_fn(move || {
            let (words, rest) = std::mem::take(&mut pages).split_first_mut()?;
            prefetch(rest.first());
            let count = PAGE.min(left);
            (pages, left) = (rest, left - count);
            Some((Page::of(words, columns), count))
        })
    }

    /// Returns the words of the pages.
    pub fn words(&self) -> impl Iterator<Item = &[u64]> {
        self.pages.iter().map(|page| &**page)
    }

    /// Returns the identities.
    pub fn identities(&self) -> impl Iterator<Item = u64> {
        let pages = self.pages.iter().enumerate();
        pages.flat_map(|(n, words)| words[..PAGE.min(self.count - n * PAGE)].iter().copied())
    }

    /// Removes all particles.
    pub fn clear(&mut self, pool: &PagePool) {
        (self.count, self.largest) = (0, None);
        self.pages.drain(..).for_each(|page| pool.give_back(page));
    }

    /// Appends a particle from its record, the values of the columns one after the other.
    pub fn push(&mut self, pool: &PagePool, record: &[u8]) {
        self.largest = None;
        if self.count == PAGE * self.pages.len() {
            self.pages.push(pool.page());
        }
        let page = bytemuck::cast_slice_mut(&mut self.pages[self.count / PAGE]);
        match pool.columns.number {
            4 => set::<4>(page, self.count % PAGE, record),
            _ => set::<8>(page, self.count % PAGE, record),
        }
        self.count += 1;
    }

    /// Appends the record of particle `n`.
    pub fn read(&self, columns: ParticleColumns, n: usize, record: &mut Vec<u8>) {
        let start = record.len();
        record.resize(start + columns.bytes(), 0);
        read(
            &self.pages[n / PAGE],
            columns,
            n % PAGE,
            &mut record[start..],
        );
    }

    /// Removes particle `n`, which the last one replaces, and appends its record.
    pub fn take(&mut self, pool: &PagePool, n: usize, record: &mut Vec<u8>) {
        self.read(pool.columns, n, record);
        self.remove(pool, n);
    }

    /// Removes particle `n`, which the last one replaces.
    pub fn remove(&mut self, pool: &PagePool, n: usize) {
        self.largest = None;
        let last = self.count - 1;
        if n != last {
            match pool.columns.number {
                4 => overwrite::<u32>(&mut self.pages, last, n),
                _ => overwrite::<u64>(&mut self.pages, last, n),
            }
        }
        self.count = last;
        if last.is_multiple_of(PAGE)
            && let Some(page) = self.pages.pop()
        {
            pool.give_back(page);
        }
    }

    /// Moves particle `n` to `other`.
    pub fn move_to(&mut self, pool: &PagePool, n: usize, other: &mut Self) {
        let mut record = Vec::with_capacity(pool.columns.bytes());
        self.take(pool, n, &mut record);
        other.push(pool, &record);
    }

    /// Permutes the particles.
    pub fn shuffle(&mut self, pool: &PagePool) {
        let mut record = Vec::with_capacity(pool.columns.bytes());
        for n in 0..self.count {
            record.clear();
            self.take(pool, (n * n + 7) % self.count, &mut record);
            self.push(pool, &record);
        }
    }

    /// Moves all particles to `other`.
    pub fn append_to(mut self, pool: &PagePool, other: &mut Self) {
        if other.count == 0 {
            std::mem::swap(&mut self, other);
        }
        for n in (0..self.count).rev() {
            self.move_to(pool, n, other);
        }
    }

    /// Removes all particles and appends their records, each followed by `mark`.
    pub fn drain_records(&mut self, pool: &PagePool, mark: u8, records: &mut Vec<u8>) {
        let (columns, length) = (pool.columns, pool.columns.bytes() + 1);
        let (before, bytes) = (records.len(), self.count * length);
        match before {
            // fresh memory is 0 already
            0 => *records = vec![0; bytes],
            _ => records.resize(before + bytes, 0),
        }
        let of_page = records[before..].par_chunks_mut(PAGE * length);
        let pages = of_page.zip(&self.pages).with_min_len(MIN_PAGES_PER_TASK);
        pages.for_each(|(records, page)| {
            for (n, record) in records.chunks_exact_mut(length).enumerate() {
                record[length - 1] = mark;
                read(page, columns, n, &mut record[..length - 1]);
            }
        });
        self.clear(pool);
    }
}

/// Prefetches a page that is read next.
#[inline(always)]
fn prefetch(page: Option<&Words>) {
    #[cfg(target_arch = "x86_64")]
    for line in page.into_iter().flat_map(|page| page.chunks(8)) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no visible effect.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = page;
}

/// Smallest number of pages for a parallel task.
const MIN_PAGES_PER_TASK: usize = 128;

/// Bytes of the identities of a page; the other columns follow.
const IDENTITIES: usize = 8 * PAGE;

/// Writes row `n` of a page from a record.
fn set<const W: usize>(page: &mut [u8], n: usize, record: &[u8]) {
    let (identities, numbers) = page.split_at_mut(IDENTITIES);
    let (identity, values) = record.split_at(8);
    identities[8 * n..][..8].copy_from_slice(identity);
    let columns = numbers.chunks_exact_mut(W * PAGE);
    for (column, value) in columns.zip(values.chunks_exact(W)) {
        column[W * n..][..W].copy_from_slice(value);
    }
}

/// Reads row `n` of a page as a record.
fn read(page: &[u64], columns: ParticleColumns, n: usize, record: &mut [u8]) {
    let page = bytemuck::cast_slice(page);
    match columns.number {
        4 => get::<4>(page, n, record),
        _ => get::<8>(page, n, record),
    }
}

fn get<const W: usize>(page: &[u8], n: usize, record: &mut [u8]) {
    let (identities, numbers) = page.split_at(IDENTITIES);
    let (identity, values) = record.split_at_mut(8);
    identity.copy_from_slice(&identities[8 * n..][..8]);
    let columns = numbers.chunks_exact(W * PAGE);
    for (column, value) in columns.zip(values.chunks_exact_mut(W)) {
        value.copy_from_slice(&column[W * n..][..W]);
    }
}

/// Copies row `from` to row `to`; the columns have numbers of type `T`.
fn overwrite<T: bytemuck::Pod>(pages: &mut [Words], from: usize, to: usize) {
    let (from, to) = ((from / PAGE, from % PAGE), (to / PAGE, to % PAGE));
    pages[to.0][to.1] = pages[from.0][from.1];
    let columns = (pages[0].len() - PAGE) * 8 / (PAGE * size_of::<T>());
    for column in 0..columns {
        let numbers: &[T] = bytemuck::cast_slice(&pages[from.0][PAGE..]);
        let value = numbers[PAGE * column + from.1];
        let numbers: &mut [T] = bytemuck::cast_slice_mut(&mut pages[to.0][PAGE..]);
        numbers[PAGE * column + to.1] = value;
    }
}
