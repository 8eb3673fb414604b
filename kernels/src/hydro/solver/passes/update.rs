//! Update: from fluxes to new states, and their check.
use super::{
    bits, largest, load_state, load3, rows_at_once, splat, splat_law, splat3, splat4, store_state,
    with_energy,
};
use crate::hydro::dual;
use crate::hydro::law::{Law, LawNumbers};
use crate::mesh::fluxes;
use crate::mesh::means::mean2;
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
    /// Constants of the law.
    pub law: LawNumbers<E>,
}

/// Updates the primitive variables; a cell that would become unphysical is not changed.
#[inline(always)]
pub unsafe fn predict<V: Simd, L: Law<N>, const N: usize>(a: &PredictPass<V::E>) {
    let (law, rates) = (splat_law::<V>(a.law), splat3::<V>(a.rates));
    let mut o = 0;
    while o < a.count {
        // SAFETY: `count` cells and a vector beyond, with their faces, lie inside the arrays
        unsafe {
            let mut u = load_state::<V, N>(a.conserved.add(o), a.block_stride);
            for (c, new) in u.iter_mut().enumerate() {
                *new = a.faces.advanced(*new, c, o, PATCH, &rates);
            }
            let old = load_state::<V, N>(a.primitive.add(o), a.block_stride);
            let w = L::predicted(&u, &old, &law);
            store_state(&w, a.primitive.add(o), a.block_stride);
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
    /// Energy that the cells of the plane gain where the internal energy replaces the total one, in the layout of a component of the output;
    /// unused without dual energy.
    pub gains: *mut E,
    pub rates: [E; 3],
    pub inverse_dx: [E; 3],
    /// Constants of the law.
    pub law: LawNumbers<E>,
    /// Thresholds of dual energy.
    pub thresholds: [E; 4],
    /// The new field on the lower faces of the same cell, by axis, in arrays of the layout of a block; null without a field on faces.
    pub field: [*const E; 3],
    /// First cell of the plane in the state before the step, `[component][512]`, and the weight of the new state; null in the first stage of a
    /// step.
    pub before: *const E,
    pub weight: E,
}

impl<E: Real> UpdatePass<E> {
    /// Returns component `c` of the cells at `to` of the output after the stage; `x` is the result of the fluxes.
    #[inline(always)]
    unsafe fn staged<V: Simd<E = E>>(&self, x: V, c: usize, to: usize) -> V {
        if self.before.is_null() {
            return x;
        }
        // SAFETY: the state before the step has as many cells as the output
        let before = unsafe { V::load(self.before.add(to + c * CELLS)) };
        fluxes::staged(before, x, splat(self.weight))
    }

    /// Returns the gas of the cells at `to` of the output after the stage; `old` is the state that the stage read, `x` the result of the fluxes.
    #[inline(always)]
    unsafe fn staged_gas<V: Simd<E = E>, L: Law<N>, const N: usize>(
        &self,
        old: &[V; N],
        x: &[V; N],
        to: usize,
    ) -> [V; N] {
        let mut u = *x;
        let mut kept = *old;
        if L::HAS_REMAINDER {
            kept = L::remainder(old);
        }
        if !self.before.is_null() {
            // SAFETY: the state before the step has as many cells as the output
            let before = unsafe { load_state::<V, N>(self.before.add(to), CELLS) };
            let weight = splat(self.weight);
            for c in 0..N {
                u[c] = fluxes::staged(before[c], x[c], weight);
            }
            if L::HAS_REMAINDER {
                let of_before = L::remainder(&before);
                for c in 0..N {
                    kept[c] = fluxes::staged(of_before[c], kept[c], weight);
                }
            }
        }
        if L::HAS_REMAINDER {
            let own = L::remainder(&u);
            for c in 0..N {
                u[c] = fluxes::with_kept_remainder(u[c], kept[c], own[c]);
            }
        }
        u
    }

    /// Returns the means of the new field over the faces of the cells at `o`.
    #[inline(always)]
    unsafe fn mean_field<V: Simd<E = E>>(&self, o: usize) -> [V; 3] {
        let mut means = [V::lit(0.0); 3];
        for d in 0..3 {
            // SAFETY: the faces of these cells were computed
            unsafe {
                let below = self.field[d].add(o);
                let above = below.add(self.steps[d]);
                means[d] = mean2(V::load2(below, self.pitch), V::load2(above, self.pitch));
            }
        }
        means
    }
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
pub unsafe fn update<V: Simd, L: Law<N>, const N: usize, const DUAL: bool>(
    a: &UpdatePass<V::E>,
) -> PlaneOutcome<V::E> {
    let (rates, inverse_dx) = (splat3::<V>(a.rates), splat3::<V>(a.inverse_dx));
    let law = splat_law::<V>(a.law);
    let zero = V::lit(0.0);
    let mut signal = zero;
    let mut unphysical = 0;
    for j in (0..PATCH).step_by(rows_at_once::<V>()) {
        for i in (0..PATCH).step_by(V::N) {
            let (o, to) = (j * a.pitch + i, j * PATCH + i);
            // SAFETY: rows of eight cells inside the block, the planes and the output
            unsafe {
                let mut u = [zero; N];
                for (c, old) in u.iter_mut().enumerate() {
                    *old = V::load2(a.conserved.add(o + c * a.block_stride), a.pitch);
                }
                let old = u;
                for (c, new) in u.iter_mut().enumerate() {
                    *new = a.faces.advanced(*new, c, o, a.pitch, &rates);
                }
                if L::HAS_FACE_FIELD {
                    let means = a.mean_field(o);
                    for d in 0..3 {
                        u[N - 3 + d] = means[d];
                    }
                }
                u = a.staged_gas::<V, L, N>(&old, &L::damped(&u, &law), to);
                let rate = check_states::<V, L, N, DUAL>(a, &mut u, [o, to], &inverse_dx);
                store_state(&u, a.out.add(to), CELLS);
                let mut physical = Num::ge(rate, zero);
                signal = Num::max(signal, rate);
                for c in N + usize::from(DUAL)..a.components {
                    let old = V::load2(a.conserved.add(o + c * a.block_stride), a.pitch);
                    let x: V = a.staged(a.faces.advanced(old, c, o, a.pitch, &rates), c, to);
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

/// Returns the signal rate of the cells at `o`, see [`Law::checked_signal_rate`]. With dual energy it reconciles both energies, and
/// stores the internal one and the gain of the total one at `to`.
#[inline(always)]
unsafe fn check_states<V: Simd, L: Law<N>, const N: usize, const DUAL: bool>(
    a: &UpdatePass<V::E>,
    u: &mut [V; N],
    [o, to]: [usize; 2],
    inverse_dx: &[V; 3],
) -> V {
    let law = splat_law::<V>(a.law);
    if !DUAL {
        return L::checked_signal_rate(u, inverse_dx, &law);
    }
    // SAFETY: as in `update`
    unsafe {
        let [energy, internal] = energies::<V, L, N>(a, u, [o, to]);
        (energy - u[L::PRESSURE]).store(a.gains.add(to));
        u[L::PRESSURE] = energy;
        internal.store(a.out.add(to + N * CELLS));
        L::checked_signal_rate_from_internal(u, internal, inverse_dx, &law)
    }
}

/// Returns total and internal energy of the cells at `o` of the plane, `to` of the output, after the step; `u` is the result of the fluxes.
#[inline(always)]
unsafe fn energies<V: Simd, L: Law<N>, const N: usize>(
    a: &UpdatePass<V::E>,
    u: &[V; N],
    [o, to]: [usize; 2],
) -> [V; 2] {
    let ([gamma, ..], rates) = (splat_law::<V>(a.law), splat3::<V>(a.rates));
    let mut magnetic = V::lit(0.0);
    if L::HAS_REMAINDER {
        magnetic = L::remainder(u)[L::PRESSURE];
    }
    // SAFETY: rows of eight cells inside the block and the planes, two cells from the block's surface
    unsafe {
        let old = V::load2(a.conserved.add(o + N * a.block_stride), a.pitch);
        let [below, above] = a.faces.internal(a.components, o, a.pitch);
        let internal = a.staged(dual::advanced(old, &below, &above, &rates, gamma), N, to);
        let cell = a.primitive.add(o);
        let load = |p: *const V::E, c: usize| V::load2(p.add(c * a.block_stride), a.pitch);
        let velocity = |p: *const V::E| [load(p, 1), load(p, 2), load(p, 3)];
        let (density, pressure) = (load(cell, 0), load(cell, L::PRESSURE));
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
        let thresholds = splat4::<V>(a.thresholds);
        let gas = with_energy(u);
        dual::reconcile_energies(&gas, internal, magnetic, step, meeting, &thresholds)
    }
}

/// Computes the signal rate of a stored patch.
pub struct SignalRatePass<E> {
    /// `[component][512]`, the gas.
    pub row: *const E,
    pub inverse_dx: [E; 3],
    /// Constants of the law.
    pub law: LawNumbers<E>,
}

/// Returns the largest signal rate; infinite if a cell is unphysical.
#[inline(always)]
pub unsafe fn signal_rate<V: Simd, L: Law<N>, const N: usize, const DUAL: bool>(
    a: &SignalRatePass<V::E>,
) -> V::E {
    let (law, inverse_dx) = (splat_law::<V>(a.law), splat3::<V>(a.inverse_dx));
    let mut signal = V::lit(0.0);
    for o in (0..CELLS).step_by(V::N) {
        // SAFETY: the components of 512 cells
        let u = unsafe { load_state::<V, N>(a.row.add(o), CELLS) };
        let rate = if DUAL {
            // SAFETY: the internal energy is one more
            let internal = unsafe { V::load(a.row.add(o + N * CELLS)) };
            L::checked_signal_rate_from_internal(&u, internal, &inverse_dx, &law)
        } else {
            L::checked_signal_rate(&u, &inverse_dx, &law)
        };
        let physical = Num::ge(rate, V::lit(0.0));
        signal = Num::max(signal, V::select(physical, rate, V::lit(f64::INFINITY)));
    }
    largest(signal)
}
