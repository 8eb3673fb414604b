//! Checks of the initial state that plugins register.

use super::{Error, Settings};
use bevy_ecs::prelude::*;
use nestar_device::math::{exp, ln};
use nestar_engine_comm::{Ranks, RanksError, Reduction};
use nestar_engine_data::Precision;
use nestar_kernels::mesh::order::{order_key, value_of_key};
use std::f64::consts::LN_10;
use std::sync::Arc;

pub(super) type Check = Arc<dyn Fn(&World) -> Result<(), Error> + Send + Sync>;

/// Holds the checks in the order of registration.
#[derive(Resource, Clone, Default)]
pub(super) struct StateChecks {
    /// Checks of the initial state.
    pub initial: Vec<Check>,
    /// Checks of a restored state that differs from the snapshot.
    pub changed: Vec<Check>,
    /// Checks of the registered fields and functions, before a state exists.
    pub registered: Vec<Check>,
}

/// Describes the range of a quantity that a plugin computes from the state.
#[derive(Clone, Debug, PartialEq)]
pub struct Magnitude {
    /// Description for messages, such as `the square of the speed`.
    pub name: &'static str,
    /// Powers of length, mass and time in its unit.
    pub dimension: [i32; 3],
    /// Smallest and largest absolute value on this rank in code units; infinity and 0 without values. The
    /// smallest is infinite if it may be 0: then only the largest counts.
    pub range: [f64; 2],
}

/// Safety factor between the range of a precision and that of an initial state, since states evolve.
const MARGIN: f64 = 1024.0;

/// Rejects magnitudes outside the range of the run's precision and suggests other units. Collective, with the
/// same quantities on all ranks.
///
/// # Errors
/// A quantity out of range; another rank has failed.
pub fn require_range(world: &World, magnitudes: &[Magnitude]) -> Result<(), Error> {
    let [least, most] = match world.resource::<Settings>().run.precision {
        Precision::Single => [f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX)],
        Precision::Double => [f64::MIN_POSITIVE, f64::MAX],
    };
    let all = of_all_ranks(world.resource::<Ranks>(), magnitudes)?;
    let outside = |m: &&Magnitude| {
        let [from, to] = m.range;
        to > 0.0 && (from < least * MARGIN || to > most / MARGIN)
    };
    let Some(wrong) = all.iter().find(outside) else {
        return Ok(());
    };
    let settings = world.resource::<Settings>();
    let [from, to] = wrong.range;
    let precision = settings.run.precision;
    let remedy = match precision {
        Precision::Single => "\nor set run.precision = \"double\"",
        Precision::Double => "",
    };
    Err(Error::Setup(format!(
        "run.precision = \"{precision}\" cannot hold {} of the initial state, {from:.1e} to {to:.1e} in code units: it keeps all \
         digits from {least:.1e} to {most:.1e}, less a safety factor of {MARGIN}; {}{remedy}",
        wrong.name,
        advice(settings, &all)
    )))
}

/// Reduces the magnitudes over all ranks.
fn of_all_ranks(ranks: &Ranks, own: &[Magnitude]) -> Result<Vec<Magnitude>, RanksError> {
    let bounds = own.iter().flat_map(|m| [-m.range[0], m.range[1]]);
    let mut keys: Vec<u64> = bounds.map(order_key).collect();
    ranks.communicator().reduce(Reduction::Max, &mut keys)?;
    let ranges = keys.as_chunks::<2>().0.iter();
    let joined = own.iter().zip(ranges).map(|(m, [least, most])| {
        let (least, most) = (-value_of_key(*least), value_of_key(*most));
        Magnitude {
            range: [least.min(most), most],
            ..m.clone()
        }
    });
    Ok(joined.collect())
}

/// Suggests units in which the quantities, the domain and the time are near 1.
fn advice(settings: &Settings, magnitudes: &[Magnitude]) -> String {
    let width = settings.domain.right_edge[0] - settings.domain.left_edge[0];
    let known = |value: f64| ln(value.clamp(f64::MIN_POSITIVE, f64::MAX));
    let middle = |m: &Magnitude| 0.5 * (known(m.range[0]) + known(m.range[1]));
    let known = magnitudes.iter().filter(|m| m.range[1] > 0.0);
    let known = known.map(|m| (m.dimension.map(f64::from), middle(m)));
    let powers = units(known.chain([([1.0, 0.0, 0.0], ln(width))]));
    let tens = powers.map(|power| (power / LN_10).round());
    let units = &settings.units;
    let scaled = [units.length_cgs, units.mass_cgs, units.time_cgs];
    let scaled: [f64; 3] = std::array::from_fn(|n| scaled[n] * exp(tens[n] * LN_10));
    format!(
        "choose other code units, for example of 1e{} of the present length, 1e{} of the mass and 1e{} of the time (units.length_cgs \
         = {:.3e}, mass_cgs = {:.3e}, time_cgs = {:.3e}), and give the deck's numbers in them",
        tens[0], tens[1], tens[2], scaled[0], scaled[1], scaled[2]
    )
}

/// Returns logarithms of units of length, mass and time that bring all quantities nearest to 1 (least
/// squares). Each quantity is given by its powers of the units and its logarithm. A weak pull towards the
/// present units regularises the system.
fn units(quantities: impl Iterator<Item = ([f64; 3], f64)>) -> [f64; 3] {
    let mut matrix = [[0.0; 4]; 3];
    for (powers, logarithm) in quantities {
        for (row, power) in matrix.iter_mut().zip(powers) {
            for (sum, factor) in row.iter_mut().zip(powers.into_iter().chain([logarithm])) {
                *sum += power * factor;
            }
        }
    }
    for (n, row) in matrix.iter_mut().enumerate() {
        row[n] += 1e-6;
    }
    // Gauss-Jordan elimination; the matrix is positive definite, so that no pivot vanishes
    for n in 0..3 {
        let pivot = matrix[n].map(|value| value / matrix[n][n]);
        for (m, row) in matrix.iter_mut().enumerate() {
            let factor = row[n];
            match m == n {
                true => *row = pivot,
                false => (0..4).for_each(|c| row[c] -= factor * pivot[c]),
            }
        }
    }
    matrix.map(|row| row[3])
}

#[cfg(test)]
mod tests {
    use super::units;

    #[test]
    fn units_are_found_in_which_quantities_are_one() {
        // a length of 1e18, a mass in a volume of 1e-24, a speed of 1e6
        let ln10 = std::f64::consts::LN_10;
        let quantities = [
            ([1.0, 0.0, 0.0], 18.0 * ln10),
            ([-3.0, 1.0, 0.0], -24.0 * ln10),
            ([1.0, 0.0, -1.0], 6.0 * ln10),
        ];
        let found = units(quantities.into_iter()).map(|power| (power / ln10 * 100.0).round());
        assert_eq!(found, [1800.0, 3000.0, 1200.0]);
        assert_eq!(units(std::iter::empty()), [0.0; 3]);
    }
}
