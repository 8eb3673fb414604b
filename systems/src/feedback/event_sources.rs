//! When stars have events, and what an event gives.

use super::config::{EventRateConfig, FeedbackConfig};
use nestar_device::math::exp;
use nestar_device::random::{Stream, normals, of_id, uniforms};

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
    /// At random. The integral of the rate is that from the first age to each age.
    AtRandom {
        age: Vec<f64>,
        rate: Vec<f64>,
        integral: Vec<f64>,
        stream: Stream,
    },
}

/// A star with birth time and birth mass.
#[derive(Clone, Copy, Debug)]
pub(super) struct BirthRecord {
    pub id: u64,
    pub time: f64,
    pub mass: f64,
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
                age,
                rate,
                integral,
                stream,
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
            EventTimes::AtRandom { age, .. } => age.last().copied().unwrap_or_default(),
        }
    }

    /// Returns the times of birth, after the first and until the second one, of stars that may have events between two times.
    pub fn births(&self, passed: [f64; 2]) -> [f64; 2] {
        match &self.times {
            EventTimes::AtAge { delay, .. } => passed.map(|time| time - delay),
            EventTimes::AtRandom { age, .. } => [passed[0] - self.last_age(), passed[1] - age[0]],
        }
    }

    /// Returns the number of events of a star between two times. `step` numbers the interval between them.
    pub fn count(&self, star: &BirthRecord, passed: [f64; 2], step: u64) -> f64 {
        match &self.times {
            EventTimes::AtAge { mass_per_event, .. } => star.mass / mass_per_event,
            EventTimes::AtRandom { stream, .. } => {
                let [before, after] = passed.map(|time| self.expected_until(time - star.time));
                poisson(star.mass * (after - before), &stream.at_step(step), star.id)
            }
        }
    }

    /// Returns the expected number of events per mass until an age.
    fn expected_until(&self, at: f64) -> f64 {
        let EventTimes::AtRandom {
            age,
            rate,
            integral,
            ..
        } = &self.times
        else {
            return 0.0;
        };
        let Some(n) = age.partition_point(|age| *age <= at).checked_sub(1) else {
            return 0.0;
        };
        if n + 1 == age.len() {
            return integral[n];
        }
        let passed = at - age[n];
        let slope = (rate[n + 1] - rate[n]) / (age[n + 1] - age[n]);
        integral[n] + passed * (rate[n] + 0.5 * slope * passed)
    }
}

/// Means above this are drawn from a normal distribution.
const MOST_EXACT: f64 = 200.0;
/// Means are drawn in parts of at most this size, whose probability of no event does not vanish.
const PART: f64 = 16.0;

/// Draws a number from a Poisson distribution.
fn poisson(mean: f64, stream: &Stream, id: u64) -> f64 {
    if mean > MOST_EXACT {
        let [deviate, _] = normals::<f64>(of_id(stream, id, 0));
        return (mean + mean.sqrt() * deviate).round().max(0.0);
    }
    let parts = (mean / PART).ceil();
    let draw = |n: u32| {
        let [uniform, _] = uniforms::<f64>(of_id(stream, id, n));
        let mean = mean / parts;
        let (mut probability, mut count) = (exp(-mean), 0.0);
        let mut sum = probability;
        while uniform > sum && probability > 0.0 {
            count += 1.0;
            probability *= mean / count;
            sum += probability;
        }
        count
    };
    (0..parts as u32).map(draw).sum()
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
        let source = source();
        for (age, wanted) in [
            (0.5, 0.0),
            (1.0, 0.0),
            (1.5, 0.375),
            (2.0, 1.5),
            (3.0, 4.0),
            (4.0, 5.5),
            (9.0, 5.5),
        ] {
            assert_eq!(source.expected_until(age), wanted, "{age}");
        }
        assert_eq!(source.births([10.0, 11.0]), [6.0, 10.0]);
    }

    #[test]
    fn numbers_have_mean_and_variance_of_a_poisson_distribution() {
        let source = source();
        for mass in [0.02, 1.0, 20.0, 100.0] {
            let (mut sum, mut square) = (0.0, 0.0);
            let many = 20_000u32;
            for id in 0..u64::from(many) {
                let star = BirthRecord {
                    id,
                    time: 0.0,
                    mass,
                };
                let all = (0..9u32)
                    .map(|n| source.count(&star, [f64::from(n), f64::from(n) + 1.0], u64::from(n)));
                let count: f64 = all.sum();
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
