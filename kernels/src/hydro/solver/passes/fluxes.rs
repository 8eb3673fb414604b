//! Fluxes through faces.
use super::{component, largest, rows_at_once, splat_law};
use crate::PATCH;
use crate::hydro::dual;
use crate::hydro::law::{Law, LawNumbers};
use crate::hydro::riemann::{flux_of_scalar, normalized_fraction};
use crate::hydro::shock::damped;
use crate::mesh::ShareSets;
use nestar_device::simd::Simd;
use nestar_device::{Lane, Num};

/// Computes fluxes through faces normal to one axis: `rows` rows of `length` faces, `pitch` elements apart. One long row is a flat range.
pub struct FluxPass<E> {
    /// Shocks along x in the cells on the lower and the upper side of the first face, and elements from axis to axis; read by
    /// [`damped_fluxes`] only.
    pub shocks: [*const E; 2],
    pub shock_stride: usize,
    /// States on the lower and the upper side of the first face.
    pub left: *const E,
    pub right: *const E,
    pub state_stride: usize,
    pub flux: *mut E,
    pub flux_stride: usize,
    pub axis: usize,
    pub components: usize,
    /// Components before the scalars.
    pub gas: usize,
    /// Sets of scalars, by component.
    pub sets: ShareSets,
    pub rows: usize,
    pub length: usize,
    pub pitch: usize,
    /// Constants of the law.
    pub law: LawNumbers<E>,
}

impl<E> FluxPass<E> {
    /// Returns the number of rows processed together and the offset of the second one. With one long row the second half of a wide vector
    /// simply follows.
    #[inline(always)]
    fn grouping<V: Simd>(&self) -> (usize, usize) {
        if self.rows == 1 {
            (1, PATCH)
        } else {
            (rows_at_once::<V>(), self.pitch)
        }
    }

    /// Returns the larger result of [`shock_along`](crate::hydro::shock::shock_along) the normal of the cells on both sides of the faces at
    /// `o`, and the larger of [`damped`].
    #[inline(always)]
    unsafe fn shocks_at<V: Simd<E = E>>(&self, o: usize, pitch: usize) -> (V, V) {
        let [below, above] = self.shocks.map(|side| {
            [0, 1, 2].map(|n| {
                let axis = (self.axis + n) % 3;
                // SAFETY: the caller vouches for the shocks of these cells
                unsafe { V::load2(side.add(o + axis * self.shock_stride), pitch) }
            })
        });
        (
            Num::max(below[0], above[0]),
            Num::max(
                damped(below[0], below[1], below[2]),
                damped(above[0], above[1], above[2]),
            ),
        )
    }

    /// Returns the states on the lower and upper sides of the faces at `o`.
    #[inline(always)]
    unsafe fn states<V: Simd<E = E>, const N: usize>(&self, o: usize, pitch: usize) -> [[V; N]; 2] {
        let (mut l, mut r) = ([V::lit(0.0); N], [V::lit(0.0); N]);
        for v in 0..N {
            let at = o + component(self.axis, v) * self.state_stride;
            // SAFETY: the caller vouches for these faces
            unsafe {
                l[v] = V::load2(self.left.add(at), pitch);
                r[v] = V::load2(self.right.add(at), pitch);
            }
        }
        [l, r]
    }

    /// Returns component `c` on the lower and upper sides of the faces at `o`.
    #[inline(always)]
    unsafe fn concentrations<V: Simd<E = E>>(&self, o: usize, c: usize, pitch: usize) -> (V, V) {
        let at = o + c * self.state_stride;
        // SAFETY: the caller vouches for these faces
        unsafe {
            (
                V::load2(self.left.add(at), pitch),
                V::load2(self.right.add(at), pitch),
            )
        }
    }
}

/// Computes the fluxes of the gas.
#[inline(always)]
pub unsafe fn fluxes<V: Simd, L: Law<N>, const N: usize, const SOLVER: u32>(a: &FluxPass<V::E>) {
    let law = splat_law::<V>(a.law);
    let (together, pitch) = a.grouping::<V>();
    for row in (0..a.rows).step_by(together) {
        for i in (0..a.length).step_by(V::N) {
            let o = row * a.pitch + i;
            // SAFETY: the rows, and those a wide vector adds, lie inside the planes
            unsafe {
                let [l, r] = a.states::<V, N>(o, pitch);
                let f = L::flux::<V, SOLVER>(&l, &r, &law);
                for v in 0..N {
                    f[v].store2(a.flux.add(o + component(a.axis, v) * a.flux_stride), pitch);
                }
            }
        }
    }
}

