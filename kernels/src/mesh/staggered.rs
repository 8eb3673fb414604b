//! Interpolates face-centred fields into new patches.
//!
//! Fine faces on coarse ones are interpolated within the plane of the coarse face. Those between take the mean of the two adjacent planes.
//! Both patches at a plane read the same values, so they get the same bits. If a neighbour was already refined, its values are copied.

use super::means::mean2;
use super::prolong::{SlopeLimiter, fine_offsets, fine_value};
use super::{Centring, Rows, direction, face_direction};
use crate::PATCH;
use nestar_device::Real;

/// Holds what the interpolation of faces reads; shared by all new patches of a level.
pub struct FaceView<'a, R> {
    /// This level's rows.
    pub level: Rows<'a, R>,
    /// The next coarser level's rows at the same time.
    pub coarse: Rows<'a, R>,
    /// Per row: 27 neighbours (rows or codes), the row itself in the middle.
    pub neighbours: &'a [[i32; 27]],
    /// Per row: its parent's row.
    pub parent: &'a [i32],
    /// Per row: the patch's index on its level, in patches.
    pub index: &'a [[i32; 3]],
    /// Per row: 1 if the patch is new.
    pub fresh: &'a [u8],
    /// Limiter of the slopes within a plane.
    pub limiter: SlopeLimiter,
}

/// Values of a plane of faces: 8 x 8. In cyclic order, the axis after the plane's normal is fastest.
type FacePlane<R> = [R; PATCH * PATCH];

/// Fills a new fine row of faces from the coarser level and from old patches of its own level.
///
/// # Safety
/// Nobody else may access row `row` of `view.level` meanwhile.
pub unsafe fn prolong_faces<R: Real>(view: &FaceView<R>, row: u32) {
    // SAFETY: exclusivity is the caller's contract.
    let out = unsafe { view.level.row_mut(row) };
    for (c, out) in out.chunks_exact_mut(Centring::Face.values()).enumerate() {
        for plane in (0..=PATCH).step_by(2) {
            let side = [(0, 0), (PATCH, 1)].into_iter().find(|(p, _)| *p == plane);
            let neighbour = side.and_then(|(_, side)| old_neighbour(view, row, c % 3, side));
            let values = match neighbour {
                Some(values) => {
                    read_plane(&values[c * Centring::Face.values()..], c, PATCH - plane)
                }
                None => interpolated_plane(view, row, c, plane),
            };
            write_plane(out, c, plane, &values);
        }
        for plane in (1..PATCH).step_by(2) {
            let [below, above] = [plane - 1, plane + 1].map(|p| read_plane(out, c, p));
            write_plane(
                out,
                c,
                plane,
                &std::array::from_fn(|n| mean2(below[n], above[n])),
            );
        }
    }
}

/// Returns the neighbour's row at a side of `row`, if it exists and is not new.
fn old_neighbour<'a, R>(
    view: &FaceView<'a, R>,
    row: u32,
    axis: usize,
    side: usize,
) -> Option<&'a [R]> {
    let neighbour = view.neighbours[row as usize][face_direction(2 * axis + side)];
    let neighbour = u32::try_from(neighbour).ok();
    let old = neighbour.filter(|&neighbour| view.fresh[neighbour as usize] == 0);
    old.map(|neighbour| view.level.row(neighbour))
}

/// Returns the fine values of component `c` on an even plane of `row`, interpolated in the coarse plane.
fn interpolated_plane<R: Real>(
    view: &FaceView<R>,
    row: u32,
    c: usize,
    plane: usize,
) -> FacePlane<R> {
    let parent = view.parent[row as usize] as usize;
    let around = &view.neighbours[parent];
    let corner = view.index[row as usize].map(|i| (PATCH / 2) as i32 * (i & 1));
    let [axis, b, e] = [c % 3, (c + 1) % 3, (c + 2) % 3];
    let value = |at: [i32; 3]| coarse_face(view, around, c, at);
    std::array::from_fn(|n| {
        let (fast, slow) = (n % PATCH, n / PATCH);
        let mut at = corner;
        at[axis] += (plane / 2) as i32;
        at[b] += (fast / 2) as i32;
        at[e] += (slow / 2) as i32;
        let u = value(at).expect("the parent exists");
        let near = |a: usize, step: i32| {
            let mut at = at;
            at[a] += step;
            value(at).unwrap_or(u)
        };
        let around = [near(b, -1), near(b, 1), near(e, -1), near(e, 1), u, u];
        let offsets = fine_offsets(u, &around, view.limiter.code());
        fine_value(u, &offsets, fast as u32 & 1, slow as u32 & 1, 0)
    })
}

