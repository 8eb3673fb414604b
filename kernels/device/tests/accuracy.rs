//! Checks the stated error bounds of `math` against a reference of 100 bits, and special values.
mod numbers;
mod reference;

use nestar_device::{Real, math};
use numbers::Random;
use reference::{Pair, ulps};

const INPUTS: usize = 30_000;

/// A function in double and in single precision.
type Both = (fn(f64) -> f64, fn(f32) -> f32);

/// Checks that the largest error of `f` in both precisions on inputs from `draw` stays below the bounds.
fn check(
    name: &str,
    bound: f64,
    f: Both,
    draw: impl Fn(&mut Random) -> f64,
    exact: impl Fn(f64) -> (Pair, f64),
) {
    let mut random = Random::new(7);
    let (mut double, mut single) = ((0.0, 0.0), (0.0, 0.0));
    for _ in 0..INPUTS {
        let x = draw(&mut random);
        let (pair, k) = exact(x);
        let error = ulps((f.0)(x), pair, k);
        double = if error > double.0 { (error, x) } else { double };
        let x = x as f32;
        let (pair, k) = exact(f64::from(x));
        let error = ulps((f.1)(x), pair, k);
        single = if error > single.0 {
            (error, f64::from(x))
        } else {
            single
        };
    }
    println!(
        "{name}: f64 {:.4} ulp at {:e}, f32 {:.5} ulp",
        double.0, double.1, single.0
    );
    assert!(
        double.0 < bound,
        "{name}: {:.4} ulp at {:e}",
        double.0,
        double.1
    );
    assert!(
        single.0 < 0.5001,
        "{name}: {:.5} ulp at {:e} in f32",
        single.0,
        single.1
    );
}

fn signed(random: &mut Random, size: f64) -> f64 {
    if random.bits() & 1 == 0 { size } else { -size }
}

/// Half of the inputs uniform in (-limit, limit), half over the magnitudes below.
fn around_zero(limit: f64) -> impl Fn(&mut Random) -> f64 {
    move |random| {
        let uniform = random.uniform();
        let size = if random.bits() & 1 == 0 {
            uniform
        } else {
            10f64.powf(-12.0 * uniform)
        };
        signed(random, limit * size)
    }
}

/// Half of the inputs around 1, half over the magnitudes.
fn positive(random: &mut Random) -> f64 {
    let uniform = random.uniform();
    if random.bits() & 1 == 0 {
        0.5 + uniform
    } else {
        10f64.powf(70.0 * uniform - 35.0)
    }
}

fn plain(f: impl Fn(f64) -> Pair) -> impl Fn(f64) -> (Pair, f64) {
    move |x| (f(x), 0.0)
}

#[test]
fn exponentials_keep_their_bounds() {
    let exp = |x: f64| reference::exp(x.into());
    check("exp", 0.9, (math::exp, math::exp), around_zero(88.0), exp);
    // beyond the range of f32: f64 alone, denormal results included
    let mut random = Random::new(9);
    for _ in 0..INPUTS {
        let x = random.between(-745.0, 709.7);
        let (exact, k) = exp(x);
        assert!(ulps(math::exp(x), exact, k) < 0.9, "exp({x:e})");
    }
    let exp_m1 = plain(reference::exp_m1);
    check(
        "exp_m1",
        0.9,
        (math::exp_m1, math::exp_m1),
        around_zero(80.0),
        exp_m1,
    );
}

#[test]
fn logarithms_keep_their_bounds() {
    check(
        "ln",
        0.85,
        (math::ln, math::ln),
        positive,
        plain(reference::ln),
    );
    for near in [0.0, 0.4, 0.99] {
        let draw = |random: &mut Random| match near {
            0.0 => positive(random),
            _ => 1.0 + around_zero(near)(random).clamp(-near, near),
        };
        let ln = plain(reference::ln);
        let double = |x| math::ln_ratio(-4.0 * x, -4.0);
        check(
            "ln_ratio",
            2.0,
            (double, |x| math::ln_ratio(x, 1.0)),
            draw,
            ln,
        );
    }
    let ln_1p = plain(reference::ln_1p);
    let above = |random: &mut Random| around_zero(0.999)(random).max(-0.998);
    check("ln_1p", 1.3, (math::ln_1p, math::ln_1p), above, &ln_1p);
    check("ln_1p", 1.3, (math::ln_1p, math::ln_1p), positive, ln_1p);
    let log10 = |x| reference::ln(x) * Pair(std::f64::consts::LOG10_E, 1.098319650216765e-17);
    check(
        "log10",
        0.51,
        (math::log10, math::log10),
        positive,
        plain(log10),
    );
}