/// Replaces the fluxes of the gas through faces that are transverse to a shock by HLLE fluxes, and those through faces that are normal to a
/// slow shock by smoothed ones.
#[inline(always)]
pub unsafe fn damped_fluxes<V: Simd, L: Law<N>, const N: usize>(a: &FluxPass<V::E>) {
    let law = splat_law::<V>(a.law);
    let zero = V::lit(0.0);
    let (together, pitch) = a.grouping::<V>();
    for row in (0..a.rows).step_by(together) {
        for i in (0..a.length).step_by(V::N) {
            let o = row * a.pitch + i;
            // SAFETY: as in `fluxes`; the shocks of the cells on both sides are stored
            unsafe {
                let (slow, found) = a.shocks_at::<V>(o, pitch);
                if !Num::gt(largest(found), V::E::lit(0.0)) {
                    continue;
                }
                let [l, r] = a.states::<V, N>(o, pitch);
                let mut f = L::flux_hlle(&l, &r, &law);
                if Num::gt(largest(slow), V::E::lit(1.0)) {
                    let smoothed = L::flux_smoothed(&l, &r, &law);
                    for v in 0..N {
                        f[v] = V::select(Num::gt(slow, V::lit(1.0)), smoothed[v], f[v]);
                    }
                }
                for v in 0..N {
                    let flux = a.flux.add(o + component(a.axis, v) * a.flux_stride);
                    let old = V::load2(flux, pitch);
                    V::select(Num::gt(found, zero), f[v], old).store2(flux, pitch);
                }
            }
        }
    }
}

/// Computes the fluxes of the internal energy after those of the gas, and stores its velocity and density at the faces after all
/// components.
#[inline(always)]
pub unsafe fn internal_fluxes<V: Simd>(a: &FluxPass<V::E>) {
    let [gamma, ..] = splat_law::<V>(a.law);
    let (together, pitch) = a.grouping::<V>();
    for row in (0..a.rows).step_by(together) {
        for i in (0..a.length).step_by(V::N) {
            let o = row * a.pitch + i;
            // SAFETY: as in `fluxes`; the planes have two components more
            unsafe {
                let mass = V::load2(a.flux.add(o), pitch);
                let [density, pressure] = [0, 4].map(|c| a.concentrations::<V>(o, c, pitch));
                let (left, right) = ([density.0, pressure.0], [density.1, pressure.1]);
                let [velocity, internal] = dual::upwind_state(mass, &left, &right, gamma);
                let stores = [
                    (a.gas - 1, velocity * internal),
                    (a.components, velocity),
                    (a.components + 1, internal),
                ];
                for (c, value) in stores {
                    value.store2(a.flux.add(o + c * a.flux_stride), pitch);
                }
            }
        }
    }
}

/// Computes the fluxes of the scalars after those of the gas.
#[inline(always)]
pub unsafe fn scalar_fluxes<V: Simd>(a: &FluxPass<V::E>) {
    let (together, pitch) = a.grouping::<V>();
    for row in (0..a.rows).step_by(together) {
        for i in (0..a.length).step_by(V::N) {
            let o = row * a.pitch + i;
            // SAFETY: as in `fluxes`
            unsafe {
                let mass = V::load2(a.flux.add(o), pitch);
                for c in (a.gas..a.components).filter(|&c| a.sets.of(c) == 0) {
                    let (l, r) = a.concentrations::<V>(o, c, pitch);
                    flux_of_scalar(mass, l, r).store2(a.flux.add(o + c * a.flux_stride), pitch);
                }
                for set in 1..=a.sets.count() {
                    let (mut left, mut right) = (V::lit(0.0), V::lit(0.0));
                    for c in a.sets.members(set) {
                        let (l, r) = a.concentrations::<V>(o, c, pitch);
                        (left, right) = (left + l, right + r);
                    }
                    for c in a.sets.members(set) {
                        let (l, r) = a.concentrations::<V>(o, c, pitch);
                        flux_of_scalar(
                            mass,
                            normalized_fraction(l, left),
                            normalized_fraction(r, right),
                        )
                        .store2(a.flux.add(o + c * a.flux_stride), pitch);
                    }
                }
            }
        }
    }
}
