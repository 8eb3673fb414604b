//! Where a cubic block of cells lies in its level.

/// A cubic block of `n`^3 cells cut out of one level's index space, ghost cells included.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Cells along each axis.
    pub n: usize,
    /// Global index, on the block's level, of its first cell (x, y, z); may lie outside the domain.
    pub origin: [i32; 3],
    /// Cells of the whole domain on the block's level along each axis.
    pub domain_cells: [i32; 3],
    /// Lower edge of the domain, code length.
    pub left_edge: [f64; 3],
    /// Upper edge of the domain, code length.
    pub right_edge: [f64; 3],
}

impl Block {
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

    /// Layers of the block that lie below and above the domain along `axis`.
    #[must_use]
    pub fn outside(&self, axis: usize) -> [usize; 2] {
        let above = self.origin[axis] + self.n as i32 - self.domain_cells[axis];
        [(-self.origin[axis]).max(0) as usize, above.max(0) as usize]
    }
}

/// Centre of cell `i` of `cells` between two edges.
///
/// Written as a weighted mean of the edges, so that mirror-image cells have bitwise mirror-image centres.
#[must_use]
pub fn cell_centre(i: i32, cells: i32, left: f64, right: f64) -> f64 {
    let above = f64::from(2 * i + 1);
    let below = f64::from(2 * (cells - i) - 1);
    (above * right + below * left) / f64::from(2 * cells)
}
