//! Equation of state, limiters, parabolas.
use super::sample::Random;
use crate::choice::Choice;
use crate::hydro::Limiter;
use crate::hydro::eos::{self, Conserved};
use crate::hydro::limiter::{
    half_hybrid, half_minmod, half_monotonized_central, half_slope, half_van_albada, half_van_leer,
    select_limiter,
};
use crate::hydro::ppm::{bounded_parabola, flattening, parabola};

#[test]
fn conserved_and_primitive_variables_round_trip() {
    let mut random = Random(1);
    for _ in 0..1000 {
        let w = [
            random.between(0.1, 10.0),
            random.between(-3.0, 3.0),
            random.between(-3.0, 3.0),
            random.between(-3.0, 3.0),
            random.between(0.1, 10.0),
        ];
        let u = eos::conserved_from_primitive(&w, 1.4);
        let back = eos::primitive_from_conserved(&u, 1.4);
        for v in 0..5 {
            assert!(
                (w[v] - back[v]).abs() < 1e-13 * (1.0 + u[4]),
                "{w:?} {back:?}"
            );
        }
        let state = Conserved {
            density: u[0],
            momentum: [u[1], u[2], u[3]],
            energy: u[4],
        };
        assert!((eos::pressure(state, 1.4) - w[4]).abs() < 1e-13 * (1.0 + u[4]));
        let total = eos::kinetic_energy(state) + w[4] / (1.4 - 1.0);
        assert!((total - u[4]).abs() < 1e-13 * u[4]);
    }
}

#[test]
fn thermodynamics_of_air() {
    assert_eq!(eos::sound_speed(1.4, 4.0, 1.4), 2.0);
    assert_eq!(eos::temperature(2.0, 3.0), 1.5);
    // 32 / 4^(3/2)
    assert!((eos::entropy(4.0f64, 32.0, 1.5) - 4.0).abs() < 1e-15);
    // (|v| + c) / dx by axis: c = 1
    assert_eq!(
        eos::signal_rate(&[1.0, -1.0, 2.0, 0.0, 0.5], &[1.0, 2.0, 4.0], 2.0),
        2.0 + 6.0 + 4.0
    );
}

#[test]
fn unphysical_states_have_no_signal_rate() {
    let good = [1.0, 0.1, 0.2, 0.3, 2.0];
    assert!(eos::checked_signal_rate(&good, &[1.0; 3], 1.4) > 0.0);
    for component in 0..5 {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut u = good;
            u[component] = bad;
            assert_eq!(eos::checked_signal_rate(&u, &[1.0; 3], 1.4), -1.0, "{u:?}");
        }
    }
    for u in [
        [0.0, 0.1, 0.2, 0.3, 2.0],
        [-1.0, 0.1, 0.2, 0.3, 2.0],
        [1.0, 2.0, 0.0, 0.0, 2.0],
    ] {
        assert_eq!(eos::checked_signal_rate(&u, &[1.0; 3], 1.4), -1.0, "{u:?}");
    }
}

/// Half a slope must not leave the smaller one-sided difference, which keeps the edges between the neighbours (TVD), and must
/// be zero at extrema, the difference itself on a straight line, symmetric and odd.
#[test]
fn limiters_are_total_variation_diminishing() {
    let mut random = Random(2);
    for limiter in Limiter::ALL {
        let limiter = select_limiter!(*limiter, half_slope::<f64>);
        for _ in 0..2000 {
            let mut difference =
                || random.between(-1.0, 1.0) * 10f64.powf(random.between(-30.0, 2.0));
            let (a, b) = (difference(), difference());
            let half = limiter(a, b, 1.3);
            assert!(half.abs() <= a.abs().min(b.abs()), "{a} {b} {half}");
            assert_eq!(half != 0.0, a * b > 0.0, "{a} {b} {half}");
            assert!(half * a >= 0.0);
            assert_eq!(half, limiter(b, a, 1.3));
            assert_eq!(-half, limiter(-a, -b, 1.3));
            assert!((limiter(a, a, 1.3) - 0.5 * a).abs() <= 1e-16 * a.abs());
        }
        for (a, b) in [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (0.0, -1.0)] {
            assert_eq!(limiter(a, b, 1.3), 0.0);
        }
    }
}

