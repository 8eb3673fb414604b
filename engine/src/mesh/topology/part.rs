//! A part of a level, and what is read around it.

use super::Topology;
use nestar_kernels::mesh::COARSER;

impl Topology {
    /// Lets `rows` stand for all rows of `level` until the ones that it returns are put back.
    pub(crate) fn replace_rows(&mut self, level: usize, rows: Vec<u32>) -> Vec<u32> {
        std::mem::replace(&mut self.levels[level], rows)
    }

    /// What a gather of ghost cells of some rows of a level reads: rows of the coarser level, and of that level with `rows`
    /// themselves, ascending.
    pub(crate) fn gather_rows(&self, rows: &[u32]) -> [Vec<u32>; 2] {
        let meets_coarser = |row: &&u32| self.neighbours(**row).contains(&COARSER);
        let coarse = rows.iter().filter(meets_coarser);
        let parents: Vec<u32> = coarse.filter_map(|&row| self.parent(row)).collect();
        [&parents[..], rows].map(|rows| {
            let around = rows.iter().flat_map(|&row| self.neighbours(row));
            let mut around: Vec<u32> = around.filter_map(|&n| u32::try_from(n).ok()).collect();
            around.sort_unstable();
            around.dedup();
            around
        })
    }

    /// Which of the 27 around a row, itself included, are patches of its level, as bits.
    pub(crate) fn present_around(&self, row: u32) -> u32 {
        let around = self.neighbours(row).iter().enumerate();
        around.map(|(d, &n)| u32::from(n >= 0) << d).sum()
    }
}
