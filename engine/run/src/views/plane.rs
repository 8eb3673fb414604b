//! Uniform grids of cells across an axis, for slices and projections.
//!
//! A patch covers a tile of 8 by 8 pixels of its level. Values are kept by tile, so that ranks keep and send only what their
//! patches cover, and tiles of coarser levels are small.

use super::config::AXES;
use super::{Axis, PatchCells, ViewArray, ViewContext, ViewCoordinate, ViewLayout};
use nestar_kernels::PATCH;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Largest number of cells along an axis of a grid whose `level` is not given.
const MAX_CELLS: i64 = 4096;
/// Pixels of a tile.
pub(super) const TILE: usize = PATCH * PATCH;

/// A uniform grid across an axis.
#[derive(Clone, Debug)]
pub(super) struct Plane {
    /// The axis across which the grid lies.
    pub axis: usize,
    /// Axes of the grid: the slower and the faster index of its arrays.
    pub along: [usize; 2],
    /// Level of the pixels.
    pub level: usize,
    /// Range of cells of that level along each axis.
    pub cells: [[i64; 2]; 3],
    /// Positions of the cell centres along the two axes of the grid.
    centres: [Vec<f64>; 2],
}

/// A tile: its level and its indices along the two axes of the grid.
pub(super) type TileKey = (u8, [i32; 2]);

impl Plane {
    /// Creates the grid of a view.
    pub fn new(context: &ViewContext, axis: Axis) -> Self {
        let (axis, level) = (axis.number(), context.grid_level(MAX_CELLS));
        let along = match axis {
            0 => [2, 1],
            1 => [2, 0],
            _ => [1, 0],
        };
        let (cells, domain) = (context.cells(level), context.domain);
        let centre = |a: usize, n: i64| {
            let (left, right) = (domain.left_edge[a], domain.right_edge[a]);
            left + (right - left) * ((n as f64 + 0.5) / f64::from(domain.cells(level)[a]))
        };
        let centres = along.map(|a| (cells[a][0]..cells[a][1]).map(|n| centre(a, n)).collect());
        Self {
            axis,
            along,
            level,
            cells,
            centres,
        }
    }

    /// Returns the layout of arrays with one value in each pixel.
    pub fn layout(&self, arrays: Vec<(String, Option<String>, String)>) -> ViewLayout {
        let coordinate = |n: usize| ViewCoordinate {
            name: AXES[self.along[n]].into(),
            units: Some("length".into()),
            long_name: format!("{} of the centre", AXES[self.along[n]]),
            values: self.centres[n].clone(),
        };
        let array = |(name, units, long_name)| ViewArray {
            name,
            dimensions: self.along.map(|a| AXES[a].into()).to_vec(),
            units,
            long_name,
        };
        ViewLayout {
            coordinates: [0, 1].map(coordinate).to_vec(),
            arrays: arrays.into_iter().map(array).collect(),
        }
    }

    /// Returns the cells of the pixels' level that a patch covers along an axis and that the grid contains.
    fn overlap(&self, level: usize, patch: [i32; 3], axis: usize) -> [i64; 2] {
        let cells = (PATCH << (self.level - level)) as i64;
        let first = i64::from(patch[axis]) * cells;
        let [left, right] = self.cells[axis];
        [first.max(left), (first + cells).min(right)]
    }

    /// Returns `true` if a patch and the grid have cells in common.
    pub fn uses(&self, level: usize, patch: [i32; 3]) -> bool {
        (0..3).all(|axis| {
            let [first, end] = self.overlap(level, patch, axis);
            first < end
        })
    }

    /// Returns the number of cells of the pixels' level in which cell `n` (0 to 7) of a patch and the grid overlap along the
    /// grid's axis.
    pub fn depth(&self, level: usize, patch: [i32; 3], n: usize) -> i64 {
        let cells = 1i64 << (self.level - level);
        let first = (i64::from(patch[self.axis]) * PATCH as i64 + n as i64) * cells;
        let [left, right] = self.cells[self.axis];
        ((first + cells).min(right) - first.max(left)).max(0)
    }

    /// Returns the tile that a patch covers.
    pub fn tile(&self, cells: &PatchCells) -> TileKey {
        (cells.level as u8, self.along.map(|a| cells.patch[a]))
    }

    /// Returns a number by which patches are sorted by their tile.
    pub fn place(&self, patch: [i32; 3]) -> u64 {
        let [slow, fast] = self.along.map(|a| patch[a] as u64);
        slow << 32 | fast
    }

    /// Returns an image. `pixel` gets all tiles that cover a pixel, finest first, with the number of the pixel in each.
    pub fn image<T: Sync>(
        &self,
        tiles: &BTreeMap<TileKey, T>,
        pixel: impl Fn(&[(&T, usize)]) -> f64 + Sync,
    ) -> Vec<f64> {
        let [rows, columns] = self.along.map(|a| self.cells[a]);
        let width = (columns[1] - columns[0]) as usize;
        let mut image = vec![0.0; self.centres[0].len() * width];
        let row = |(i, out): (i64, &mut [f64])| {
            let mut found: Vec<(&T, usize)> = Vec::new();
            let mut covering: Vec<(&T, usize)> = Vec::new();
            for (j, out) in (columns[0]..columns[1]).zip(out) {
                // the tiles are the same in the pixels of a block
                if j == columns[0] || j % PATCH as i64 == 0 {
                    found = self.covering(tiles, [i, j]);
                }
                covering.clear();
                covering.extend(found.iter().map(|&(tile, shift)| {
                    let [i, j] = [i, j].map(|n| (n >> shift) as usize % PATCH);
                    (tile, PATCH * i + j)
                }));
                *out = pixel(&covering);
            }
        };
        let lines = image.par_chunks_mut(width).enumerate();
        lines
            .map(|(n, out)| (rows[0] + n as i64, out))
            .for_each(row);
        image
    }

    /// Returns the tiles that cover a pixel, finest first, with the difference of their level.
    fn covering<'t, T>(
        &self,
        tiles: &'t BTreeMap<TileKey, T>,
        pixel: [i64; 2],
    ) -> Vec<(&'t T, usize)> {
        let levels = (0..=self.level).rev();
        let tile = |level: usize| {
            let shift = self.level - level;
            let at = pixel.map(|n| ((n >> shift) / PATCH as i64) as i32);
            tiles.get(&(level as u8, at)).map(|tile| (tile, shift))
        };
        levels.filter_map(tile).collect()
    }
}

/// Writes the key of a tile.
pub(super) fn pack_key((level, at): &TileKey, out: &mut Vec<u8>) {
    out.push(*level);
    out.extend(at.iter().flat_map(|n| n.to_le_bytes()));
}

/// Reads the key of a tile from the beginning of `bytes`.
pub(super) fn unpack_key(bytes: &mut &[u8]) -> Option<TileKey> {
    let (key, rest) = bytes.split_first_chunk::<9>()?;
    *bytes = rest;
    let number = |at: usize| i32::from_le_bytes([key[at], key[at + 1], key[at + 2], key[at + 3]]);
    Some((key[0], [number(1), number(5)]))
}
