//! Reconstruction: from the conserved block to the states at the faces of its cells.
use super::{
    component, largest, load_state, load5, of_law, splat, splat_law, splat3, store_state,
    with_energy,
};
use crate::hydro::law::{Law, LawNumbers};
use crate::hydro::limiter::half_slope;
use crate::hydro::ppm::{bounded_parabola, flattening, limited_parabola, parabola};
use crate::hydro::transport::electric_field;
use crate::hydro::weno::weno_z;
use crate::hydro::{dual, eos, hancock};
use nestar_device::simd::Simd;
use nestar_device::{Lane, Num};

/// Converts conserved to primitive variables over a flat range.
pub struct PrimitivePass<E> {
    pub conserved: *const E,
    pub primitive: *mut E,
    /// Elements between components of both.
    pub stride: usize,
    pub components: usize,
    pub count: usize,
    /// Constants of the law.
    pub law: LawNumbers<E>,
}

/// Converts scalars to mass fractions, by a division each, so that a scalar equal to the density gives exactly one.
#[inline(always)]
pub unsafe fn primitives<V: Simd, L: Law<N>, const N: usize, const DUAL: bool>(
    a: &PrimitivePass<V::E>,
) {
    let law = splat_law::<V>(a.law);
    let mut o = 0;
    while o < a.count {
        // SAFETY: `count` cells and a vector beyond lie inside each component of both blocks
        unsafe {
            let u = load_state::<V, N>(a.conserved.add(o), a.stride);
            let w = if DUAL {
                let internal = V::load(a.conserved.add(o + N * a.stride));
                of_law(
                    &eos::primitive_from_internal(&with_energy(&u), internal, law[0]),
                    &u,
                )
            } else {
                L::primitive(&u, &law)
            };
            store_state(&w, a.primitive.add(o), a.stride);
            for c in N + usize::from(DUAL)..a.components {
                (V::load(a.conserved.add(o + c * a.stride)) / u[0])
                    .store(a.primitive.add(o + c * a.stride));
            }
        }
        o += V::N;
    }
}

/// Computes distances from the average to both edges along one axis, for all components over a flat range.
pub struct SlopePass<E> {
    /// First cell of the range in a block.
    pub cells: *const E,
    /// Elements to the next cell along the axis.
    pub step: usize,
    pub cell_stride: usize,
    pub lower: *mut E,
    /// Written by PPM only.
    pub upper: *mut E,
    pub stride: usize,
    pub components: usize,
    /// Number of primitive variables of the gas, and of components before the scalars.
    pub variables: usize,
    pub gas: usize,
    pub count: usize,
    /// Parameter of the limiter.
    pub theta: E,
    /// Axis of the differences, and constants of the law; read where waves are limited.
    pub axis: usize,
    pub law: LawNumbers<E>,
}

impl<E> SlopePass<E> {
    /// Iterates over the primitive variables of the gas and the scalars.
    #[inline(always)]
    fn reconstructed_components(&self) -> impl Iterator<Item = usize> + use<E> {
        (0..self.variables).chain(self.gas..self.components)
    }
}

/// Stores distances of zero: the states at the faces are the averages.
#[inline(always)]
pub unsafe fn no_slopes<V: Simd>(a: &SlopePass<V::E>) {
    for c in a.reconstructed_components() {
        let mut o = 0;
        while o < a.count {
            // SAFETY: the planes hold a vector beyond the range
            unsafe { V::lit(0.0).store(a.lower.add(c * a.stride + o)) };
            o += V::N;
        }
    }
}

/// Computes half the limited differences across the cells.
#[inline(always)]
pub unsafe fn slopes<V: Simd, const LIMITER: u32>(a: &SlopePass<V::E>) {
    // SAFETY: the caller vouches for the range
    unsafe { slopes_from::<V, LIMITER>(a, 0) }
}

/// Computes half the limited differences of the components from `first` on.
#[inline(always)]
unsafe fn slopes_from<V: Simd, const LIMITER: u32>(a: &SlopePass<V::E>, first: usize) {
    let theta = splat::<V>(a.theta);
    for c in a.reconstructed_components().filter(|&c| c >= first) {
        let mut o = 0;
        while o < a.count {
            // SAFETY: the range keeps one cell away from the block's surface along the axis
            unsafe {
                let p = a.cells.add(c * a.cell_stride + o);
                let (before, here) = (V::load(p.sub(a.step)), V::load(p));
                let after = V::load(p.add(a.step));
                half_slope::<V, LIMITER>(here - before, after - here, theta)
                    .store(a.lower.add(c * a.stride + o));
            }
            o += V::N;
        }
    }
}

