//! Syntax of the subset: operators, casts, loops, blocks, structures, constants and tables.
use nestar_device::{Lane, Real, device};

#[device]
pub const SHIFT: u32 = 3;
#[device]
pub const LIMIT: f64 = 0.3;
/// A table, in single precision and with a nested array.
#[device]
pub const TABLE: [[f32; 2]; 3] = [[0.1, -1.0], [0.25, 2.0], [1.0 / 3.0, 1e-3]];

#[device]
pub fn operators<R: Real>(x: &[R; 4]) -> [R; 8] {
    debug_assert!(x[0] * 0.0 == 0.0 || !x[0].is_finite() && 1.0 > 0.0);
    let mut o = [0.0; 8];
    let auto = x[0]; // a C++ keyword as a name, then shadowed
    let auto = {
        let t = auto * auto;
        t - 0.25 * auto
    };
    o[0] = auto;
    let i = x[1].to_i32();
    let j = (x[2].to_f64() as i32).min(1000);
    let mut k: u32 = 7;
    k ^= (i as u32 & 0xff) | 0x10;
    k = (k << SHIFT) ^ (k >> 2);
    k %= 1009;
    o[1] = R::from_u32(k);
    o[2] = R::from_i32(j.abs() % 7) - R::from_usize((i as i64).abs() as usize % 13);
    o[3] = x[2].copysign(x[3]) + x[0].signum();
    o[4] = x[0].floor() + x[1].ceil() - x[2].trunc();
    o[5] = x[3]
        .clamp(-1.0, 2.0)
        .max(x[0])
        .min(x[1])
        .min(R::lit(LIMIT * 2.0));
    o[6] = x[0] % x[1];
    o[7] = x[2].ldexp(i.clamp(-3000, 3000)) + x[3].ldexp(-(j % 1100));
    o
}

#[device]
fn add_to<R: Real>(o: &mut [R; 8], k: usize, by: R) {
    o[k] += by;
    o[k] *= 2.0;
}

#[device]
fn loops<R: Real>(x: &[R; 4]) -> R {
    let mut s = R::lit(0.0);
    let mut n = 0usize;
    loop {
        n += 1;
        if n == 3 {
            continue;
        }
        if n > 6 {
            break;
        }
        for a in 1..=n {
            s += x[a % 4] / R::from_usize(a);
        }
    }
    while s > 100.0 && s.is_finite() {
        s = s.sqrt();
    }
    s
}

#[device]
pub fn control_flow<R: Real>(x: &[R; 4]) -> [R; 8] {
    let mut o = [0.0; 8];
    let flag = (x[0] > x[1]) ^ (x[2] < x[3]) & !(x[0] == x[3]);
    let (hi, lo) = if x[0] > x[1] {
        let d = x[0] - x[1];
        (d, x[1])
    } else if flag {
        (x[1], x[0])
    } else {
        (x[2], -x[3])
    };
    o[0] = hi;
    o[1] = lo;
    o[2] = match (x[0].to_i32() as u32) % 5 {
        0 => x[0].mul_add(x[1], x[2]),
        1 => {
            let q = x[3].powi(5);
            q.recip()
        }
        2 | SHIFT => x[1].powi(-3),
        _ => R::PI,
    };
    o[3] = loops(x);
    let m = &mut o;
    add_to(
        m,
        4,
        if x[0].is_finite() && !x[1].is_nan() {
            1.0
        } else {
            -0.0
        },
    );
    let v = if flag { x } else { &[1.0, 2.0, 3.0, 4.0] };
    o[5] = v[3] * v[0];
    let [a, b, ..] = *x;
    o[6] = (R::MAX - a) * R::MIN_POSITIVE + b.sqrt();
    let (significand, exponent) = x[3].frexp();
    o[7] = significand + R::from_i32(exponent);
    o
}

/// A structure whose parameter has another name than the functions that build it use.
#[device]
#[derive(Clone, Copy)]
pub struct Wave<T> {
    pub left: T,
    pub right: T,
    /// Name of a C++ keyword.
    pub signed: [T; 2],
}

#[device]
fn ordered<Q: Lane>(w: Wave<Q>) -> Wave<Q> {
    let turned = Wave {
        left: w.right,
        right: w.left,
        ..w
    };
    if w.left > w.right && !(w.left == w.right) {
        turned
    } else {
        w
    }
}

#[device]
pub fn sum_of<R: Lane, const N: usize>(x: &[R; N]) -> R {
    let mut sum = R::lit(0.0);
    for i in 0..N {
        sum += x[i];
    }
    sum
}

#[device]
pub fn structures<R: Real>(x: &[R; 4]) -> [R; 8] {
    let w = ordered(Wave {
        left: x[0],
        right: x[1],
        signed: [x[2], x[3]],
    });
    let Wave { left, right, .. } = w;
    let four = [left, right, w.signed[0], w.signed[1]];
    let k = (x[0].to_i32() as u32 % 3) as usize;
    let entry = TABLE[k][1];
    let total = sum_of::<R, 4>(&four);
    let pair = sum_of::<R, 2>(&w.signed);
    [
        left,
        right,
        total,
        pair,
        R::from_f64(entry as f64),
        R::from_f64(LIMIT),
        0.5,
        total / pair,
    ]
}

/// Without a type parameter, literals are doubles.
#[device]
fn halves(x: f64) -> (f64, f64) {
    let upper = f64::from_bits(x.to_bits() & 0xffff_ffff_0000_0000u64);
    (upper, (x - upper) * 0.1 + f64::MIN_POSITIVE)
}

#[device]
pub fn doubles<R: Real>(x: &[R; 2]) -> [R; 4] {
    let (upper, lower) = halves(x[0].to_f64());
    let quarter = R::from_f64(0.1 * x[1].to_f64());
    let rest = x[1].to_f64() - upper;
    [
        R::from_f64(upper),
        R::from_f64(lower),
        quarter,
        R::from_f64(rest * 0.7f64),
    ]
}
