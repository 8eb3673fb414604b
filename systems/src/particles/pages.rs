//! Stores the particles of a patch in pages of 32, column by column.

use nestar_engine::data::Element;
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Particles of a page: one per thread of a warp.
pub const PAGE: usize = 32;

/// Floating-point type of particle data and the matching fixed-point type of offsets.
pub trait ParticleReal: Element {
    /// Fixed-point offset in the patch along an axis.
    type Offset: bytemuck::Pod + Ord + Send + Sync;
    /// Bits of an offset.
    const BITS: u32;
    /// Converts an offset to units of 2^-64 patch widths.
    fn widen(offset: Self::Offset) -> u64;
    /// Keeps the upper bits of an offset in units of 2^-64 patch widths.
    fn narrow(offset: u64) -> Self::Offset;
    /// Moves an offset as [`moved`](nestar_kernels::particles::motion::moved) does, for displacements below
    /// one patch width. It has no branch, so that loops over pages vectorise.
    fn moved(offset: Self::Offset, by: f64) -> (Self::Offset, i32);
    /// Maps the absolute value of a number to an integer of the same order; NaN is the largest.
    fn ordered(number: Self) -> Self::Offset;
    /// Inverts [`ParticleReal::ordered`].
    fn size(ordered: Self::Offset) -> Self;
}

/// Truncates a number from 0 to below 2^32 to an integer in the lower half of the result. The conversion
/// vectorises.
#[inline(always)]
fn cut(number: f64) -> u64 {
    (number.trunc() + 4_503_599_627_370_496.0).to_bits() & 0xffff_ffff
}

impl ParticleReal for f32 {
    type Offset = u32;
    const BITS: u32 = 32;
    fn widen(offset: u32) -> u64 {
        u64::from(offset) << 32
    }
    fn narrow(offset: u64) -> u32 {
        (offset >> 32) as u32
    }
    #[inline(always)]
    fn moved(offset: u32, by: f64) -> (u32, i32) {
        let steps = cut(by.abs() * 4_294_967_296.0 + 0.5) as u32;
        let (below, above) = (offset.wrapping_sub(steps), offset.wrapping_add(steps));
        let back = by < 0.0;
        let step = i32::from(!back & (above < offset)) - i32::from(back & (below > offset));
        (if back { below } else { above }, step)
    }
    #[inline(always)]
    fn ordered(number: f32) -> u32 {
        number.abs().to_bits()
    }
    fn size(ordered: u32) -> f32 {
        f32::from_bits(ordered)
    }
}

impl ParticleReal for f64 {
    type Offset = u64;
    const BITS: u32 = 64;
    fn widen(offset: u64) -> u64 {
        offset
    }
    fn narrow(offset: u64) -> u64 {
        offset
    }
    #[inline(always)]
    fn moved(offset: u64, by: f64) -> (u64, i32) {
        let ways = by.abs() * 18_446_744_073_709_551_616.0 + 0.5;
        let upper = (ways / 4_294_967_296.0).trunc();
        let steps = cut(upper) << 32 | cut(ways - upper * 4_294_967_296.0);
        let (below, above) = (offset.wrapping_sub(steps), offset.wrapping_add(steps));
        let back = by < 0.0;
        let step = i32::from(!back & (above < offset)) - i32::from(back & (below > offset));
        (if back { below } else { above }, step)
    }
    #[inline(always)]
    fn ordered(number: f64) -> u64 {
        number.abs().to_bits()
    }
    fn size(ordered: u64) -> f64 {
        f64::from_bits(ordered)
    }
}

/// Columns of a species: identity, offset, velocity, acceleration, optional mass, scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParticleColumns {
    /// Bytes of a number and of an offset along an axis: 4 in single precision, 8 in double.
    pub number: usize,
    /// `true` if each particle has its own mass.
    pub masses: bool,
    /// Number of scalars.
    pub scalars: usize,
}

impl ParticleColumns {
    /// Returns the bytes of one value of each column, in storage order. A page stores its columns one after
    /// the other, `PAGE` values each.
    pub fn widths(self) -> impl Iterator<Item = usize> {
        let numbers = 9 + usize::from(self.masses) + self.scalars;
        std::iter::once(8).chain((0..numbers).map(move |_| self.number))
    }

    /// Bytes of a particle.
    #[must_use]
    pub fn bytes(self) -> usize {
        self.widths().sum()
    }

    /// Words of 8 bytes of a page.
    #[must_use]
    pub fn page_words(self) -> usize {
        self.bytes() * PAGE / 8
    }
}