/// Computes half the differences across the cells; those of the gas are limited in characteristic variables.
#[inline(always)]
pub unsafe fn wave_slopes<V: Simd, L: Law<N>, const N: usize, const LIMITER: u32>(
    a: &SlopePass<V::E>,
) {
    // SAFETY: the caller vouches for the range
    unsafe { slopes_from::<V, LIMITER>(a, a.gas) };
    let mut o = 0;
    while o < a.count {
        // SAFETY: as above
        unsafe {
            let half = half_slopes_of_waves::<V, L, N, LIMITER>(a, a.cells.add(o));
            let turned = rotated(&half, (3 - a.axis) % 3);
            store_state(&turned, a.lower.add(o), a.stride);
        }
        o += V::N;
    }
}

/// Returns half the differences of the gas across the cells at `cells`, limited in characteristic variables. The velocity along the axis is
/// the first one.
#[inline(always)]
unsafe fn half_slopes_of_waves<V: Simd, L: Law<N>, const N: usize, const LIMITER: u32>(
    a: &SlopePass<V::E>,
    cells: *const V::E,
) -> [V; N] {
    let theta = splat::<V>(a.theta);
    // SAFETY: the caller keeps one cell away from the block's surface along the axis
    let [before, here, after] = unsafe {
        [
            rotated(
                &load_state::<V, N>(cells.sub(a.step), a.cell_stride),
                a.axis,
            ),
            rotated(&load_state::<V, N>(cells, a.cell_stride), a.axis),
            rotated(
                &load_state::<V, N>(cells.add(a.step), a.cell_stride),
                a.axis,
            ),
        ]
    };
    let (mut below, mut above) = (here, here);
    for v in 0..N {
        below[v] = here[v] - before[v];
        above[v] = after[v] - here[v];
    }
    let limit = |below: V, above: V| half_slope::<V, LIMITER>(below, above, theta);
    L::limited_waves(&here, [&below, &above], &splat_law::<V>(a.law), limit)
}

/// Computes parabolas: bounded ones for scalars, those that preserve extrema for the gas, or with `WENO` weighted ones.
#[inline(always)]
pub unsafe fn parabolas<V: Simd, const WENO: bool>(a: &SlopePass<V::E>) {
    for c in a.reconstructed_components() {
        // SAFETY: the range keeps two cells away from the block's surface along the axis
        unsafe {
            each_parabola::<V>(a, c, |w| {
                if c >= a.gas {
                    bounded_parabola(w)
                } else if WENO {
                    weno_z(w)
                } else {
                    parabola(w)
                }
            });
        }
    }
}

/// Computes parabolas: bounded ones for scalars, those from limited slopes for the gas.
#[inline(always)]
pub unsafe fn limited_parabolas<V: Simd, const LIMITER: u32>(a: &SlopePass<V::E>) {
    // SAFETY: the caller vouches for the range
    unsafe { limited_parabolas_from::<V, LIMITER>(a, 0) }
}

/// Computes the same of the components from `first` on.
#[inline(always)]
unsafe fn limited_parabolas_from<V: Simd, const LIMITER: u32>(a: &SlopePass<V::E>, first: usize) {
    let theta = splat::<V>(a.theta);
    for c in a.reconstructed_components().filter(|&c| c >= first) {
        // SAFETY: the range keeps two cells away from the block's surface along the axis
        unsafe {
            each_parabola::<V>(a, c, |w| {
                if c >= a.gas {
                    return bounded_parabola(w);
                }
                let half = [
                    half_slope::<V, LIMITER>(w[1] - w[0], w[2] - w[1], theta),
                    half_slope::<V, LIMITER>(w[2] - w[1], w[3] - w[2], theta),
                    half_slope::<V, LIMITER>(w[3] - w[2], w[4] - w[3], theta),
                ];
                limited_parabola(w, &half)
            });
        }
    }
}

