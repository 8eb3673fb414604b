//! When stars have events, and what an event gives.

use super::config::{EventRateConfig, FeedbackConfig, WindConfig};
use super::kinds::InjectionFn;
use nestar_device::math::exp;
use nestar_device::random::{Stream, normals, of_id, uniforms};
use nestar_device::{ParticlePlace, Real, Table, device};
use nestar_kernels::mesh::cell_record::CellRecord;
use nestar_kernels::particles::functions::Body;

/// Events of one kind of stars.
#[derive(Clone, Debug)]
pub(super) struct EventSource {
    times: EventTimes,
    pub kind: InjectionFn,
    /// Of an event: energy, returned mass and metals.
    pub energy: f64,
    pub ejecta: f64,
    pub metals: f64,
}

/// Ages of stars at their events.
#[derive(Clone, Debug)]
enum EventTimes {
    /// All at one age.
    AtAge { delay: f64, mass_per_event: f64 },
    /// At random.
    AtRandom {
        last_age: f64,
        rates: EventRates<f64>,
    },
    /// All the time: a wind.
    Always {
        last_age: f64,
        rates: EventRates<f64>,
    },
}

/// Rate per mass at birth, linear between some ages. The integral is that from the first age to each age.
#[device]
#[derive(Clone, Debug)]
pub(super) struct EventRates<R> {
    ages: Table<R>,
    rates: Table<R>,
    integrals: Table<R>,
    /// The times between which events are drawn or winds blow.
    passed: [f64; 2],
    /// Random numbers; winds do not use them.
    stream: Stream,
}

impl EventRates<f64> {
    /// Returns rates at some ages.
    fn new(age: &[f64], rate: &[f64], stream: Stream) -> Self {
        let mut integral = vec![0.0];
        for n in 1..age.len() {
            let step = 0.5 * (rate[n - 1] + rate[n]) * (age[n] - age[n - 1]);
            integral.push(integral[n - 1] + step);
        }
        Self {
            ages: Table::new(age.to_vec()),
            rates: Table::new(rate.to_vec()),
            integrals: Table::new(integral),
            passed: [0.0; 2],
            stream,
        }
    }
}

/// Stars with events between two times.
pub(super) enum StarsWithEvents {
    /// All that were born after the first and until the second time, with one event for each `mass_per_event`.
    Born {
        between: [f64; 2],
        mass_per_event: f64,
    },
    /// Those that have [`random_events`].
    AtRandom(EventRates<f64>),
    /// Those that have a wind ([`blown_mass`]).
    Windy(EventRates<f64>),
}

impl EventSource {
    /// Returns the supernovae after the delay; `None` without them.
    pub fn at_age(config: &FeedbackConfig, kind: InjectionFn) -> Option<Self> {
        Some(Self {
            times: EventTimes::AtAge {
                delay: config.delay?,
                mass_per_event: config.mass_per_event?,
            },
            kind,
            energy: config.energy?,
            ejecta: config.ejecta,
            metals: config.metals,
        })
    }

    /// Returns the events of a rate.
    pub fn at_random(config: &EventRateConfig, stream: Stream, kind: InjectionFn) -> Self {
        Self {
            times: EventTimes::AtRandom {
                last_age: config.age.last().copied().unwrap_or_default(),
                rates: EventRates::new(&config.age, &config.rate, stream),
            },
            kind,
            energy: config.energy,
            ejecta: config.ejecta,
            metals: config.metals,
        }
    }

    /// Returns a wind. An event is the loss of a unit of mass.
    pub fn wind(config: &WindConfig, kind: InjectionFn) -> Self {
        let unused = Stream {
            seed: 0,
            purpose: 0,
            step: 0,
        };
        Self {
            times: EventTimes::Always {
                last_age: config.age.last().copied().unwrap_or_default(),
                rates: EventRates::new(&config.age, &config.loss, unused),
            },
            kind,
            energy: 0.5 * config.speed * config.speed,
            ejecta: 1.0,
            metals: config.metals,
        }
    }

    /// Returns the largest age at which a star has events.
    pub fn last_age(&self) -> f64 {
        match &self.times {
            EventTimes::AtAge { delay, .. } => *delay,
            EventTimes::AtRandom { last_age, .. } | EventTimes::Always { last_age, .. } => {
                *last_age
            }
        }
    }

    /// Returns `true` if the events are supernovae, which are counted.
    pub fn is_counted(&self) -> bool {
        !matches!(&self.times, EventTimes::Always { .. })
    }

    /// Returns the stars that have events between two times. `step` numbers the interval between them.
    pub fn stars(&self, passed: [f64; 2], step: u64) -> StarsWithEvents {
        let between = |rates: &EventRates<f64>| EventRates {
            passed,
            stream: rates.stream.at_step(step),
            ..rates.clone()
        };
        match &self.times {
            EventTimes::AtAge {
                delay,
                mass_per_event,
            } => StarsWithEvents::Born {
                between: passed.map(|time| time - delay),
                mass_per_event: *mass_per_event,
            },
            EventTimes::AtRandom { rates, .. } => StarsWithEvents::AtRandom(between(rates)),
            EventTimes::Always { rates, .. } => StarsWithEvents::Windy(between(rates)),
        }
    }
}

