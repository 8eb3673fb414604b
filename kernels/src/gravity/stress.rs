//! The force of gravity as the divergence of a stress (after Mullen, Hanawa & Gammie, ApJS 252, 30 (2021)).
//!
//! The momentum that gas gains by gravity is what flows through faces: `T_ij / C` with `T_ij = d_i phi d_j phi - delta_ij |d phi|^2 / 2` and
//! `C = 4 pi G`. On a uniform level with the Laplacian `L` of seven points it is to be `L phi * D_x phi`, with `D_x` the central
//! difference, in place of `C rho D_x phi`. Let `d_x` be the difference over the width through a face. Along x,
//! `L_x phi * D_x phi = (d_x+ - d_x-) (d_x+ + d_x-) / (2 w_x)`, which is the difference of `d_x^2 / 2` between the upper and the lower face. Along
//! y, what flows through a face normal to it is `d_y phi` times the mean of `D_x phi` in the two cells beside it. With `u` and `l` the differences
//! `d_y` through the upper and the lower face of a cell, and `u'`, `l'` the same one cell farther along x or before, its divergence is
//!
//! ```text
//! [u (D_x phi + D_x phi_above) - l (D_x phi_below + D_x phi)] / (2 w_y) = L_y phi D_x phi + [u D_x u + l D_x l] / 2
//! ```
//!
//! as `D_x phi_above = D_x phi + w_y D_x u`. Since `u D_x u = (u u'_+ - u'_- u) / (2 w_x)`, the last term is the divergence of the products of neighbours:
//! a pressure of `(u u' + l l') / 4` through the face between two cells, which is taken off, for y as for z. So
//!
//! ```text
//! T_xx = d_x^2 / 2 - [u_y u'_y + l_y l'_y + u_z u'_z + l_z l'_z] / 4
//! T_xy = d_x (D_y phi + D_y phi') / 2      (through faces normal to x, of two cells with and without ')
//! ```
//!
//! Where a mean density `m` does not attract, `L phi = C (rho - m)`: `m phi` on the diagonal makes up for it.

#[cfg(test)]
mod tests;

use super::work::settled;
use super::{Fall, kicked};
use crate::hydro::Conserved;
use crate::mesh::Rows;
use crate::mesh::fluxes::{FACE, FACES, advanced, cell_behind, face_index};
use crate::mesh::parameters::{FluxRegisterView, GatherView};
use crate::multigrid::device::{ExteriorParameters, SourceParameters};
use crate::multigrid::ghost_values::PotentialSlopes;
use crate::multigrid::level::{Block, WIDE, first};
use crate::{CELLS, PATCH};
use nestar_device::math::sum3;
use nestar_device::{Address, Item, Real, device};

/// The kernels: they follow the values around a patch.
pub const STRESS: &str = concat!(
    include_str!("../multigrid/ghost_values.cuh"),
    include_str!("../multigrid/edges.cuh"),
    include_str!("../mesh/patch_faces.cuh"),
    include_str!("slopes.cuh"),
    include_str!("stress.cu")
);

/// Every device item, beside those of the solver and of kicks.
#[must_use]
pub fn device_items() -> Vec<&'static Item> {
    vec![
        Flow,
        Loan,
        Settle,
        pressure::ITEM,
        shear::ITEM,
        given::ITEM,
        crate::multigrid::edges::across_planes::ITEM,
    ]
}

/// The stress along the normal of a face between two cells, by the potentials in each and in those beside it: below and above along the
/// next axis, then along the one after it. `inverse` has one over the widths along the normal and these axes; `pull` is `C m`.
#[device]
pub fn pressure<R: Real>(low: &[R; 5], high: &[R; 5], inverse: &[R; 3], pull: R) -> R {
    let along = inverse[0] * (high[0] - low[0]);
    let mut products = [0.0; 2];
    for n in 0..2 {
        let lower = (low[0] - low[2 * n + 1]) * (high[0] - high[2 * n + 1]);
        let upper = (low[2 * n + 2] - low[0]) * (high[2 * n + 2] - high[0]);
        products[n] = inverse[n + 1] * inverse[n + 1] * (lower + upper);
    }
    sum3(
        0.5 * (along * along),
        -(0.25 * (products[0] + products[1])),
        0.5 * pull * (low[0] + high[0]),
    )
}

/// The stress along the next axis (`n` 0) or the one after it (1); else as [`pressure`].
#[device]
pub fn shear<R: Real>(low: &[R; 5], high: &[R; 5], inverse: &[R; 3], n: usize) -> R {
    let along = inverse[0] * (high[0] - low[0]);
    let slopes = (low[2 * n + 2] - low[2 * n + 1]) + (high[2 * n + 2] - high[2 * n + 1]);
    along * (0.25 * inverse[n + 1] * slopes)
}

