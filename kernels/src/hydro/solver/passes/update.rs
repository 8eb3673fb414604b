//! From fluxes to new states, and the judgement of those.
use super::{bits, largest, load3, load5, rows_at_once, splat, splat3, store5};
use crate::hydro::{eos, hancock};
use crate::mesh::fluxes;
use crate::{CELLS, PATCH};
use nestar_device::simd::Simd;
use nestar_device::{Mask, Num, Real};

/// Fluxes through the lower and upper faces of cells, by axis, at the first cell.
#[derive(Clone, Copy)]
pub struct Faces<E> {
    pub below: [*const E; 3],
    pub above: [*const E; 3],
    pub stride: usize,
}

impl<E: Real> Faces<E> {
    /// Component `c` of the cells at `o` after the step, from `u`.
    #[inline(always)]
    unsafe fn advanced<V: Simd<E = E>>(
        &self,
        u: V,
        c: usize,
        o: usize,
        pitch: usize,
        rates: &[V; 3],
    ) -> V {
        let p = o + c * self.stride;
        // SAFETY: the caller vouches for the faces of these cells
        unsafe {
            let below = load3(&self.below, p, pitch);
            let above = load3(&self.above, p, pitch);
            fluxes::advanced(u, &below, &above, rates)
        }
    }
}

/// Predictor of the van Leer scheme: primitive variables of the gas after a step, over a flat range.
pub struct Predict<E> {
    pub conserved: *const E,
    /// Primitive variables, replaced.
    pub primitive: *mut E,
    pub block_stride: usize,
    pub faces: Faces<E>,
    pub count: usize,
    pub rates: [E; 3],
    pub gamma: E,
}

/// A cell that becomes unphysical keeps the state it had.
#[inline(always)]
pub unsafe fn predict<V: Simd>(a: &Predict<V::E>) {
    let (gamma, rates) = (splat::<V>(a.gamma), splat3::<V>(a.rates));
    let mut o = 0;
    while o < a.count {
        // SAFETY: `count` cells and a vector beyond, with their faces, lie inside the arrays
        unsafe {
            let mut u = load5::<V>(a.conserved.add(o), a.block_stride);
            for (c, new) in u.iter_mut().enumerate() {
                *new = a.faces.advanced(*new, c, o, PATCH, &rates);
            }
            let old = load5::<V>(a.primitive.add(o), a.block_stride);
            let w = hancock::predicted(&u, &old, gamma);
            store5(&w, a.primitive.add(o), a.block_stride);
        }
        o += V::N;
    }
}

/// The update of one plane of the patch.
pub struct Update<E> {
    /// First cell of the plane in the conserved input.
    pub conserved: *const E,
    pub block_stride: usize,
    /// Elements between rows of the input and of the fluxes.
    pub pitch: usize,
    pub faces: Faces<E>,
    /// First cell of the plane in the output, `[component][512]`.
    pub out: *mut E,
    pub components: usize,
    pub rates: [E; 3],
    pub inverse_dx: [E; 3],
    pub gamma: E,
}

/// What an update of a plane found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlaneOutcome<E> {
    /// Largest signal rate of the physical cells.
    pub signal_rate: E,
    /// Unphysical cells, bit `8 j + i`.
    pub unphysical: u64,
}

#[inline(always)]
pub unsafe fn update<V: Simd>(a: &Update<V::E>) -> PlaneOutcome<V::E> {
    let (gamma, rates, inverse_dx) = (
        splat::<V>(a.gamma),
        splat3::<V>(a.rates),
        splat3::<V>(a.inverse_dx),
    );
    let zero = V::lit(0.0);
    let mut signal = zero;
    let mut unphysical = 0;
    for j in (0..PATCH).step_by(rows_at_once::<V>()) {
        for i in (0..PATCH).step_by(V::N) {
            let (o, to) = (j * a.pitch + i, j * PATCH + i);
            // SAFETY: rows of eight cells inside the block, the planes and the output
            unsafe {
                let mut u = [gamma; 5];
                for (c, new) in u.iter_mut().enumerate() {
                    let old = V::load2(a.conserved.add(o + c * a.block_stride), a.pitch);
                    *new = a.faces.advanced(old, c, o, a.pitch, &rates);
                }
                store5(&u, a.out.add(to), CELLS);
                let rate = eos::checked_signal_rate(&u, &inverse_dx, gamma);
                let mut physical = Num::ge(rate, zero);
                signal = Num::max(signal, rate);
                for c in 5..a.components {
                    let old = V::load2(a.conserved.add(o + c * a.block_stride), a.pitch);
                    let x: V = a.faces.advanced(old, c, o, a.pitch, &rates);
                    x.store(a.out.add(to + c * CELLS));
                    physical = physical & Num::eq(x * zero, zero);
                }
                if !physical.all() {
                    unphysical |= bits::<V>(!physical) << to;
                }
            }
        }
    }
    PlaneOutcome {
        signal_rate: largest(signal),
        unphysical,
    }
}

/// Signal rate of a stored patch.
pub struct Signal<E> {
    /// `[component][512]`, five components.
    pub row: *const E,
    pub inverse_dx: [E; 3],
    pub gamma: E,
}

/// Infinite if a cell is unphysical.
#[inline(always)]
pub unsafe fn signal_rate<V: Simd>(a: &Signal<V::E>) -> V::E {
    let (gamma, inverse_dx) = (splat::<V>(a.gamma), splat3::<V>(a.inverse_dx));
    let mut signal = V::lit(0.0);
    for o in (0..CELLS).step_by(V::N) {
        // SAFETY: five components of 512 cells
        let u = unsafe { load5::<V>(a.row.add(o), CELLS) };
        let rate = eos::checked_signal_rate(&u, &inverse_dx, gamma);
        let physical = Num::ge(rate, V::lit(0.0));
        signal = Num::max(signal, V::select(physical, rate, V::lit(f64::INFINITY)));
    }
    largest(signal)
}
