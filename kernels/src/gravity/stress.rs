//! Gravitational force as the divergence of a stress (after Mullen, Hanawa & Gammie, ApJS 252, 30 (2021)).
//!
//! The momentum flux of gravity is `T_ij / C` with `T_ij = d_i phi d_j phi - delta_ij |d phi|^2 / 2` and `C = 4 pi G`. On a uniform level
//! its divergence is to be `L phi * D_x phi`, in place of `C rho D_x phi`, with the seven-point Laplacian `L` and the central
//! difference `D_x`. Let `d_x` be the difference over the cell width through a face. Along x,
//! `L_x phi * D_x phi = (d_x+ - d_x-) (d_x+ + d_x-) / (2 w_x)`, the difference of `d_x^2 / 2` between the upper and the lower face.
//! Along y, the flux through a face is `d_y phi` times the mean of `D_x phi` in the two cells beside it. Let `u` and `l` be the
//! differences `d_y` through the upper and the lower face of a cell, and `u'`, `l'` those of its neighbours along x. Then its divergence is
//!
//! ```text
//! [u (D_x phi + D_x phi_above) - l (D_x phi_below + D_x phi)] / (2 w_y) = L_y phi D_x phi + [u D_x u + l D_x l] / 2
//! ```
//!
//! since `D_x phi_above = D_x phi + w_y D_x u`. With `u D_x u = (u u'_+ - u'_- u) / (2 w_x)` the last term is the divergence of a pressure
//! `(u u' + l l') / 4` through the face between two cells. It is subtracted, for y and for z:
//!
//! ```text
//! T_xx = d_x^2 / 2 - [u_y u'_y + l_y l'_y + u_z u'_z + l_z l'_z] / 4
//! T_xy = d_x (D_y phi + D_y phi') / 2      (through faces normal to x, of two cells with and without ')
//! ```
//!
//! If a mean density `m` does not attract, `L phi = C (rho - m)`, and `m phi` is added on the diagonal.

#[cfg(test)]
mod tests;

use super::energy_by_flux::energy_after_kick;
use super::{SlopeParameters, kicked};
use crate::hydro::Conserved;
use crate::mesh::Rows;
use crate::mesh::fluxes::{FACE, FACES, advanced, cell_behind, face_index};
use crate::mesh::parameters::{FluxRegisterView, GatherView};
use crate::multigrid::device::{ExteriorParameters, SourceParameters};
use crate::multigrid::ghost_values::PotentialSlopes;
use crate::multigrid::level::{PaddedBlock, WIDE, first};
use crate::{CELLS, PATCH};
use nestar_device::math::sum3;
use nestar_device::{Address, Item, Real, device};

/// Text of the kernels, which follows the ghost values.
pub const STRESS: &str = concat!(
    include_str!("../multigrid/ghost_values.cuh"),
    include_str!("../multigrid/edges.cuh"),
    include_str!("../mesh/patch_faces.cuh"),
    include_str!("slopes.cuh"),
    include_str!("stress.cu")
);

/// Returns all device items in addition to those of the solver and of kicks.
#[must_use]
pub fn device_items() -> Vec<&'static Item> {
    vec![
        StressParameters,
        ImpulsePrediction,
        ImpulseCorrection,
        pressure::ITEM,
        shear::ITEM,
        with_impulse::ITEM,
        crate::multigrid::edges::across_planes::ITEM,
    ]
}

/// Stress along the normal of a face between two cells, from the potential in each cell and its neighbours: below and
/// above along the next axis, then along the one after it. `inverse` has the inverse cell widths along the normal and
/// these axes; `mean_source` is `C m`.
#[device]
pub fn pressure<R: Real>(low: &[R; 5], high: &[R; 5], inverse: &[R; 3], mean_source: R) -> R {
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
        0.5 * mean_source * (low[0] + high[0]),
    )
}

/// Stress along the next axis (`n` 0) or the one after it (1); arguments as for [`pressure`].
#[device]
pub fn shear<R: Real>(low: &[R; 5], high: &[R; 5], inverse: &[R; 3], n: usize) -> R {
    let along = inverse[0] * (high[0] - low[0]);
    let slopes = (low[2 * n + 2] - low[2 * n + 1]) + (high[2 * n + 2] - high[2 * n + 1]);
    along * (0.25 * inverse[n + 1] * slopes)
}

/// Gas with an added momentum `impulse`; the internal energy stays constant.
#[device]
pub fn with_impulse<R: Real>(u: Conserved<R>, impulse: [R; 3]) -> Conserved<R> {
    let m = u.momentum;
    // change of |m|^2 / (2 rho)
    let work = sum3(
        impulse[0] * (m[0] + 0.5 * impulse[0]),
        impulse[1] * (m[1] + 0.5 * impulse[1]),
        impulse[2] * (m[2] + 0.5 * impulse[2]),
    );
    let mut v = u;
    v.momentum = [m[0] + impulse[0], m[1] + impulse[1], m[2] + impulse[2]];
    v.energy = u.energy + work / u.density;
    v
}

