//! What gas feels of a potential: the kick of its momentum, and the step that its acceleration allows.

use crate::CELLS;
use crate::hydro::{Conserved, kinetic_energy};
use crate::mesh::Rows;
use crate::mesh::parameters::View;
use crate::multigrid::device::{Exterior, Source};
use crate::multigrid::star::Slopes;
use nestar_device::{Address, Item, Real, device};

/// The kernels; they follow [`MULTIGRID`](crate::multigrid::device::MULTIGRID).
pub const KICK: &str = include_str!("kick.cu");

/// Every device item.
#[must_use]
pub fn device_items() -> Vec<&'static Item> {
    vec![Kick, Fall, kicked::ITEM]
}

/// Gas after a time `dt` under an acceleration: the internal energy stays.
#[device]
pub fn kicked<R: Real>(u: Conserved<R>, acceleration: &[R; 3], dt: R) -> Conserved<R> {
    let push = dt * u.density;
    let mut v = u;
    v.momentum = [
        u.momentum[0] + push * acceleration[0],
        u.momentum[1] + push * acceleration[1],
        u.momentum[2] + push * acceleration[2],
    ];
    v.energy = u.energy + (kinetic_energy(v) - kinetic_energy(u));
    v
}

/// What both kernels read.
#[device]
#[derive(Clone, Copy)]
pub struct Fall<R> {
    /// The potential.
    pub view: View<R>,
    /// What is beyond the domain.
    pub exterior: Exterior<R>,
    /// The right-hand side of its equation.
    pub source: Source<R>,
    /// Own rows.
    pub rows: Address<i32>,
    /// Bits of the largest acceleration over the width of a cell.
    pub largest: Address<u64>,
    /// Width of a cell along each axis.
    pub width: [f64; 3],
    /// How many rows.
    pub count: i32,
    /// Whether slopes are of fourth order.
    pub fourth: bool,
}

/// Of the kernel `gravity_kick`.
#[device]
#[derive(Clone, Copy)]
pub struct Kick<R> {
    /// The potential.
    pub fall: Fall<R>,
    /// Gas, `[row][component][512]`.
    pub gas: Address<R>,
    /// Length of the kick.
    pub dt: f64,
    /// Components of the gas.
    pub components: i32,
}

/// The acceleration in the cells of a row, along x, y, z.
#[must_use]
pub fn accelerations<R: Real>(slopes: &Slopes<R>, row: u32, fourth: bool) -> [[R; CELLS]; 3] {
    slopes
        .of(row, fourth)
        .map(|slopes| slopes.map(|slope| -slope))
}

/// Kicks the gas of a row by a time `dt`.
///
/// # Safety
/// Nobody else may use this row of `gas` meanwhile.
pub unsafe fn kick<R: Real>(slopes: &Slopes<R>, gas: &Rows<R>, row: u32, fourth: bool, dt: R) {
    let a = accelerations(slopes, row, fourth);
    // SAFETY: the caller's contract.
    let values = unsafe { gas.row_mut(row) };
    let (components, _) = values[..5 * CELLS].as_chunks_mut::<CELLS>();
    let [density, x, y, z, energy] = components else {
        unreachable!("five components")
    };
    for cell in 0..CELLS {
        let before = Conserved {
            density: density[cell],
            momentum: [x[cell], y[cell], z[cell]],
            energy: energy[cell],
        };
        let after = kicked(before, &[a[0][cell], a[1][cell], a[2][cell]], dt);
        [x[cell], y[cell], z[cell]] = after.momentum;
        energy[cell] = after.energy;
    }
}

/// The largest acceleration along an axis over the width of a cell along it, in a row.
#[must_use]
pub fn largest<R: Real>(slopes: &Slopes<R>, row: u32, fourth: bool) -> f64 {
    let of_axes = accelerations(slopes, row, fourth).map(|along| {
        // a NaN must not be passed over
        along.into_iter().fold(R::lit(0.0), |most, a| {
            let a = a.abs();
            if a > most || a.is_nan() { a } else { most }
        })
    });
    let rates = of_axes
        .into_iter()
        .zip(slopes.width)
        .map(|(a, width)| (a / width).to_f64());
    rates.fold(0.0, |most, rate| {
        if rate > most || rate.is_nan() {
            rate
        } else {
            most
        }
    })
}
