//! Derives the units of length, mass and time from three given units.

use super::cgs::GRAVITATIONAL_CONSTANT;
use super::config::{KINDS, StatedUnit};
use nestar_device::math::pow;

/// The invalid key, if it is a single one, and the reason.
type UnitsError = (Option<&'static str>, String);

/// Returns the units of length, mass and time in cgs.
///
/// # Errors
/// Returns the redundant key, if it is a single one, and the reason.
pub(super) fn solve(given: &[StatedUnit]) -> Result<[f64; 3], UnitsError> {
    require_three(given)?;
    let found = given_keys(given);
    let [Some(length), Some(mass), Some(time)] = derive_units(given) else {
        let why = format!(
            "{found} are not independent, so length, mass and time do not follow: replace one of them by another of {}",
            known_keys()
        );
        return Err((None, why));
    };
    let units = [length, mass, time];
    match units.iter().all(|value| value.is_normal()) {
        true => Ok(units),
        false => Err((
            None,
            format!("{found} give units outside the range of numbers: {units:?}"),
        )),
    }
}

/// Lists the given keys for messages.
fn given_keys(given: &[StatedUnit]) -> String {
    let keys: Vec<&str> = given.iter().map(|own| own.key).collect();
    keys.join(", ")
}

/// Lists all keys for messages.
fn known_keys() -> String {
    KINDS.map(|(key, ..)| key).join(", ")
}

/// Checks that exactly three different units are given.
fn require_three(given: &[StatedUnit]) -> Result<(), UnitsError> {
    for (n, own) in given.iter().enumerate() {
        let same = |other: &&StatedUnit| other.dimension == own.dimension;
        if let Some(other) = given[..n].iter().find(same) {
            let other = other.key;
            let why = format!("defines the same unit as `units.{other}`: remove one of them");
            return Err((Some(own.key), why));
        }
    }
    if let Some(own) = given.get(3) {
        let why = format!(
            "is redundant: three of {} define the units; found {}",
            known_keys(),
            given_keys(given)
        );
        return Err((Some(own.key), why));
    }
    if given.len() == 3 {
        return Ok(());
    }
    let is_given = |dimension| given.iter().any(|own| own.dimension == dimension);
    let absent = KINDS.iter().filter(|kind| !is_given(kind.1));
    let absent: Vec<&str> = absent.map(|kind| kind.0).collect();
    let more = ["three", "two more", "one more"][given.len()];
    let found = match given.is_empty() {
        true => "nothing".into(),
        false => given_keys(given),
    };
    let why = format!("found {found}; give {more} of {}", absent.join(", "));
    Err((None, why))
}

/// Derives length, mass and time by repeated substitution; a unit that does not follow is `None`.
fn derive_units(given: &[StatedUnit]) -> [Option<f64>; 3] {
    let value = |key: &str| {
        let dimension = KINDS.iter().find(|kind| kind.0 == key).map(|kind| kind.1);
        let own = given.iter().find(|own| Some(own.dimension) == dimension);
        own.map(|own| own.value)
    };
    let [mut length, mut mass, mut time] = ["length", "mass", "time"].map(value);
    let (velocity, density) = (value("velocity"), value("density"));
    // length^3/(mass time^2) in cgs
    let newton = value("gravity").map(|code| GRAVITATIONAL_CONSTANT / code);
    // three units need at most two substitutions
    for _ in 0..3 {
        let before = [length, mass, time];
        let [l, m, t] = before;
        time = t
            .or_else(|| Some(l? / velocity?))
            .or_else(|| Some((1.0 / (newton? * density?)).sqrt()))
            .or_else(|| Some((l? * l? * l? / (newton? * m?)).sqrt()));
        length = l
            .or_else(|| Some(velocity? * t?))
            .or_else(|| Some(cubic_root(m? / density?)))
            .or_else(|| Some(cubic_root(newton? * m? * t? * t?)))
            .or_else(|| Some(newton? * m? / (velocity? * velocity?)));
        mass = m
            .or_else(|| Some(density? * (l? * l? * l?)))
            .or_else(|| Some(l? * l? * l? / (newton? * t? * t?)));
        if before == [length, mass, time] {
            break;
        }
    }
    [length, mass, time]
}

/// Returns the cubic root of a positive number.
fn cubic_root(x: f64) -> f64 {
    let root = pow(x, 1.0 / 3.0);
    // one step of Newton's method corrects for the rounding of 1/3
    root - (root * root * root - x) / (3.0 * root * root)
}
