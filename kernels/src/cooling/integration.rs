//! Integrates the temperature of a cell exactly through the intervals of a rate table.
//!
//! The net rate is a power law where it has one sign at both ends of an interval and heating is the smaller part; the solution is that of
//! R. H. D. Townsend (ApJS 181, 391, 2009). Otherwise it is linear, because a difference of heating and cooling that nearly vanishes at one
//! end is far from a power law.
//!
//! The temperature approaches an equilibrium and never passes it. There are no iterations and no tolerance, and no sums in which the time
//! of an interval could be lost.

use super::table::{CoolingTable, RateSlice, node_below, rates_at};
use nestar_device::math::{exp, exp_m1, ln, ln_1p, ln_ratio};
use nestar_device::{Real, device};

/// Interval between two nodes.
#[device]
#[derive(Clone, Copy)]
struct Interval<R> {
    /// The nodes.
    low: R,
    high: R,
    /// Net rates at the nodes; not both 0.
    at_low: R,
    at_high: R,
    /// ln(high / low).
    width: R,
}

/// Temperature over mean molecular weight, and the remaining time.
#[device]
#[derive(Clone, Copy)]
struct RemainingStep<R> {
    theta: R,
    left: R,
}

/// Result of the integration.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct IntegratedTheta<R> {
    /// Temperature over mean molecular weight, kelvin.
    pub theta: R,
    /// Temperature increase by heating alone, kelvin: the integral of the heating, with the mean of its ends in each interval.
    pub heated: R,
}

/// Returns `(e^x - 1) / x` by its series, to 1e-13 for |x| below 1/32.
#[device]
fn exp_m1_over_series<R: Real>(x: R) -> R {
    let tail = 1.0 + x * (1.0 / 5.0) * (1.0 + x * (1.0 / 6.0));
    1.0 + x * 0.5 * (1.0 + x * (1.0 / 3.0) * (1.0 + x * 0.25 * tail))
}

/// Returns `(e^x - 1) / x`.
#[device]
fn exp_m1_over<R: Real>(x: R) -> R {
    if x.abs() < 0.03125 {
        exp_m1_over_series(x)
    } else {
        exp_m1(x) / x
    }
}

/// Returns `ln(1 + q y) / q`, or `y` if `q` is 0.
#[device]
fn ln_1p_over<R: Real>(y: R, q: R) -> R {
    let u = (q * y).max(R::EPSILON - 1.0);
    if u.abs() < 1e-4 {
        y * (1.0 - u * (0.5 - u * (1.0 / 3.0)))
    } else {
        ln_1p(u) / q
    }
}

/// Returns `true` if heating exceeds the net rate in size at one of two nodes, each given by net rate and heating.
#[device]
fn heating_dominates<R: Real>(low: (R, R), high: (R, R)) -> bool {
    low.0.abs() < low.1 || high.0.abs() < high.1
}

/// Returns the time between two nodes along a power law, the integral of 1 / rate. `rest` is the logarithm of the ratio of the nodes minus
/// that of the rates.
#[device]
fn time_across<R: Real>(rest: R, i: &Interval<R>) -> R {
    let below = i.low / i.at_low;
    let across = if rest.abs() < 0.03125 {
        below * exp_m1_over_series(rest)
    } else {
        (i.high / i.at_high - below) / rest
    };
    (across * i.width).abs()
}

/// Returns the upper end of an interval for a rising temperature; there is none from the last node on.
#[device]
fn upper_end<R: Real>(theta: R, i: &Interval<R>) -> R {
    if theta < i.high { i.high } else { R::MAX }
}

/// Integrates along a power law, up to the end of an interval and not below `floor`.
#[device]
fn integrate_power_law<R: Real>(theta: R, time: R, floor: R, i: &Interval<R>) -> RemainingStep<R> {
    let up = i.at_low > 0.0;
    let (start, end) = if up {
        (i.low, upper_end(theta, i))
    } else {
        (i.high, i.low.max(floor))
    };
    let whole = theta == start && end == if up { i.high } else { i.low };
    let rest = i.width - ln_ratio(i.at_high, i.at_low);
    // 1 minus the exponent
    let q = rest / i.width;
    let (rate, needed) = if whole {
        let rate = if up { i.at_low } else { i.at_high };
        (rate, time_across(rest, i))
    } else {
        let from_low = ln_ratio(theta, i.low);
        let rate = i.at_low * exp((1.0 - q) * from_low);
        let way = if end == i.low {
            -from_low
        } else if end == i.high {
            i.width - from_low
        } else {
            ln_ratio(end, theta)
        };
        (rate, (theta / rate * way * exp_m1_over(q * way)).max(0.0))
    };
    if needed < time {
        return RemainingStep::<R> {
            theta: end,
            left: time - needed,
        };
    }
    let to = theta + theta * exp_m1(ln_1p_over(time * rate / theta, q));
    let (low, high) = if up { (theta, end) } else { (end, theta) };
    RemainingStep::<R> {
        theta: to.max(low).min(high),
        left: 0.0,
    }
}

/// Integrates a linear rate of one sign, up to the end of an interval and not below `floor`.
#[device]
fn integrate_linear<R: Real>(theta: R, time: R, floor: R, i: &Interval<R>) -> RemainingStep<R> {
    let up = i.at_low > 0.0;
    let end = if up { i.high } else { i.low.max(floor) };
    let span = i.high - i.low;
    let slope = (i.at_high - i.at_low) / span;
    // a sum of two numbers of the same sign, never 0
    let rate = (i.at_low * (i.high - theta) + i.at_high * (theta - i.low)) / span;
    let needed = ln_1p_over((end - theta) / rate, slope).max(0.0);
    if needed < time {
        return RemainingStep::<R> {
            theta: end,
            left: time - needed,
        };
    }
    let to = theta + rate * time * exp_m1_over(slope * time);
    let (low, high) = if up { (theta, end) } else { (end, theta) };
    RemainingStep::<R> {
        theta: to.max(low).min(high),
        left: 0.0,
    }
}

