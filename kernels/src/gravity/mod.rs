//! Acceleration of gas by a potential: kicks and the time-step limit.

mod energy_by_flux;
pub mod stress;

use energy_by_flux::energy_after_kick;
pub use energy_by_flux::{FluxWork, FluxWorkParameters, add_flux_work};

use crate::CELLS;
use crate::hydro::Conserved;
use crate::hydro::eos::apply_kick;
use crate::mesh::Rows;
use crate::mesh::parameters::GatherView;
use crate::multigrid::device::{ExteriorParameters, SourceParameters};
use crate::multigrid::ghost_values::PotentialSlopes;
use nestar_device::{Address, Item, Real, device};

/// Text of the kernels, which follows [`MULTIGRID`](crate::multigrid::device::MULTIGRID).
pub const GRAVITY_KERNELS: &str = concat!(
    include_str!("../mesh/patch_faces.cuh"),
    include_str!("slopes.cuh"),
    include_str!("kick.cu")
);

/// Returns all device items.
#[must_use]
pub fn device_items() -> Vec<&'static Item> {
    vec![
        KickParameters,
        AccelerationParameters,
        SlopeParameters,
        FluxWorkParameters,
        kicked::ITEM,
        pushed::ITEM,
        energy_by_flux::flux_work::ITEM,
        energy_by_flux::energy_after_kick::ITEM,
    ]
}

/// Gas after a time `dt` under an acceleration; the internal energy stays constant.
#[device]
pub fn kicked<R: Real>(u: Conserved<R>, acceleration: &[R; 3], dt: R) -> Conserved<R> {
    let kick = [
        dt * acceleration[0],
        dt * acceleration[1],
        dt * acceleration[2],
    ];
    apply_kick(u, kick)
}

/// Momentum along an axis after a time `dt` under an acceleration, as [`kicked`].
#[device]
pub fn pushed<R: Real>(momentum: R, density: R, acceleration: R, dt: R) -> R {
    momentum + density * (dt * acceleration)
}

/// Parameters for slopes of the potential.
#[device]
#[derive(Clone, Copy)]
pub struct SlopeParameters<R> {
    /// Potential.
    pub view: GatherView<R>,
    /// Potential outside the domain.
    pub exterior: ExteriorParameters<R>,
    /// Right-hand side of Poisson's equation.
    pub source: SourceParameters<R>,
    /// Own rows.
    pub rows: Address<i32>,
    /// Bits of the largest acceleration over the cell width.
    pub largest: Address<u64>,
    /// Cell width along each axis.
    pub width: [f64; 3],
    /// Number of rows.
    pub count: i32,
    /// `true` for slopes of fourth order, `false` for second order.
    pub fourth: bool,
}

/// Parameters of the kernel `gravity_kick`.
#[device]
#[derive(Clone, Copy)]
pub struct KickParameters<R> {
    /// Potential.
    pub slope: SlopeParameters<R>,
    /// Gas, `[row][component][512]`.
    pub gas: Address<R>,
    /// Length of the kick.
    pub dt: f64,
    /// Components of the gas.
    pub components: i32,
    /// Energy still to be added to the gas, `[row][512]`, in the first and last stage.
    pub pending_energy: Address<R>,
    /// Stage of the step: 0 plain, 1 first, 2 last, as [`KickStage`].
    pub stage: i32,
    /// `true` if component 4 is the energy.
    pub energy: bool,
}

/// Parameters of the kernel `gravity_accelerate`.
#[device]
#[derive(Clone, Copy)]
pub struct AccelerationParameters<R> {
    /// Potential.
    pub slope: SlopeParameters<R>,
    /// Accelerations, `[row][component][512]`.
    pub out: Address<R>,
    /// Number of components of a row.
    pub components: i32,
    /// First of the three components to which the acceleration is added.
    pub first: i32,
    /// Factor of the acceleration.
    pub factor: f64,
}

