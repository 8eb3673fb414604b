//! How fast cells gain or lose their energy: a limit of the step, and a criterion.

use super::cells::{Chemistry, Nine, Six, Twelve, abundances, surroundings};
use nestar_device::{Place, Real, device};
use nestar_kernels::chemistry::{
    Abundances, derivatives, heating_rate, least_energy, with_dust_heating,
};
use nestar_kernels::hydro::{Conserved, internal_energy};

/// Parameters of a limit or a criterion.
#[device]
#[derive(Clone)]
pub struct Share<R> {
    /// The network.
    pub chemistry: Chemistry<R>,
    /// Part of the time, or cells.
    pub of: R,
}

/// The code time in which gas would gain or lose its energy at its present rate: negative where it cools, infinite where nothing happens or it
/// stays at the floor.
#[device]
fn exchange_time<R: Real, const S: usize, const N: usize, const K: usize>(
    gas: Conserved<R>,
    species: &[R; K],
    p: &Chemistry<R>,
) -> R {
    let s = abundances::<R, S, K>(gas, species, p);
    let mut f = [0.0; N];
    let mut j = [[0.0; N]; N];
    let cell = with_dust_heating::<R, S>(&surroundings(gas, 0.0, p), &s);
    derivatives::<R, S, N, 0>(&p.network, &cell, &s, false, &mut f, &mut j);
    if f[S] == 0.0 || rests::<R, S>(f[S], &s, p) {
        return R::INFINITY;
    }
    s.energy / (f[S] * p.myr)
}

/// The code time in which 6 species and their gas gain or lose their energy at the present net rate: infinite where that is 0, and for gas
/// that stays at the floor.
#[device]
pub fn cooling_time_6<R: Real>(u: Six<R>, p: &Chemistry<R>) -> R {
    exchange_time::<R, 3, 4, 5>(u.gas, &u.species, p).abs()
}

/// The same of 9 species.
#[device]
pub fn cooling_time_9<R: Real>(u: Nine<R>, p: &Chemistry<R>) -> R {
    exchange_time::<R, 6, 7, 8>(u.gas, &u.species, p).abs()
}

/// The same of 12 species.
#[device]
pub fn cooling_time_12<R: Real>(u: Twelve<R>, p: &Chemistry<R>) -> R {
    exchange_time::<R, 8, 9, 11>(u.gas, &u.species, p).abs()
}

/// Whether gas that changes its energy at a `rate` stays at the floor.
#[device]
fn rests<R: Real, const S: usize>(rate: R, s: &Abundances<R>, p: &Chemistry<R>) -> bool {
    rate <= 0.0 && s.energy <= least_energy::<R, S>(&p.network, s) * 1.00001
}

/// The code time in which heat changes by cooling and heating, each by itself, or in which a small difference of it grows or decays at fixed
/// species, whichever is shorter: finite in balance too. Heating by formula is `more`. Infinite where there is no rate or gas stays at the floor.
#[device]
fn response_time<R: Real, const S: usize, const N: usize, const K: usize>(
    gas: Conserved<R>,
    species: &[R; K],
    more: R,
    p: &Chemistry<R>,
) -> R {
    let s = abundances::<R, S, K>(gas, species, p);
    let mut f = [0.0; N];
    let mut j = [[0.0; N]; N];
    let cell = with_dust_heating::<R, S>(&surroundings(gas, more, p), &s);
    derivatives::<R, S, N, 1>(&p.network, &cell, &s, false, &mut f, &mut j);
    // cooling is heating less the net rate
    let heating = heating_rate(&p.network, &cell, &s);
    let both = heating.abs() + (heating - f[S]).abs();
    let pace = j[S][S].abs().max(both / s.energy) * p.myr;
    if pace == 0.0 || rests::<R, S>(f[S], &s, p) {
        return R::INFINITY;
    }
    1.0 / pace
}

/// Whether sound crosses fewer cells than wanted in the time in which gas cools.
#[device]
fn is_short<R: Real>(time: R, gas: Conserved<R>, at: &Place<R>, cells: R) -> bool {
    // gamma (gamma - 1) of atoms
    let sound = (internal_energy(gas) / gas.density * (10.0 / 9.0)).sqrt();
    let width = at.width[0].max(at.width[1]).max(at.width[2]);
    time < 0.0 && -time * sound < cells * width
}

/// A part of the time in which heat changes by cooling and heating, each by itself.
#[device]
pub fn response_6<R: Real>(u: Six<R>, p: &Share<R>) -> R {
    p.of * response_time::<R, 3, 4, 5>(u.gas, &u.species, 0.0, &p.chemistry)
}

/// The same with heating by a formula.
#[device]
pub fn response_6_by<R: Real>(all: (Six<R>, [R; 1]), p: &Share<R>) -> R {
    p.of * response_time::<R, 3, 4, 5>(all.0.gas, &all.0.species, all.1[0], &p.chemistry)
}

/// A part of the time in which heat changes by cooling and heating, each by itself.
#[device]
pub fn response_9<R: Real>(u: Nine<R>, p: &Share<R>) -> R {
    p.of * response_time::<R, 6, 7, 8>(u.gas, &u.species, 0.0, &p.chemistry)
}

/// The same with heating by a formula.
#[device]
pub fn response_9_by<R: Real>(all: (Nine<R>, [R; 1]), p: &Share<R>) -> R {
    p.of * response_time::<R, 6, 7, 8>(all.0.gas, &all.0.species, all.1[0], &p.chemistry)
}

/// A part of the time in which heat changes by cooling and heating, each by itself.
#[device]
pub fn response_12<R: Real>(u: Twelve<R>, p: &Share<R>) -> R {
    p.of * response_time::<R, 8, 9, 11>(u.gas, &u.species, 0.0, &p.chemistry)
}

/// The same with heating by a formula.
#[device]
pub fn response_12_by<R: Real>(all: (Twelve<R>, [R; 1]), p: &Share<R>) -> R {
    p.of * response_time::<R, 8, 9, 11>(all.0.gas, &all.0.species, all.1[0], &p.chemistry)
}

/// Cells that sound crosses in too few pieces while their gas cools, `chemistry.length_cells`.
#[device]
pub fn cools_within_6<R: Real>(u: Six<R>, at: &Place<R>, p: &Share<R>) -> bool {
    let time = exchange_time::<R, 3, 4, 5>(u.gas, &u.species, &p.chemistry);
    is_short(time, u.gas, at, p.of)
}

/// Cells that sound crosses in too few pieces while their gas cools, `chemistry.length_cells`.
#[device]
pub fn cools_within_9<R: Real>(u: Nine<R>, at: &Place<R>, p: &Share<R>) -> bool {
    let time = exchange_time::<R, 6, 7, 8>(u.gas, &u.species, &p.chemistry);
    is_short(time, u.gas, at, p.of)
}

/// Cells that sound crosses in too few pieces while their gas cools, `chemistry.length_cells`.
#[device]
pub fn cools_within_12<R: Real>(u: Twelve<R>, at: &Place<R>, p: &Share<R>) -> bool {
    let time = exchange_time::<R, 8, 9, 11>(u.gas, &u.species, &p.chemistry);
    is_short(time, u.gas, at, p.of)
}
