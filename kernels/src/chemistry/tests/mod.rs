//! Compares the networks with exact and converged results.
mod accuracy;
mod conservation;
mod dissociation;
mod growth;
mod jacobian;
mod rates;
mod sample;
mod steps;

use super::species::{H2, H2P, HM};
use super::{
    Abundances, Background, CellConditions, Network, RateChoices, SubstepClock, Tolerances,
    advance, electrons, equilibrium, heat_capacity, temperature,
};
use crate::mesh::subcycle::DONE;
use nestar_device::{Precise, Real};

/// Helium nuclei per hydrogen nucleus for a hydrogen fraction of 0.76.
pub const HELIUM: f64 = 0.0789;
/// Deuterium nuclei per hydrogen nucleus.
pub const DEUTERIUM: f64 = 2.6e-5;

/// Returns a network without radiation.
pub fn network(species: usize, relative: f64, absolute: f64) -> Network<f64> {
    let precision = Tolerances {
        relative,
        absolute,
        ..Tolerances::default()
    };
    let elements = [HELIUM, DEUTERIUM];
    Network::new(
        species,
        RateChoices::default(),
        elements,
        &Background::default(),
        precision,
    )
}

/// Returns the network with other tolerances; the table is shared.
pub fn with_tolerance(p: &Network<f64>, relative: f64, absolute: f64) -> Network<f64> {
    Network {
        relative,
        absolute,
        ..p.clone()
    }
}

/// Returns the ionisation equilibrium at a temperature, with almost no molecules.
pub fn at<const S: usize>(p: &Network<f64>, density: f64, t: f64) -> Abundances<f64> {
    let cell = CellConditions {
        density,
        heating: 0.0,
        dust: 0.0,
    };
    let mut s = equilibrium::<f64, S>(p, &cell, 3.5 * t);
    for _ in 0..100 {
        let capacity = heat_capacity::<f64, S>(&s, electrons::<f64, S>(&s));
        s = equilibrium::<f64, S>(p, &cell, capacity * t);
    }
    if S > 3 {
        (s.y[HM], s.y[H2], s.y[H2P]) = (1e-14, 1e-12, 1e-14);
    }
    s
}

/// The state in another precision.
pub fn to<R: Real>(s: &Abundances<f64>) -> Abundances<R> {
    Abundances {
        y: s.y.map(R::lit),
        energy: R::lit(s.energy),
    }
}

/// The state in double precision.
pub fn double<R: Real>(s: &Abundances<R>) -> Abundances<f64> {
    Abundances {
        y: s.y.map(|y| y.to_f64()),
        energy: s.energy.to_f64(),
    }
}

/// Advances a cell by `dt`. Returns the state and the number of sub-steps.
pub fn through<R: Real, const S: usize, const N: usize>(
    p: &Network<R>,
    density: f64,
    s: Abundances<R>,
    dt: f64,
) -> (Abundances<R>, i32) {
    let cell = CellConditions {
        density: R::lit(density),
        heating: R::lit(0.0),
        dust: R::lit(0.0),
    };
    let end = advance::<R, S, N>(p, &cell, s, SubstepClock::default(), R::lit(dt), 1_000_000);
    assert_eq!(
        end.status, DONE,
        "after {} sub-steps: {:?}",
        end.substeps, end
    );
    (end.state, end.substeps)
}

/// Returns the states at 40 times up to `end` Myr, each 1.19 times the previous one, and the number of sub-steps.
pub fn history<R: Real, const S: usize, const N: usize>(
    p: &Network<f64>,
    density: f64,
    start: &Abundances<f64>,
    end: f64,
) -> (Vec<Abundances<f64>>, i32) {
    let p = p.precise::<R>();
    let (mut s, mut reached, mut substeps) = (to::<R>(start), 0.0, 0);
    let step = |k: i32| {
        let time = end * nestar_device::math::pow(1e-3, f64::from(39 - k) / 39.0);
        let (now, more) = through::<R, S, N>(&p, density, s, time - reached);
        (s, reached) = (now, time);
        substeps += more;
        double(&s)
    };
    let states = (0..40).map(step).collect();
    (states, substeps)
}

/// Returns the largest relative difference of `f` between two histories, where it is above `from` in the first.
pub fn largest(
    exact: &[Abundances<f64>],
    found: &[Abundances<f64>],
    from: f64,
    f: impl Fn(&Abundances<f64>) -> f64,
) -> f64 {
    let both = exact.iter().zip(found).map(|(a, b)| (f(a), f(b)));
    let differences = both
        .filter(|(a, _)| *a > from)
        .map(|(a, b)| (b / a - 1.0).abs());
    differences.fold(0.0, f64::max)
}

/// Temperature by the species.
pub fn kelvin<const S: usize>(s: &Abundances<f64>) -> f64 {
    temperature::<f64, S>(s)
}

/// Electrons per hydrogen nucleus.
pub fn charge<const S: usize>(s: &Abundances<f64>) -> f64 {
    electrons::<f64, S>(s)
}