/// Returns component `c` at `at`, counted from the parent's first cell: a plane of the parent along the component's axis, a cell of the
/// parent or of a neighbour along the others. `None` outside the domain.
fn coarse_face<R: Real>(
    view: &FaceView<R>,
    around: &[i32; 27],
    c: usize,
    at: [i32; 3],
) -> Option<R> {
    let size = PATCH as i32;
    let step = std::array::from_fn(|a| {
        if a == c % 3 {
            0
        } else {
            at[a].div_euclid(size)
        }
    });
    let row = u32::try_from(around[direction(step)]).ok()?;
    let within = std::array::from_fn(|a| (at[a] - size * step[a]) as usize);
    let values = Centring::Face.values();
    Some(view.coarse.row(row)[c * values + Centring::Face.index(c, within)])
}

/// Returns the index of value `n` of a plane of component `c`.
fn place(c: usize, plane: usize, n: usize) -> usize {
    let mut at = [0; 3];
    at[c % 3] = plane;
    at[(c + 1) % 3] = n % PATCH;
    at[(c + 2) % 3] = n / PATCH;
    Centring::Face.index(c, at)
}

fn read_plane<R: Real>(values: &[R], c: usize, plane: usize) -> FacePlane<R> {
    std::array::from_fn(|n| values[place(c, plane, n)])
}

fn write_plane<R: Real>(values: &mut [R], c: usize, plane: usize, from: &FacePlane<R>) {
    for (n, value) in from.iter().enumerate() {
        values[place(c, plane, n)] = *value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::restrict::restrict_octet;
    use crate::mesh::{COARSER, OUTSIDE, SELF};

    const VALUES: usize = Centring::Face.values();
    /// Rows 0..27 are a patch (13) and its neighbours, rows 27..35 its children.
    const ROWS: usize = 64;

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
            let view = FaceView {
                level: rows,
                coarse: rows,
                neighbours: &self.neighbours,
                parent: &[SELF as i32; ROWS],
                index: &index,
                fresh: &self.fresh,
                limiter: SlopeLimiter::Central,
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
        // faces of component 0 lie at x, cells at their centres
        let linear = |x: f64, y: f64, z: f64| 2.0 * x - 0.5 * y + 0.25 * z + 7.0;
        let coarse = |c: usize, at: [i32; 3]| match c {
            0 => linear(
                f64::from(at[0]),
                f64::from(at[1]) + 0.5,
                f64::from(at[2]) + 0.5,
            ),
            _ => scattered(c, at),
        };
        let mut family = Family::new(coarse, |_| true);
        let before = family.values.clone();
        family.refine(true);
        for child in 0..8 {
            for n in 0..VALUES {
                let at = [n % 9, n / 9 % 8, n / 72];
                let half = [0, 1, 2].map(|a| 4.0 * f64::from(child >> a & 1u8));
                let x = half[0] + at[0] as f64 / 2.0;
                let [y, z] = [1, 2].map(|a| half[a] + (at[a] as f64 + 0.5) / 2.0);
                assert_eq!(family.at(27 + child as usize, 0, at), linear(x, y, z));
            }
        }
        for n in 0..3 * VALUES {
            let (now, was) = (
                family.values[SELF * 3 * VALUES + n],
                before[SELF * 3 * VALUES + n],
            );
            assert!(
                (now - was).abs() < 1e-15 * was.abs().max(1.0),
                "{n}: {now} {was}"
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
            let beside = family.at(27, 0, [7, j, k]);
            assert_eq!(beside, mean2(family.at(27, 0, [6, j, k]), 0.125));
        }
    }
}
