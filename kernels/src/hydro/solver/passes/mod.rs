//! Passes of a patch update: loops over cells in SIMD lanes, generic over the lane type, that move data between the scratch and the
//! `#[device]` functions. `dispatch.rs` instantiates them for each instruction set.
//!
//! All pointers belong to one [`ScratchLayout`](super::scratch::ScratchLayout). Arrays are padded, so that the last vector of a loop may
//! exceed them. Passes over rows of eight cells process two rows at a time if a vector has sixteen lanes.
mod fluxes;
mod reconstruct;
mod shocks;
mod transport;
mod transverse;
mod update;

pub use fluxes::{FluxPass, damped_fluxes, fluxes, internal_fluxes, scalar_fluxes};
pub use reconstruct::{
    ALONG_AXES, AT_START, EdgePass, FlattenPass, HALF_STEP, PrimitivePass, SlopePass, edges,
    flatten, limited_parabolas, no_slopes, parabolas, primitives, slopes, wave_parabolas,
    wave_slopes,
};
pub use shocks::{ShockPass, shocks};
pub use transport::{
    CirculationPass, ContactPass, MeanElectricPass, circulate, contact_electric, mean_electric,
};
pub use transverse::{CorrectionPass, correct};
pub use update::{
    FacePlanes, PlaneOutcome, PredictPass, SignalRatePass, UpdatePass, predict, signal_rate, update,
};

use crate::PATCH;
use crate::hydro::law::LawNumbers;
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

/// Loads a state, with components `stride` elements apart.
#[inline(always)]
pub(super) unsafe fn load_state<V: Simd, const N: usize>(p: *const V::E, stride: usize) -> [V; N] {
    // SAFETY: the caller vouches for `N` vectors `stride` apart
    unsafe {
        let mut u = [V::load(p); N];
        for c in 1..N {
            u[c] = V::load(p.add(c * stride));
        }
        u
    }
}

/// Stores a state, with components `stride` elements apart.
#[inline(always)]
pub(super) unsafe fn store_state<V: Simd, const N: usize>(u: &[V; N], p: *mut V::E, stride: usize) {
    for c in 0..N {
        // SAFETY: the caller vouches for `N` vectors `stride` apart
        unsafe { u[c].store(p.add(c * stride)) };
    }
}

/// Returns the component of variable `v` of a state in the order of a face normal to `axis`: the velocities and the magnetic field are
/// rotated.
#[inline(always)]
pub(super) const fn component(axis: usize, v: usize) -> usize {
    match v {
        1..=3 => 1 + (axis + v - 1) % 3,
        5..=7 => 5 + (axis + v - 5) % 3,
        _ => v,
    }
}

/// Returns the first five variables of a gas with an energy, as all laws with dual energy have one.
#[inline(always)]
pub(super) fn with_energy<V: Simd, const N: usize>(w: &[V; N]) -> [V; 5] {
    let mut five = [w[0]; 5];
    for v in 1..5 {
        five[v] = w[if v < N { v } else { 0 }];
    }
    five
}

/// Returns the `N` variables of such a gas: `five`, then those of `w`.
#[inline(always)]
pub(super) fn of_law<V: Simd, const N: usize>(five: &[V; 5], w: &[V; N]) -> [V; N] {
    let mut w = *w;
    for v in 0..N {
        w[v] = if v < 5 { five[v] } else { w[v] };
    }
    w
}

/// Returns the same number in every lane.
#[inline(always)]
pub(super) fn splat<V: Simd>(x: V::E) -> V {
    let lanes = [x; 16];
    // SAFETY: no lane type is wider than sixteen
    unsafe { V::load(lanes.as_ptr()) }
}

/// Applies [`splat`] to the numbers of a law.
#[inline(always)]
pub(super) fn splat_law<V: Simd>(x: LawNumbers<V::E>) -> LawNumbers<V> {
    [splat(x[0]), splat(x[1]), splat(x[2]), splat(x[3])]
}

/// Applies [`splat`] to the thresholds of dual energy.
#[inline(always)]
pub(super) fn splat4<V: Simd>(x: [V::E; 4]) -> [V; 4] {
    [splat(x[0]), splat(x[1]), splat(x[2]), splat(x[3])]
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
