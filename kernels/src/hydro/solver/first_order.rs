//! First-order fluxes at flagged cells (GAMER-2, Schive et al. 2018, sec. 2.2).
use super::scratch::PatchScratch;
use crate::PATCH;
use crate::hydro::dual;
use crate::hydro::eos::primitive_from_conserved;
use crate::hydro::riemann::flux_of_scalar;
use crate::hydro::riemann::hlle::flux_hlle;
use nestar_device::Real;

/// Flags for the 10^3 cells of a patch and one layer around it.
///
/// The layer is needed because both patches at a shared face must use the same flux.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellMask10 {
    bits: [u64; 16],
}

impl CellMask10 {
    /// Flags along an axis.
    const WIDTH: i32 = PATCH as i32 + 2;

    /// Creates a mask without flags.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Flags the cell (`i`, `j`, `k`), each in `-1..=8`.
    ///
    /// # Panics
    /// Outside that range.
    pub fn set(&mut self, i: i32, j: i32, k: i32) {
        let bit = Self::bit(i, j, k);
        self.bits[bit / 64] |= 1 << (bit % 64);
    }

    /// Returns `true` if the cell (`i`, `j`, `k`), each in `-1..=8`, is flagged.
    ///
    /// # Panics
    /// Outside that range.
    #[must_use]
    pub fn contains(&self, i: i32, j: i32, k: i32) -> bool {
        let bit = Self::bit(i, j, k);
        self.bits[bit / 64] >> (bit % 64) & 1 == 1
    }

    /// Returns `true` if no cell is flagged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bits == [0; 16]
    }

    fn bit(i: i32, j: i32, k: i32) -> usize {
        let range = 0..Self::WIDTH;
        assert!(
            [i, j, k].iter().all(|x| range.contains(&(x + 1))),
            "cell ({i}, {j}, {k}) outside -1..=8"
        );
        ((i + 1) + Self::WIDTH * ((j + 1) + Self::WIDTH * (k + 1))) as usize
    }
}

/// Replaces fluxes next to flagged cells by the HLLE flux between cell averages of the input.
///
/// The fluxes are in the plane array at `place`, through faces normal to `axis`, in plane `k` of the patch (8 for the uppermost z faces).
pub(super) fn first_order_fluxes<R: Real>(
    scratch: &mut PatchScratch<R>,
    gamma: R,
    cells: &CellMask10,
    [axis, k]: [usize; 2],
    place: usize,
) {
    let l = scratch.layout;
    let (columns, rows) = [(PATCH + 1, PATCH), (PATCH, PATCH + 1), (PATCH, PATCH)][axis];
    for j in 0..rows {
        for i in 0..columns {
            let above = [i as i32, j as i32, k as i32];
            let mut below = above;
            below[axis] -= 1;
            if cells.contains(above[0], above[1], above[2])
                || cells.contains(below[0], below[1], below[2])
            {
                let at = l.corner() + j * l.width + i;
                let right = (k + l.ghosts) * l.steps()[2] + at;
                donor_flux(
                    scratch,
                    gamma,
                    axis,
                    [right - l.steps()[axis], right],
                    place + at,
                );
            }
        }
    }
}

/// Stores at `to` the first-order flux between two cells of the input, given by their offsets.
fn donor_flux<R: Real>(
    scratch: &mut PatchScratch<R>,
    gamma: R,
    axis: usize,
    cells: [usize; 2],
    to: usize,
) {
    let l = scratch.layout;
    let order = [0, 1 + axis, 1 + (axis + 1) % 3, 1 + (axis + 2) % 3, 4];
    let data = scratch.values_mut(0..l.total);
    let [left, right] = cells.map(|cell| {
        let u = order.map(|c| data[cell + c * l.block]);
        if l.gas == 5 {
            return primitive_from_conserved(&u, gamma);
        }
        dual::primitive(&u, data[cell + 5 * l.block], gamma)
    });
    let f = flux_hlle(&left, &right, gamma);
    for v in 0..5 {
        data[to + order[v] * l.plane] = f[v];
    }
    if l.gas > 5 {
        let [left, right] = [left, right].map(|w| [w[0], w[4]]);
        let [velocity, internal] = dual::upwind_state(f[0], &left, &right, gamma);
        data[to + 5 * l.plane] = velocity * internal;
        data[to + l.components * l.plane] = velocity;
        data[to + (l.components + 1) * l.plane] = internal;
    }
    for c in l.gas..l.components {
        let [x_left, x_right] = cells.map(|cell| data[cell + c * l.block] / data[cell]);
        data[to + c * l.plane] = flux_of_scalar(f[0], x_left, x_right);
    }
}
