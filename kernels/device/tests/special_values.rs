//! Special values, and arguments that are hard to reduce.
mod reference;

use nestar_device::math;
use reference::ulps;

/// Argument, sine, cosine and tangent, correctly rounded from 80 digits.
const LARGE: &[(f64, f64, f64, f64)] = &[
    (
        1e22,
        -0.8522008497671888,
        0.523214785395139,
        -1.6287782256068988,
    ),
    // the double closest to a multiple of pi / 2
    (
        5.319372648326541e255,
        1.0,
        -4.687165924254628e-19,
        -2.133485385753704e18,
    ),
    (
        f64::MAX,
        0.004961954789184062,
        -0.9999876894265599,
        -0.004962015874444895,
    ),
    (
        1048576.0,
        0.3304931400217347,
        0.943808393901312,
        0.350169740126609,
    ),
    (
        30000000.0,
        0.9641302978985832,
        -0.2654294043130664,
        -3.632341715846294,
    ),
    (
        -5e15,
        0.901711760523585,
        -0.432337716297638,
        -2.0856652716896247,
    ),
    (
        1e100,
        -0.3806377310050287,
        0.9247242387519338,
        -0.4116229628832498,
    ),
    (
        8e50,
        0.763171324099595,
        -0.6461962009112023,
        -1.1810210629889897,
    ),
    (
        std::f64::consts::FRAC_PI_2,
        1.0,
        6.123233995736766e-17,
        1.633123935319537e16,
    ),
    (
        std::f64::consts::PI,
        1.2246467991473532e-16,
        -1.0,
        -1.2246467991473532e-16,
    ),
];

#[test]
fn large_arguments_are_reduced_exactly() {
    for &(x, sin, cos, tan) in LARGE {
        for (ours, exact) in [
            (math::sin(x), sin),
            (math::cos(x), cos),
            (math::tan(x), tan),
        ] {
            let error = ulps(ours, exact.into(), 0.0);
            assert!(error <= 1.0, "{x:e}: {ours:e} for {exact:e}");
        }
    }
}

/// `f(x)` must be `y` bit for bit, sign of zero included, or both NaN.
#[track_caller]
fn exactly(f: f64, y: f64) {
    assert!(
        f.to_bits() == y.to_bits() || f.is_nan() && y.is_nan(),
        "{f:e} for {y:e}"
    );
}

#[test]
fn zeros_give_what_they_give_in_c() {
    let tiny = 5e-324;
    for x in [0.0, -0.0, tiny, -tiny] {
        exactly(math::exp(x), 1.0);
        exactly(math::cos(x), 1.0);
        exactly(math::cosh(x), 1.0);
        for odd in [
            math::exp_m1,
            math::ln_1p,
            math::sin,
            math::tan,
            math::atan,
            math::sinh,
            math::tanh,
        ] {
            exactly(odd(x), x);
        }
    }
    exactly(math::erf(-0.0), -0.0);
}

#[test]
fn limits_are_those_of_c() {
    let (inf, nan, tiny) = (f64::INFINITY, f64::NAN, 5e-324);
    exactly(math::exp(inf), inf);
    exactly(math::exp(-inf), 0.0);
    exactly(math::exp(710.0), inf);
    exactly(math::exp(-745.0), tiny);
    exactly(math::exp(-746.0), 0.0);
    exactly(math::exp_m1(inf), inf);
    exactly(math::exp_m1(-inf), -1.0);
    exactly(math::ln_1p(inf), inf);
    exactly(math::ln_1p(-1.0), -inf);
    exactly(math::ln_1p(-1.5), nan);
    exactly(math::ln_1p(-inf), nan);
    for log in [math::ln, math::log10] {
        exactly(log(1.0), 0.0);
        exactly(log(0.0), -inf);
        exactly(log(-0.0), -inf);
        exactly(log(-tiny), nan);
        exactly(log(-inf), nan);
        exactly(log(inf), inf);
    }
    (0..=22).for_each(|n| exactly(math::log10(10f64.powi(n)), f64::from(n)));
}

#[test]
fn limits_of_waves_are_those_of_c() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    for f in [math::sin, math::cos, math::tan] {
        exactly(f(inf), nan);
        exactly(f(-inf), nan);
    }
    exactly(math::atan(inf), std::f64::consts::FRAC_PI_2);
    exactly(math::atan(-inf), -std::f64::consts::FRAC_PI_2);
    exactly(math::sinh(-inf), -inf);
    exactly(math::sinh(-711.0), -inf);
    assert!(math::sinh(710.4f64).is_finite() && math::cosh(-710.4f64).is_finite());
    exactly(math::cosh(-inf), inf);
    exactly(math::tanh(-inf), -1.0);
    exactly(math::erf(-inf), -1.0);
    exactly(math::sqrt(-1.0), nan);
    let functions = [
        math::exp,
        math::exp_m1,
        math::ln_1p,
        math::ln,
        math::log10,
        math::sin,
        math::cos,
        math::tan,
        math::atan,
        math::sinh,
        math::cosh,
        math::tanh,
        math::erf,
        math::sqrt,
    ];
    functions.iter().for_each(|f| exactly(f(nan), nan));
}

/// The system's `pow` follows IEEE 754 (9.2.1): every pair of special values must agree.
#[test]
fn special_powers_are_those_of_c() {
    let special = [
        0.0,
        1.0,
        2.0,
        3.0,
        0.5,
        1.5,
        5e-324,
        2.5e-308,
        1e300,
        f64::MAX,
        f64::INFINITY,
        f64::NAN,
        1e-300,
        4503599627370497.0,
        9007199254740993.0,
        1e20,
        0.9999999999999999,
        1.0000000000000002,
        33.0,
    ];
    for x in special.iter().flat_map(|x| [*x, -*x]) {
        for y in special.iter().flat_map(|y| [*y, -*y]) {
            let (ours, libm) = (math::pow(x, y), x.powf(y));
            let close = libm.is_finite() && libm != 0.0 && ulps(ours, libm.into(), 0.0) <= 1.0;
            if !close {
                println!("pow({x:e}, {y:e})");
                exactly(ours, libm);
            }
        }
    }
    // squares that are common in physics are exact
    exactly(math::pow(0.1, 2.0), 0.1 * 0.1);
    exactly(math::pow(-3.0, 2.0), 9.0);
    exactly(math::pow(-2.0, -3.0), -0.125);
}

#[test]
fn special_angles_are_those_of_c() {
    let special = [0.0, 5e-324, 1.0, 1e308, f64::INFINITY, f64::NAN];
    for x in special.iter().flat_map(|x| [*x, -*x]) {
        for y in special.iter().flat_map(|y| [*y, -*y]) {
            exactly(math::atan2(y, x), y.atan2(x));
        }
    }
}
