//! The potential beyond an isolated domain: a table by who solves the root level, and finer values between its cells.
//!
//! The table holds the three layers at -2, -1 and 0 cells from each face of the domain, outwards first the two that lie outside, over
//! the face and two cells around it. Finer levels stand between the centres of root cells: quadratic B-splines reach them without a
//! jump where one root cell ends, which slopes on fine levels would magnify. Their coefficients are a second table.

use super::stencil::{spline, tabled, weighted, within};
use nestar_device::Real;
use nestar_device::math::sum3;

/// Layers of the table along the normal of a face.
pub const LAYERS: usize = 3;
/// Cells by which the table reaches beyond a face's edges.
pub const AROUND_FACE: usize = 2;

/// Numbers of one of the two tables around a domain of so many root cells.
#[must_use]
pub fn table_length(cells: [i32; 3]) -> usize {
    // where the cell would stand behind the last face's last one
    let [x, y, z] = cells;
    let last = tabled(&cells, 5, [x + 1, y + 1, z + 1]);
    last as usize + 1
}

/// The potential around the domain at one time.
#[derive(Clone, Copy)]
pub struct Exterior<'a, R> {
    /// Tables before the step of the root level: values, then coefficients of splines. Nothing where the domain is periodic.
    pub older: &'a [R],
    /// Tables after it.
    pub newer: &'a [R],
    /// Weight of the newer ones, 0 to 1.
    pub weight: R,
    /// Cells of the root level.
    pub cells: [i32; 3],
}

impl<R: Real> Exterior<'_, R> {
    fn value(&self, place: i32) -> R {
        let (older, newer) = (self.older[place as usize], self.newer[place as usize]);
        older + self.weight * (newer - older)
    }

    /// The value in a cell of a level outside the domain, of which the root cell lies in the layer at the domain; on level 0 one layer
    /// farther is known too.
    #[cold]
    pub(super) fn at(&self, level: i32, cell: [i32; 3]) -> R {
        let root = cell.map(|x| x >> level);
        let outside = |axis: usize| root[axis] < 0 || root[axis] >= self.cells[axis];
        let face = |axis: usize| 2 * axis as i32 + i32::from(root[axis] > 0);
        if level == 0 {
            let axis = (0..3).find(|&axis| outside(axis)).unwrap_or(0);
            return self.value(tabled(&self.cells, face(axis), root));
        }
        let weights = cell.map(|x| spline(within::<R>(x, level)));
        // beyond edges the tables of several faces know the value: the mean has no preference
        let (mut terms, mut count) = ([R::lit(0.0); 3], R::lit(0.0));
        for axis in (0..3).filter(|&axis| outside(axis)) {
            terms[axis] = self.by_face(face(axis), root, &weights);
            count += R::lit(1.0);
        }
        sum3(terms[0], terms[1], terms[2]) / count
    }

    /// The spline by a face's table.
    fn by_face(&self, face: i32, root: [i32; 3], weights: &[[R; 3]; 3]) -> R {
        let axis = face as usize / 2;
        let (a, b) = ((axis + 1) % 3, (axis + 2) % 3);
        let coefficients = self.newer.len() as i32 / 2;
        let layers: [R; 3] = std::array::from_fn(|layer| {
            let values = std::array::from_fn(|n| {
                let mut to = root;
                to[axis] += layer as i32 - 1;
                to[a] += n as i32 % 3 - 1;
                to[b] += n as i32 / 3 - 1;
                self.value(coefficients + tabled(&self.cells, face, to))
            });
            weights[axis][layer] * weighted(&values, &weights[a], &weights[b])
        });
        sum3(layers[0], layers[1], layers[2])
    }
}
