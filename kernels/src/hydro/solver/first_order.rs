//! First-order fluxes at flagged cells (GAMER-2, Schive et al. 2018, sec. 2.2).
use super::passes::{component, of_law, with_energy};
use super::scratch::PatchScratch;
use super::{HydroReal, PatchSolver};
use crate::PATCH;
use crate::hydro::law::{Law, LawNumbers, select_law};
use crate::hydro::riemann::flux_of_scalar;
use crate::hydro::{dual, eos};

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
/// The fluxes are in the plane array at `place`, through faces normal to `axis`, in plane `k` of the block. With a field on faces those of one
/// cell around the patch are replaced, too.
pub(super) fn first_order_fluxes<R: HydroReal>(
    (solver, law): (&PatchSolver<R>, LawNumbers<R>),
    scratch: &mut PatchScratch<R>,
    cells: &CellMask10,
    [axis, k]: [usize; 2],
    place: usize,
) {
    let l = scratch.layout;
    let donor_flux = select_law!(solver.method, donor_flux::<R>);
    let (around, last) = (l.across() as i32, PATCH as i32 - 1);
    let [columns, rows] = [0, 1].map(|a| match a == axis {
        true => (0, last + 1),
        false => (-around, last + around),
    });
    for j in rows.0..=rows.1 {
        for i in columns.0..=columns.1 {
            let above = [i, j, k as i32 - l.ghosts as i32];
            let mut below = above;
            below[axis] -= 1;
            if cells.contains(above[0], above[1], above[2])
                || cells.contains(below[0], below[1], below[2])
            {
                let at = (l.corner() as i32 + j * l.width as i32 + i) as usize;
                let right = k * l.steps()[2] + at;
                donor_flux(
                    scratch,
                    &law,
                    axis,
                    [right - l.steps()[axis], right],
                    place + at,
                );
            }
        }
    }
}

/// Stores at `to` the first-order flux between two cells of the input, given by their offsets.
fn donor_flux<R: HydroReal, L: Law<N>, const N: usize>(
    scratch: &mut PatchScratch<R>,
    law: &LawNumbers<R>,
    axis: usize,
    cells: [usize; 2],
    to: usize,
) {
    let l = scratch.layout;
    let carries_internal = l.gas > N;
    let data = scratch.values_mut(0..l.total);
    let [left, right] = cells.map(|cell| {
        let u: [R; N] = std::array::from_fn(|v| data[cell + component(axis, v) * l.block]);
        if !carries_internal {
            return L::primitive(&u, law);
        }
        let internal = data[cell + N * l.block];
        of_law(
            &eos::primitive_from_internal(&with_energy(&u), internal, law[0]),
            &u,
        )
    });
    let f = L::flux_hlle(&left, &right, law);
    for v in 0..N {
        data[to + component(axis, v) * l.plane] = f[v];
    }
    if carries_internal {
        let [left, right] = [left, right].map(|w| [w[0], w[L::PRESSURE]]);
        let [velocity, internal] = dual::upwind_state(f[0], &left, &right, law[0]);
        data[to + N * l.plane] = velocity * internal;
        data[to + l.components * l.plane] = velocity;
        data[to + (l.components + 1) * l.plane] = internal;
    }
    for c in l.gas..l.components {
        let [x_left, x_right] = cells.map(|cell| data[cell + c * l.block] / data[cell]);
        data[to + c * l.plane] = flux_of_scalar(f[0], x_left, x_right);
    }
}
