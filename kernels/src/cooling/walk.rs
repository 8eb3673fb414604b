//! The temperature of a cell after a time under heating and cooling: exact between the nodes of a table, from node to node.
//!
//! Where the net rate has one sign at both ends of an interval it is a power law there, and the solution is that of R. H. D. Townsend
//! (ApJS 181, 391, 2009). Elsewhere it is linear: the temperature approaches the equilibrium and never passes it. There is no
//! iteration and no tolerance, and no sum in which the time of an interval would be lost.

use super::curves::{Chosen, Curves, place_of, rates_at};
use nestar_device::math::{exp, exp_m1, ln, ln_1p};
use nestar_device::{Real, device};

/// An interval between two nodes.
#[device]
#[derive(Clone, Copy)]
struct Interval<R> {
    /// The nodes.
    low: R,
    high: R,
    /// Net rates there; not 0 together.
    at_low: R,
    at_high: R,
    /// ln(high / low).
    width: R,
}

/// A temperature over mean molecular weight, and the time that is left.
#[device]
#[derive(Clone, Copy)]
struct Moved<R> {
    theta: R,
    left: R,
}

/// Temperature over mean molecular weight after a time, and the kelvin by which heating alone has raised it.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct Walked<R> {
    /// Temperature over mean molecular weight, kelvin.
    pub theta: R,
    /// The integral of the heating, in which each interval counts with the mean of its ends.
    pub heated: R,
}

/// `(e^x - 1) / x` by its series, to 1e-13 below 1/32.
#[device]
fn growth_series<R: Real>(x: R) -> R {
    let tail = 1.0 + x * (1.0 / 5.0) * (1.0 + x * (1.0 / 6.0));
    1.0 + x * 0.5 * (1.0 + x * (1.0 / 3.0) * (1.0 + x * 0.25 * tail))
}

/// How far a temperature is from where an interval ends on its way, as logarithms: up or down to `end`, which is a node (`whole`) or the floor.
#[device]
fn distance<R: Real>(theta: R, end: R, whole: bool, up: bool, i: &Interval<R>) -> (R, R) {
    if whole && up && theta == i.low {
        return (i.width, 0.0);
    }
    if whole && !up && theta == i.high {
        return (-i.width, i.width);
    }
    let from_low = ln(theta / i.low);
    if !whole {
        return (ln(end / theta), from_low);
    }
    (if up { i.width } else { 0.0 } - from_low, from_low)
}

/// Along a power law, to the end of an interval or not below `floor`.
#[device]
fn along_power<R: Real>(theta: R, time: R, floor: R, i: &Interval<R>) -> Moved<R> {
    let up = i.at_low > 0.0;
    let ratio = i.at_high / i.at_low;
    let rise = ln(ratio);
    // 1 less the exponent
    let q = (i.width - rise) / i.width;
    let whole = up || floor <= i.low;
    let end = if up {
        i.high.max(theta)
    } else {
        i.low.max(floor)
    };
    let (way, from_low) = distance(theta, end, whole, up, i);
    let from_node = whole && way.abs() == i.width;
    let mut rate = if up { i.at_low } else { i.at_high };
    let mut x = if up { i.width - rise } else { rise - i.width };
    if !from_node {
        rate = i.at_low * exp((1.0 - q) * from_low);
        x = q * way;
    }
    let growth = if x.abs() < 0.03125 {
        growth_series(x)
    } else if from_node {
        // between nodes e^x is a quotient
        let span = i.high / i.low;
        (if up { span / ratio } else { ratio / span } - 1.0) / x
    } else {
        exp_m1(x) / x
    };
    let needed = (theta / rate * way * growth).max(0.0);
    if needed < time {
        return Moved::<R> {
            theta: end,
            left: time - needed,
        };
    }
    let y = time * rate / theta;
    let u = (q * y).max(R::EPSILON - 1.0);
    let z = if u.abs() < 1e-4 {
        y * (1.0 - u * (0.5 - u * (1.0 / 3.0)))
    } else {
        ln_1p(u) / q
    };
    let to = theta + theta * exp_m1(z);
    Moved::<R> {
        theta: if up {
            to.max(theta).min(end)
        } else {
            to.min(theta).max(end)
        },
        left: 0.0,
    }
}

