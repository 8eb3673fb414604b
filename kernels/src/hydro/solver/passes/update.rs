//! Update: from fluxes to new states, and their check.
use super::{bits, largest, load3, load5, rows_at_once, splat, splat3, store5};
use crate::hydro::{dual, eos, hancock};
use crate::mesh::fluxes;
use crate::{CELLS, PATCH};
use nestar_device::simd::Simd;
use nestar_device::{Mask, Num, Real};

/// Pointers to the fluxes through the lower and upper faces of cells, by axis, at the first cell.
#[derive(Clone, Copy)]
pub struct FacePlanes<E> {
    pub below: [*const E; 3],
    pub above: [*const E; 3],
    pub stride: usize,
}

impl<E: Real> FacePlanes<E> {
    /// Returns component `c` of the cells at `o` after the step, starting from `u`.
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

    /// Returns velocity and internal energy at the faces of the cells at `o` (components `c` and following): below and above.
    #[inline(always)]
    unsafe fn internal<V: Simd<E = E>>(
        &self,
        c: usize,
        o: usize,
        pitch: usize,
    ) -> [[[V; 2]; 3]; 2] {
        let (p, q) = (o + c * self.stride, o + (c + 1) * self.stride);
        [&self.below, &self.above].map(|faces| {
            // SAFETY: the caller vouches for the faces of these cells
            let (velocity, internal): ([V; 3], [V; 3]) =
                unsafe { (load3(faces, p, pitch), load3(faces, q, pitch)) };
            std::array::from_fn(|d| [velocity[d], internal[d]])
        })
    }
}

/// Predictor of the van Leer scheme: primitive variables of the gas after a half step, over a flat range.
pub struct PredictPass<E> {
    pub conserved: *const E,
    /// Primitive variables, replaced.
    pub primitive: *mut E,
    pub block_stride: usize,
    pub faces: FacePlanes<E>,
    pub count: usize,
    pub rates: [E; 3],
    pub gamma: E,
}

/// Updates the primitive variables; a cell that would become unphysical is not changed.
#[inline(always)]
pub unsafe fn predict<V: Simd>(a: &PredictPass<V::E>) {
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

/// Updates one plane of the patch.
pub struct UpdatePass<E> {
    /// First cell of the plane in the conserved input.
    pub conserved: *const E,
    /// Primitive variables of the same cell, and the offsets to the next cell along each axis. With dual energy two cells around the plane
    /// are read.
    pub primitive: *const E,
    pub steps: [usize; 3],
    pub block_stride: usize,
    /// Elements between rows of the input and of the fluxes.
    pub pitch: usize,
    pub faces: FacePlanes<E>,
    /// First cell of the plane in the output, `[component][512]`.
    pub out: *mut E,
    pub components: usize,
    pub rates: [E; 3],
    pub inverse_dx: [E; 3],
    pub gamma: E,
    /// Thresholds of dual energy.
    pub thresholds: [E; 3],
}

/// Result of the update of a plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlaneOutcome<E> {
    /// Largest signal rate of the physical cells.
    pub signal_rate: E,
    /// Unphysical cells, bit `8 j + i`.
    pub unphysical: u64,
}