/// Computes the same, with the slopes of the gas limited in characteristic variables.
#[inline(always)]
pub unsafe fn wave_parabolas<V: Simd, L: Law<N>, const N: usize, const LIMITER: u32>(
    a: &SlopePass<V::E>,
) {
    // SAFETY: the caller vouches for the range
    unsafe { limited_parabolas_from::<V, LIMITER>(a, a.gas) };
    let mut o = 0;
    while o < a.count {
        // SAFETY: as above
        unsafe {
            let at = a.cells.add(o);
            let half = [
                half_slopes_of_waves::<V, L, N, LIMITER>(a, at.sub(a.step)),
                half_slopes_of_waves::<V, L, N, LIMITER>(a, at),
                half_slopes_of_waves::<V, L, N, LIMITER>(a, at.add(a.step)),
            ];
            for v in 0..N {
                // the component of the variable before the rotation
                let c = component(a.axis, v);
                let w = load5::<V>(at.add(c * a.cell_stride).sub(2 * a.step), a.step);
                let (lower, upper) = limited_parabola(&w, &[half[0][v], half[1][v], half[2][v]]);
                lower.store(a.lower.add(c * a.stride + o));
                upper.store(a.upper.add(c * a.stride + o));
            }
        }
        o += V::N;
    }
}

/// Stores the distances that `parabola` returns for the values of component `c` in five cells around each cell of the range.
#[inline(always)]
unsafe fn each_parabola<V: Simd>(
    a: &SlopePass<V::E>,
    c: usize,
    parabola: impl Fn(&[V; 5]) -> (V, V),
) {
    let mut o = 0;
    while o < a.count {
        // SAFETY: the caller keeps two cells away from the block's surface along the axis
        unsafe {
            let first = a.cells.add(c * a.cell_stride + o).sub(2 * a.step);
            let (lower, upper) = parabola(&load5::<V>(first, a.step));
            lower.store(a.lower.add(c * a.stride + o));
            upper.store(a.upper.add(c * a.stride + o));
        }
        o += V::N;
    }
}

/// Sets the distances of the gas along one axis to zero in the cells of slow shocks, over a flat range.
pub struct FlattenPass<E> {
    /// Shocks along the axis in the first cell.
    pub shocks: *const E,
    pub lower: *mut E,
    pub upper: *mut E,
    pub stride: usize,
    /// Number of primitive variables of the gas.
    pub variables: usize,
    pub count: usize,
}

/// Sets distances to zero in slow shocks.
#[inline(always)]
pub unsafe fn flatten<V: Simd>(a: &FlattenPass<V::E>) {
    let mut o = 0;
    while o < a.count {
        // SAFETY: the shocks of the range are stored; the planes hold a vector beyond it
        unsafe {
            let shock = V::load(a.shocks.add(o));
            if Num::gt(largest(shock), V::E::lit(1.0)) {
                for distances in [a.lower, a.upper] {
                    for v in 0..a.variables {
                        let p = distances.add(o + v * a.stride);
                        V::select(Num::gt(shock, V::lit(1.0)), V::lit(0.0), V::load(p)).store(p);
                    }
                }
            }
        }
        o += V::N;
    }
}

/// Computes the states at the six faces of each cell of a flat range.
pub struct EdgePass<E> {
    /// First cell of the range in the block of primitive variables.
    pub cells: *const E,
    pub cell_stride: usize,
    /// Elements to the next cell, by axis.
    pub steps: [usize; 3],
    /// Distances to the lower and upper edges, by axis.
    pub lower: [*const E; 3],
    pub upper: [*const E; 3],
    /// States at the lower and upper faces, by axis.
    pub low: [*mut E; 3],
    pub high: [*mut E; 3],
    pub stride: usize,
    /// Electric fields in the cells, three components of the same stride; written with a field on faces only.
    pub electric: *mut E,
    pub components: usize,
    pub count: usize,
    /// `dt / dx`.
    pub rates: [E; 3],
    /// Constants of the law.
    pub law: LawNumbers<E>,
}

/// States of the gas at the time of the cell averages.
pub const AT_START: u32 = 0;
/// States half a step later.
pub const HALF_STEP: u32 = 1;
/// States half a step later by the differences along the axis of their face alone.
pub const ALONG_AXES: u32 = 2;

