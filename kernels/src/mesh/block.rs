//! Defines cubic blocks of cells, and the positions of cells on a level.

use nestar_device::{Place, Real, device};

/// Describes a cubic block of `n`^3 cells of one level, ghost cells included.
#[derive(Clone, Copy, Debug)]
pub struct CellBlock {
    /// Cells along each axis.
    pub n: usize,
    /// Refinement level.
    pub level: i32,
    /// Global index, on the block's level, of its first cell (x, y, z); may lie outside the domain.
    pub origin: [i32; 3],
    /// Cells of the whole domain on the block's level along each axis.
    pub domain_cells: [i32; 3],
    /// Lower edge of the domain, code length.
    pub left_edge: [f64; 3],
    /// Upper edge of the domain, code length.
    pub right_edge: [f64; 3],
}

impl CellBlock {
    /// Centre of the cell with block indices `c`, code length.
    #[must_use]
    pub fn centre(&self, c: [usize; 3]) -> [f64; 3] {
        std::array::from_fn(|a| {
            let i = self.origin[a] + c[a] as i32;
            cell_centre(
                i,
                self.domain_cells[a],
                self.left_edge[a],
                self.right_edge[a],
            )
        })
    }

    /// Returns the geometry of the block's level at `time`, outside a step (`dt` is 0).
    #[must_use]
    pub(super) fn geometry(&self, time: f64) -> LevelGeometry {
        let width =
            |a: usize| (self.right_edge[a] - self.left_edge[a]) / f64::from(self.domain_cells[a]);
        LevelGeometry {
            left: self.left_edge,
            right: self.right_edge,
            cells: self.domain_cells,
            level: self.level,
            width: [0, 1, 2].map(width),
            time,
            dt: 0.0,
            numbers: [1.0; 2],
        }
    }

    /// Returns the number of layers that lie below and above the domain along `axis`.
    #[must_use]
    pub fn outside(&self, axis: usize) -> [usize; 2] {
        let above = self.origin[axis] + self.n as i32 - self.domain_cells[axis];
        [(-self.origin[axis]).max(0) as usize, above.max(0) as usize]
    }
}

/// Returns the centre of cell `i` of `cells` between two edges.
///
/// It is written as a weighted mean of the edges. Mirrored cells therefore have centres that are mirror images bit for bit.
#[device]
#[must_use]
pub fn cell_centre(i: i32, cells: i32, left: f64, right: f64) -> f64 {
    let above = (2 * i + 1) as f64;
    let below = (2 * (cells - i) - 1) as f64;
    (above * right + below * left) / ((2 * cells) as f64)
}

/// Returns the position of plane `i` of cell faces, of `cells` cells between two edges; the counterpart of [`cell_centre`].
#[device]
#[must_use]
pub fn face_position(i: i32, cells: i32, left: f64, right: f64) -> f64 {
    (i as f64 * right + (cells - i) as f64 * left) / (cells as f64)
}

/// Holds what is needed to compute the position of any cell of a level.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct LevelGeometry {
    /// Lower edge of the domain, code length.
    pub left: [f64; 3],
    /// Upper edge of the domain, code length.
    pub right: [f64; 3],
    /// Cells of the domain on the level.
    pub cells: [i32; 3],
    /// Refinement level.
    pub level: i32,
    /// Cell widths, code length.
    pub width: [f64; 3],
    /// Simulation time, code units.
    pub time: f64,
    /// Length of the step, code units.
    pub dt: f64,
    /// Numbers that follow the simulation time; 1 where no plugin defines them, and for boundary rules.
    pub numbers: [f64; 2],
}

impl Default for LevelGeometry {
    fn default() -> Self {
        Self {
            left: [0.0; 3],
            right: [0.0; 3],
            cells: [0; 3],
            level: 0,
            width: [0.0; 3],
            time: 0.0,
            dt: 0.0,
            numbers: [1.0; 2],
        }
    }
}

/// Returns the place of cell `cell` (0 to 511) of the patch with index `patch`.
#[device]
#[must_use]
pub fn cell_place<R: Real>(g: &LevelGeometry, patch: [i32; 3], cell: i32) -> Place<R> {
    let x = 8 * patch[0] + cell % 8;
    let y = 8 * patch[1] + cell / 8 % 8;
    let z = 8 * patch[2] + cell / 64;
    place_of::<R>(g, [x, y, z])
}

/// Returns the place of the cell with indices `at` (x, y, z) on the level.
#[device]
#[must_use]
pub fn place_of<R: Real>(g: &LevelGeometry, at: [i32; 3]) -> Place<R> {
    let [x, y, z] = at;
    Place {
        centre: [
            R::from_f64(cell_centre(x, g.cells[0], g.left[0], g.right[0])),
            R::from_f64(cell_centre(y, g.cells[1], g.left[1], g.right[1])),
            R::from_f64(cell_centre(z, g.cells[2], g.left[2], g.right[2])),
        ],
        width: [
            R::from_f64(g.width[0]),
            R::from_f64(g.width[1]),
            R::from_f64(g.width[2]),
        ],
        index: [x, y, z],
        level: g.level,
        time: g.time,
        dt: R::from_f64(g.dt),
        numbers: g.numbers,
    }
}