/// Gas that has got a momentum `push`: the internal energy stays.
#[device]
pub fn given<R: Real>(u: Conserved<R>, push: [R; 3]) -> Conserved<R> {
    let m = u.momentum;
    // the change of |m|^2 / (2 rho)
    let work = sum3(
        push[0] * (m[0] + 0.5 * push[0]),
        push[1] * (m[1] + 0.5 * push[1]),
        push[2] * (m[2] + 0.5 * push[2]),
    );
    let mut v = u;
    v.momentum = [m[0] + push[0], m[1] + push[1], m[2] + push[2]];
    v.energy = u.energy + work / u.density;
    v
}

/// Of the kernel `gravity_stress`.
#[device]
#[derive(Clone, Copy)]
pub struct Flow<R> {
    /// The potential.
    pub view: GatherView<R>,
    /// What is beyond the domain.
    pub exterior: ExteriorParameters<R>,
    /// The right-hand side of its equation.
    pub source: SourceParameters<R>,
    /// Where what flows through coarse-fine faces goes.
    pub registers: FluxRegisterView<R>,
    /// Own rows.
    pub rows: Address<i32>,
    /// Momentum that gas is owed, `[row][axis][512]`.
    pub push: Address<R>,
    /// Width of a cell along each axis.
    pub width: [f64; 3],
    /// Length of the step over the width.
    pub rate: [f64; 3],
    /// Length of the step.
    pub dt: f64,
    /// `C m`.
    pub pull: f64,
    /// What stresses are multiplied by.
    pub scale: f64,
    /// How many rows.
    pub count: i32,
    /// Whether registers have had fluxes in this step, to which these are added.
    pub adds: bool,
}

/// Of the kernel `gravity_lend`.
#[device]
#[derive(Clone, Copy)]
pub struct Loan<R> {
    /// The potential.
    pub fall: Fall<R>,
    /// Gas, `[row][component][512]`.
    pub gas: Address<R>,
    /// Momentum that gas is owed, `[row][axis][512]`.
    pub push: Address<R>,
    /// Energy that it is owed, `[row][512]`; none: what kicks give.
    pub due: Address<R>,
    /// Length of the kick.
    pub dt: f64,
    /// Components of the gas.
    pub components: i32,
}

/// Of the kernel `gravity_settle`.
#[device]
#[derive(Clone, Copy)]
pub struct Settle<R> {
    /// Own rows.
    pub rows: Address<i32>,
    /// As of [`Loan`].
    pub gas: Address<R>,
    /// As of [`Loan`].
    pub push: Address<R>,
    /// As of [`Loan`].
    pub due: Address<R>,
    /// Components of the gas.
    pub components: i32,
    /// How many rows.
    pub count: i32,
    /// Whether the internal energy follows as component 5.
    pub internal: bool,
}

/// What stresses in the potential of a level are made of.
pub struct Stresses<'a, R> {
    /// The potential.
    pub slopes: PotentialSlopes<'a, R>,
    /// One over the width of a cell along each axis.
    pub inverse: [R; 3],
    /// `C m`.
    pub pull: R,
    /// What stresses are multiplied by.
    pub scale: R,
}

/// What flows through the faces of a patch's cells, `[axis][component][FACES]`.
pub struct Flows<R>([[[R; FACES]; 3]; 3]);

/// Steps of a block along the axes.
const STEPS: [usize; 3] = [1, WIDE, WIDE * WIDE];

impl<R: Real> Stresses<'_, R> {
    /// The stresses through all faces of a row.
    #[must_use]
    pub fn of(&self, row: u32) -> Box<Flows<R>> {
        let mut out = Box::new(Flows([[[R::lit(0.0); FACES]; 3]; 3]));
        let mut block = self.slopes.faced(row);
        for (axis, out) in out.0.iter_mut().enumerate() {
            self.slopes.edge(row, axis, &mut block);
            self.through_axis(&block, axis, out);
        }
        out
    }

    fn through_axis(&self, block: &Block<R>, axis: usize, out: &mut [[R; FACES]; 3]) {
        let axes = [axis, (axis + 1) % 3, (axis + 2) % 3];
        let inverse = axes.map(|axis| self.inverse[axis]);
        let [step, a, b] = axes.map(|axis| STEPS[axis]);
        // one long loop is vectorised: it passes over what lies between lines too
        let start = first(0) - step;
        let span = first(PATCH * PATCH - 1) + PATCH - start;
        let around =
            |at: usize| [at, at - a, at + a, at - b, at + b].map(|at| &block[at..][..span]);
        let (low, high) = (around(start), around(start + step));
        let mut found = [[R::lit(0.0); WIDE * WIDE * WIDE]; 3];
        let [normal, one, two] = &mut found;
        for n in 0..span {
            let (low, high) = (low.map(|values| values[n]), high.map(|values| values[n]));
            normal[n] = self.scale * pressure(&low, &high, &inverse, self.pull);
            one[n] = self.scale * shear(&low, &high, &inverse, 0);
            two[n] = self.scale * shear(&low, &high, &inverse, 1);
        }
        let mut lengths = [PATCH; 3];
        lengths[axis] += 1;
        for line in 0..lengths[1] * lengths[2] {
            let (j, k) = (line % lengths[1], line / lengths[1]);
            let from = first(0) + j * WIDE + k * WIDE * WIDE - step - start;
            for (found, component) in found.iter().zip(axes) {
                let to = &mut out[component][line * lengths[0]..][..lengths[0]];
                to.copy_from_slice(&found[from..][..lengths[0]]);
            }
        }
    }
}