/// Random events of a star with birth time and birth mass: their number.
#[device]
pub(super) fn random_events<R: Real>(
    star: (Body<R>, [R; 2]),
    at: &ParticlePlace<R>,
    p: &EventRates<R>,
) -> CellRecord<R> {
    let (_, birth) = star;
    let expected = expected_of::<R>(birth, p);
    let count = poisson(expected, &p.stream, at.id);
    CellRecord::<R> {
        found: count > 0.0f64,
        record: R::from_f64(count),
    }
}

/// Mass that a star with birth time and birth mass loses by its wind.
#[device]
pub(super) fn blown_mass<R: Real>(star: (Body<R>, [R; 2]), p: &EventRates<R>) -> CellRecord<R> {
    let (_, birth) = star;
    let mass = expected_of::<R>(birth, p);
    CellRecord::<R> {
        found: mass > 0.0f64,
        record: R::from_f64(mass),
    }
}

/// Returns the expected number of events of a star, or the mass of its wind, between the times of the rates.
#[device]
fn expected_of<R: Real>(birth: [R; 2], p: &EventRates<R>) -> f64 {
    let time = birth[0].to_f64();
    let before = expected_until::<R>(p, p.passed[0] - time);
    let after = expected_until::<R>(p, p.passed[1] - time);
    birth[1].to_f64() * (after - before)
}

/// Returns the expected number of events per mass until an age.
#[device]
fn expected_until<R: Real>(p: &EventRates<R>, age: f64) -> f64 {
    let count = p.ages.len();
    let mut passed: usize = 0;
    while passed < count && p.ages.at(passed).to_f64() <= age {
        passed += 1;
    }
    let mut expected: f64 = 0.0f64;
    if passed > 0 {
        let n = passed - 1;
        expected = p.integrals.at(n).to_f64();
        if passed < count {
            let first = p.ages.at(n).to_f64();
            let rate = p.rates.at(n).to_f64();
            let slope = (p.rates.at(passed).to_f64() - rate) / (p.ages.at(passed).to_f64() - first);
            let since = age - first;
            expected += since * (rate + 0.5f64 * slope * since);
        }
    }
    expected
}

/// Means above this are drawn from a normal distribution.
#[device]
const MOST_EXACT: f64 = 200.0;
/// Means are drawn in parts of at most this size, whose probability of no event does not vanish.
#[device]
const PART: f64 = 16.0;

/// Draws a number from a Poisson distribution.
#[device]
fn poisson(mean: f64, stream: &Stream, id: u64) -> f64 {
    let mut all: f64 = 0.0;
    if mean > MOST_EXACT {
        let deviates = normals::<f64>(of_id(stream, id, 0));
        all = (mean + mean.sqrt() * deviates[0] + 0.5).floor().max(0.0);
    } else {
        let parts = (mean / PART).ceil();
        let mean_of_part = mean / parts;
        for n in 0..parts as u32 {
            let drawn = uniforms::<f64>(of_id(stream, id, n));
            let mut probability = exp(-mean_of_part);
            let mut count: f64 = 0.0;
            let mut sum = probability;
            while drawn[0] > sum && probability > 0.0 {
                count += 1.0;
                probability *= mean_of_part / count;
                sum += probability;
            }
            all += count;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback::thermal;
    use nestar_device::random::Purposes;

    /// Returns the parameters of the events of a source between two times.
    fn rates_of(source: &EventSource, passed: [f64; 2], step: u64) -> EventRates<f64> {
        match source.stars(passed, step) {
            StarsWithEvents::AtRandom(rates) | StarsWithEvents::Windy(rates) => rates,
            StarsWithEvents::Born { .. } => panic!("the source has no rates"),
        }
    }

    fn source() -> EventSource {
        let config = EventRateConfig {
            age: vec![1.0, 2.0, 4.0],
            rate: vec![0.0, 3.0, 1.0],
            energy: 1.0,
            ejecta: 0.0,
            metals: 0.0,
        };
        let stream = Purposes::default().register("events", 7);
        EventSource::at_random(&config, stream.expect("a stream"), thermal)
    }

    #[test]
    fn the_expected_number_is_the_integral_of_the_rate() {
        let rates = rates_of(&source(), [0.0; 2], 0);
        for (age, wanted) in [
            (0.5, 0.0),
            (1.0, 0.0),
            (1.5, 0.375),
            (2.0, 1.5),
            (3.0, 4.0),
            (4.0, 5.5),
            (9.0, 5.5),
        ] {
            assert_eq!(expected_until(&rates, age), wanted, "{age}");
        }
        assert_eq!(source().last_age(), 4.0);
    }

    #[test]
    fn numbers_have_mean_and_variance_of_a_poisson_distribution() {
        let source = source();
        for mass in [0.02, 1.0, 20.0, 100.0] {
            let (mut sum, mut square) = (0.0, 0.0);
            let many = 20_000u32;
            for id in 0..u64::from(many) {
                let in_interval = |n: u32| {
                    let passed = [n, n + 1].map(f64::from);
                    let rates = rates_of(&source, passed, u64::from(n));
                    let [before, after] = passed.map(|age| expected_until(&rates, age));
                    poisson(mass * (after - before), &rates.stream, id)
                };
                let count: f64 = (0..9).map(in_interval).sum();
                sum += count;
                square += count * count;
            }
            let mean = sum / f64::from(many);
            let variance = square / f64::from(many) - mean * mean;
            let wanted = 5.5 * mass;
            let error = (wanted / f64::from(many)).sqrt();
            assert!((mean - wanted).abs() < 4.0 * error, "{mass}: {mean}");
            assert!((variance / wanted - 1.0).abs() < 0.06, "{mass}: {variance}");
        }
    }
}
