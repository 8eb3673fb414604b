//! Hand-computed results and bounds of every criterion.
mod symmetry;

use super::*;
use crate::{CELLS, PATCH};
use nestar_device::{CellFn, CellInputs, CellState, Place, Real, Stencil};

const N: usize = LIST_WIDTH;

/// Values around a patch, field by field.
struct Numbers<R>(Vec<R>);

/// A cell of the patch, with its width.
struct At<'a, R> {
    numbers: &'a Numbers<R>,
    cell: usize,
    centre: [f64; 3],
    width: [f64; 3],
}

impl<R: Real> CellInputs<R> for At<'_, R> {
    fn value(&self, _: usize, component: usize) -> R {
        let [i, j, k] = [self.cell % 8, self.cell / 8 % 8, self.cell / 64].map(|i| i + 2);
        self.numbers.0[component * LIST_BLOCK + i + N * (j + N * k)]
    }

    fn around(&self) -> (&[R], usize) {
        (&self.numbers.0, self.cell)
    }

    fn place(&self) -> Place<R> {
        Place {
            centre: self.centre.map(R::lit),
            width: self.width.map(R::lit),
            index: [0; 3],
            level: 0,
            time: 0.0,
            dt: R::lit(0.0),
            numbers: [1.0; 2],
        }
    }
}

impl<R: Real + CellState<R>> Numbers<R> {
    /// Returns a function's result in each cell; the first cell has its centre at `first`.
    fn each<M: CellFn<Parameters = [f64; P], Result<R> = T>, T, const P: usize>(
        &self,
        first: [f64; 3],
        width: [f64; 3],
        parameters: [R; P],
    ) -> Vec<T>
    where
        [f64; P]: nestar_device::Precise<In<R> = [R; P]>,
    {
        let cells = (0..CELLS).map(|cell| {
            let c = [cell % 8, cell / 8 % 8, cell / 64];
            let centre = std::array::from_fn(|a| first[a] + c[a] as f64 * width[a]);
            let at = At {
                numbers: self,
                cell,
                centre,
                width,
            };
            M::call(&at, &parameters)
        });
        cells.collect()
    }

    fn marks<M: CellFn<Parameters = [f64; P], Result<R> = bool>, const P: usize>(
        &self,
        parameters: [R; P],
    ) -> CellFlags
    where
        [f64; P]: nestar_device::Precise<In<R> = [R; P]>,
    {
        flags(self.each::<M, bool, P>([0.0; 3], [1.0; 3], parameters))
    }

    fn at(&self, cell: usize) -> Stencil<'_, R, R, 2> {
        Stencil::new((&self.0, cell))
    }
}

fn flags(marked: Vec<bool>) -> CellFlags {
    CellFlags::from_cells(&marked.try_into().expect("all cells of a patch"))
}

/// A ghosted field (two ghost cells) of q at cell indices x, y, z; the patch's first cell is 0.
fn field(q: impl Fn(i64, i64, i64) -> f64) -> Vec<f64> {
    let index = |c: usize| c as i64 - 2;
    (0..N * N * N)
        .map(|c| q(index(c % N), index(c / N % N), index(c / (N * N))))
        .collect()
}

fn view(values: &[f64]) -> Numbers<f64> {
    Numbers(values.to_vec())
}

fn vector(fields: [&[f64]; 3]) -> Numbers<f64> {
    Numbers(fields.concat())
}

fn gradient(q: &Numbers<f64>, threshold: f64) -> CellFlags {
    q.marks::<cell::gradient, 1>([threshold])
}

fn lohner(q: &Numbers<f64>, threshold: f64, filter: f64) -> CellFlags {
    q.marks::<cell::lohner, 2>([threshold, filter])
}

fn above(q: &Numbers<f64>, threshold: f64) -> CellFlags {
    q.marks::<cell::above, 1>([threshold])
}

fn below(q: &Numbers<f64>, threshold: f64) -> CellFlags {
    q.marks::<cell::below, 1>([threshold])
}

fn vorticity(v: &Numbers<f64>, width: [f64; 3], threshold: f64) -> CellFlags {
    flags(v.each::<cell::vorticity, bool, 1>([0.0; 3], width, [threshold]))
}