/// Computes edge states. Those of the gas are at the time that `TIME` tells, [`AT_START`], [`HALF_STEP`] or [`ALONG_AXES`]; those of scalars are
/// always later by half of the step that `rates` tell. With `FLATTEN`, distances shrink in strong shocks.
#[inline(always)]
pub unsafe fn edges<
    V: Simd,
    L: Law<N>,
    const N: usize,
    const PARABOLIC: bool,
    const TIME: u32,
    const FLATTEN: bool,
    const DUAL: bool,
>(
    a: &EdgePass<V::E>,
) {
    let (law, rates) = (splat_law::<V>(a.law), splat3::<V>(a.rates));
    let mut o = 0;
    while o < a.count {
        // SAFETY: `count` cells and a vector beyond lie inside each component of the block and of the planes
        unsafe {
            let w = load_state::<V, N>(a.cells.add(o), a.cell_stride);
            let left = flattening_factors::<V, L, N, FLATTEN, DUAL>(a, o);
            let mut h = w;
            if TIME == HALF_STEP {
                let mut half = [w; 3];
                for d in 0..3 {
                    let (lower, upper) =
                        distances::<V, N, PARABOLIC, FLATTEN, DUAL>(a, d, o, left[d], 0);
                    half[d] = halves::<V, N, PARABOLIC>(&lower, &upper);
                }
                h = L::half_step(&w, &half, &rates, &law);
            }
            if L::HAS_FACE_FIELD {
                let field = [h[N - 3], h[N - 2], h[N - 1]];
                let electric = electric_field(&[h[1], h[2], h[3]], &field);
                store_state(&electric, a.electric.add(o), a.stride);
            }
            for d in 0..3 {
                // the velocity along the axis first
                let turn = match TIME {
                    ALONG_AXES => d,
                    HALF_STEP if PARABOLIC => d,
                    _ => 0,
                };
                let (lower, upper) =
                    distances::<V, N, PARABOLIC, FLATTEN, DUAL>(a, d, o, left[d], turn);
                let (w, mut h) = (rotated(&w, turn), rotated(&h, turn));
                if TIME == ALONG_AXES {
                    let half = halves::<V, N, PARABOLIC>(&lower, &upper);
                    h = L::half_step_along(&w, &half, rates[d], &law);
                }
                let (low, high) = if PARABOLIC && TIME != AT_START {
                    L::traced_edges(&w, &h, [&lower, &upper], rates[d], &law)
                } else {
                    L::edges(&w, &h, [&lower, &upper])
                };
                let back = (3 - turn) % 3;
                store_state(&rotated(&low, back), a.low[d].add(o), a.stride);
                store_state(&rotated(&high, back), a.high[d].add(o), a.stride);
            }
            for c in N + usize::from(DUAL)..a.components {
                let velocity = [w[1], w[2], w[3]];
                scalar_edges::<V, PARABOLIC, FLATTEN, DUAL>(a, o, c, &velocity, &rates, &left);
            }
        }
        o += V::N;
    }
}

/// Returns half the differences across a cell from the distances to both edges.
#[inline(always)]
fn halves<V: Simd, const N: usize, const PARABOLIC: bool>(
    lower: &[V; N],
    upper: &[V; N],
) -> [V; N] {
    let mut half = *lower;
    if PARABOLIC {
        for v in 0..N {
            half[v] = V::lit(0.5) * (lower[v] + upper[v]);
        }
    }
    half
}

/// Returns the state with its velocities and its magnetic field rotated by `turn` places.
#[inline(always)]
fn rotated<V: Simd, const N: usize>(w: &[V; N], turn: usize) -> [V; N] {
    let mut turned = *w;
    for v in 1..N {
        turned[v] = w[component(turn, v)];
    }
    turned
}

/// Returns the factors for the distances in the cells at `o`, by axis, in strong shocks and in converging cold gas.
#[inline(always)]
unsafe fn flattening_factors<
    V: Simd,
    L: Law<N>,
    const N: usize,
    const FLATTEN: bool,
    const DUAL: bool,
