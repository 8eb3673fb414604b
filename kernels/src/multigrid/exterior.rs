//! Potential outside an isolated domain: tables on the root level, and their interpolation for finer levels.
//!
//! The tables hold the layers at -2, -1 and 0 cells from each face of the domain (the first two are outside). They
//! extend over the face and two cells around it. Finer levels interpolate by quadratic B-splines, which are smooth
//! across root cells; jumps would be amplified by slopes on fine levels. A second table holds the spline coefficients.

use super::mirrors::mirrors_beside;
use super::stencil::{offset_in_root_cell, spline, table_index, weighted_sum_3x3};
use crate::PATCH;
use nestar_device::Real;
use nestar_device::math::sum3;

/// Layers of the table along the normal of a face.
pub const LAYERS: usize = 3;
/// Number of cells outside the edges of a face in the table.
pub const AROUND_FACE: usize = 2;

/// Returns the length of one of the two tables around a domain of root cells.
#[must_use]
pub fn table_length(cells: [i32; 3]) -> usize {
    // one after the last cell of the last face
    let [x, y, z] = cells;
    let last = table_index(&cells, 5, [x + 1, y + 1, z + 1]);
    last as usize + 1
}

/// Potential around the domain at one time.
#[derive(Clone, Copy)]
pub struct Exterior<'a, R> {
    /// Tables before the step of the root level: values, then spline coefficients; empty without isolated faces.
    pub older: &'a [R],
    /// Tables after it.
    pub newer: &'a [R],
    /// Weight of the newer tables, 0 to 1.
    pub weight: R,
    /// Cells of the root level.
    pub cells: [i32; 3],
    /// Bit mask of the faces beyond which the potential continues evenly.
    pub mirrored: i32,
}