/// Along a line through an equilibrium, to it or away from it.
#[device]
fn around_root<R: Real>(theta: R, time: R, floor: R, i: &Interval<R>) -> Moved<R> {
    let slope = (i.at_high - i.at_low) / (i.high - i.low);
    let rest = Moved::<R> { theta, left: 0.0 };
    if slope == 0.0 {
        return rest;
    }
    let root = i.low - i.at_low / slope;
    let away = theta - root;
    if away == 0.0 {
        return rest;
    }
    if slope > 0.0 {
        let end = if away > 0.0 { i.high } else { i.low.max(floor) };
        let needed = (ln((end - root) / away) / slope).max(0.0);
        if needed < time {
            return Moved::<R> {
                theta: end,
                left: time - needed,
            };
        }
    }
    let to = root + away * exp(slope * time);
    Moved::<R> {
        theta: to.max(floor),
        left: 0.0,
    }
}

/// The temperature over mean molecular weight `theta`, at least `floor`, which is a positive number, after `time` million years.
#[device]
pub fn walk<R: Real>(theta: R, time: R, floor: R, c: &Chosen<R>, p: &Curves<R>) -> Walked<R> {
    let last = p.nodes.len() as i32 - 2;
    let (mut k, _) = place_of(theta, p.octave, p.per_octave);
    k = k.max(0).min(last);
    let (mut low, mut high) = (rates_at(k, c, p), rates_at(k + 1, c, p));
    let mut now = Moved::<R> { theta, left: time };
    let mut heated = R::lit(0.0);
    // the way leads in one direction: each interval is met once
    for _ in 0..last + 1 {
        let i = Interval::<R> {
            low: p.nodes.at(k),
            high: p.nodes.at(k + 1),
            at_low: low.0,
            at_high: high.0,
            width: p.widths.at(k),
        };
        let one_sign = (low.0 > 0.0 && high.0 > 0.0) || (low.0 < 0.0 && high.0 < 0.0);
        let next = if one_sign {
            along_power(now.theta, now.left, floor, &i)
        } else {
            around_root(now.theta, now.left, floor, &i)
        };
        heated += (now.left - next.left) * (0.5 * (low.1 + high.1));
        now = next;
        if now.left <= 0.0 {
            break;
        }
        if now.theta >= i.high && high.0 > 0.0 {
            k += 1;
            low = high;
        } else if now.theta > floor && low.0 < 0.0 {
            k -= 1;
            high = low;
        } else {
            break;
        }
        if k < 0 || k > last {
            break;
        }
        if now.theta >= i.high {
            high = rates_at(k + 1, c, p);
        } else {
            low = rates_at(k, c, p);
        }
    }
    Walked::<R> {
        theta: now.theta,
        heated,
    }
}

/// The net rate at a temperature over mean molecular weight, kelvin per million years.
#[device]
pub fn net_rate<R: Real>(theta: R, c: &Chosen<R>, p: &Curves<R>) -> R {
    let (n, _) = place_of(theta, p.octave, p.per_octave);
    let k = n.max(0).min(p.nodes.len() as i32 - 2);
    let ((low, _), (high, _)) = (rates_at(k, c, p), rates_at(k + 1, c, p));
    let (from, to) = (p.nodes.at(k), p.nodes.at(k + 1));
    if (low > 0.0 && high > 0.0) || (low < 0.0 && high < 0.0) {
        return low * exp(ln(high / low) / p.widths.at(k) * ln(theta / from));
    }
    low + (high - low) / (to - from) * (theta - from)
}
