//! Advances a cell through a step of its level with adaptive sub-steps.
use super::equations::derivatives;
use super::network::{CellConditions, Network, with_dust_heating};
use super::rodas::{RodasStep, rodas3};
use super::species::{Abundances, electrons, heat_capacity, renormalised};
use crate::mesh::subcycle::{CONTINUE, DONE, FAILED};
use nestar_device::{Real, device};

/// Progress of a cell through the step, carried from call to call; all zeros at the beginning.
#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SubstepClock<R> {
    /// Remaining time of the step, Myr.
    pub left: R,
    /// Length of the next sub-step, Myr; 0 before the first call.
    pub step: R,
    /// Energy added by the floor so far, kelvin per hydrogen nucleus.
    pub floored: R,
    /// Energy added by the cell's heating so far, without photo-ionisation.
    pub heated: R,
}

/// Result of a call.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct SubstepProgress<R> {
    /// Abundances and energy.
    pub state: Abundances<R>,
    /// Progress, for the next call.
    pub clock: SubstepClock<R>,
    /// `DONE`, `CONTINUE` or `FAILED`, as in an [`Outcome`](crate::mesh::subcycle::Outcome).
    pub status: i32,
    /// Number of sub-steps of this call, including rejected ones.
    pub substeps: i32,
}

/// Fraction of the energy at the floor by which a sub-step may end below it.
#[device]
const FLOOR_TOLERANCE: f64 = 1e-3;

/// A sub-step shorter than this fraction of the remaining time counts as a failure.
#[device]
const SHORTEST: f64 = 1e-20;

/// Returns the time in which any variable changes by a tenth.
#[device]
fn first_step<R: Real, const S: usize, const N: usize>(s: &Abundances<R>, f: &[R; N]) -> R {
    let mut fastest = f[S].abs() / s.energy;
    for i in 0..S {
        fastest = fastest.max(f[i].abs() / (s.y[i] + 0.01));
    }
    0.1 / fastest.max(R::lit(1e-30))
}

/// Number of growth times of a sub-step. The method is accurate to 2e-3 in half a growth time, but damps what grows faster than it steps.
#[device]
const GROWTH_TIMES: f64 = 0.5;

/// Returns the longest sub-step that follows growing species: [`GROWTH_TIMES`] over the sum of their growth rates, which is the growth rate
/// of electrons that ionise.
#[device]
fn growth_limit<R: Real, const S: usize, const N: usize>(j: &[[R; N]; N]) -> R {
    let mut rate = R::lit(1e-30);
    for i in 0..S {
        rate += j[i][i].max(0.0);
    }
    R::lit(GROWTH_TIMES) / rate
}

/// Returns the factor for the next sub-step after an accepted one. It uses thresholds of the error of a method of order 3, because a root
/// could differ between machines.
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

/// Returns the factor after a rejected sub-step.
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

/// Advances a cell by at most `most` sub-steps of a step of `dt` Myr, with `S` solved species and `N = S + 1` unknowns. Rejected sub-steps
/// count.
///
/// The result does not depend on the distribution of sub-steps over calls. Species that grow exponentially limit the sub-step even if their
/// abundances are below the absolute tolerance. The cell fails if sub-steps become too short, also for NaN. Gas that cools at the floor
/// stays there. Dust heating is switched only at the beginning of a sub-step, so that rates are continuous within it.
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
            clock.step = clock.step.min(growth_limit::<R, S, N>(&j));
        }
        substeps += 1;
        let last = clock.step >= clock.left * 0.999999;
        let whole = if last { clock.left } else { clock.step };
        let (taken, h) = substep_to_floor::<R, S, N>(p, &here, &s, whole, held, &f, &j);
        fresh = taken.error <= 1.0;
        if fresh {
            s = accept_substep::<R, S>(p, &taken.state, held, &mut clock);
            clock.heated += h * here.heating;
        }
        status = control_substep(&mut clock, h, last && h == whole, taken.error);
        if fresh && h < whole {
            // the step that ends at the floor is short for no reason of accuracy
            clock.step = whole;
        }
    }
    SubstepProgress {
        state: s,
        clock,
        status,
        substeps,
    }
}

/// Takes a sub-step of length `h`, or a shorter one that ends where cooling gas reaches the floor; returns it and its length.
#[device]
fn substep_to_floor<R: Real, const S: usize, const N: usize>(
    p: &Network<R>,
    cell: &CellConditions<R>,
    s: &Abundances<R>,
    h: R,
    held: bool,
    f: &[R; N],
    j: &[[R; N]; N],
) -> (RodasStep<R>, R) {
    let mut length = h;
    let mut attempts = 0;
    let mut taken = RodasStep::<R> {
        state: *s,
        error: R::lit(0.0),
    };
    while attempts < 2 {
        attempts += 1;
        taken = rodas3::<R, S, N>(p, cell, s, length, held, f, j);
        let to_floor = length * fraction_above_floor::<R, S>(p, s, &taken.state, held);
        if attempts == 1 && taken.error <= 1.0 && to_floor < length {
            length = to_floor;
        } else {
            attempts = 2;
        }
    }
    (taken, length)
}

/// Returns the fraction of a sub-step from `s` to `taken` after which the gas reaches the floor, by linear interpolation of its energy; 1 if
/// it stays above, or is `held` at the floor. Gas that cooled far below the floor within a sub-step would recombine there.
#[device]
fn fraction_above_floor<R: Real, const S: usize>(
    p: &Network<R>,
    s: &Abundances<R>,
    taken: &Abundances<R>,
    held: bool,
) -> R {
    let least = least_energy::<R, S>(p, taken);
    let above = s.energy - least_energy::<R, S>(p, s);
    let below = least - taken.energy;
    if held || above <= 0.0 || below <= least * R::lit(FLOOR_TOLERANCE) {
        R::lit(1.0)
    } else {
        above / (above + below)
    }
}

/// Updates the clock after a sub-step of length `h` (`last`: the last one of the step) according to its error. Returns the status.
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

/// Returns the state after a sub-step, with conserved elements and at least the floor energy, which the clock records.
#[device]
fn accept_substep<R: Real, const S: usize>(
    p: &Network<R>,
    taken: &Abundances<R>,
    held: bool,
    clock: &mut SubstepClock<R>,
) -> Abundances<R> {
    let mut s = renormalised::<R, S>(taken, p.helium, p.deuterium);
    let least = least_energy::<R, S>(p, &s);
    clock.floored += (least - s.energy).max(0.0);
    // gas that is held radiates what its electrons have lost
    s.energy = if held { least } else { s.energy.max(least) };
    s
}

/// Returns the thermal energy at the floor, kelvin per hydrogen nucleus.
#[device]
pub fn least_energy<R: Real, const S: usize>(p: &Network<R>, s: &Abundances<R>) -> R {
    p.floor * heat_capacity::<R, S>(s, electrons::<R, S>(s))
}

/// Computes derivatives and Jacobian at the beginning of a sub-step. Returns `true` if the gas would cool below the floor and is held
/// there.
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