/// Columns of a page of particles, `PAGE` values each; only the first ones are in use.
pub struct Page<'a, R: ParticleReal> {
    /// Identities, unique in the species for the whole run.
    pub id: &'a mut [u64; PAGE],
    /// Offsets in the patch, by axis.
    pub offset: [&'a mut [R::Offset; PAGE]; 3],
    /// Velocities, code units.
    pub velocity: [&'a mut [R; PAGE]; 3],
    /// Accelerations at the time of the particle, code units.
    pub acceleration: [&'a mut [R; PAGE]; 3],
    /// Masses; empty if all particles have the same mass.
    pub mass: &'a mut [R],
}

impl<'a, R: ParticleReal> Page<'a, R> {
    /// Splits the words of a page into columns.
    #[inline(always)]
    pub fn of(words: &'a mut [u64], columns: ParticleColumns) -> Self {
        let mut rest = words;
        let id = column(&mut rest);
        let mut offsets = || column(&mut rest);
        let offset = [offsets(), offsets(), offsets()];
        let mut numbers = || column(&mut rest);
        Self {
            id,
            offset,
            velocity: [numbers(), numbers(), numbers()],
            acceleration: [numbers(), numbers(), numbers()],
            mass: match columns.masses {
                true => &mut numbers()[..],
                false => &mut [],
            },
        }
    }

    /// Returns the offset of particle `n` in units of 2^-64 patch widths.
    #[inline(always)]
    pub fn offset_of(&self, n: usize) -> [u64; 3] {
        let [x, y, z] = &self.offset;
        [R::widen(x[n]), R::widen(y[n]), R::widen(z[n])]
    }

    /// Returns a vector of particle `n`.
    #[inline(always)]
    pub fn vector(of: &[&'a mut [R; PAGE]; 3], n: usize) -> [R; 3] {
        [of[0][n], of[1][n], of[2][n]]
    }
}

/// Identities and columns of a page; only the first values of each are in use.
pub struct PageColumns<'a, R> {
    /// Identities.
    pub id: &'a [u64],
    /// Columns after the identity, `[column][PAGE]`; those of offsets have the bits of numbers.
    pub numbers: &'a mut [R],
}

impl<'a, R: ParticleReal> PageColumns<'a, R> {
    fn of(words: &'a mut [u64]) -> Self {
        let (id, numbers) = words.split_at_mut(PAGE);
        let numbers = bytemuck::cast_slice_mut(numbers);
        Self { id, numbers }
    }

    /// Returns the offset of particle `n` in units of 2^-64 patch widths.
    #[inline(always)]
    pub fn offset_of(&self, n: usize) -> [u64; 3] {
        let of = |axis: usize| bytemuck::cast::<R, R::Offset>(self.numbers[PAGE * axis + n]);
        [0, 1, 2].map(|axis| R::widen(of(axis)))
    }
}

/// Splits the next column off the words of a page.
#[inline(always)]
fn column<'a, T: bytemuck::Pod>(words: &mut &'a mut [u64]) -> &'a mut [T; PAGE] {
    let (column, rest) = std::mem::take(words).split_at_mut(PAGE * size_of::<T>() / 8);
    *words = rest;
    bytemuck::from_bytes_mut(bytemuck::cast_slice_mut(column))
}

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

/// Particles of a patch by the level that moves them. The level of the patch moves list 0. The next finer
/// level moves list 1, particles that are entering or have left finer patches.
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

    /// Returns the columns of the pages for writing, each with its number of particles.
    pub fn columns<R: ParticleReal>(
        &mut self,
    ) -> impl Iterator<Item = (PageColumns<'_, R>, usize)> {
        self.largest = None;
        self.read_columns()
    }

    /// Returns the columns of the pages for reading, each with its number of particles.
    pub fn read_columns<R: ParticleReal>(
        &mut self,
    ) -> impl Iterator<Item = (PageColumns<'_, R>, usize)> {
        let count = self.count;
        let pages = self.pages.iter_mut().enumerate();
        pages.map(move |(n, words)| (PageColumns::of(words), PAGE.min(count - n * PAGE)))
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

    /// Returns the numbers of a column, counted after the identity; not those of offsets.
    pub fn numbers<R: ParticleReal>(&self, column: usize) -> impl Iterator<Item = R> {
        let pages = self.pages.iter().enumerate();
        pages.flat_map(move |(n, words)| {
            let numbers: &[R] = bytemuck::cast_slice(&words[PAGE..]);
            let count = PAGE.min(self.count - n * PAGE);
            numbers[PAGE * column..][..count].iter().copied()
        })
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

#[cfg(test)]
mod tests {
    use super::*;
    use nestar_kernels::particles::motion::moved;

    /// Offsets and displacements below one patch width.
    fn cases() -> impl Iterator<Item = (u64, f64)> {
        let random = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (n << 41);
        let offsets = [0, 1 << 32, 1 << 63, u64::MAX, 0x1234_5678_9abc_def0];
        let ways = [
            0.0,
            -0.0,
            1e-300,
            5e-20,
            2.8e-20,
            1.4e-10,
            0.5,
            1.0 - f64::EPSILON,
        ];
        let edges = offsets.into_iter().flat_map(move |p| ways.map(|w| (p, w)));
        let others = (0..20_000).map(move |n| {
            let way = random(n + 1) as f64 / 1.9e19 / (1u64 << (n % 60)) as f64;
            (random(7 * n), way)
        });
        edges.chain(others).flat_map(|(p, w)| [(p, w), (p, -w)])
    }

    #[test]
    fn branchless_moves_agree_with_the_kernel() {
        for (offset, by) in cases() {
            assert_eq!(
                <f64 as ParticleReal>::moved(offset, by),
                moved(offset, by, 64),
                "{offset:x} {by:e}"
            );
            let (short, by) = (<f32 as ParticleReal>::narrow(offset), f64::from(by as f32));
            let (to, step) = <f32 as ParticleReal>::moved(short, by);
            let there = (<f32 as ParticleReal>::widen(to), step);
            if by.abs() < 1.0 {
                assert_eq!(
                    there,
                    moved(u64::from(short) << 32, by, 32),
                    "{short:x} {by:e}"
                );
            }
        }
    }
}
