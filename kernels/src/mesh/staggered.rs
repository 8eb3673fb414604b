//! Interpolates face-centred fields into new patches.
//!
//! Fine faces on coarse ones are interpolated within the plane of the coarse face. If a neighbour was already refined, its values are
//! copied. Faces inside coarse cells follow from those around them, so that the divergence stays that of the coarse cells. Both patches at
//! a plane read the same values, so they get the same bits.

use super::coarse_faces::CoarseFaces;
use super::fine_faces::{inner_face_from, width_ratios};
use super::gather::GhostView;
use super::{Centring, face_direction};
use crate::PATCH;
use nestar_device::Real;

/// Holds what the interpolation of faces reads; shared by all new patches of a level.
pub struct NewFacesView<'a, R> {
    /// This level's rows, and those of the next coarser level.
    pub view: GhostView<'a, R>,
    /// Per row: 1 if the patch is new.
    pub fresh: &'a [u8],
}

/// Values of a component in a row of faces.
const VALUES: usize = Centring::Face.values();

/// Fills a new fine row of faces from the coarser level and from old patches of its own level.
///
/// # Safety
/// Nobody else may access row `row` of the level meanwhile.
pub unsafe fn prolong_faces<R: Real>(new: &NewFacesView<R>, row: u32) {
    // SAFETY: exclusivity is the caller's contract.
    let out = unsafe { new.view.level.row_mut(row) };
    for (c, out) in out.chunks_exact_mut(VALUES).enumerate() {
        for plane in (0..=PATCH).step_by(2) {
            let side = [(0, 0), (PATCH, 1)].into_iter().find(|(p, _)| *p == plane);
            let neighbour = side.and_then(|(_, side)| old_neighbour(new, row, c % 3, side));
            match neighbour {
                Some(values) => copy_plane(out, &values[c * VALUES..], c, plane),
                None => interpolate_plane(&new.view, row, out, c, plane),
            }
        }
    }
    let ratios = width_ratios(&new.view.edges, new.view.domain_cells);
    for vector in out.chunks_exact_mut(3 * VALUES) {
        fill_inner(vector, &ratios);
    }
}

/// Returns the neighbour's row at a side of `row`, if it exists and is not new.
fn old_neighbour<'a, R>(
    new: &NewFacesView<'a, R>,
    row: u32,
    axis: usize,
    side: usize,
) -> Option<&'a [R]> {
    let neighbour = new.view.neighbours[row as usize][face_direction(2 * axis + side)];
    let neighbour = u32::try_from(neighbour).ok();
    let old = neighbour.filter(|&neighbour| new.fresh[neighbour as usize] == 0);
    old.map(|neighbour| new.view.level.row(neighbour))
}

/// Returns the index of the value of component `c` in a plane of its faces, `fast` along the axis after the component's and `slow` along
/// the third.
fn place(c: usize, plane: usize, fast: usize, slow: usize) -> usize {
    let mut at = [0; 3];
    at[c % 3] = plane;
    at[(c + 1) % 3] = fast;
    at[(c + 2) % 3] = slow;
    Centring::Face.index(c, at)
}

/// Copies the faces on a side of a patch, plane 0 or 8, from the neighbour at this side.
fn copy_plane<R: Real>(out: &mut [R], from: &[R], c: usize, plane: usize) {
    for n in 0..PATCH * PATCH {
        let (fast, slow) = (n % PATCH, n / PATCH);
        out[place(c, plane, fast, slow)] = from[place(c, PATCH - plane, fast, slow)];
    }
}

/// Interpolates the fine values of component `c` on an even plane of `row` in the coarse plane.
fn interpolate_plane<R: Real>(
    view: &GhostView<R>,
    row: u32,
    out: &mut [R],
    c: usize,
    plane: usize,
) {
    let coarse = CoarseFaces::around_parent(view, row);
    let [axis, b, e] = [c % 3, (c + 1) % 3, (c + 2) % 3];
    let half = PATCH / 2;
    for (fast, slow) in (0..half * half).map(|n| (n % half, n / half)) {
        let mut at = CoarseFaces::corner(view, row);
        at[axis] += (plane / 2) as i32;
        at[b] += fast as i32;
        at[e] += slow as i32;
        for (n, value) in coarse.fine(c, at).into_iter().enumerate() {
            out[place(c, plane, 2 * fast + (n & 1), 2 * slow + (n >> 1))] = value;
        }
    }
}