fn random(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Flags all cells for which `inside` is true.
fn cells(inside: impl Fn(usize, usize, usize) -> bool) -> CellFlags {
    let inside = |c: usize| inside(c % PATCH, c / PATCH % PATCH, c / (PATCH * PATCH));
    CellFlags::from_cells(&std::array::from_fn(inside))
}

#[test]
fn thresholds_are_strict() {
    let q = field(|x, y, z| (x + 10 * y + 100 * z) as f64);
    assert_eq!(
        above(&view(&q), 345.0),
        cells(|x, y, z| x + 10 * y + 100 * z > 345)
    );
    assert_eq!(
        below(&view(&q), 345.0),
        cells(|x, y, z| x + 10 * y + 100 * z < 345)
    );
}

#[test]
fn relative_gradient_of_a_ramp_is_its_slope_over_its_value() {
    // along z: 0.5 * (q(+1) - q(-1)) / q = 1 / (z + 4) exceeds 0.15 for z + 4 < 6.67
    let q = field(|_, _, z| (z + 4) as f64);
    assert_eq!(gradient(&view(&q), 0.15), cells(|_, _, z| z <= 2));
    assert_eq!(gradient(&view(&q), 0.25), CellFlags::NONE);
}

#[test]
fn relative_gradient_at_zero_flags_changes_and_nothing_else() {
    assert_eq!(gradient(&view(&field(|_, _, _| 0.0)), 0.0), CellFlags::NONE);
    let step = field(|x, _, _| if x < 4 { 0.0 } else { 1.0 });
    // the cell of value 0 beside the step has an infinite relative gradient, the one of value 1 has 1/2
    assert_eq!(gradient(&view(&step), 1e300), cells(|x, _, _| x == 3));
    assert_eq!(
        gradient(&view(&step), 0.4),
        cells(|x, _, _| x == 3 || x == 4)
    );
}

#[test]
fn lohner_of_a_constant_or_a_ramp_is_zero_and_of_a_jump_is_one_beside_it() {
    for constant in [0.0, 1.0, -3.0, 1e-300] {
        assert_eq!(
            lohner(&view(&field(|_, _, _| constant)), 0.0, 0.01),
            CellFlags::NONE
        );
    }
    let ramp = field(|x, y, z| (x + 2 * y - 3 * z) as f64);
    assert_eq!(lohner(&view(&ramp), 0.0, 0.01), CellFlags::NONE);
    let jump = field(|x, _, _| if x < 4 { 1.0 } else { 2.0 });
    // without the filter; two cells from the jump only d_xx differs from zero and has one side: 1. Beside the jump d_xy
    // and d_xz vanish between equal first derivatives: 1 / sqrt(1 + 2^2 + 2^2)
    assert_eq!(
        lohner(&view(&jump), 0.999_999, 0.0),
        cells(|x, _, _| x == 2 || x == 5)
    );
    assert!((cell::lohner_error(&view(&jump).at(3), 0.0) - 1.0 / 3.0).abs() < 1e-15);
    assert_eq!(
        lohner(&view(&jump), 0.0, 0.0),
        cells(|x, _, _| (2..6).contains(&x))
    );
}

#[test]
fn lohner_of_a_parabola_matches_the_hand_computed_value() {
    // q = x^2 at x = 3: d2 = 25 - 18 + 1 = 8, d1 = 16 + 8 = 24, ripple 25 + 18 + 1 = 44; the mixed pairs have the
    // first derivatives (16 - 4) * 2 along x in d_xy and d_xz, none along y and z, and ripples of 2 * (16 + 4) = 40;
    // d_yy and d_zz have ripples of 36, d_yz and d_zy of 36
    let f = 0.01f64;
    let bound = (24.0 + 44.0 * f).powi(2)
        + 2.0 * (24.0 + 40.0 * f).powi(2)
        + 2.0 * (40.0 * f).powi(2)
        + 4.0 * (36.0 * f).powi(2);
    let q = field(|x, _, _| (x * x) as f64);
    let found = cell::lohner_error(&view(&q).at(3 + 8 * (4 + 8 * 4)), f);
    assert!(
        (found / (64.0 / bound).sqrt() - 1.0).abs() < 1e-14,
        "{found}"
    );
    // q = x y at (3, 5): only d_xy = d_yx = 4 differs from zero; d_x = 2 * 6 + 2 * 4 along y, d_y = 2 * 4 + 2 * 2 along x
    let q = field(|x, y, _| (x * y) as f64);
    let ripple = [60.0 * f, 60.0 * f, 60.0 * f];
    let straight = (20.0 + ripple[0]).powi(2) + (12.0 + ripple[1]).powi(2) + ripple[2].powi(2);
    let crossed = (20.0 + 60.0 * f).powi(2) + (12.0 + 60.0 * f).powi(2);
    let flat = (20.0 + 60.0 * f).powi(2)
        + (60.0 * f).powi(2)
        + (12.0 + 60.0 * f).powi(2)
        + (60.0 * f).powi(2);
    let found = cell::lohner_error(&view(&q).at(3 + 8 * 5), f);
    assert!(
        (found / (32.0 / (straight + crossed + flat)).sqrt() - 1.0).abs() < 1e-14,
        "{found}"
    );
}

#[test]
fn lohner_stays_between_zero_and_one_and_does_not_depend_on_the_unit() {
    let mut noise = random(3);
    let q = field(|_, _, _| 0.0)
        .iter()
        .map(|_| (2.0 * noise() - 1.0) * 10f64.powi((12.0 * noise()) as i32))
        .collect::<Vec<_>>();
    let scaled = |scale: f64| Numbers(q.iter().map(|q| (*q * scale) as f32).collect());
    let [small, large] = [1e-33, 1.0].map(scaled);
    let q = view(&q);
    let mut largest = 0f64;
    for c in 0..CELLS {
        let estimate = cell::lohner_error(&q.at(c), 0.0);
        assert!((0.0..=1.0 + 1e-15).contains(&estimate), "{estimate}");
        largest = largest.max(estimate);
        let [a, b] = [&small, &large].map(|q| cell::lohner_error(&q.at(c), 0.01));
        assert!((a - b).abs() < 1e-4, "{a:?} {b:?}");
    }
    assert!(largest > 0.9);
}

#[test]
fn vorticity_of_rigid_rotation_is_twice_its_rate() {
    // v = (-y, x, 0) * 0.5 about (-20, -20): |curl v| = 1, so that the estimate is 1 / |v| = 2 / r in cells
    let at = |c: i64| (c + 20) as f64;
    let v = [
        field(|_, y, _| -0.5 * at(y)),
        field(|x, _, _| 0.5 * at(x)),
        field(|_, _, _| 0.0),
    ];
    let [x, y, z] = [0, 1, 2].map(|a| &v[a][..]);
    let r = |i: usize, j: usize| at(i as i64).hypot(at(j as i64));
    assert_eq!(
        vorticity(&vector([x, y, z]), [0.1; 3], 0.06),
        cells(|i, j, _| 2.0 / r(i, j) > 0.06)
    );
    // as a field, in which |b| counts as `least` where it is smaller
    let current = |v: &Numbers<f64>, threshold: f64, least: f64| {
        let marks = v.each::<cell::current, bool, 2>([0.0; 3], [0.1; 3], [threshold, least]);
        flags(marks)
    };
    let near = cells(|i, j, _| 2.0 / r(i, j) > 0.06);
    assert_eq!(current(&vector([x, y, z]), 0.06, 0.0), near);
    assert_eq!(current(&vector([x, y, z]), 0.06, 15.0), near);
    assert_eq!(current(&vector([x, y, z]), 0.06, 20.0), CellFlags::NONE);
    assert_eq!(current(&vector([y, x, z]), 0.0, 0.0), CellFlags::NONE);
    // a gradient flow has no curl
    assert_eq!(
        vorticity(&vector([y, x, z]), [0.1; 3], 0.0),
        CellFlags::NONE
    );
    // cells half as wide along y double d v_x / d y: the curl is 1.5, over the larger width
    let turning = vector([x, y, z]);
    let narrow = turning.each::<cell::relative_vorticity, f64, 0>([0.0; 3], [0.2, 0.1, 0.2], []);
    assert!((narrow[3 + 8 * (4 + 8 * 4)] / (3.0 / r(3, 4)) - 1.0).abs() < 1e-14);
    // at rest between moving gas
    let shear = field(|_, y, _| (y - 4) as f64);
    assert_eq!(
        vorticity(&vector([&shear, z, z]), [1.0; 3], 1e300),
        cells(|_, j, _| j == 4)
    );
    assert_eq!(vorticity(&vector([z; 3]), [1.0; 3], 0.0), CellFlags::NONE);
}

#[test]
fn jeans_length_counts_cells() {
    // lambda_J = sqrt(pi / (G rho)) c_s = 2 / (1 + x) with rho = pi (1 + x)^2 / 4, G = 1, c_s = 1: in cells of 0.1
    let rho = field(|x, _, _| std::f64::consts::PI * ((1 + x) * (1 + x)) as f64 / 4.0 + 1e-3);
    let c_s = field(|_, _, _| 1.0);
    let gas = Numbers([rho, c_s].concat());
    let jeans = |cells: f64, gravity: f64| {
        flags(gas.each::<cell::jeans, bool, 2>([0.0; 3], [0.1; 3], [cells, gravity]))
    };
    let expected = cells(|x, _, _| 20.0 / ((1 + x) as f64) < 4.1);
    assert_eq!(jeans(4.1, 1.0), expected);
    assert_eq!(jeans(1e9, 0.0), CellFlags::NONE);
    assert!((cell::jeans_cells(std::f64::consts::PI / 4.0, 3.0, 4.0, 0.5) - 6.0f64).abs() < 1e-14);
}

/// The cells of a patch, the first with its centre at `first`, that a box or a sphere meets.
fn overlaps_box(first: [f64; 3], left: [f64; 3], right: [f64; 3]) -> CellFlags {
    let [[a, b, c], [d, e, f]] = [left, right];
    let none = Numbers(Vec::new());
    flags(none.each::<cell::overlaps_box, bool, 6>(first, [1.0; 3], [a, b, c, d, e, f]))
}

fn overlaps_sphere(first: [f64; 3], [x, y, z]: [f64; 3], radius: f64) -> CellFlags {
    let none = Numbers(Vec::new());
    flags(none.each::<cell::overlaps_sphere, bool, 4>(first, [1.0; 3], [x, y, z, radius]))
}

#[test]
fn regions_flag_the_cells_that_they_meet() {
    let first = [0.5, 10.5, -3.5];
    // an edge on a cell's face does not count, one inside the cell does
    let flags = overlaps_box(first, [1.5, 0.0, -1.0], [3.5, 12.0, 9.0]);
    assert_eq!(
        flags,
        cells(|x, y, z| (1..4).contains(&x) && y < 2 && z >= 3)
    );
    let flags = overlaps_sphere(first, [4.0, 14.0, 0.0], 2.0);
    let squared = |x: usize, y: usize, z: usize| {
        [x, y, z]
            .map(|c| ((c as f64 - 3.5).abs() - 0.5).powi(2))
            .iter()
            .sum::<f64>()
    };
    assert_eq!(flags, cells(|x, y, z| squared(x, y, z) < 4.0));
}

#[test]
fn regions_smaller_than_a_cell_are_not_missed() {
    let first = [0.5; 3];
    assert_eq!(overlaps_sphere(first, [3.1, 4.1, 5.1], 1e-6).count(), 1);
    assert_eq!(overlaps_sphere(first, [3.0, 4.0, 5.0], 1e-6).count(), 8);
    assert_eq!(overlaps_box(first, [3.1; 3], [3.2; 3]).count(), 1);
    assert_eq!(overlaps_box(first, [30.0; 3], [31.0; 3]).count(), 0);
}

#[test]
fn a_cell_of_nan_is_never_flagged_and_spoils_its_neighbours_only() {
    let q = field(|x, y, z| {
        if (x, y, z) == (4, 4, 4) {
            f64::NAN
        } else {
            (z * z) as f64
        }
    });
    let q = view(&q);
    for flags in [
        gradient(&q, 0.0),
        lohner(&q, 0.0, 0.01),
        above(&q, 0.0),
        below(&q, 1e9),
    ] {
        assert!(!flags.get(4, 4, 4) && flags.get(1, 1, 1));
    }
}