/// Parameters of the kernel `gravity_stress`.
#[device]
#[derive(Clone, Copy)]
pub struct StressParameters<R> {
    /// Potential.
    pub view: GatherView<R>,
    /// Potential outside the domain.
    pub exterior: ExteriorParameters<R>,
    /// Right-hand side of Poisson's equation.
    pub source: SourceParameters<R>,
    /// Flux registers of coarse-fine faces.
    pub registers: FluxRegisterView<R>,
    /// Own rows.
    pub rows: Address<i32>,
    /// Momentum still to be added to the gas, `[row][axis][512]`.
    pub impulse: Address<R>,
    /// Cell width along each axis.
    pub width: [f64; 3],
    /// Step length over the cell width.
    pub rate: [f64; 3],
    /// Step length.
    pub dt: f64,
    /// `C m`.
    pub mean_source: f64,
    /// Factor of the stresses.
    pub scale: f64,
    /// Number of rows.
    pub count: i32,
    /// `true` if fluxes are added to those that the registers hold for this step.
    pub adds: bool,
}

/// Parameters of the kernel `gravity_predict_impulse`.
#[device]
#[derive(Clone, Copy)]
pub struct ImpulsePrediction<R> {
    /// Potential.
    pub slope: SlopeParameters<R>,
    /// Gas, `[row][component][512]`.
    pub gas: Address<R>,
    /// Momentum still to be added to the gas, `[row][axis][512]`.
    pub impulse: Address<R>,
    /// Energy still to be added to the gas, `[row][512]`; none: the gas keeps the work of the kicks.
    pub pending_energy: Address<R>,
    /// Length of the kick.
    pub dt: f64,
    /// Components of the gas.
    pub components: i32,
}

/// Parameters of the kernel `gravity_correct_impulse`.
#[device]
#[derive(Clone, Copy)]
pub struct ImpulseCorrection<R> {
    /// Own rows.
    pub rows: Address<i32>,
    /// As in [`ImpulsePrediction`].
    pub gas: Address<R>,
    /// As in [`ImpulsePrediction`].
    pub impulse: Address<R>,
    /// As in [`ImpulsePrediction`].
    pub pending_energy: Address<R>,
    /// Components of the gas.
    pub components: i32,
    /// Number of rows.
    pub count: i32,
}

/// Data of the stresses on a level.
pub struct Stresses<'a, R> {
    /// Potential.
    pub slopes: PotentialSlopes<'a, R>,
    /// Inverse cell width along each axis.
    pub inverse: [R; 3],
    /// `C m`.
    pub mean_source: R,
    /// Factor of the stresses.
    pub scale: R,
}

/// Momentum fluxes through the faces of the cells of a patch, `[axis][component][FACES]`.
pub struct MomentumFluxes<R>([[[R; FACES]; 3]; 3]);

/// Index distances of neighbours in a block, along the axes.
const STEPS: [usize; 3] = [1, WIDE, WIDE * WIDE];

