//! The energy that gas gains as it falls: by the mass that crosses each face of a cell and the potentials on its two sides. With the mean of
//! the potentials before and after a step, the gas gains what its gravitational energy loses, to round-off on a uniform mesh
//! (after Mullen, Hanawa & Gammie, ApJS 252, 30 (2021)).

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

/// Energy of a volume gained over a time, by the mass fluxes through the lower and upper faces of a cell, its potential `own`, those
/// through its faces x-, x+, y-, y+, z-, z+, and that time over the width of the cell along each axis.
#[device]
pub fn work<R: Real>(own: R, around: &[R; 6], below: &[R; 3], above: &[R; 3], rates: &[R; 3]) -> R {
    let mut along = [0.0; 3];
    for axis in 0..3 {
        let lower = below[axis] * (around[2 * axis] - own);
        let upper = above[axis] * (own - around[2 * axis + 1]);
        along[axis] = 0.5 * rates[axis] * (lower + upper);
    }
    sum3(along[0], along[1], along[2])
}

/// Energy of gas `after` its last kick in a step: what the fluxes have done takes the place of what the kicks gave. `due` is what the fluxes
/// have done minus what the first kick gave. The exchange takes no more than half of the internal energy. Cold gas keeps what the kicks
/// gave: where the internal energy is below a thousandth of the kinetic one, errors of the latter would heat it.
#[device]
pub fn settled<R: Real>(before: Conserved<R>, after: Conserved<R>, due: R) -> R {
    let internal = internal_energy(before);
    if internal < 1e-3 * kinetic_energy(before) {
        after.energy
    } else {
        let owed = due - (after.energy - before.energy);
        let least = -0.5 * internal;
        // a NaN stays one
        after.energy + if owed < least { least } else { owed }
    }
}

/// Of the kernel `gravity_work`.
#[device]
#[derive(Clone, Copy)]
pub struct Work<R> {
    /// The potential.
    pub view: GatherView<R>,
    /// What is beyond the domain.
    pub exterior: device::ExteriorParameters<R>,
    /// Own rows.
    pub rows: Address<i32>,
    /// Mass fluxes, `[row][axis][576]`.
    pub mass: Address<R>,
    /// Energy that gas is due, `[row][512]`.
    pub due: Address<R>,
    /// Time over the width of a cell along each axis.
    pub rates: [f64; 3],
    /// How many rows.
    pub count: i32,
}

/// What works on the gas of a level.
pub struct Fallen<'a, R> {
    /// The potential.
    pub view: GhostView<'a, R>,
    /// What is beyond the domain.
    pub exterior: exterior::Exterior<'a, R>,
    /// Mass fluxes, `[axis][576]`.
    pub mass: Rows<'a, R>,
    /// Time over the width of a cell along each axis.
    pub rates: [R; 3],
}

/// Adds what the gas of a row is due to `due`.
///
/// # Safety
/// Nobody else may use this row of `due` meanwhile.
pub unsafe fn add_work<R: Real>(fallen: &Fallen<R>, row: u32, due: &Rows<R>) {
    let block = block(&fallen.view, &fallen.exterior, row, None);
    let mass = &fallen.mass.row(row)[..3 * FACES];
    // SAFETY: the caller's contract.
    let due = unsafe { due.row_mut(row) };
    let to_upper = [1, PATCH, PATCH * PATCH];
    for (cell, due) in due[..CELLS].iter_mut().enumerate() {
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
        *due += work(block[at], &around, &below, &above, &fallen.rates);
    }
}
