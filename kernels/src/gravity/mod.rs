//! What gas feels of a potential: the kick of its momentum, and the step that its acceleration allows.

pub mod stress;
mod work;

use work::settled;
pub use work::{Fallen, Work, add_work};

use crate::CELLS;
use crate::hydro::Conserved;
use crate::hydro::eos::apply_kick;
use crate::mesh::Rows;
use crate::mesh::parameters::GatherView;
use crate::multigrid::device::{ExteriorParameters, SourceParameters};
use crate::multigrid::ghost_values::PotentialSlopes;
use nestar_device::{Address, Item, Real, device};

/// The kernels; they follow [`MULTIGRID`](crate::multigrid::device::MULTIGRID).
pub const GRAVITY_KERNELS: &str = concat!(
    include_str!("../mesh/patch_faces.cuh"),
    include_str!("slopes.cuh"),
    include_str!("kick.cu")
);

/// Every device item.
#[must_use]
pub fn device_items() -> Vec<&'static Item> {
    vec![
        Kick,
        Accelerate,
        Fall,
        Work,
        kicked::ITEM,
        work::work::ITEM,
        work::settled::ITEM,
    ]
}

/// Gas after a time `dt` under an acceleration: the internal energy stays.
#[device]
pub fn kicked<R: Real>(u: Conserved<R>, acceleration: &[R; 3], dt: R) -> Conserved<R> {
    let kick = [
        dt * acceleration[0],
        dt * acceleration[1],
        dt * acceleration[2],
    ];
    apply_kick(u, kick)
}

/// What both kernels read.
#[device]
#[derive(Clone, Copy)]
pub struct Fall<R> {
    /// The potential.
    pub view: GatherView<R>,
    /// What is beyond the domain.
    pub exterior: ExteriorParameters<R>,
    /// The right-hand side of its equation.
    pub source: SourceParameters<R>,
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
    /// Energy that the gas is due, `[row][512]`, in the first and last part of a step.
    pub due: Address<R>,
    /// Part of the step: 0 any, 1 first, 2 last, as [`Part`].
    pub part: i32,
    /// Whether the internal energy follows as component 5.
    pub internal: bool,
}

/// Of the kernel `gravity_accelerate`.
#[device]
#[derive(Clone, Copy)]
pub struct Accelerate<R> {
    /// The potential.
    pub fall: Fall<R>,
    /// Accelerations, `[row][component][512]`.
    pub out: Address<R>,
    /// Components of a row.
    pub components: i32,
    /// The first of the three that it is added to.
    pub first: i32,
}

/// Which part of a step a kick is, for what is due to the gas in `due`, `[row][512]`.
#[derive(Clone, Copy)]
pub enum Part<D> {
    /// No whole one: the gas keeps what the kick gives.
    Any,
    /// The first: what it gives is noted.
    First(D),
    /// The last: what is due takes the place of what kicks gave.
    Last(D),
}

/// Kicks the gas of a row by a time `dt`. Where the internal energy follows as component 5 (`internal`), it takes what is due beyond the
/// kicks.
///
/// # Safety
/// Nobody else may use this row of `gas` and of what is due meanwhile.
pub unsafe fn kick<R: Real>(
    slopes: &PotentialSlopes<R>,
    gas: &Rows<R>,
    row: u32,
    (fourth, dt, internal): (bool, R, bool),
    part: &Part<Rows<R>>,
) {
    let slopes = slopes.of(row, fourth);
    // SAFETY: the caller's contract.
    let gas = unsafe { gas.row_mut(row) };
    match part {
        Part::Any => kick_cells(&slopes, gas, dt, |_, _, after| after.energy),
        Part::First(due) => {
            // SAFETY: the caller's contract.
            let due = unsafe { &mut due.row_mut(row)[..CELLS] };
            kick_cells(&slopes, gas, dt, |cell, before, after| {
                due[cell] = before.energy - after.energy;
                after.energy
            });
        }
        Part::Last(due) => {
            let due = &due.row(row)[..CELLS];
            let (gas, behind) = gas.split_at_mut(5 * CELLS);
            kick_cells(&slopes, gas, dt, |cell, before, after| {
                let energy = settled(before, after, due[cell]);
                if internal {
                    behind[cell] += energy - after.energy;
                }
                energy
            });
        }
    }
}

/// Kicks cells; `energy_of` says what energy they have then, by their number and their states before and after.
#[inline(always)]
fn kick_cells<R: Real>(
    slopes: &[[R; CELLS]; 3],
    gas: &mut [R],
    dt: R,
    mut energy_of: impl FnMut(usize, Conserved<R>, Conserved<R>) -> R,
) {
    let (components, _) = gas[..5 * CELLS].as_chunks_mut::<CELLS>();
    let [density, x, y, z, energy] = components else {
        unreachable!("five components")
    };
    for cell in 0..CELLS {
        let before = Conserved {
            density: density[cell],
            momentum: [x[cell], y[cell], z[cell]],
            energy: energy[cell],
        };
        let a = [-slopes[0][cell], -slopes[1][cell], -slopes[2][cell]];
        let after = kicked(before, &a, dt);
        [x[cell], y[cell], z[cell]] = after.momentum;
        energy[cell] = energy_of(cell, before, after);
    }
}

/// Adds the acceleration in the cells of a row to three components of `out`, from `first` on.
///
/// # Safety
/// Nobody else may use this row of `out` meanwhile.
pub unsafe fn accelerate<R: Real>(
    slopes: &PotentialSlopes<R>,
    out: &Rows<R>,
    row: u32,
    (first, fourth): (usize, bool),
) {
    let slopes = slopes.of(row, fourth);
    // SAFETY: the caller's contract.
    let out = unsafe { out.row_mut(row) };
    let out = out[first * CELLS..].chunks_exact_mut(CELLS);
    for (out, along) in out.zip(&slopes) {
        for (out, slope) in out.iter_mut().zip(along) {
            *out -= *slope;
        }
    }
}

/// The largest acceleration along an axis over the width of a cell along it, in a row.
#[must_use]
pub fn largest<R: Real>(slopes: &PotentialSlopes<R>, row: u32, fourth: bool) -> f64 {
    let along = slopes.of(row, fourth);
    let rates = along.iter().zip(slopes.width).map(|(along, width)| {
        // a NaN must not be passed over
        let most = along.iter().fold(R::lit(0.0), |most, slope| {
            let a = slope.abs();
            if a > most || a.is_nan() { a } else { most }
        });
        (most / width).to_f64()
    });
    rates.fold(0.0, |most, rate| {
        if rate > most || rate.is_nan() {
            rate
        } else {
            most
        }
    })
}