#[inline(always)]
pub unsafe fn update<V: Simd, const DUAL: bool>(a: &UpdatePass<V::E>) -> PlaneOutcome<V::E> {
    let (rates, inverse_dx) = (splat3::<V>(a.rates), splat3::<V>(a.inverse_dx));
    let zero = V::lit(0.0);
    let mut signal = zero;
    let mut unphysical = 0;
    for j in (0..PATCH).step_by(rows_at_once::<V>()) {
        for i in (0..PATCH).step_by(V::N) {
            let (o, to) = (j * a.pitch + i, j * PATCH + i);
            // SAFETY: rows of eight cells inside the block, the planes and the output
            unsafe {
                let mut u = [zero; 5];
                for (c, new) in u.iter_mut().enumerate() {
                    let old = V::load2(a.conserved.add(o + c * a.block_stride), a.pitch);
                    *new = a.faces.advanced(old, c, o, a.pitch, &rates);
                }
                let rate = check_states::<V, DUAL>(a, &mut u, [o, to], &inverse_dx);
                store5(&u, a.out.add(to), CELLS);
                let mut physical = Num::ge(rate, zero);
                signal = Num::max(signal, rate);
                for c in 5 + usize::from(DUAL)..a.components {
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

/// Returns the signal rate of the cells at `o`, see [`eos::checked_signal_rate`]. With dual energy it reconciles both energies and stores
/// the internal one at `to`.
#[inline(always)]
unsafe fn check_states<V: Simd, const DUAL: bool>(
    a: &UpdatePass<V::E>,
    u: &mut [V; 5],
    [o, to]: [usize; 2],
    inverse_dx: &[V; 3],
) -> V {
    let gamma = splat::<V>(a.gamma);
    if !DUAL {
        return eos::checked_signal_rate(u, inverse_dx, gamma);
    }
    // SAFETY: as in `update`
    unsafe {
        let [energy, internal] = energies::<V>(a, u, o);
        u[4] = energy;
        internal.store(a.out.add(to + 5 * CELLS));
        dual::checked_signal_rate(u, internal, inverse_dx, gamma)
    }
}

/// Returns total and internal energy of the cells at `o` of the plane after the step; `u` is the result of the fluxes.
#[inline(always)]
unsafe fn energies<V: Simd>(a: &UpdatePass<V::E>, u: &[V; 5], o: usize) -> [V; 2] {
    let (gamma, rates) = (splat::<V>(a.gamma), splat3::<V>(a.rates));
    // SAFETY: rows of eight cells inside the block and the planes, two cells from the block's surface
    unsafe {
        let old = V::load2(a.conserved.add(o + 5 * a.block_stride), a.pitch);
        let [below, above] = a.faces.internal(a.components, o, a.pitch);
        let internal = dual::advanced(old, &below, &above, &rates, gamma);
        let cell = a.primitive.add(o);
        let load = |p: *const V::E, c: usize| V::load2(p.add(c * a.block_stride), a.pitch);
        let velocity = |p: *const V::E| [load(p, 1), load(p, 2), load(p, 3)];
        let (density, pressure) = (load(cell, 0), load(cell, 4));
        let (jump, mut meeting) = (splat::<V>(a.thresholds[2]), V::lit(0.0));
        let mut near = [[meeting; 3]; 6];
        for d in 0..3 {
            let [two, one] = [2 * a.steps[d], a.steps[d]];
            near[2 * d] = velocity(cell.sub(one));
            near[2 * d + 1] = velocity(cell.add(one));
            let own = load(cell, 1 + d);
            let far = [cell.sub(two), cell.add(two)].map(|p| load(p, 1 + d));
            let v = [far[0], near[2 * d][d], own, near[2 * d + 1][d], far[1]];
            meeting = Num::max(
                meeting,
                dual::compression_jump(&v, density, pressure, gamma, jump),
            );
        }
        let step = dual::max_velocity_change_squared(&velocity(cell), &near);
        dual::reconcile_energies(u, internal, step, meeting, &splat3::<V>(a.thresholds))
    }
}

/// Computes the signal rate of a stored patch.
pub struct SignalRatePass<E> {
    /// `[component][512]`, the gas.
    pub row: *const E,
    pub inverse_dx: [E; 3],
    pub gamma: E,
}

/// Returns the largest signal rate; infinite if a cell is unphysical.
#[inline(always)]
pub unsafe fn signal_rate<V: Simd, const DUAL: bool>(a: &SignalRatePass<V::E>) -> V::E {
    let (gamma, inverse_dx) = (splat::<V>(a.gamma), splat3::<V>(a.inverse_dx));
    let mut signal = V::lit(0.0);
    for o in (0..CELLS).step_by(V::N) {
        // SAFETY: five components of 512 cells
        let u = unsafe { load5::<V>(a.row.add(o), CELLS) };
        let rate = if DUAL {
            // SAFETY: with the internal energy there are six
            let internal = unsafe { V::load(a.row.add(o + 5 * CELLS)) };
            dual::checked_signal_rate(&u, internal, &inverse_dx, gamma)
        } else {
            eos::checked_signal_rate(&u, &inverse_dx, gamma)
        };
        let physical = Num::ge(rate, V::lit(0.0));
        signal = Num::max(signal, V::select(physical, rate, V::lit(f64::INFINITY)));
    }
    largest(signal)
}
