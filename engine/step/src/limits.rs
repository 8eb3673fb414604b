//! Limits of a level's time step, and the synchronisation of neighbouring levels.

use bevy_ecs::prelude::*;
use nestar_deck::deck;
use nestar_engine_comm::{Ranks, RanksError, Reduction};

/// Describes the cell or particle that makes a limit short.
#[derive(Clone, Debug)]
struct LimitPlace {
    limit: &'static str,
    dt: f64,
    text: String,
}

/// Collects the proposed limits for the step of the current level; systems of the `Limit` phase fill it.
#[derive(Resource, Clone, Debug, Default)]
pub struct StepLimits {
    proposals: Vec<(&'static str, f64)>,
    unknown: Vec<&'static str>,
    /// Cells and particles behind the proposals, if the driver asks for them.
    places: Option<Vec<LimitPlace>>,
    /// Buffer for the reduction over ranks.
    bits: Vec<u64>,
}

impl StepLimits {
    /// Removes all proposals.
    pub fn clear(&mut self) {
        self.proposals.clear();
        self.unknown.clear();
    }

    /// Proposes a step of at most `dt`; the log shows `name`. All ranks propose the same limits in the same
    /// order, each for its own patches (infinity without patches).
    pub fn propose(&mut self, name: &'static str, dt: f64) {
        self.proposals.push((name, dt));
    }

    /// Returns `true` if the proposed steps are unusable, so that systems should call [`StepLimits::place`].
    #[must_use]
    pub fn wants_places(&self) -> bool {
        self.places.is_some()
    }

    /// Describes the cell or particle of this rank that makes the limit `limit` shortest, for messages. `dt` compares it with those of
    /// other ranks.
    pub fn place(&mut self, limit: &'static str, dt: f64, text: String) {
        let place = LimitPlace { limit, dt, text };
        self.places.get_or_insert_default().push(place);
    }

    /// Asks systems for places.
    pub(super) fn ask_for_places(&mut self) {
        self.places = Some(Vec::new());
    }

    /// Returns the description of the place that makes the limit `limit` shortest on any rank; empty if there is none. Collective.
    pub(super) fn take_place(&mut self, limit: &str, ranks: &Ranks) -> Result<String, RanksError> {
        let mut message = Vec::new();
        let places = self.places.take().unwrap_or_default();
        let own = places.into_iter().filter(|place| place.limit == limit);
        if let Some(place) = own.min_by_key(|place| ordered(place.dt)) {
            message.extend(ordered(place.dt).to_be_bytes());
            message.extend(place.text.into_bytes());
        }
        let all = ranks.communicator().all_gather(&message)?;
        let least = all.into_iter().filter(|message| message.len() > 8).min();
        Ok(least.map_or_else(String::new, |least| {
            String::from_utf8_lossy(&least[8..]).into_owned()
        }))
    }

    /// Marks the limit `name` as unknown while only a part of a level exists
    /// ([`LevelRows::is_estimate`](nestar_engine_data::LevelRows::is_estimate)).
    pub fn leave_out(&mut self, name: &'static str) {
        self.unknown.push(name);
    }

    /// Returns the unknown limits.
    pub fn unknown(&self) -> &[&'static str] {
        &self.unknown
    }

    /// Returns the smallest proposal and its name.
    #[must_use]
    pub fn smallest(&self) -> Option<(&'static str, f64)> {
        // a NaN limit must win, so that the run stops with a clear message
        let smaller = |least: (&'static str, f64), next: (&'static str, f64)| {
            let wins = next.1 < least.1 || (next.1.is_nan() && !least.1.is_nan());
            if wins { next } else { least }
        };
        self.proposals.iter().copied().reduce(smaller)
    }

    /// Reduces every proposal to its minimum over all ranks.
    ///
    /// # Errors
    /// Another rank has failed, or the transport has.
    pub fn agree(&mut self, ranks: &Ranks) -> Result<(), RanksError> {
        self.bits.clear();
        self.bits
            .extend(self.proposals.iter().map(|(_, dt)| ordered(*dt)));
        ranks
            .communicator()
            .reduce(Reduction::Min, &mut self.bits)?;
        for ((_, dt), bits) in self.proposals.iter_mut().zip(&self.bits) {
            *dt = restored(*bits);
        }
        Ok(())
    }
}

/// Maps a number to bits with the same order; NaN becomes 0 so that a minimum keeps it.
fn ordered(value: f64) -> u64 {
    let bits = value.to_bits();
    match bits >> 63 {
        _ if value.is_nan() => 0,
        0 => bits | 1 << 63,
        _ => !bits,
    }
}

/// Inverts [`ordered`].
fn restored(bits: u64) -> f64 {
    match bits >> 63 {
        _ if bits == 0 => f64::NAN,
        0 => f64::from_bits(!bits),
        _ => f64::from_bits(bits & !(1 << 63)),
    }
}

/// Relation between the time steps of the levels.
#[deck]
pub enum LevelSteps {
    /// Each level takes the longest step that its own limits allow.
    Adaptive,
    /// Each level takes half the step of the next coarser level.
    Halved,
    /// All levels take the same step.
    Shared,
}

/// Holds a step and the limit that set its length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChosenStep {
    /// Length.
    pub dt: f64,
    /// The limit that set it.
    pub limiter: &'static str,
    /// The step ends exactly at the synchronisation time.
    pub meets: bool,
}

