//! Growth of small ionised parts in hot gas.
use super::super::species::{HEI, HI, HII};
use super::*;

/// Returns neutral gas with an ionised fraction.
fn neutral<const S: usize>(ionised: f64, t: f64) -> Abundances<f64> {
    let mut s = Abundances {
        y: [0.0; 11],
        energy: 0.0,
    };
    (s.y[HI], s.y[HII], s.y[HEI]) = (1.0 - ionised, ionised, HELIUM);
    let mut s = super::super::renormalised::<f64, S>(&s, HELIUM, 0.0);
    s.energy = t * heat_capacity::<f64, S>(&s, charge::<S>(&s));
    s
}

/// Advances a cell by `steps` equal steps up to `end`. Returns the state and the number of sub-steps.
fn by_steps<R: Real, const S: usize, const N: usize>(
    p: &Network<R>,
    density: f64,
    s: Abundances<f64>,
    end: f64,
    steps: i32,
) -> (Abundances<f64>, i32) {
    let step = |(s, sum): (Abundances<R>, i32), _| {
        let (s, more) = through::<R, S, N>(p, density, s, end / f64::from(steps));
        (s, sum + more)
    };
    let (s, sum) = (0..steps).fold((to::<R>(&s), 0), step);
    (double(&s), sum)
}

/// Checks gas that begins with few ions against the same gas with a tight tolerance, and behind shocks, of 40 km/s or more, after 1 Myr against
/// ionised gas.
fn hot_gas<R: Real, const S: usize, const N: usize>(species: usize) {
    let tight = network(species, 1e-5, 1e-20);
    let p = with_tolerance(&tight, 1e-2, 1e-8).precise::<R>();
    let apart = |a: &Abundances<f64>, b: &Abundances<f64>| {
        let t = (kelvin::<S>(a) / kelvin::<S>(b) - 1.0).abs();
        t.max((charge::<S>(a) / charge::<S>(b) - 1.0).abs())
    };
    for t in [2e4, 5e4, 2e5, 8e5] {
        for x0 in [0.0, 1e-10, 1e-8] {
            let start = neutral::<S>(x0, t);
            for (time, steps) in [(1e-2, 1), (1e-2, 300), (1.0, 1), (1.0, 20), (1.0, 300)] {
                let exact = by_steps::<f64, S, N>(&tight, 100.0, start, time, 1).0;
                let (end, substeps) = by_steps::<R, S, N>(&p, 100.0, start, time, steps);
                let ionised = neutral::<S>(1e-3, t);
                let ionised = by_steps::<R, S, N>(&p, 100.0, ionised, time, steps).0;
                let (error, late) = (apart(&end, &exact), apart(&end, &ionised));
                println!(
                    "hot {species} {t} K {time} Myr from {x0:e}, {steps} steps: {error:.1e} {late:.1e}, {substeps} sub-steps"
                );
                assert!(error < 1.5e-2 && (time < 1.0 || t < 4e4 || late < 1e-2));
            }
        }
    }
}

#[test]
fn hot_neutral_gas_ends_as_ionised_gas() {
    hot_gas::<f64, 3, 4>(6);
    hot_gas::<f32, 3, 4>(6);
    hot_gas::<f64, 6, 7>(9);
}

#[test]
fn equilibrium_is_kept_by_the_network() {
    for t in [6e3, 8e3, 1e4, 2e4, 1e5] {
        let precision = Tolerances {
            relative: 1e-5,
            floor_k: t,
            ..Tolerances::default()
        };
        let p = Network::new(
            6,
            RateChoices::default(),
            [HELIUM, 0.0],
            &Background::default(),
            precision,
        );
        let start = at::<3>(&p, 1.0, t);
        let (end, _) = through::<f64, 3, 4>(&p, 1.0, start, 1e3);
        let change = charge::<3>(&end) / charge::<3>(&start) - 1.0;
        println!(
            "{t} K: electrons {:e}, changed by {change:.1e}",
            charge::<3>(&start)
        );
        assert!(change.abs() < 1e-4);
    }
}

#[test]
fn cold_gas_that_is_heated_ionises_on_its_way() {
    let p = network(6, 1e-2, 1e-8);
    let tight = with_tolerance(&p, 1e-5, 1e-20);
    let start = neutral::<3>(0.0, 100.0);
    let end = |p: &Network<f64>| {
        let cell = CellConditions {
            density: 1.0,
            heating: 1e5,
            dust: 0.0,
        };
        let end = advance::<f64, 3, 4>(p, &cell, start, SubstepClock::default(), 2.0, 100_000);
        assert_eq!(end.status, DONE);
        println!(
            "heated: {} K {:e} {}",
            kelvin::<3>(&end.state),
            charge::<3>(&end.state),
            end.substeps
        );
        end.state
    };
    let (found, exact) = (end(&p), end(&tight));
    assert!((kelvin::<3>(&found) / kelvin::<3>(&exact) - 1.0).abs() < 1e-2);
    assert!((charge::<3>(&found) / charge::<3>(&exact) - 1.0).abs() < 1e-2);
}