#[test]
fn limiters_have_their_textbook_values() {
    assert_eq!(half_minmod(1.0, 4.0, 1.5), 0.75);
    assert_eq!(half_minmod(1.0, 1.5, 1.5), 0.625);
    assert_eq!(half_monotonized_central(1.0, 4.0, 1.5), 1.0);
    assert_eq!(half_monotonized_central(-2.0, -3.0, 1.5), -1.25);
    assert!((half_van_leer(1.0, 3.0, 1.5) - 0.75f64).abs() < 1e-16);
    assert!((half_van_albada(1.0, 3.0, 1.5) - 0.6f64).abs() < 1e-15);
    // half of van Leer's 12 / 7, and half of theta
    assert!((half_hybrid(1.5, 2.0, 1.5) - 6.0f64 / 7.0).abs() < 1e-15);
    assert_eq!(half_hybrid(-1.0, -4.0, 1.5), -0.75);
    // differences whose product underflows in single precision
    assert_eq!(half_monotonized_central(2e-30f32, 2e-30, 1.5), 1e-30);
    assert_eq!(half_van_leer(2e-30f32, 2e-30, 1.5), 1e-30);
    assert_eq!(half_van_albada(2e-30f32, 2e-30, 1.5), 1e-30);
}

/// Averages over cells of width one around -2 .. 2 of `1 + a x + b x^2`.
fn averages(a: f64, b: f64) -> [f64; 5] {
    [-2.0, -1.0, 0.0, 1.0, 2.0].map(|x| 1.0 + a * x + b * (x * x + 1.0 / 12.0))
}

#[test]
fn parabolas_are_exact_for_parabolas_and_their_extrema() {
    for (a, b) in [
        (2.0, 0.0),
        (3.0, 1.0),
        (-4.0, 0.5),
        (0.1, 1.0),
        (-0.3, -1.0),
        (0.0, 2.0),
    ] {
        let w = averages(a, b);
        let edge = |x: f64| 1.0 + a * x + b * x * x;
        let (lower, upper) = parabola(&w);
        assert!(
            (w[2] - lower - edge(-0.5)).abs() < 1e-14,
            "{a} {b}: {lower}"
        );
        assert!((w[2] + upper - edge(0.5)).abs() < 1e-14, "{a} {b}: {upper}");
    }
    // a discontinuous extremum is flat
    assert_eq!(parabola(&[0.0, 0.0, 1.0, 0.0, 0.0]), (0.0, 0.0));
    assert_eq!(parabola(&[1.0, 1.0, 1.0, 0.0, 0.0]), (0.0, 0.0));
}

#[test]
fn bounded_parabolas_stay_between_their_neighbours() {
    // both agree if nothing is limited
    assert_eq!(
        bounded_parabola(&averages(4.0, 1.0)),
        parabola(&averages(4.0, 1.0))
    );
    let mut random = Random(4);
    for _ in 0..4000 {
        let w: [f64; 5] = std::array::from_fn(|_| random.between(-1.0, 1.0));
        let (lower, upper) = bounded_parabola(&w);
        let (low, high) = (w[2] - lower, w[2] + upper);
        assert!(
            low >= w[1].min(w[2]) - 1e-15 && low <= w[1].max(w[2]) + 1e-15,
            "{w:?} {low}"
        );
        assert!(
            high >= w[3].min(w[2]) - 1e-15 && high <= w[3].max(w[2]) + 1e-15,
            "{w:?} {high}"
        );
        assert_eq!(lower == 0.0, upper == 0.0);
        assert!(lower.abs() <= 2.0 * upper.abs() && upper.abs() <= 2.0 * lower.abs());
    }
}

#[test]
fn only_strong_shocks_are_flattened() {
    let shock = [10.0, 10.0, 4.0, 1.0, 1.0];
    assert_eq!(flattening(&shock, &[2.0, 0.0]), 0.0);
    assert_eq!(flattening(&shock, &[0.0, 2.0]), 1.0, "an expansion");
    let wide = [10.0, 9.0, 4.0, 2.0, 1.0];
    let left = flattening(&wide, &[2.0, 0.0]);
    assert!((left - (8.5 - 70.0 / 9.0f64)).abs() < 1e-14, "{left}");
    assert_eq!(flattening(&[10.0, 8.0, 6.0, 4.0, 2.0], &[2.0, 0.0]), 1.0);
    assert_eq!(
        flattening(&[2.0, 2.0, 1.5, 1.0, 1.0], &[2.0, 0.0]),
        1.0,
        "a weak one"
    );
    assert_eq!(flattening(&[1.0; 5], &[2.0, 0.0]), 1.0);
}
