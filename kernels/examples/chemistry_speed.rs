//! Measures the chemistry of a structured field (log-normal density with matching temperatures) on one core, in nanoseconds per cell and
//! per sub-step.
use nestar_device::{Precise, Real, math};
use nestar_kernels::chemistry::species::{HI, HII};
use nestar_kernels::chemistry::{
    Abundances, Background, CellConditions, Network, RateChoices, SubstepClock, Tolerances,
    advance, electrons, equilibrium, heat_capacity, renormalised,
};
use std::time::Instant;

const CELLS: usize = 20_000;

/// Normal deviates from the sum of twelve numbers of a congruential generator.
struct NormalDeviates(u64);

impl NormalDeviates {
    fn next(&mut self) -> f64 {
        let mut sum = -6.0;
        for _ in 0..12 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            sum += (self.0 >> 11) as f64 / (1u64 << 53) as f64;
        }
        sum
    }
}

/// Returns density and state of the cells.
fn field<const S: usize>(p: &Network<f64>) -> Vec<(f64, Abundances<f64>)> {
    let mut r = NormalDeviates(3);
    let cell = |_| {
        let (a, b, c) = (r.next(), r.next(), r.next());
        let density = math::pow(10.0, -0.5 + 0.8 * a - 0.4 * b);
        let hot = if S == 3 { 5.0 } else { 3.6 };
        let t = math::pow(10.0, hot + b - 0.4 * a).clamp(30.0, 3e7);
        let there = CellConditions {
            density,
            heating: 0.0,
            dust: 0.0,
        };
        let ionised_at = (t * math::pow(10.0, 0.15 * c)).clamp(5e3, 3e7);
        let mut s = equilibrium::<f64, S>(p, &there, 2.5 * ionised_at);
        s.y[HII] = s.y[HII].max(1e-4);
        s.y[HI] = (1.0 - s.y[HII]).max(1e-9);
        let mut s = renormalised::<f64, S>(&s, p.helium, p.deuterium);
        s.energy = t * heat_capacity::<f64, S>(&s, electrons::<f64, S>(&s));
        (density, s)
    };
    (0..CELLS).map(cell).collect()
}

fn time<R: Real, const S: usize, const N: usize>(name: &str, p: &Network<f64>) {
    let cells = field::<S>(p);
    let p = p.precise::<R>();
    let (start, mut substeps, mut most) = (Instant::now(), 0, 0);
    for (density, s) in &cells {
        let there = CellConditions {
            density: R::lit(*density),
            heating: R::lit(0.0),
            dust: R::lit(0.0),
        };
        let s = Abundances {
            y: s.y.map(R::lit),
            energy: R::lit(s.energy),
        };
        let end = advance::<R, S, N>(&p, &there, s, SubstepClock::default(), R::lit(0.03), 2000);
        substeps += end.substeps;
        most = most.max(end.substeps);
    }
    let nanoseconds = start.elapsed().as_secs_f64() * 1e9;
    println!(
        "{name}: {:.2} us a cell, {:.0} ns a sub-step, {:.1} sub-steps a cell, at most {most}",
        nanoseconds * 1e-3 / CELLS as f64,
        nanoseconds / f64::from(substeps),
        f64::from(substeps) / CELLS as f64
    );
}

fn main() {
    let network = |species| {
        let elements = [0.0789, 2.6e-5];
        Network::new(
            species,
            RateChoices::default(),
            elements,
            &Background::default(),
            Tolerances::default(),
        )
    };
    let (six, nine, twelve) = (network(6), network(9), network(12));
    time::<f64, 3, 4>("6 species f64", &six);
    time::<f32, 3, 4>("6 species f32", &six);
    time::<f64, 6, 7>("9 species f64", &nine);
    time::<f32, 6, 7>("9 species f32", &nine);
    time::<f64, 8, 9>("12 species f64", &twelve);
    time::<f32, 8, 9>("12 species f32", &twelve);
}
