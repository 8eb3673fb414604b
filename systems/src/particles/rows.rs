//! The particles of a patch: pages from a pool, full but for the last one, in no order that means anything.

use super::columns::{Columns, PAGE, Page, Precise};
use std::sync::{Mutex, PoisonError};

/// A page: the columns of up to `PAGE` particles.
type Words = Box<[u64]>;

/// The pool that the pages of a species come from and go back to.
pub struct Pool {
    /// What is kept of a particle.
    pub columns: Columns,
    free: Mutex<Vec<Words>>,
}

impl Pool {
    /// An empty pool.
    #[must_use]
    pub fn new(columns: Columns) -> Self {
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

/// Particles of one patch that one level moves.
#[derive(Default)]
pub struct Rows {
    pages: Vec<Words>,
    count: usize,
}

impl Rows {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The pages, each with how many particles it holds.
    pub fn pages<R: Precise>(
        &mut self,
        columns: Columns,
    ) -> impl Iterator<Item = (Page<'_, R>, usize)> {
        let count = self.count;
        let pages = self.pages.iter_mut().enumerate();
        pages.map(move |(n, words)| (Page::of(words, columns), PAGE.min(count - n * PAGE)))
    }

    /// The words of the pages.
    pub fn words(&self) -> impl Iterator<Item = &[u64]> {
        self.pages.iter().map(|page| &**page)
    }

    /// Forgets all particles.
    pub fn clear(&mut self, pool: &Pool) {
        self.count = 0;
        self.pages.drain(..).for_each(|page| pool.give_back(page));
    }

    /// The page of particle `n` and its place there.
    pub fn page_of<R: Precise>(&mut self, columns: Columns, n: usize) -> (Page<'_, R>, usize) {
        (Page::of(&mut self.pages[n / PAGE], columns), n % PAGE)
    }

    /// Adds a particle by its record: the values of the columns one after the other.
    pub fn push(&mut self, pool: &Pool, record: &[u8]) {
        if self.count == PAGE * self.pages.len() {
            self.pages.push(pool.page());
        }
        let (page, n) = (self.count / PAGE, self.count % PAGE);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.pages[page]);
        let (mut column, mut from) = (0, 0);
        for width in pool.columns.widths() {
            bytes[column + n * width..][..width].copy_from_slice(&record[from..][..width]);
            (column, from) = (column + PAGE * width, from + width);
        }
        self.count += 1;
    }

    /// Appends the record of particle `n`.
    pub fn read(&self, columns: Columns, n: usize, record: &mut Vec<u8>) {
        let bytes: &[u8] = bytemuck::cast_slice(&self.pages[n / PAGE]);
        let mut column = 0;
        for width in columns.widths() {
            record.extend_from_slice(&bytes[column + n % PAGE * width..][..width]);
            column += PAGE * width;
        }
    }

    /// Takes particle `n` out, whose row the last one takes; its record is appended.
    pub fn take(&mut self, pool: &Pool, n: usize, record: &mut Vec<u8>) {
        self.read(pool.columns, n, record);
        self.remove(pool, n);
    }

    /// Removes particle `n`, whose row the last one takes.
    pub fn remove(&mut self, pool: &Pool, n: usize) {
        let last = self.count - 1;
        if n != last {
            let mut column = 0;
            for width in pool.columns.widths() {
                let at = |n: usize| column + n % PAGE * width;
                let mut value = [0; 8];
                let from: &[u8] = bytemuck::cast_slice(&self.pages[last / PAGE]);
                value[..width].copy_from_slice(&from[at(last)..][..width]);
                let to: &mut [u8] = bytemuck::cast_slice_mut(&mut self.pages[n / PAGE]);
                to[at(n)..][..width].copy_from_slice(&value[..width]);
                column += PAGE * width;
            }
        }
        self.count = last;
        if last.is_multiple_of(PAGE)
            && let Some(page) = self.pages.pop()
        {
            pool.give_back(page);
        }
    }

    /// Takes particle `n` out and adds it to `other`.
    pub fn hand_over(&mut self, pool: &Pool, n: usize, other: &mut Self) {
        let mut record = Vec::with_capacity(pool.columns.bytes());
        self.take(pool, n, &mut record);
        other.push(pool, &record);
    }

    /// Lets particles change places, in some way.
    pub fn shuffle(&mut self, pool: &Pool) {
        for n in 0..self.count {
            let mut record = Vec::with_capacity(pool.columns.bytes());
            self.take(pool, (n * n + 7) % self.count, &mut record);
            self.push(pool, &record);
        }
    }

    /// Takes all particles out and adds them to `other`.
    pub fn drain_into(mut self, pool: &Pool, other: &mut Self) {
        for n in (0..self.count).rev() {
            self.hand_over(pool, n, other);
        }
    }

    /// Takes all particles out; their records are appended, each followed by `mark`.
    pub fn take_all(&mut self, pool: &Pool, mark: u8, records: &mut Vec<u8>) {
        for n in 0..self.count {
            self.read(pool.columns, n, records);
            records.push(mark);
        }
        self.clear(pool);
    }
}