impl<R: Real> Flows<R> {
    /// Adds what flows into the cells of a row to the momentum that gas is owed, by the length of the step over the width along each axis.
    ///
    /// # Safety
    /// Nobody else may use this row of `push` meanwhile.
    pub unsafe fn add(&self, row: u32, push: &Rows<R>, rate: &[R; 3]) {
        // SAFETY: the caller's contract.
        let push = unsafe { push.row_mut(row) };
        for (n, push) in push[..3 * CELLS].chunks_exact_mut(PATCH).enumerate() {
            let (component, line) = (n / FACE, n % FACE);
            let first = |axis| face_index(axis, [0, line % PATCH, line / PATCH]);
            let x = &self.0[0][component][first(0)..][..PATCH + 1];
            let y = &self.0[1][component][first(1)..][..2 * PATCH];
            let z = &self.0[2][component][first(2)..][..FACE + PATCH];
            for (i, push) in push.iter_mut().enumerate() {
                let (below, above) = ([x[i], y[i], z[i]], [x[i + 1], y[i + PATCH], z[i + FACE]]);
                *push = advanced(*push, &below, &above, rate);
            }
        }
    }

    /// What flows through a face of the patch, `[component][8][8]`.
    #[must_use]
    pub fn through(&self, face: usize) -> [R; 3 * FACE] {
        let axis = face / 2;
        std::array::from_fn(|n| {
            let cell = cell_behind(face, n % FACE / PATCH, n % PATCH);
            let mut at = [cell % PATCH, cell / PATCH % PATCH, cell / FACE];
            at[axis] += face % 2;
            self.0[axis][n / FACE][face_index(axis, at)]
        })
    }
}

/// Kicks the gas of a row by a time `dt`, as a loan: it is owed that much less momentum, and energy if `due` is given.
///
/// # Safety
/// Nobody else may use this row of `gas`, `push` and `due` meanwhile.
pub unsafe fn lend<R: Real>(
    slopes: &PotentialSlopes<R>,
    (gas, push, due): (&Rows<R>, &Rows<R>, Option<&Rows<R>>),
    row: u32,
    (fourth, dt): (bool, R),
) {
    let slopes = slopes.of(row, fourth);
    // SAFETY: the caller's contract.
    let (gas, push) = unsafe { (gas.row_mut(row), push.row_mut(row)) };
    let (gas, push) = (&mut gas[..5 * CELLS], &mut push[..3 * CELLS]);
    for cell in 0..CELLS {
        let before = state(gas, cell);
        let a = [0, 1, 2].map(|axis| -slopes[axis][cell]);
        let after = kicked(before, &a, dt);
        for axis in 0..3 {
            push[axis * CELLS + cell] = before.momentum[axis] - after.momentum[axis];
        }
        store(gas, cell, &after, after.energy);
        if let Some(due) = due {
            // SAFETY: the caller's contract.
            unsafe { due.set(row, cell, before.energy - after.energy) };
        }
    }
}

/// Gives the gas of a row what it is owed: its momentum, and as much energy as `due` says, else so much that the internal energy stays.
/// Where that follows as component 5 (`internal`), it takes what is due beyond the momentum's work.
///
/// # Safety
/// Nobody else may use this row of `gas`, `push` and `due` meanwhile.
pub unsafe fn settle<R: Real>(
    (gas, internal): (&Rows<R>, bool),
    push: &Rows<R>,
    due: Option<&Rows<R>>,
    row: u32,
) {
    // SAFETY: the caller's contract.
    let (gas, push) = unsafe { (gas.row_mut(row), push.row_mut(row)) };
    let (gas, behind) = gas.split_at_mut(5 * CELLS);
    let push = &mut push[..3 * CELLS];
    for cell in 0..CELLS {
        let before = state(gas, cell);
        let after = given(before, [0, 1, 2].map(|axis| push[axis * CELLS + cell]));
        let energy = match due {
            Some(due) => settled(before, after, due.get(row, cell)),
            None => after.energy,
        };
        store(gas, cell, &after, energy);
        if internal {
            behind[cell] += energy - after.energy;
        }
        for axis in 0..3 {
            push[axis * CELLS + cell] = R::lit(0.0);
        }
        if let Some(due) = due {
            // SAFETY: the caller's contract.
            unsafe { due.set(row, cell, R::lit(0.0)) };
        }
    }
}

fn state<R: Real>(gas: &[R], cell: usize) -> Conserved<R> {
    let at = |component: usize| gas[component * CELLS + cell];
    Conserved {
        density: at(0),
        momentum: [at(1), at(2), at(3)],
        energy: at(4),
    }
}

fn store<R: Real>(gas: &mut [R], cell: usize, after: &Conserved<R>, energy: R) {
    for axis in 0..3 {
        gas[(axis + 1) * CELLS + cell] = after.momentum[axis];
    }
    gas[4 * CELLS + cell] = energy;
}