/// Chooses the step of a level for `adaptive` (Schive et al. 2018, section 2.1). The time `remaining` is
/// divided into the fewest equal steps that the limit allows, where the last may be longer by `increase`. A
/// step that does not end the interval is shortened by up to `decrease` to two steps of the finer level
/// (limit `finer_dt`).
#[must_use]
pub fn synchronised_step(
    limiter: &'static str,
    longest: f64,
    remaining: f64,
    finer_dt: Option<f64>,
    increase: f64,
    decrease: f64,
) -> ChosenStep {
    // a remainder of round-off size belongs to this step
    let steps = (remaining / longest - increase.max(1e-10)).ceil();
    if steps <= 1.0 {
        let limiter = if longest < remaining {
            limiter
        } else {
            "synchronisation"
        };
        return ChosenStep {
            dt: remaining,
            limiter,
            meets: true,
        };
    }
    // infinite if the limit is 0 or there is no synchronisation time
    let dt = if steps.is_finite() {
        remaining / steps
    } else {
        longest
    };
    match finer_dt.map(|fine| 2.0 * fine) {
        Some(pair) if dt > pair && (1.0 - decrease) * dt < pair => ChosenStep {
            dt: pair,
            limiter: "finer level",
            meets: false,
        },
        _ => ChosenStep {
            dt,
            limiter,
            meets: false,
        },
    }
}

/// Clips a prescribed step (`halved`, `shared`, or a retry) to the time `remaining`.
#[must_use]
pub fn clipped_step(limiter: &'static str, dt: f64, remaining: f64) -> ChosenStep {
    if dt >= remaining * (1.0 - 1e-10) {
        ChosenStep {
            dt: remaining,
            limiter,
            meets: true,
        }
    } else {
        ChosenStep {
            dt,
            limiter,
            meets: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_stretched_to_meet_the_parent() {
        let step = synchronised_step("courant", 1.0, 1.05, None, 0.1, 0.1);
        assert_eq!(
            step,
            ChosenStep {
                dt: 1.05,
                limiter: "courant",
                meets: true
            }
        );
        let step = synchronised_step("courant", 1.0, 0.7, None, 0.1, 0.1);
        assert_eq!(
            step,
            ChosenStep {
                dt: 0.7,
                limiter: "synchronisation",
                meets: true
            }
        );
    }

    /// Steps to a synchronisation time have equal lengths.
    #[test]
    fn steps_to_a_time_are_equal() {
        for (remaining, expected) in [(1.2, 2), (2.05, 2), (2.15, 3), (3.0, 3), (57.3, 58)] {
            let (mut time, mut steps) = (0.0, Vec::new());
            loop {
                let step = synchronised_step("courant", 1.0, remaining - time, None, 0.1, 0.1);
                steps.push(step.dt);
                time += step.dt;
                if step.meets {
                    break;
                }
            }
            assert_eq!(steps.len(), expected, "{remaining}: {steps:?}");
            let even = remaining / expected as f64;
            assert!(even <= 1.1 && steps.iter().all(|dt| (dt / even - 1.0).abs() < 1e-9));
        }
        let far = synchronised_step("courant", 0.5, f64::INFINITY, None, 0.1, 0.1);
        assert_eq!((far.dt, far.meets), (0.5, false));
    }

    #[test]
    fn a_step_is_shortened_to_two_of_the_finer_level() {
        let step = synchronised_step("courant", 1.0, 10.0, Some(0.48), 0.1, 0.1);
        assert_eq!(
            step,
            ChosenStep {
                dt: 0.96,
                limiter: "finer level",
                meets: false
            }
        );
        let step = synchronised_step("courant", 1.0, 10.0, Some(0.4), 0.1, 0.1);
        assert_eq!(step.dt, 1.0, "too far to help");
    }

    #[test]
    fn bits_keep_the_order_of_numbers() {
        let numbers = [
            f64::NEG_INFINITY,
            -2.0,
            -0.0,
            0.0,
            1e-300,
            1.0,
            3.0,
            f64::INFINITY,
        ];
        let bits = numbers.map(ordered);
        assert!(bits.is_sorted());
        assert_eq!(
            bits.map(restored).map(f64::to_bits),
            numbers.map(f64::to_bits)
        );
        assert!(ordered(f64::NAN) < bits[0] && restored(ordered(-f64::NAN)).is_nan());
    }

    #[test]
    fn a_nan_limit_is_not_lost() {
        let mut limits = StepLimits::default();
        limits.propose("courant", f64::NAN);
        limits.propose("user", 1.0);
        assert!(
            limits
                .smallest()
                .is_some_and(|(name, dt)| name == "courant" && dt.is_nan())
        );
    }
}
