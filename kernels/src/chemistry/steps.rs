//! A cell through a step of its level, in sub-steps of its own.
use super::conditions::{CellConditions, with_dust_heating};
use super::equations::derivatives;
use super::network::Network;
use super::rodas::rodas3;
use super::species::{Abundances, electrons, heat_capacity, renormalised};
use crate::mesh::subcycle::{CONTINUE, DONE, FAILED};
use nestar_device::{Real, device};

/// Where a cell stands in the step: handed from call to call. All zeros at the beginning.
#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SubstepClock<R> {
    /// What is left of the step, Myr.
    pub left: R,
    /// Length of the next sub-step, Myr; 0 if no call was made yet.
    pub step: R,
    /// What the floor has added so far, kelvin per hydrogen nucleus.
    pub floored: R,
    /// What the cell's heating has added so far, that of photo-ionisation not counted.
    pub heated: R,
}

/// What a call leaves.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct SubstepProgress<R> {
    /// Abundances and energy.
    pub state: Abundances<R>,
    /// For the next call.
    pub clock: SubstepClock<R>,
    /// `DONE`, `CONTINUE` or `FAILED`, as of an [`Outcome`](crate::mesh::subcycle::Outcome).
    pub status: i32,
    /// Sub-steps that this call has taken, rejected ones included.
    pub substeps: i32,
}

/// A sub-step this much shorter than what is left has failed: no rate is so fast.
#[device]
const SHORTEST: f64 = 1e-20;

/// A change of everything by a tenth.
#[device]
fn first_step<R: Real, const S: usize, const N: usize>(s: &Abundances<R>, f: &[R; N]) -> R {
    let mut fastest = f[S].abs() / s.energy;
    for i in 0..S {
        fastest = fastest.max(f[i].abs() / (s.y[i] + 0.01));
    }
    0.1 / fastest.max(R::lit(1e-30))
}

/// Factor of the next sub-step after an accepted one: by thresholds of the error of a method of order 3, as a root would differ
/// from machine to machine.
#[device]
fn growth<R: Real>(error: R) -> R {
    if error < 0.008 {
        4.0
    } else if error < 0.08 {
        2.0
    } else if error < 0.4 {
        1.25
    } else {
        0.9
    }
}

/// Factor after a rejected one.
#[device]
fn reduction<R: Real>(error: R) -> R {
    if error > 1e30 {
        0.1
    } else if error > 8.0 {
        0.25
    } else {
        0.5
    }
}

/// Takes a cell on by at most `most` sub-steps of a step of `dt` Myr, with `S` solved species and `N = S + 1` unknowns. A rejected sub-step
/// counts. The result does not depend on how many calls the sub-steps are spread over. It has failed where sub-steps become too
/// short to matter, as for numbers that are none. Gas that cools at the floor stays there. Whether dust heats is decided at the beginning of a
/// sub-step, so that no rate jumps within one.
#[device]
pub fn advance<R: Real, const S: usize, const N: usize>(
    p: &Network<R>,
    cell: &CellConditions<R>,
    state: Abundances<R>,
    reached: SubstepClock<R>,
    dt: R,
    most: i32,
) -> SubstepProgress<R> {
    let mut s = state;
    let mut clock = reached;
    let mut f = [0.0; N];
    let mut j = [[0.0; N]; N];
    let mut fresh = true;
    let mut held = false;
    let mut here = *cell;
    let mut substeps = 0;
    let mut status = CONTINUE;
    while status == CONTINUE && substeps < most {
        if fresh {
            here = with_dust_heating::<R, S>(cell, &s);
            held = initial_derivatives::<R, S, N>(p, &here, &s, &mut f, &mut j);
            if clock.step == 0.0 {
                clock.left = dt;
                clock.step = first_step::<R, S, N>(&s, &f);
            }
        }
        substeps += 1;
        let last = clock.step >= clock.left * 0.999999;
        let h = if last { clock.left } else { clock.step };
        let taken = rodas3::<R, S, N>(p, &here, &s, h, held, &f, &j);
        fresh = taken.error <= 1.0;
        if fresh {
            s = accept_substep::<R, S>(p, &taken.state, &mut clock);
            clock.heated += h * here.heating;
        }
        status = control_substep(&mut clock, h, last, taken.error);
    }
    SubstepProgress {
        state: s,
        clock,
        status,
        substeps,
    }
}

/// What a sub-step of length `h`, perhaps the last one of the step, leaves to do by its error.
#[device]
fn control_substep<R: Real>(clock: &mut SubstepClock<R>, h: R, last: bool, error: R) -> i32 {
    if error <= 1.0 {
        clock.left = if last { 0.0 } else { clock.left - h };
        clock.step = h * growth(error);
        return if last { DONE } else { CONTINUE };
    }
    clock.step = h * reduction(error);
    if clock.step > clock.left * R::lit(SHORTEST) {
        CONTINUE
    } else {
        FAILED
    }
}

/// The state after a sub-step, with its elements and not below the floor; the clock takes down what that adds.
#[device]
fn accept_substep<R: Real, const S: usize>(
    p: &Network<R>,
    taken: &Abundances<R>,
    clock: &mut SubstepClock<R>,
) -> Abundances<R> {
    let mut s = renormalised::<R, S>(taken, p.helium, p.deuterium);
    let least = least_energy::<R, S>(p, &s);
    clock.floored += (least - s.energy).max(0.0);
    s.energy = s.energy.max(least);
    s
}

/// The thermal energy at the floor, kelvin per hydrogen nucleus.
#[device]
pub fn least_energy<R: Real, const S: usize>(p: &Network<R>, s: &Abundances<R>) -> R {
    p.floor * heat_capacity::<R, S>(s, electrons::<R, S>(s))
}

/// Derivatives and Jacobian at the beginning of a sub-step; whether the gas would cool below the floor, and is held there.
#[device]
fn initial_derivatives<R: Real, const S: usize, const N: usize>(
    p: &Network<R>,
    cell: &CellConditions<R>,
    s: &Abundances<R>,
    f: &mut [R; N],
    j: &mut [[R; N]; N],
) -> bool {
    derivatives::<R, S, N, 1>(p, cell, s, false, f, j);
    let held = f[S] < 0.0 && s.energy <= least_energy::<R, S>(p, s) * 1.00001;
    if held {
        f[S] = 0.0;
        for k in 0..N {
            j[S][k] = 0.0;
        }
    }
    held
}
