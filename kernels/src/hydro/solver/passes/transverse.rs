//! Corner transport upwind: corrections of the states at faces by the fluxes across.
use super::{FacePlanes, component, load3, splat_law, splat3};
use crate::PATCH;
use crate::hydro::hancock::transverse_change;
use crate::hydro::law::{Law, LawNumbers};
use nestar_device::simd::Simd;

/// Corrects the states of the gas at the faces of a flat range of cells.
pub struct CorrectionPass<E> {
    /// States at the lower and upper faces, by axis, at the first cell.
    pub low: [*mut E; 3],
    pub high: [*mut E; 3],
    /// The first axis whose states are corrected.
    pub from_axis: usize,
    /// First fluxes through the faces of the cells, with the same stride as the states.
    pub faces: FacePlanes<E>,
    pub count: usize,
    /// `dt / dx`.
    pub rates: [E; 3],
    /// Constants of the law.
    pub law: LawNumbers<E>,
}

/// Changes the states by half a step of the fluxes along the two other axes.
#[inline(always)]
pub unsafe fn correct<V: Simd, L: Law<N>, const N: usize>(a: &CorrectionPass<V::E>) {
    let (law, rates) = (splat_law::<V>(a.law), splat3::<V>(a.rates));
    let stride = a.faces.stride;
    let mut o = 0;
    while o < a.count {
        for d in a.from_axis..3 {
            let [s, t] = [(d + 1) % 3, (d + 2) % 3];
            let mut change = [V::lit(0.0); N];
            // SAFETY: `count` cells and a vector beyond, with their faces, lie inside the planes
            unsafe {
                for v in 0..N {
                    let at = o + component(d, v) * stride;
                    let below: [V; 3] = load3(&a.faces.below, at, PATCH);
                    let above: [V; 3] = load3(&a.faces.above, at, PATCH);
                    let rate = [rates[s], rates[t]];
                    change[v] =
                        transverse_change(&[below[s], below[t]], &[above[s], above[t]], &rate);
                }
                for states in [a.low[d], a.high[d]] {
                    let mut w = change;
                    for v in 0..N {
                        w[v] = V::load(states.add(o + component(d, v) * stride));
                    }
                    let corrected = L::corrected(&w, &change, &law);
                    for v in 0..N {
                        corrected[v].store(states.add(o + component(d, v) * stride));
                    }
                }
            }
        }
        o += V::N;
    }
}
