//! From the conserved block to the states at the faces of its cells.
use super::{load5, splat, splat3, store5};
use crate::hydro::limiter::half_slope;
use crate::hydro::ppm::{limited_parabola, parabola};
use crate::hydro::{eos, hancock};
use nestar_device::simd::Simd;

/// Primitive from conserved variables over a flat range.
pub struct Primitives<E> {
    pub conserved: *const E,
    pub primitive: *mut E,
    /// Elements between components of both.
    pub stride: usize,
    pub components: usize,
    pub count: usize,
    pub gamma: E,
}

/// Scalars become concentrations (a division each, so that a scalar equal to the density is exactly one).
#[inline(always)]
pub unsafe fn primitives<V: Simd>(a: &Primitives<V::E>) {
    let gamma = splat::<V>(a.gamma);
    let mut o = 0;
    while o < a.count {
        // SAFETY: `count` cells and a vector beyond lie inside each component of both blocks
        unsafe {
            let u = load5::<V>(a.conserved.add(o), a.stride);
            store5(
                &eos::primitive_from_conserved(&u, gamma),
                a.primitive.add(o),
                a.stride,
            );
            for c in 5..a.components {
                (V::load(a.conserved.add(o + c * a.stride)) / u[0])
                    .store(a.primitive.add(o + c * a.stride));
            }
        }
        o += V::N;
    }
}

/// Distances from the average to both edges along one axis, for all components over a flat range.
pub struct Slopes<E> {
    /// First cell of the range in a block.
    pub cells: *const E,
    /// Elements to the next cell along the axis.
    pub step: usize,
    pub cell_stride: usize,
    /// For PPM, if the neighbours lie in the same plane: a plane for the half slopes, which are then computed once a cell.
    pub half: Option<*mut E>,
    pub lower: *mut E,
    /// Written by PPM only.
    pub upper: *mut E,
    pub stride: usize,
    pub components: usize,
    pub count: usize,
    pub theta: E,
}

#[inline(always)]
pub unsafe fn slopes<V: Simd, const PARABOLIC: bool, const LIMITER: u32>(a: &Slopes<V::E>) {
    let theta = splat::<V>(a.theta);
    for c in 0..a.components {
        // SAFETY: the range keeps one (PPM: two) cells away from the block's surface along the axis
        unsafe {
            let cells = a.cells.add(c * a.cell_stride);
            let (lower, upper) = (a.lower.add(c * a.stride), a.upper.add(c * a.stride));
            match a.half {
                _ if !PARABOLIC => half_slopes::<V, LIMITER>(cells, a.step, lower, a.count, theta),
                Some(half) => {
                    // of one more cell at both ends
                    let (before, count) = (cells.sub(a.step), a.count + 2 * a.step);
                    half_slopes::<V, LIMITER>(before, a.step, half, count, theta);
                    parabolas::<V>(a, cells, half, [lower, upper]);
                }
                None => limited_parabolas::<V, LIMITER>(a, cells, [lower, upper], theta),
            }
        }
    }
}

/// Half the limited differences across `count` cells.
#[inline(always)]
unsafe fn half_slopes<V: Simd, const LIMITER: u32>(
    cells: *const V::E,
    step: usize,
    to: *mut V::E,
    count: usize,
    theta: V,
) {
    let mut o = 0;
    while o < count {
        // SAFETY: as in `slopes`
        unsafe {
            let p = cells.add(o);
            let (before, here, after) = (V::load(p.sub(step)), V::load(p), V::load(p.add(step)));
            half_slope::<V, LIMITER>(here - before, after - here, theta).store(to.add(o));
        }
        o += V::N;
    }
}

/// Parabolas of one component from half slopes that begin one cell before the range.
#[inline(always)]
unsafe fn parabolas<V: Simd>(
    a: &Slopes<V::E>,
    cells: *const V::E,
    half: *const V::E,
    [lower, upper]: [*mut V::E; 2],
) {
    let mut o = 0;
    while o < a.count {
        // SAFETY: as in `slopes`
        unsafe {
            let (p, q) = (cells.add(o), half.add(o));
            let w = [V::load(p.sub(a.step)), V::load(p), V::load(p.add(a.step))];
            let half = [
                V::load(q),
                V::load(q.add(a.step)),
                V::load(q.add(2 * a.step)),
            ];
            let (below, above) = parabola(&w, &half);
            below.store(lower.add(o));
            above.store(upper.add(o));
        }
        o += V::N;
    }
}