impl<R: Real> Exterior<'_, R> {
    fn value(&self, place: i32) -> R {
        let (older, newer) = (self.older[place as usize], self.newer[place as usize]);
        older + self.weight * (newer - older)
    }

    /// Returns the bit mask of mirrored faces at which a patch of a level lies, from its index.
    pub(super) fn mirrors_beside(&self, level: i32, index: &[i32; 3]) -> i32 {
        let patches = self.cells.map(|cells| cells / PATCH as i32 * (1 << level));
        mirrors_beside(self.mirrored, &patches, index)
    }

    /// Returns the value in a cell of a level outside isolated faces. Its root cell is in the layer beside the domain;
    /// level 0 also has the next layer.
    #[cold]
    pub(super) fn at(&self, level: i32, cell: [i32; 3]) -> R {
        let root = cell.map(|x| x >> level);
        let outside = |axis: usize| root[axis] < 0 || root[axis] >= self.cells[axis];
        let face = |axis: usize| 2 * axis as i32 + i32::from(root[axis] > 0);
        if level == 0 {
            let axis = (0..3).find(|&axis| outside(axis)).unwrap_or(0);
            return self.value(table_index(&self.cells, face(axis), root));
        }
        let weights = cell.map(|x| spline(offset_in_root_cell::<R>(x, level)));
        // outside edges several faces have the value: use the mean
        let (mut terms, mut count) = ([R::lit(0.0); 3], R::lit(0.0));
        for axis in (0..3).filter(|&axis| outside(axis)) {
            terms[axis] = self.spline_by_face(face(axis), root, &weights);
            count += R::lit(1.0);
        }
        sum3(terms[0], terms[1], terms[2]) / count
    }

    /// Evaluates the spline of the table of a face.
    fn spline_by_face(&self, face: i32, root: [i32; 3], weights: &[[R; 3]; 3]) -> R {
        let axis = face as usize / 2;
        let (a, b) = ((axis + 1) % 3, (axis + 2) % 3);
        let coefficients = self.newer.len() as i32 / 2;
        let layers: [R; 3] = std::array::from_fn(|layer| {
            let values = std::array::from_fn(|n| {
                let mut to = root;
                to[axis] += layer as i32 - 1;
                to[a] += n as i32 % 3 - 1;
                to[b] += n as i32 / 3 - 1;
                self.value(coefficients + table_index(&self.cells, face, to))
            });
            weights[axis][layer] * weighted_sum_3x3(&values, &weights[a], &weights[b])
        });
        sum3(layers[0], layers[1], layers[2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELLS: [i32; 3] = [16, 16, 16];

    /// Tabulates a function of positions in root cells relative to the centre of the domain; `bends` is the sum of its
    /// second differences.
    fn tables(function: impl Fn([f64; 3]) -> f64, bends: f64) -> Vec<f64> {
        let length = table_length(CELLS);
        let mut tables = vec![f64::NAN; 2 * length];
        for face in 0..6 {
            let axis = face / 2;
            let first = if face % 2 == 0 { -2 } else { CELLS[axis] - 1 };
            for (layer, b, a) in (0..3)
                .flat_map(|layer| (-2..18).flat_map(move |b| (-2..18).map(move |a| (layer, b, a))))
            {
                let mut at = [first + layer; 3];
                (at[(axis + 1) % 3], at[(axis + 2) % 3]) = (a, b);
                let place = table_index(&CELLS, face as i32, at) as usize;
                assert!(tables[place].is_nan(), "two cells at one place");
                let value = function(at.map(|x| f64::from(x) + 0.5 - 8.0));
                tables[place] = value;
                tables[length + place] = value - 0.125 * bends;
            }
        }
        assert!(tables.iter().all(|value| value.is_finite()));
        tables
    }

    fn exterior(tables: &[f64]) -> Exterior<'_, f64> {
        Exterior {
            older: tables,
            newer: tables,
            weight: 1.0,
            cells: CELLS,
            mirrored: 0,
        }
    }

    /// Returns cells of a level in the layer of root cells around the domain, outside faces, edges and corners.
    fn cells(level: i32) -> impl Iterator<Item = [i32; 3]> {
        let across = 16 << level;
        let places = move || [-2, -1, 0, 1, across / 2, across - 1, across, across + 1];
        let all = move |x| {
            places()
                .into_iter()
                .flat_map(move |y| places().map(|z| [x, y, z]))
        };
        let outside = move |cell: &[i32; 3]| cell.iter().any(|x| !(0..across).contains(x));
        places().into_iter().flat_map(all).filter(outside)
    }

    #[test]
    fn a_parabola_is_found_between_root_cells() {
        let parabola = |[x, y, z]: [f64; 3]| {
            0.7 * x * x + 0.2 * y * y - 0.5 * z * z + x * y - 0.3 * y * z + 2.0 * z - 1.0
        };
        let tables = tables(parabola, 2.0 * (0.7 + 0.2 - 0.5));
        for level in 1..6 {
            for cell in cells(level) {
                let width = 0.5_f64.powi(level);
                let right = parabola(cell.map(|x| (f64::from(x) + 0.5) * width - 8.0));
                let found = exterior(&tables).at(level, cell);
                assert!(
                    (found - right).abs() < 1e-12,
                    "{level} {cell:?}: {found} {right}"
                );
            }
        }
    }

    #[test]
    fn swapped_and_mirrored_axes_give_the_same_bits() {
        let wild = |x: [f64; 3]| {
            let mut x = x.map(f64::abs);
            x.sort_by(f64::total_cmp);
            (37.0 * x[0] + 101.0 * x[1] + 57.0 * x[2]) % 1.9 + 1.0 / 3.0
        };
        let tables = tables(wild, 0.0);
        let at = |level, cell| exterior(&tables).at(level, cell).to_bits();
        for (level, cell) in (0..5).flat_map(|level| cells(level).map(move |cell| (level, cell))) {
            let [x, y, z] = cell;
            let value = at(level, cell);
            let mirrored = (16 << level) - 1 - x;
            for other in [[y, x, z], [z, y, x], [x, z, y], [mirrored, y, z]] {
                assert_eq!(at(level, other), value, "{level} {cell:?} {other:?}");
            }
        }
    }
}