#[test]
fn trigonometric_functions_keep_their_bounds() {
    let sin = plain(|x| reference::sin_cos(x.into()).0);
    let cos = plain(|x| reference::sin_cos(x.into()).1);
    for limit in [1.0, 8.0, 1e5] {
        check("sin", 0.8, (math::sin, math::sin), around_zero(limit), &sin);
        check("cos", 0.8, (math::cos, math::cos), around_zero(limit), &cos);
        check(
            "tan",
            1.1,
            (math::tan, math::tan),
            around_zero(limit),
            plain(reference::tan),
        );
        check(
            "atan",
            0.8,
            (math::atan, math::atan),
            around_zero(limit),
            plain(|x| reference::atan2(x, 1.0)),
        );
    }
}

#[test]
fn angles_keep_their_bound() {
    let mut random = Random::new(13);
    let draw = around_zero(3.0);
    for _ in 0..INPUTS {
        let (x, y) = (draw(&mut random), draw(&mut random));
        let error = ulps(math::atan2(y, x), reference::atan2(y, x), 0.0);
        assert!(error < 1.5, "atan2({y:e}, {x:e}): {error} ulp");
        let (x, y) = (x as f32, y as f32);
        let error = ulps(math::atan2(y, x), reference::atan2(y.into(), x.into()), 0.0);
        assert!(error < 0.5001, "atan2({y:e}, {x:e}): {error} ulp in f32");
    }
}

#[test]
fn hyperbolic_functions_keep_their_bounds() {
    let sinh = plain(|x| reference::sinh_cosh(x).0);
    let cosh = plain(|x| reference::sinh_cosh(x).1);
    for limit in [1.0, 30.0] {
        check(
            "sinh",
            0.9,
            (math::sinh, math::sinh),
            around_zero(limit),
            &sinh,
        );
        check(
            "cosh",
            0.9,
            (math::cosh, math::cosh),
            around_zero(limit),
            &cosh,
        );
        check(
            "tanh",
            0.9,
            (math::tanh, math::tanh),
            around_zero(limit),
            plain(reference::tanh),
        );
    }
}

#[test]
fn error_function_keeps_its_bound() {
    for limit in [1.0, 6.0] {
        check(
            "erf",
            1.35,
            (math::erf, math::erf),
            around_zero(limit),
            plain(reference::erf),
        );
    }
}

fn pow_error<R: Real>(random: &mut Random, range: (f64, f64), decades: f64) -> (f64, R, R) {
    let near_one = 1.0 + random.between(-1e-3, 1e-3);
    let size = 10f64.powf(random.between(-decades, decades));
    let x = R::lit(if random.bits() & 1 == 0 {
        near_one
    } else {
        size
    });
    let y = R::lit(random.between(range.0, range.1) / x.to_f64().ln());
    if x.to_f64() == 1.0 || !y.is_finite() {
        return (0.0, x, y);
    }
    let (exact, k) = reference::exp(reference::ln(x.to_f64()) * y.to_f64().into());
    (ulps(math::pow(x, y), exact, k), x, y)
}

#[test]
fn power_keeps_its_bound() {
    let mut random = Random::new(3);
    let (mut double, mut single) = (0.0f64, 0.0f64);
    for _ in 0..INPUTS {
        let (error, x, y) = pow_error::<f64>(&mut random, (-745.0, 709.0), 300.0);
        assert!(error < 0.9, "{x:e} ^ {y:e}: {error} ulp");
        double = double.max(error);
        let (error, x, y) = pow_error::<f32>(&mut random, (-103.0, 88.0), 37.0);
        assert!(error < 0.5001, "{x:e} ^ {y:e}: {error} ulp in f32");
        single = single.max(error);
    }
    println!("pow: f64 {double:.4} ulp, f32 {single:.5} ulp");
}

/// Huge random arguments against the system's libm, which is correct to 0.6 ulp.
#[test]
fn random_large_arguments_agree_with_libm() {
    let mut random = Random::new(5);
    for _ in 0..INPUTS {
        let x = 10f64.powf(random.between(5.0, 308.0));
        for (ours, libm) in [(math::sin(x), x.sin()), (math::cos(x), x.cos())] {
            assert!(
                ulps(ours, libm.into(), 0.0) <= 1.0,
                "{x:e}: {ours:e} for {libm:e}"
            );
        }
    }
}