impl<R: Real> Stresses<'_, R> {
    /// Returns the stresses at all faces of a row.
    #[must_use]
    pub fn of(&self, row: u32) -> Box<MomentumFluxes<R>> {
        let mut out = Box::new(MomentumFluxes([[[R::lit(0.0); FACES]; 3]; 3]));
        let mut block = self.slopes.with_face_ghosts(row);
        for (axis, out) in out.0.iter_mut().enumerate() {
            self.slopes.fill_edge_ghosts(row, axis, &mut block);
            self.through_axis(&block, axis, out);
        }
        out
    }

    fn through_axis(&self, block: &PaddedBlock<R>, axis: usize, out: &mut [[R; FACES]; 3]) {
        let axes = [axis, (axis + 1) % 3, (axis + 2) % 3];
        let inverse = axes.map(|axis| self.inverse[axis]);
        let [step, a, b] = axes.map(|axis| STEPS[axis]);
        // a single long loop vectorises; it includes values between the lines
        let start = first(0) - step;
        let span = first(PATCH * PATCH - 1) + PATCH - start;
        let around =
            |at: usize| [at, at - a, at + a, at - b, at + b].map(|at| &block[at..][..span]);
        let (low, high) = (around(start), around(start + step));
        let mut found = [[R::lit(0.0); WIDE * WIDE * WIDE]; 3];
        let [normal, one, two] = &mut found;
        for n in 0..span {
            let (low, high) = (low.map(|values| values[n]), high.map(|values| values[n]));
            normal[n] = self.scale * pressure(&low, &high, &inverse, self.mean_source);
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

impl<R: Real> MomentumFluxes<R> {
    /// Adds the flux divergence in the cells of a row to the pending impulse; `rate` is the step length over the cell
    /// width.
    ///
    /// # Safety
    /// Nobody else may use this row of `impulse` meanwhile.
    pub unsafe fn add(&self, row: u32, impulse: &Rows<R>, rate: &[R; 3]) {
        // SAFETY: the caller's contract.
        let impulse = unsafe { impulse.row_mut(row) };
        for (n, impulse) in impulse[..3 * CELLS].chunks_exact_mut(PATCH).enumerate() {
            let (component, line) = (n / FACE, n % FACE);
            let first = |axis| face_index(axis, [0, line % PATCH, line / PATCH]);
            let x = &self.0[0][component][first(0)..][..PATCH + 1];
            let y = &self.0[1][component][first(1)..][..2 * PATCH];
            let z = &self.0[2][component][first(2)..][..FACE + PATCH];
            for (i, impulse) in impulse.iter_mut().enumerate() {
                let (below, above) = ([x[i], y[i], z[i]], [x[i + 1], y[i + PATCH], z[i + FACE]]);
                *impulse = advanced(*impulse, &below, &above, rate);
            }
        }
    }

    /// Returns the fluxes through a face of the patch, `[component][8][8]`.
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

/// Rows that the prediction and the correction of an impulse change.
pub struct ImpulseRows<'a, R> {
    /// Gas, `[component][512]`.
    pub gas: Rows<'a, R>,
    /// Momentum still to be added to the gas, `[axis][512]`.
    pub impulse: Rows<'a, R>,
    /// Energy still to be added to the gas; `None`: the gas keeps the work of the kicks.
    pub pending_energy: Option<Rows<'a, R>>,
}

/// Kicks the gas of a row over a time `dt` and subtracts the kick from the pending impulse, and from the pending energy
/// if given.
///
/// # Safety
/// Nobody else may use this row of `gas`, `impulse` and `pending_energy` meanwhile.
pub unsafe fn predict_impulse<R: Real>(
    slopes: &PotentialSlopes<R>,
    rows: &ImpulseRows<R>,
    row: u32,
    fourth: bool,
    dt: R,
) {
    let ImpulseRows {
        gas,
        impulse,
        pending_energy,
    } = rows;
    let slopes = slopes.of(row, fourth);
    // SAFETY: the caller's contract.
    let (gas, impulse) = unsafe { (gas.row_mut(row), impulse.row_mut(row)) };
    let (gas, impulse) = (&mut gas[..5 * CELLS], &mut impulse[..3 * CELLS]);
    for cell in 0..CELLS {
        let before = state(gas, cell);
        let a = [0, 1, 2].map(|axis| -slopes[axis][cell]);
        let after = kicked(before, &a, dt);
        for axis in 0..3 {
            impulse[axis * CELLS + cell] = before.momentum[axis] - after.momentum[axis];
        }
        store(gas, cell, &after, after.energy);
        if let Some(pending_energy) = pending_energy {
            // SAFETY: the caller's contract.
            unsafe { pending_energy.set(row, cell, before.energy - after.energy) };
        }
    }
}

/// Adds the pending impulse to the gas of a row, and the pending energy if given (otherwise the internal energy stays
/// constant). A component with the internal energy takes nothing: where the total energy is accurate, the next step sets it.
///
/// # Safety
/// Nobody else may use this row of `gas`, `impulse` and `pending_energy` meanwhile.
pub unsafe fn correct_impulse<R: Real>(rows: &ImpulseRows<R>, row: u32) {
    let ImpulseRows {
        gas,
        impulse,
        pending_energy,
    } = rows;
    // SAFETY: the caller's contract.
    let (gas, impulse) = unsafe { (gas.row_mut(row), impulse.row_mut(row)) };
    let impulse = &mut impulse[..3 * CELLS];
    for cell in 0..CELLS {
        let before = state(gas, cell);
        let after = with_impulse(before, [0, 1, 2].map(|axis| impulse[axis * CELLS + cell]));
        let energy = match pending_energy {
            Some(pending_energy) => energy_after_kick(before, after, pending_energy.get(row, cell)),
            None => after.energy,
        };
        store(gas, cell, &after, energy);
        for axis in 0..3 {
            impulse[axis * CELLS + cell] = R::lit(0.0);
        }
        if let Some(pending_energy) = pending_energy {
            // SAFETY: the caller's contract.
            unsafe { pending_energy.set(row, cell, R::lit(0.0)) };
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
