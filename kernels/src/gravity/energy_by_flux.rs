//! Gravitational energy source from mass fluxes: each face contributes its mass flux times the potential difference of
//! its two sides. With the mean of the potentials before and after a step, the gas gains what its gravitational energy
//! loses. On a uniform mesh this holds to round-off (after Mullen, Hanawa & Gammie, ApJS 252, 30 (2021)).

use crate::CELLS;
use crate::PATCH;
use crate::hydro::{Conserved, internal_energy, kinetic_energy};
use crate::mesh::fluxes::{FACES, face_index};
use crate::mesh::parameters::GatherView;
use crate::mesh::{GhostView, Rows};
use crate::multigrid::device;
use crate::multigrid::exterior;
use crate::multigrid::level::{WIDE, block, first};
use nestar_device::math::sum3;
use nestar_device::{Address, Real, device};

/// Energy density gained over a time by the mass fluxes through the lower (`below`) and upper (`above`) faces of a
/// cell. `own` is its potential, `around` that of the neighbours x-, x+, y-, y+, z-, z+. `rates` is the time over the
/// cell width along each axis.
#[device]
pub fn flux_work<R: Real>(
    own: R,
    around: &[R; 6],
    below: &[R; 3],
    above: &[R; 3],
    rates: &[R; 3],
) -> R {
    let mut along = [0.0; 3];
    for axis in 0..3 {
        let lower = below[axis] * (around[2 * axis] - own);
        let upper = above[axis] * (own - around[2 * axis + 1]);
        along[axis] = 0.5 * rates[axis] * (lower + upper);
    }
    sum3(along[0], along[1], along[2])
}

/// Energy of gas `after` the last kick of a step: the work of the mass fluxes replaces that of the kicks.
/// `pending_energy` is the work of the fluxes minus that of the first kick. The exchange takes at most half of the
/// internal energy. Cold gas keeps the work of the kicks: below a thousandth of the kinetic energy, errors of the
/// latter would heat it.
#[device]
pub fn energy_after_kick<R: Real>(
    before: Conserved<R>,
    after: Conserved<R>,
    pending_energy: R,
) -> R {
    let internal = internal_energy(before);
    if internal < 1e-3 * kinetic_energy(before) {
        after.energy
    } else {
        let pending = pending_energy - (after.energy - before.energy);
        let least = -0.5 * internal;
        // a NaN stays
        after.energy + if pending < least { least } else { pending }
    }
}

/// Parameters of the kernel `gravity_flux_work`.
#[device]
#[derive(Clone, Copy)]
pub struct FluxWorkParameters<R> {
    /// Potential.
    pub view: GatherView<R>,
    /// Potential outside the domain.
    pub exterior: device::ExteriorParameters<R>,
    /// Own rows.
    pub rows: Address<i32>,
    /// Mass fluxes, `[row][axis][576]`.
    pub mass: Address<R>,
    /// Energy still to be added to the gas, `[row][512]`.
    pub pending_energy: Address<R>,
    /// Time over the cell width along each axis.
    pub rates: [f64; 3],
    /// Number of rows.
    pub count: i32,
}

/// Data of the flux work on a level.
pub struct FluxWork<'a, R> {
    /// Potential.
    pub view: GhostView<'a, R>,
    /// Potential outside the domain.
    pub exterior: exterior::Exterior<'a, R>,
    /// Mass fluxes, `[axis][576]`.
    pub mass: Rows<'a, R>,
    /// Time over the cell width along each axis.
    pub rates: [R; 3],
}

/// Adds the flux work in a row to `pending_energy`.
///
/// # Safety
/// Nobody else may use this row of `pending_energy` meanwhile.
pub unsafe fn add_flux_work<R: Real>(gained: &FluxWork<R>, row: u32, pending_energy: &Rows<R>) {
    let block = block(&gained.view, &gained.exterior, row, None);
    let mass = &gained.mass.row(row)[..3 * FACES];
    // SAFETY: the caller's contract.
    let pending_energy = unsafe { pending_energy.row_mut(row) };
    let to_upper = [1, PATCH, PATCH * PATCH];
    for (cell, pending_energy) in pending_energy[..CELLS].iter_mut().enumerate() {
        let place = [cell % PATCH, cell / PATCH % PATCH, cell / (PATCH * PATCH)];
        let at = first(cell / PATCH) + cell % PATCH;
        let face = |axis: usize| axis * FACES + face_index(axis, place);
        let below = [0, 1, 2].map(|axis| mass[face(axis)]);
        let above = [0, 1, 2].map(|axis| mass[face(axis) + to_upper[axis]]);
        let around = [
            block[at - 1],
            block[at + 1],
            block[at - WIDE],
            block[at + WIDE],
            block[at - WIDE * WIDE],
            block[at + WIDE * WIDE],
        ];
        *pending_energy += flux_work(block[at], &around, &below, &above, &gained.rates);
    }
}
