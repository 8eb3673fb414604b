//! Cooling times: a time-step limit and a refinement criterion.

use super::cells::{ChemistryParameters, Gas6, Gas9, Gas12, abundances, surroundings};
use nestar_device::{Place, Real, device};
use nestar_kernels::chemistry::{
    Abundances, derivatives, heating_rate, least_energy, with_dust_heating,
};
use nestar_kernels::hydro::{Conserved, internal_energy};

/// Parameters of a limit or a criterion.
#[device]
#[derive(Clone)]
pub struct ChemistryLimit<R> {
    /// The network.
    pub chemistry: ChemistryParameters<R>,
    /// Fraction of the time, or number of cells.
    pub of: R,
}

/// Returns the energy over its rate of change in code time: negative if the gas cools; infinite if the rate is 0 and
/// for gas that stays at the floor.
#[device]
fn exchange_time<R: Real, const S: usize, const N: usize, const K: usize>(
    gas: Conserved<R>,
    species: &[R; K],
    p: &ChemistryParameters<R>,
) -> R {
    let s = abundances::<R, S, K>(gas, species, p);
    let mut f = [0.0; N];
    let mut j = [[0.0; N]; N];
    let cell = with_dust_heating::<R, S>(&surroundings(gas, 0.0, p), &s);
    derivatives::<R, S, N, 0>(&p.network, &cell, &s, false, &mut f, &mut j);
    if f[S] == 0.0 || stays_at_floor::<R, S>(f[S], &s, p) {
        return R::INFINITY;
    }
    s.energy / (f[S] * p.myr)
}

/// Returns `true` if gas with this rate of change of its energy stays at the floor.
#[device]
fn stays_at_floor<R: Real, const S: usize>(
    rate: R,
    s: &Abundances<R>,
    p: &ChemistryParameters<R>,
) -> bool {
    rate <= 0.0 && s.energy <= least_energy::<R, S>(&p.network, s) * 1.00001
}

/// Returns the shorter of the cooling time and the response time of a small energy perturbation at fixed species, in
/// code time. The cooling time is energy over the sum of absolute cooling and heating rates. Both are finite in
/// equilibrium. `more` is the heating by formula. Infinite without rates and for gas that stays at the floor.
#[device]
fn response_time<R: Real, const S: usize, const N: usize, const K: usize>(
    gas: Conserved<R>,
    species: &[R; K],
    more: R,
    p: &ChemistryParameters<R>,
) -> R {
    let s = abundances::<R, S, K>(gas, species, p);
    let mut f = [0.0; N];
    let mut j = [[0.0; N]; N];
    let cell = with_dust_heating::<R, S>(&surroundings(gas, more, p), &s);
    derivatives::<R, S, N, 1>(&p.network, &cell, &s, false, &mut f, &mut j);
    // the cooling rate is the heating rate minus the net rate
    let heating = heating_rate(&p.network, &cell, &s);
    let both = heating.abs() + (heating - f[S]).abs();
    let pace = j[S][S].abs().max(both / s.energy) * p.myr;
    if pace == 0.0 || stays_at_floor::<R, S>(f[S], &s, p) {
        return R::INFINITY;
    }
    1.0 / pace
}

/// Returns `true` if sound crosses fewer cells than required in a cooling time.
#[device]
fn is_short<R: Real>(time: R, gas: Conserved<R>, at: &Place<R>, cells: R) -> bool {
    // gamma (gamma - 1) of atoms
    let sound = (internal_energy(gas) / gas.density * (10.0 / 9.0)).sqrt();
    let width = at.width[0].max(at.width[1]).max(at.width[2]);
    time < 0.0 && -time * sound < cells * width
}

/// Defines the cell functions of a network for limits and criteria; its numbers are those of the gas in `cells.rs`.
macro_rules! times {
    ($gas:ident, $s:tt, $n:tt, $k:tt: $cooling_time:ident, $response:ident, $response_by:ident, $cools_within:ident) => {
        /// Energy over the absolute net rate of change, in code time; infinite if the rate is 0 and for gas that stays at
        /// the floor.
        #[device]
        pub fn $cooling_time<R: Real>(u: $gas<R>, p: &ChemistryParameters<R>) -> R {
            exchange_time::<R, $s, $n, $k>(u.gas, &u.species, p).abs()
        }

        /// Fraction of the cooling time or of the thermal response time, whichever is shorter.
        #[device]
        pub fn $response<R: Real>(u: $gas<R>, p: &ChemistryLimit<R>) -> R {
            p.of * response_time::<R, $s, $n, $k>(u.gas, &u.species, 0.0, &p.chemistry)
        }

        /// Fraction of the shorter of the two times, with heating by a formula.
        #[device]
        pub fn $response_by<R: Real>(all: ($gas<R>, [R; 1]), p: &ChemistryLimit<R>) -> R {
            p.of * response_time::<R, $s, $n, $k>(all.0.gas, &all.0.species, all.1[0], &p.chemistry)
        }

        /// Cells in which sound crosses fewer than `chemistry.length_cells` cells in a cooling time.
        #[device]
        pub fn $cools_within<R: Real>(u: $gas<R>, at: &Place<R>, p: &ChemistryLimit<R>) -> bool {
            let time = exchange_time::<R, $s, $n, $k>(u.gas, &u.species, &p.chemistry);
            is_short(time, u.gas, at, p.of)
        }
    };
}
times!(Gas6, 3, 4, 5: cooling_time_6, response_6, response_6_by, cools_within_6);
times!(Gas9, 6, 7, 8: cooling_time_9, response_9, response_9_by, cools_within_9);
times!(Gas12, 8, 9, 11: cooling_time_12, response_12, response_12_by, cools_within_12);