/// Parabolas of one component from the cells alone.
#[inline(always)]
unsafe fn limited_parabolas<V: Simd, const LIMITER: u32>(
    a: &Slopes<V::E>,
    cells: *const V::E,
    [lower, upper]: [*mut V::E; 2],
    theta: V,
) {
    let mut o = 0;
    while o < a.count {
        // SAFETY: as in `slopes`
        unsafe {
            let first = cells.add(o).sub(2 * a.step);
            let w = load5::<V>(first, a.step);
            let (below, above) = limited_parabola::<V, LIMITER>(&w, theta);
            below.store(lower.add(o));
            above.store(upper.add(o));
        }
        o += V::N;
    }
}

/// States at the six faces of each cell of a flat range.
pub struct Edges<E> {
    /// First cell of the range in the block of primitive variables.
    pub cells: *const E,
    pub cell_stride: usize,
    /// Distances to the lower and upper edges, by axis.
    pub lower: [*const E; 3],
    pub upper: [*const E; 3],
    /// States at the lower and upper faces, by axis.
    pub low: [*mut E; 3],
    pub high: [*mut E; 3],
    pub stride: usize,
    pub components: usize,
    pub count: usize,
    /// `dt / dx`, read with a half step only.
    pub rates: [E; 3],
    pub gamma: E,
}

/// Gas and scalars; with `HALF_STEP` after half a step of the cell's own slopes.
#[inline(always)]
pub unsafe fn edges<V: Simd, const PARABOLIC: bool, const HALF_STEP: bool>(a: &Edges<V::E>) {
    let (gamma, rates) = (splat::<V>(a.gamma), splat3::<V>(a.rates));
    let mut o = 0;
    while o < a.count {
        // SAFETY: `count` cells and a vector beyond lie inside each component of the block and of the planes
        unsafe {
            let w = load5::<V>(a.cells.add(o), a.cell_stride);
            let h = if HALF_STEP {
                let half = [
                    half::<V, PARABOLIC>(a, 0, o),
                    half::<V, PARABOLIC>(a, 1, o),
                    half::<V, PARABOLIC>(a, 2, o),
                ];
                hancock::half_step(&w, &half, &rates, gamma)
            } else {
                w
            };
            for d in 0..3 {
                let lower = load5::<V>(a.lower[d].add(o), a.stride);
                let upper = if PARABOLIC {
                    load5::<V>(a.upper[d].add(o), a.stride)
                } else {
                    lower
                };
                let (low, high) = hancock::edges(&w, &h, &lower, &upper);
                store5(&low, a.low[d].add(o), a.stride);
                store5(&high, a.high[d].add(o), a.stride);
            }
            for c in 5..a.components {
                scalar_edges::<V, PARABOLIC, HALF_STEP>(a, o, c, &[w[1], w[2], w[3]], &rates);
            }
        }
        o += V::N;
    }
}

/// Half the differences across the cells at `o` along axis `d`: the mean of the distances to the two edges.
#[inline(always)]
unsafe fn half<V: Simd, const PARABOLIC: bool>(a: &Edges<V::E>, d: usize, o: usize) -> [V; 5] {
    // SAFETY: as in `edges`
    unsafe {
        let mut half = load5::<V>(a.lower[d].add(o), a.stride);
        if PARABOLIC {
            let upper = load5::<V>(a.upper[d].add(o), a.stride);
            for v in 0..5 {
                half[v] = V::lit(0.5) * (half[v] + upper[v]);
            }
        }
        half
    }
}

/// Edge concentrations of component `c` in the cells at `o`.
#[inline(always)]
unsafe fn scalar_edges<V: Simd, const PARABOLIC: bool, const HALF_STEP: bool>(
    a: &Edges<V::E>,
    o: usize,
    c: usize,
    velocity: &[V; 3],
    rates: &[V; 3],
) {
    let p = o + c * a.stride;
    // SAFETY: as in `edges`
    unsafe {
        let x = V::load(a.cells.add(o + c * a.cell_stride));
        let lower = [
            V::load(a.lower[0].add(p)),
            V::load(a.lower[1].add(p)),
            V::load(a.lower[2].add(p)),
        ];
        let mut upper = lower;
        let mut half = lower;
        if PARABOLIC {
            for d in 0..3 {
                upper[d] = V::load(a.upper[d].add(p));
                half[d] = V::lit(0.5) * (lower[d] + upper[d]);
            }
        }
        let h = if HALF_STEP {
            hancock::half_step_scalar(x, velocity, &half, rates)
        } else {
            x
        };
        for d in 0..3 {
            (h - lower[d]).store(a.low[d].add(p));
            (h + upper[d]).store(a.high[d].add(p));
        }
    }
}