/// Stage of a kick within a step, with the energy still to be added to the gas, `[row][512]`.
#[derive(Clone, Copy)]
pub enum KickStage<D> {
    /// Kick without energy correction.
    Plain,
    /// First kick: its work is subtracted from the pending energy.
    First(D),
    /// Last kick: the pending energy replaces the work of the kicks.
    Last(D),
}

/// Settings of a kick.
#[derive(Clone, Copy)]
pub struct KickSettings<R> {
    /// `true` for slopes of fourth order, `false` for second order.
    pub fourth: bool,
    /// Length of the kick.
    pub dt: R,
    /// `true` if component 4 is the energy; without, only the stage [`KickStage::Plain`] is possible.
    pub energy: bool,
}

/// Kicks the gas of a row. A component with the internal energy takes nothing of the pending energy, which is small against the kinetic one and
/// would heat cold gas: where the total energy is accurate, the next step sets the component.
///
/// # Safety
/// Nobody else may use this row of `gas` and of the pending energy meanwhile.
pub unsafe fn kick<R: Real>(
    slopes: &PotentialSlopes<R>,
    gas: &Rows<R>,
    row: u32,
    settings: KickSettings<R>,
    stage: &KickStage<Rows<R>>,
) {
    let KickSettings { fourth, dt, energy } = settings;
    let slopes = slopes.of(row, fourth);
    // SAFETY: the caller's contract.
    let gas = unsafe { gas.row_mut(row) };
    match stage {
        KickStage::Plain if !energy => kick_momentum(&slopes, gas, dt),
        KickStage::Plain => kick_cells(&slopes, gas, dt, |_, _, after| after.energy),
        KickStage::First(pending_energy) => {
            // SAFETY: the caller's contract.
            let pending_energy = unsafe { &mut pending_energy.row_mut(row)[..CELLS] };
            kick_cells(&slopes, gas, dt, |cell, before, after| {
                pending_energy[cell] = before.energy - after.energy;
                after.energy
            });
        }
        KickStage::Last(pending_energy) => {
            let pending_energy = &pending_energy.row(row)[..CELLS];
            kick_cells(&slopes, gas, dt, |cell, before, after| {
                energy_after_kick(before, after, pending_energy[cell])
            });
        }
    }
}

/// Kicks cells; `energy_of` returns their energy from their index and their states before and after.
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

/// Kicks cells of gas without energy.
fn kick_momentum<R: Real>(slopes: &[[R; CELLS]; 3], gas: &mut [R], dt: R) {
    let (density, momentum) = gas.split_at_mut(CELLS);
    for (slopes, momentum) in slopes.iter().zip(momentum.chunks_exact_mut(CELLS)) {
        for cell in 0..CELLS {
            momentum[cell] = pushed(momentum[cell], density[cell], -slopes[cell], dt);
        }
    }
}

/// Adds the acceleration in the cells of a row, times `factor`, to three components of `out`, from `first` on.
///
/// # Safety
/// Nobody else may use this row of `out` meanwhile.
pub unsafe fn accelerate<R: Real>(
    slopes: &PotentialSlopes<R>,
    out: &Rows<R>,
    row: u32,
    first: usize,
    factor: R,
    fourth: bool,
) {
    let slopes = slopes.of(row, fourth);
    // SAFETY: the caller's contract.
    let out = unsafe { out.row_mut(row) };
    let out = out[first * CELLS..].chunks_exact_mut(CELLS);
    for (out, along) in out.zip(&slopes) {
        for (out, slope) in out.iter_mut().zip(along) {
            *out -= factor * *slope;
        }
    }
}

/// Returns the largest ratio of acceleration to cell width along an axis, in a row.
#[must_use]
pub fn largest_rate<R: Real>(slopes: &PotentialSlopes<R>, row: u32, fourth: bool) -> f64 {
    let along = slopes.of(row, fourth);
    let rates = along.iter().zip(slopes.width).map(|(along, width)| {
        // keep a NaN
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