/// Fills the faces inside coarse cells, of a vector `[component][576]`.
fn fill_inner<R: Real>(vector: &mut [R], ratios: &[[R; 3]; 3]) {
    for c in 0..3 {
        for n in 0..PATCH * PATCH * PATCH / 2 {
            let mut fine = [0; 3];
            fine[(c + 1) % 3] = n % PATCH;
            fine[(c + 2) % 3] = n / PATCH % PATCH;
            fine[c] = 2 * (n / (PATCH * PATCH)) + 1;
            let cell = fine.map(|i| i / 2 * 2);
            let index = |c: usize, at: [usize; 3]| {
                c * VALUES + Centring::Face.index(c, std::array::from_fn(|a| cell[a] + at[a]))
            };
            let at = std::array::from_fn(|a| fine[a] - cell[a]);
            let outer = |c, at| vector[index(c, at)];
            vector[index(c, at)] = inner_face_from(c, at, ratios, outer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::prolong::SlopeLimiter;
    use crate::mesh::restrict::restrict_octet;
    use crate::mesh::{Boundaries, COARSER, FaceRule, OUTSIDE, Rows, SELF};

    /// Rows 0..27 are a patch (13) and its neighbours, rows 27..35 its children.
    const ROWS: usize = 64;
    /// Widths of a fine cell.
    const WIDTHS: [f64; 3] = [1.0, 0.25, 3.0];

    /// A patch with its neighbours and children.
    struct Family {
        values: Vec<f64>,
        neighbours: Vec<[i32; 27]>,
        fresh: Vec<u8>,
    }

    impl Family {
        /// Fills coarse faces with `value` of component and position, counted from the patch's first cell. `neighbour` tells where the coarse
        /// level has patches.
        fn new(
            value: impl Fn(usize, [i32; 3]) -> f64,
            neighbour: impl Fn([i32; 3]) -> bool,
        ) -> Self {
            let mut family = Self {
                values: vec![f64::NAN; ROWS * 3 * VALUES],
                neighbours: vec![[COARSER; 27]; ROWS],
                fresh: vec![1; ROWS],
            };
            for (d, row) in family
                .values
                .chunks_exact_mut(3 * VALUES)
                .take(27)
                .enumerate()
            {
                let step = [d % 3, d / 3 % 3, d / 9].map(|n| n as i32 - 1);
                family.neighbours[SELF][d] = if neighbour(step) { d as i32 } else { OUTSIDE };
                for (n, to) in row.iter_mut().enumerate() {
                    let [x, y, _] = Centring::Face.lengths(n / VALUES, [PATCH; 3]);
                    let n_of = n % VALUES;
                    let at = [n_of % x, n_of / x % y, n_of / (x * y)];
                    let place = std::array::from_fn(|a| at[a] as i32 + PATCH as i32 * step[a]);
                    *to = value(n / VALUES, place);
                }
            }
            for child in 0..8 {
                for axis in 0..3 {
                    let side = 1 - (child >> axis & 1);
                    let face = face_direction(2 * axis + side);
                    family.neighbours[27 + child][face] = (27 + (child ^ 1 << axis)) as i32;
                }
            }
            family
        }

        fn rows<'a>(slab: &'a [*mut f64]) -> Rows<'a, f64> {
            // SAFETY: the slab holds `ROWS` rows, 64 as the shift says, and outlives the view.
            unsafe { Rows::new(slab, 6, 3 * VALUES) }
        }

        /// Fills the children, and then the patch from them if `back`.
        fn refine(&mut self, back: bool) {
            let slab = [self.values.as_mut_ptr()];
            let rows = Self::rows(&slab);
            let index: Vec<[i32; 3]> = (0..ROWS as i32)
                .map(|row| [0, 1, 2].map(|a| (row - 27).max(0) >> a & 1))
                .collect();
            let boundaries = Boundaries {
                faces: [const { [FaceRule::Outflow, FaceRule::Outflow] }; 3],
                normal: [0; 3],
            };
            let view = NewFacesView {
                view: GhostView {
                    level: rows,
                    coarse_old: rows,
                    coarse_new: rows,
                    weight: 1.0,
                    neighbours: &self.neighbours,
                    parent: &[SELF as i32; ROWS],
                    index: &index,
                    number: 1,
                    domain_cells: [16; 3],
                    edges: [[0.0; 3], WIDTHS.map(|w| 16.0 * w)],
                    boundaries: &boundaries,
                    time: 0.0,
                    limiter: SlopeLimiter::Central,
                    states: None,
                    reach: 1,
                    centring: Centring::Face,
                },
                fresh: &self.fresh,
            };
            for row in (27..35).filter(|&row| self.fresh[row as usize] == 1) {
                // SAFETY: one thread sets row after row.
                unsafe { prolong_faces(&view, row) };
            }
            if back {
                // SAFETY: as above.
                unsafe { restrict_octet(Centring::Face, &rows, SELF as u32, &rows, 27, None) };
            }
        }

        fn at(&self, row: usize, c: usize, at: [usize; 3]) -> f64 {
            self.values[(row * 3 + c) * VALUES + Centring::Face.index(c, at)]
        }
    }

    fn scattered(c: usize, [x, y, z]: [i32; 3]) -> f64 {
        let n = (x * 73 + y * 179 + z * 283 + 577 * c as i32).rem_euclid(1009);
        f64::from(n) / 1009.0
    }

    #[test]
    fn a_constant_stays_constant_beside_walls_too() {
        for inside in [
            |_: [i32; 3]| true,
            |step: [i32; 3]| step[0] >= 0 && step[2] <= 0,
        ] {
            let mut family = Family::new(|_, _| 1.0 / 3.0, inside);
            family.refine(true);
            let of = |row: usize| &family.values[row * 3 * VALUES..][..3 * VALUES];
            let rows = (27..35).chain([SELF]);
            assert!(rows.flat_map(of).all(|&v| v == 1.0 / 3.0));
        }
    }

    #[test]
    fn a_linear_field_is_interpolated_exactly_and_averages_give_the_coarse_faces_back() {
        // faces of a component lie at whole numbers along its axis, at centres of cells along the others
        let linear = |c: usize, at: [f64; 3]| {
            2.0 * at[c] - 0.5 * at[(c + 1) % 3] + 0.25 * at[(c + 2) % 3] + 7.0
        };
        let coarse = |c: usize, at: [i32; 3]| {
            let half = |a: usize| if a == c { 0.0 } else { 0.5 };
            linear(c, [0, 1, 2].map(|a| f64::from(at[a]) + half(a)))
        };
        let mut family = Family::new(coarse, |_| true);
        let before = family.values.clone();
        family.refine(true);
        for (child, c) in (0..8u8).flat_map(|child| [0, 1, 2].map(|c| (child, c))) {
            for n in 0..VALUES {
                let [x, y, _] = Centring::Face.lengths(c, [PATCH; 3]);
                let at = [n % x, n / x % y, n / (x * y)];
                let centre = |a: usize| if a == c { 0.0 } else { 0.5 };
                let place = [0, 1, 2]
                    .map(|a| 4.0 * f64::from(child >> a & 1) + (at[a] as f64 + centre(a)) / 2.0);
                let found = family.at(27 + usize::from(child), c, at);
                assert_eq!(found, linear(c, place), "{child} {c} {at:?}");
            }
        }
        let own = SELF * 3 * VALUES..(SELF + 1) * 3 * VALUES;
        assert_eq!(family.values[own.clone()], before[own]);
    }

    #[test]
    fn fine_cells_have_an_eighth_of_the_flux_out_of_their_coarse_cell() {
        let flux = |value: &dyn Fn(usize, [usize; 3]) -> f64, at: [usize; 3]| -> f64 {
            let through = |c: usize| {
                let mut above = at;
                above[c] += 1;
                let area = WIDTHS[(c + 1) % 3] * WIDTHS[(c + 2) % 3];
                area * (value(c, above) - value(c, at))
            };
            through(0) + through(1) + through(2)
        };
        let mut family = Family::new(scattered, |_| true);
        family.refine(false);
        for (child, n) in (0..8).flat_map(|child| (0..512).map(move |n| (child, n))) {
            let at = [n % 8, n / 8 % 8, n / 64];
            let coarse = [0, 1, 2].map(|a| 4 * (child >> a & 1) + at[a] / 2);
            let fine = flux(&|c, at| family.at(27 + child, c, at), at);
            // a coarse face has four times the area
            let all = 4.0 * flux(&|c, at| family.at(SELF, c, at), coarse);
            assert!(
                (fine - all / 8.0).abs() < 1e-14,
                "{child} {at:?}: {fine} {all}"
            );
        }
    }

    #[test]
    fn new_patches_share_faces_bit_for_bit_and_take_those_of_old_ones() {
        let mut family = Family::new(scattered, |_| true);
        // the patch above the first child along x is old
        family.fresh[28] = 0;
        family.values[28 * 3 * VALUES..29 * 3 * VALUES].fill(0.125);
        family.refine(false);
        for (k, j) in (0..64).map(|n| (n / 8, n % 8)) {
            let (own, above) = (family.at(27, 1, [j, 8, k]), family.at(29, 1, [j, 0, k]));
            assert_eq!(own.to_bits(), above.to_bits());
            assert_eq!(family.at(27, 2, [j, k, 8]), family.at(31, 2, [j, k, 0]));
            assert_eq!(family.at(27, 0, [8, j, k]), 0.125);
        }
    }
}