>(
    a: &EdgePass<V::E>,
    o: usize,
) -> [V; 3] {
    let law = splat_law::<V>(a.law);
    let mut left = [V::lit(1.0); 3];
    if FLATTEN {
        for d in 0..3 {
            let step = a.steps[d];
            // SAFETY: as for the parabolas
            unsafe {
                let cell = a.cells.add(o);
                let mut p = load5::<V>(cell.add(L::PRESSURE * a.cell_stride).sub(2 * step), step);
                for pressure in &mut p {
                    *pressure = L::pressure(*pressure, &law);
                }
                let v = cell.add((1 + d) * a.cell_stride);
                left[d] = flattening(&p, &[V::load(v.sub(step)), V::load(v.add(step))]);
            }
        }
    }
    if DUAL {
        for d in 0..3 {
            let step = a.steps[d];
            // SAFETY: slopes read one cell beside these, too
            unsafe {
                let cell = a.cells.add(o);
                let (p, v) = (
                    cell.add(L::PRESSURE * a.cell_stride),
                    cell.add((1 + d) * a.cell_stride),
                );
                let p = [p.sub(step), p, p.add(step)].map(|p| V::load(p));
                let v = [v.sub(step), v.add(step)].map(|v| V::load(v));
                left[d] *= dual::slope_factor(&p, &v, V::load(cell), law[0]);
            }
        }
    }
    left
}

/// Returns the distances to both edges of the cells at `o` along axis `d`, with velocities rotated by `turn` places.
#[inline(always)]
unsafe fn distances<
    V: Simd,
    const N: usize,
    const PARABOLIC: bool,
    const FLATTEN: bool,
    const DUAL: bool,
>(
    a: &EdgePass<V::E>,
    d: usize,
    o: usize,
    left: V,
    turn: usize,
) -> ([V; N], [V; N]) {
    // SAFETY: as in `edges`
    unsafe {
        let mut lower = rotated(&load_state::<V, N>(a.lower[d].add(o), a.stride), turn);
        let mut upper = lower;
        if PARABOLIC {
            upper = rotated(&load_state::<V, N>(a.upper[d].add(o), a.stride), turn);
        }
        if PARABOLIC || FLATTEN || DUAL {
            for v in 0..N {
                (lower[v], upper[v]) = (left * lower[v], left * upper[v]);
            }
        }
        (lower, upper)
    }
}

/// Computes the edge mass fractions of component `c` in the cells at `o`.
#[inline(always)]
unsafe fn scalar_edges<V: Simd, const PARABOLIC: bool, const FLATTEN: bool, const DUAL: bool>(
    a: &EdgePass<V::E>,
    o: usize,
    c: usize,
    velocity: &[V; 3],
    rates: &[V; 3],
    left: &[V; 3],
) {
    let p = o + c * a.stride;
    // SAFETY: as in `edges`
    unsafe {
        let x = V::load(a.cells.add(o + c * a.cell_stride));
        let (mut lower, mut upper, mut half) = ([x; 3], [x; 3], [x; 3]);
        for d in 0..3 {
            lower[d] = V::load(a.lower[d].add(p));
            if (FLATTEN || DUAL) && !PARABOLIC {
                lower[d] = left[d] * lower[d];
            }
            (upper[d], half[d]) = (lower[d], lower[d]);
            if PARABOLIC {
                (lower[d], upper[d]) = (left[d] * lower[d], left[d] * V::load(a.upper[d].add(p)));
                half[d] = V::lit(0.5) * (lower[d] + upper[d]);
            }
        }
        let h = hancock::half_step_scalar(x, velocity, &half, rates);
        let cell = a.cells.add(o + c * a.cell_stride);
        let [s, t, u] = a.steps;
        let near = [
            cell.sub(s),
            cell.add(s),
            cell.sub(t),
            cell.add(t),
            cell.sub(u),
            cell.add(u),
        ];
        let near = near.map(|neighbour| V::load(neighbour));
        let range = hancock::range_around(x, &near);
        for d in 0..3 {
            let mut edges = (h - lower[d], h + upper[d]);
            if PARABOLIC {
                edges = hancock::traced_scalar(h, lower[d], upper[d], velocity[d], rates[d]);
            }
            let (low, high) = hancock::bounded(edges, &range);
            low.store(a.low[d].add(p));
            high.store(a.high[d].add(p));
        }
    }
}
