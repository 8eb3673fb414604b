//! Passes of a patch update: loops over cells in SIMD lanes, generic over the lane type, that move data between the scratch and the
//! `#[device]` functions. `dispatch.rs` instantiates them for each instruction set.
//!
//! All pointers belong to one [`ScratchLayout`](super::scratch::ScratchLayout). Arrays are padded, so that the last vector of a loop may
//! exceed them. Passes over rows of eight cells process two rows at a time if a vector has sixteen lanes.
mod fluxes;
mod reconstruct;
mod shocks;
mod update;

pub use fluxes::{FluxPass, damped_fluxes, fluxes, internal_fluxes, scalar_fluxes};
pub use reconstruct::{
    EdgePass, FlattenPass, PrimitivePass, SlopePass, edges, flatten, limited_parabolas, no_slopes,
    parabolas, primitives, slopes,
};
pub use shocks::{ShockPass, shocks};
pub use update::{
    FacePlanes, PlaneOutcome, PredictPass, SignalRatePass, UpdatePass, predict, signal_rate, update,
};

use crate::PATCH;
use nestar_device::simd::Simd;
use nestar_device::{Lane, Num};

/// Loads five values, `stride` elements apart.
#[inline(always)]
pub(super) unsafe fn load5<V: Simd>(p: *const V::E, stride: usize) -> [V; 5] {
    // SAFETY: the caller vouches for five vectors `stride` apart
    unsafe {
        [
            V::load(p),
            V::load(p.add(stride)),
            V::load(p.add(2 * stride)),
            V::load(p.add(3 * stride)),
            V::load(p.add(4 * stride)),
        ]
    }
}

/// Stores five values, `stride` elements apart.
#[inline(always)]
pub(super) unsafe fn store5<V: Simd>(x: &[V; 5], p: *mut V::E, stride: usize) {
    // SAFETY: the caller vouches for five vectors `stride` apart
    unsafe {
        x[0].store(p);
        x[1].store(p.add(stride));
        x[2].store(p.add(2 * stride));
        x[3].store(p.add(3 * stride));
        x[4].store(p.add(4 * stride));
    }
}

/// Returns the same number in every lane.
#[inline(always)]
pub(super) fn splat<V: Simd>(x: V::E) -> V {
    let lanes = [x; 16];
    // SAFETY: no lane type is wider than sixteen
    unsafe { V::load(lanes.as_ptr()) }
}

/// Applies [`splat`] to one number per axis.
#[inline(always)]
pub(super) fn splat3<V: Simd>(x: [V::E; 3]) -> [V; 3] {
    [splat(x[0]), splat(x[1]), splat(x[2])]
}

/// Returns the number of eight-cell rows per vector: two with sixteen lanes.
#[inline(always)]
pub(super) const fn rows_at_once<V: Simd>() -> usize {
    if V::N > PATCH { V::N / PATCH } else { 1 }
}

/// Returns one flag per lane as bits, lane 0 lowest.
#[inline(always)]
pub(super) fn bits<V: Simd>(mask: V::Mask) -> u64 {
    let mut lanes = [V::E::lit(0.0); 16];
    // SAFETY: no lane type is wider than sixteen
    unsafe { V::select(mask, V::lit(1.0), V::lit(0.0)).store(lanes.as_mut_ptr()) };
    lanes
        .iter()
        .take(V::N)
        .enumerate()
        .map(|(lane, x)| u64::from(Num::gt(*x, V::E::lit(0.5))) << lane)
        .sum()
}

/// Returns the largest lane.
#[inline(always)]
pub(super) fn largest<V: Simd>(x: V) -> V::E {
    let mut lanes = [V::E::lit(0.0); 16];
    // SAFETY: no lane type is wider than sixteen
    unsafe { x.store(lanes.as_mut_ptr()) };
    lanes
        .iter()
        .take(V::N)
        .fold(lanes[0], |a, b| Num::max(a, *b))
}

/// Loads one value along each axis, at `o`; the second row of a wide vector is at offset `pitch`.
#[inline(always)]
pub(super) unsafe fn load3<V: Simd>(p: &[*const V::E; 3], o: usize, pitch: usize) -> [V; 3] {
    // SAFETY: the caller vouches for the vectors behind each pointer
    unsafe {
        [
            V::load2(p[0].add(o), pitch),
            V::load2(p[1].add(o), pitch),
            V::load2(p[2].add(o), pitch),
        ]
    }
}