/// Integrates a linear rate with an equilibrium in the interval, towards it or away from it.
#[device]
fn integrate_near_equilibrium<R: Real>(
    theta: R,
    time: R,
    floor: R,
    i: &Interval<R>,
) -> RemainingStep<R> {
    let slope = (i.at_high - i.at_low) / (i.high - i.low);
    let rest = RemainingStep::<R> { theta, left: 0.0 };
    if slope == 0.0 {
        return rest;
    }
    let root = i.low - i.at_low / slope;
    let away = theta - root;
    if away == 0.0 {
        return rest;
    }
    if slope > 0.0 {
        let end = if away > 0.0 {
            upper_end(theta, i)
        } else {
            i.low.max(floor)
        };
        let needed = (ln((end - root) / away) / slope).max(0.0);
        if needed < time {
            return RemainingStep::<R> {
                theta: end,
                left: time - needed,
            };
        }
    }
    let to = root + away * exp(slope * time);
    RemainingStep::<R> {
        theta: to.max(floor),
        left: 0.0,
    }
}

/// Integrates up to the end of an interval or of the time. With `line` the rate is linear even if it has one sign. Above the last node it
/// continues as a power law. An interval without width, of nodes that are equal in single precision, takes no time.
#[device]
fn integrate_interval<R: Real>(
    now: RemainingStep<R>,
    floor: R,
    line: bool,
    i: &Interval<R>,
) -> RemainingStep<R> {
    let [low, high] = [i.at_low, i.at_high];
    let wins = (low > 0.0 && high > 0.0) || (low < 0.0 && high < 0.0);
    if !wins {
        integrate_near_equilibrium(now.theta, now.left, floor, i)
    } else if i.low == i.high {
        now
    } else if line && (now.theta < i.high || (low < 0.0 && now.theta == i.high)) {
        integrate_linear(now.theta, now.left, floor, i)
    } else {
        integrate_power_law(now.theta, now.left, floor, i)
    }
}

/// Returns the temperature over mean molecular weight after `time` million years, from `theta`, which is at least `floor` (positive).
#[device]
pub fn integrate<R: Real>(
    theta: R,
    time: R,
    floor: R,
    c: &RateSlice<R>,
    p: &CoolingTable<R>,
) -> IntegratedTheta<R> {
    let last = p.nodes.len() as i32 - 2;
    let mut k = node_below(theta, p);
    let (mut low, mut high) = (rates_at(k, c, p), rates_at(k + 1, c, p));
    let mut now = RemainingStep::<R> { theta, left: time };
    let mut heated = R::lit(0.0);
    // the temperature changes monotonically: each interval is visited once, the last one again above its end
    for _ in 0..last + 2 {
        let i = Interval::<R> {
            low: p.nodes.at(k),
            high: p.nodes.at(k + 1),
            at_low: low.0,
            at_high: high.0,
            width: p.widths.at(k),
        };
        let next = integrate_interval(now, floor, heating_dominates(low, high), &i);
        heated += (now.left - next.left) * (0.5 * (low.1 + high.1));
        now = next;
        let up = now.theta >= i.high && high.0 > 0.0;
        let down = !up && now.theta > floor && low.0 < 0.0;
        if now.left <= 0.0 || !(up || down) || (down && k == 0) {
            break;
        }
        if up && k < last {
            k += 1;
            low = high;
            high = rates_at(k + 1, c, p);
        } else if down {
            k -= 1;
            high = low;
            low = rates_at(k, c, p);
        }
    }
    IntegratedTheta::<R> {
        theta: now.theta,
        heated,
    }
}

/// Returns the net rate at a temperature over mean molecular weight, kelvin per million years.
#[device]
pub fn net_rate<R: Real>(theta: R, c: &RateSlice<R>, p: &CoolingTable<R>) -> R {
    let k = node_below(theta, p);
    let (below, above) = (rates_at(k, c, p), rates_at(k + 1, c, p));
    let (low, high) = (below.0, above.0);
    let (from, to) = (p.nodes.at(k), p.nodes.at(k + 1));
    let wins = (low > 0.0 && high > 0.0) || (low < 0.0 && high < 0.0);
    if wins && (theta > to || !heating_dominates(below, above)) {
        return low * exp(ln(high / low) / p.widths.at(k) * ln(theta / from));
    }
    low + (high - low) / (to - from) * (theta - from)
}

/// Returns the rate at which the thermal state of a cell responds, per million years. It does not vanish in equilibrium.
///
/// It is the larger of two rates: the sum of cooling and heating over the thermal energy, and the growth or decay rate of a small
/// temperature perturbation at constant density (the slope of the net rate).
#[device]
pub fn relaxation_rate<R: Real>(theta: R, c: &RateSlice<R>, p: &CoolingTable<R>) -> R {
    let k = node_below(theta, p);
    let (below, above) = (rates_at(k, c, p), rates_at(k + 1, c, p));
    let (from, to) = (p.nodes.at(k), p.nodes.at(k + 1));
    // cooling is heating minus the net rate
    let low = below.1.abs() + (below.1 - below.0).abs();
    let high = above.1.abs() + (above.1 - above.0).abs();
    let both = low + (high - low) / (to - from) * (theta - from);
    let slope = (above.0 - below.0) / (to - from);
    slope.abs().max(both.abs() / theta)
}
