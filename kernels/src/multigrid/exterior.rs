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

#[cfg(test)]
mod tests {
    use super::*;

    const CELLS: [i32; 3] = [16, 16, 16];

    /// The tables of a function of places in root cells from the domain's middle, of which second differences are `bends`.
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
                let place = tabled(&CELLS, face as i32, at) as usize;
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
        }
    }

    /// Cells of a level in the layer of root cells around the domain, beyond faces, edges and corners.
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
