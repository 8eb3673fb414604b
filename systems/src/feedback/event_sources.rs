//! When stars have events, and what an event gives.

use super::config::{EventRateConfig, FeedbackConfig};
use nestar_device::math::exp;
use nestar_device::random::{Stream, normals, of_id, uniforms};
use nestar_device::{ParticlePlace, Real, Table, device};
use nestar_kernels::mesh::cell_record::CellRecord;
use nestar_kernels::particles::functions::Body;

/// Events of one kind of stars.
#[derive(Clone, Debug)]
pub(super) struct EventSource {
    times: EventTimes,
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
        ages: [f64; 2],
        rates: EventRates<f64>,
    },
}

/// Rate of events per mass at birth, linear between some ages. The integral is that from the first age to each age.
#[device]
#[derive(Clone, Debug)]
pub(super) struct EventRates<R> {
    ages: Table<R>,
    rates: Table<R>,
    integrals: Table<R>,
    /// Events between these times are drawn.
    passed: [f64; 2],
    stream: Stream,
}

impl EventSource {
    /// Returns the supernovae after the delay; `None` without them.
    pub fn at_age(config: &FeedbackConfig) -> Option<Self> {
        Some(Self {
            times: EventTimes::AtAge {
                delay: config.delay?,
                mass_per_event: config.mass_per_event?,
            },
            energy: config.energy?,
            ejecta: config.ejecta,
            metals: config.metals,
        })
    }

    /// Returns the events of a rate.
    pub fn at_random(config: &EventRateConfig, stream: Stream) -> Self {
        let EventRateConfig { age, rate, .. } = config.clone();
        let mut integral = vec![0.0];
        for n in 1..age.len() {
            let step = 0.5 * (rate[n - 1] + rate[n]) * (age[n] - age[n - 1]);
            integral.push(integral[n - 1] + step);
        }
        Self {
            times: EventTimes::AtRandom {
                ages: [age[0], age[age.len() - 1]],
                rates: EventRates {
                    ages: Table::new(age),
                    rates: Table::new(rate),
                    integrals: Table::new(integral),
                    passed: [0.0; 2],
                    stream,
                },
            },
            energy: config.energy,
            ejecta: config.ejecta,
            metals: config.metals,
        }
    }

    /// Returns the largest age at which a star has events.
    pub fn last_age(&self) -> f64 {
        match &self.times {
            EventTimes::AtAge { delay, .. } => *delay,
            EventTimes::AtRandom { ages, .. } => ages[1],
        }
    }

    /// Returns when all stars have their events, if at one age: the times of birth, after the first and until the second one, of those that
    /// have them between two times, and the mass at birth for each event.
    pub fn births(&self, passed: [f64; 2]) -> Option<([f64; 2], f64)> {
        match &self.times {
            EventTimes::AtAge {
                delay,
                mass_per_event,
            } => Some((passed.map(|time| time - delay), *mass_per_event)),
            EventTimes::AtRandom { .. } => None,
        }
    }

    /// Returns the parameters of [`random_events`] between two times. `step` numbers the interval between them.
    pub fn rates(&self, passed: [f64; 2], step: u64) -> Option<EventRates<f64>> {
        match &self.times {
            EventTimes::AtAge { .. } => None,
            EventTimes::AtRandom { rates, .. } => Some(EventRates {
                passed,
                stream: rates.stream.at_step(step),
                ..rates.clone()
            }),
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
    let time = birth[0].to_f64();
    let before = expected_until::<R>(p, p.passed[0] - time);
    let after = expected_until::<R>(p, p.passed[1] - time);
    let count = poisson(birth[1].to_f64() * (after - before), &p.stream, at.id);
    CellRecord::<R> {
        found: count > 0.0f64,
        record: R::from_f64(count),
    }
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
    use nestar_device::random::Purposes;

    fn source() -> EventSource {
        let config = EventRateConfig {
            age: vec![1.0, 2.0, 4.0],
            rate: vec![0.0, 3.0, 1.0],
            energy: 1.0,
            ejecta: 0.0,
            metals: 0.0,
        };
        let stream = Purposes::default().register("events", 7);
        EventSource::at_random(&config, stream.expect("a stream"))
    }

    #[test]
    fn the_expected_number_is_the_integral_of_the_rate() {
        let rates = source().rates([0.0; 2], 0).expect("rates");
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
                    let rates = source.rates(passed, u64::from(n)).expect("rates");
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
