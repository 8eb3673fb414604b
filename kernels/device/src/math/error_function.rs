//! The error function.
use super::double::two_product;
use super::exponential::exp_pair;
use crate::{Real, device};

/// `erf(x)`, error below 1.35 ulp in double precision (0.5001 ulp in single).
#[device]
pub fn erf<R: Real>(x: R) -> R {
    R::from_f64(erf_double(x.to_f64()))
}

/// `erf(x) / x - 1` as a function of `z = x^2 <= 1`; minimax, error 2^-62.
#[device]
pub fn erf_inner(z: f64) -> f64 {
    let p = 5.960685338520971e-11;
    let p = p * z + -1.137495573607015e-9;
    let p = p * z + 1.466032872274226e-8;
    let p = p * z + -1.6350396222864617e-7;
    let p = p * z + 1.64610084778027e-6;
    let p = p * z + -1.4925595772180906e-5;
    let p = p * z + 0.0001205533113295582;
    let p = p * z + -0.0008548326981425542;
    let p = p * z + 0.005223977624828431;
    let p = p * z + -0.026866170645077875;
    let p = p * z + 0.11283791670954885;
    let p = p * z + -0.3761263890318375;
    p * z + 0.1283791670955126
}

/// `erfc(x) e^(x^2)` for `1 <= x <= 6`; minimax in `(x - 2) / (x + 2)`, error `2^-60 e^(x^2)`.
#[device]
pub fn erfc_scaled(x: f64) -> f64 {
    let t = (x - 2.0) / (x + 2.0);
    let p = -1.2644035643826366e-5;
    let p = p * t + -2.6611463173320498e-5;
    let p = p * t + 2.762314524221994e-5;
    let p = p * t + 0.00017428844205618762;
    let p = p * t + 4.35361556462436e-5;
    let p = p * t + -0.0009819764781001292;
    let p = p * t + -0.0008471425900139685;
    let p = p * t + 0.00699746178568524;
    let p = p * t + 0.0037328923985309598;
    let p = p * t + -0.07897858101641667;
    let p = p * t + 0.2416581942424688;
    let p = p * t + -0.4271858474139568;
    p * t + 0.25539567631050575
}

#[device]
pub fn erf_double(x: f64) -> f64 {
    let size = x.abs();
    if x.is_nan() || x == 0.0 {
        return x;
    }
    if size < 1.0 {
        return x + x * erf_inner(x * x);
    }
    if size > 6.0 {
        return 1.0f64.copysign(x);
    }
    let (square, error) = two_product(size, size);
    (1.0 - exp_pair(-square, -error) * erfc_scaled(size)).copysign(x)
}
