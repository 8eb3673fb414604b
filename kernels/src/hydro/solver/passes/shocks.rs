//! Detection of shocks.
use super::{largest, splat, splat_law};
use crate::hydro::law::{Law, LawNumbers};
use crate::hydro::shock::shock_along;
use nestar_device::simd::Simd;
use nestar_device::{Lane, Num, Real};

/// Finds the cells in shocks, in `planes` flat ranges of `count` cells.
pub struct ShockPass<E> {
    /// Primitive variables of the whole block.
    pub block: *const E,
    /// Cells of the block.
    pub block_count: usize,
    /// Offset of the first cell of the first range.
    pub first: usize,
    /// Elements to the next cell, by axis. The next range is one step along z further.
    pub steps: [usize; 3],
    pub cell_stride: usize,
    pub planes: usize,
    pub count: usize,
    /// [`shock_along`] each axis for each cell, at the offsets of the block; `cell_stride` elements from axis to axis.
    pub along: *mut E,
    /// Constants of the law.
    pub law: LawNumbers<E>,
}

/// Returns `true` if there are shocks; then the results for all cells have been stored.
#[inline(always)]
pub unsafe fn shocks<V: Simd, L: Law<N>, const N: usize>(a: &ShockPass<V::E>) -> bool {
    // SAFETY: the caller vouches for the block; the ranges keep one cell away from its surface
    unsafe {
        if is_smooth::<V, L, N>(a) {
            return false;
        }
        let mut found = V::lit(0.0);
        for k in 0..a.planes {
            for o in (0..a.count).step_by(V::N) {
                let at = a.first + k * a.steps[2] + o;
                for (d, shock) in along_axes::<V, L, N>(a, at).into_iter().enumerate() {
                    shock.store(a.along.add(d * a.cell_stride + at));
                    found = Num::max(shock, found);
                }
            }
        }
        Num::gt(largest(found), V::E::lit(0.0))
    }
}

/// Returns `true` if the pressure varies so little in the block that [`shock_along`] finds no shock.
#[inline(always)]
unsafe fn is_smooth<V: Simd, L: Law<N>, const N: usize>(a: &ShockPass<V::E>) -> bool {
    // SAFETY: the caller vouches for the block, which has more cells than a vector
    unsafe {
        let law = splat_law::<V>(a.law);
        let pressure = a.block.add(L::PRESSURE * a.cell_stride);
        let last = a.block_count - V::N;
        let mut low = splat::<V>(V::E::INFINITY);
        let mut high = V::lit(0.0);
        for o in (0..a.block_count).step_by(V::N) {
            let p = L::pressure(V::load(pressure.add(Ord::min(o, last))), &law);
            // NaN is ignored as the first operand
            (low, high) = (Num::min(p, low), Num::max(p, high));
        }
        let least = -largest(-low);
        !Num::gt(largest(high) - least, V::E::lit(0.5) * least)
    }
}

/// Returns [`shock_along`] each axis for the cells at `at`.
#[inline(always)]
unsafe fn along_axes<V: Simd, L: Law<N>, const N: usize>(a: &ShockPass<V::E>, at: usize) -> [V; 3] {
    let law = splat_law::<V>(a.law);
    let mut found = [V::lit(0.0); 3];
    for (d, shock) in found.iter_mut().enumerate() {
        // SAFETY: the cells next to the range lie inside the block
        unsafe {
            let value = |c: usize, at: usize| V::load(a.block.add(c * a.cell_stride + at));
            let (below, above) = (at - a.steps[d], at + a.steps[d]);
            let pair = |c: usize| [value(c, below), value(c, above)];
            let pressure = |at: usize| L::pressure(value(L::PRESSURE, at), &law);
            let pressure = [pressure(below), pressure(at), pressure(above)];
            *shock = shock_along(&pair(0), &pair(1 + d), &pressure);
        }
    }
    found
}
