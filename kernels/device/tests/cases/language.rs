//! Features of the subset that need types: enums without data, functions selected by type, inferred integers, lengths, values of loops.
use nestar_device::{Lane, Real, device};

/// Selects how two numbers are combined.
#[device]
#[derive(Clone, Copy, PartialEq)]
pub enum Mode {
    /// By addition.
    Sum,
    Product = 5,
    /// A C++ keyword.
    Double,
}

#[device]
#[derive(Clone, Copy)]
pub struct Chosen<R> {
    mode: Mode,
    scale: R,
}

#[device]
fn met<R: Real>(c: Chosen<R>, a: R, b: R) -> R {
    c.scale
        * match c.mode {
            Mode::Sum => a + b,
            Mode::Product => a * b,
            Mode::Double => {
                let twice = a + a;
                twice * b
            }
        }
}

#[device]
pub fn enums<R: Real>(x: &[R; 4]) -> [R; 8] {
    let mut o = [0.0; 8];
    let mode = if x[0] > x[1] {
        Mode::Product
    } else {
        Mode::Sum
    };
    o[0] = met(Chosen { mode, scale: x[2] }, x[0], x[1]);
    o[1] = met(
        Chosen {
            mode: Mode::Double,
            scale: 2.0,
        },
        x[2],
        x[3],
    );
    o[2] = R::from_i32(mode as i32) + R::from_usize(Mode::Double as usize);
    o[3] = if mode == Mode::Sum && mode != Mode::Double {
        x[3]
    } else {
        -x[3]
    };
    let modes = [Mode::Sum, mode, Mode::Double];
    for k in 0..modes.len() {
        o[4 + k] = R::from_i32(modes[k] as i32);
    }
    o
}

/// A growth law.
pub trait Growth {
    /// Its exponent.
    const POWER: i32;
    const SCALE: f64 = 1.0;
    fn of<R: Real>(x: R) -> R;
    fn both<R: Lane>(x: R, y: R) -> [R; 2] {
        [y, x]
    }
}

pub struct Square;

#[device]
impl Growth for Square {
    const POWER: i32 = 2;
    const SCALE: f64 = 0.1 * 3.0;
    fn of<R: Real>(x: R) -> R {
        square(x)
    }
    fn both<R: Lane>(x: R, y: R) -> [R; 2] {
        [if x < y { x } else { y }, 0.5 * (x + y)]
    }
}

pub enum Cube {}

#[device]
impl Growth for Cube {
    const POWER: i32 = 3;
    const SCALE: f64 = -2.0;
    /// Returns the cube, by the square.
    fn of<R: Real>(x: R) -> R {
        let mut y = Square::of(x);
        for _ in 2..Self3::THREE {
            y = y * x;
        }
        y
    }
    fn both<R: Lane>(x: R, y: R) -> [R; 2] {
        [x * y * R::lit(Self::SCALE), x - y * R::lit(Cube::SCALE)]
    }
}

/// A type with constants only.
pub struct Self3;
pub trait Three {
    const THREE: usize;
}
#[device]
impl Three for Self3 {
    const THREE: usize = 1 + 2;
}

#[device]
fn square<R: Lane>(x: R) -> R {
    x * x
}

#[device]
fn grown<R: Real, G: Growth>(x: R) -> R {
    let [a, b] = G::both::<R>(x, 1.0);
    G::of(x) * R::lit(G::SCALE) + a.powi(G::POWER) - b
}

/// Two types that provide functions, one of them passed on.
#[device]
fn grown_twice<R: Real, G: Growth, H: Growth, const N: usize>(x: R, _: H) -> R {
    let mut y = grown::<R, G>(x);
    for _ in 0..N {
        y = H::of::<R>(y) + G::of::<R>(x);
    }
    y
}

#[device]
pub fn choices<R: Real>(x: &[R; 4]) -> [R; 4] {
    [
        grown::<R, Square>(x[0]),
        grown::<R, Cube>(x[1]),
        grown_twice::<R, Cube, Square, 2>(x[2], Square),
        Square::of(x[3]) + R::lit(Cube::SCALE),
    ]
}

#[device]
const MASK: u32 = 1 << 5 | 3;
#[device]
const COUNT: usize = 2 * 3;
#[device]
const FRACTION: f64 = 1.0 / COUNT as f64 - 0.5;
#[device]
const RANGE: (i64, f64) = (-1 << 40, 1e-3);
#[device]
const WEIGHTS: [[f64; COUNT / 2]; 2] = [[0.25; COUNT / 2]; 2];

/// Integers whose type no literal gives.
#[device]
fn mixed_bits(seed: u64, n: u32) -> (u64, u32) {
    let mut h = 0x9e37_79b9_7f4a_7c15;
    let mut count = 0;
    for k in 0..8 {
        h = (h ^ (seed >> k)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        count += (h >> 63) as u32;
    }
    let limit = 3_000_000_000;
    let (low, high) = (h as u32, 1 << 40);
    let shifted = 1 << (n % 32);
    let large = if n > limit { 4_000_000_000 } else { n };
    let mut table = [0; COUNT];
    for i in 0..table.len() {
        table[i] = h & 0xff;
        h = h.wrapping_add(high).wrapping_sub(i as u64);
    }
    (
        h ^ table[COUNT - 1],
        count ^ low ^ (shifted as u32) ^ large.wrapping_add(MASK),
    )
}

#[device]
pub fn integers<R: Real>(x: &[R; 4]) -> [R; 8] {
    let a = x[0].to_i32();
    let (h, n) = mixed_bits(a as i64 as u64, x[1].to_i32() as u32);
    let mut o = [0.0; 8];
    o[0] = R::from_f64((h >> 11) as f64);
    o[1] = R::from_u32(n);
    // precedence, signs, casts
    let b = a % 1000;
    o[2] = R::from_i32(-b as i64 as i32 - -3 + (-7 / 2) % 3 - (b >> 1));
    o[3] = R::from_f64(-1.5f64 as i32 as f64 + (300.7f64 as u32 as f64) + (-1.0f64 as u32) as f64);
    o[4] = R::from_i32((b > 3) as i32 - !(b | 5) + (b & !1 ^ 7) + (true & (b != 0) | false) as i32);
    let least = -2147483648;
    let far = -9_223_372_036_854_775_808i64;
    o[5] = R::from_i32(least / 2 + i32::MIN.max(b) - i32::MAX / 3);
    o[6] = R::from_f64((far / 3) as f64 + RANGE.0 as f64 + RANGE.1 + FRACTION);
    let (mut p, mut q) = (x[2], x[3]);
    (p, q) = (q, p);
    o[7] = p - q * R::lit(WEIGHTS[1][2]) + R::from_usize(WEIGHTS.len() * WEIGHTS[0].len());
    o
}

/// Returns the first power of two above.
#[device]
fn power_above<R: Real>(x: R) -> R {
    let mut y = R::lit(1.0);
    loop {
        if !(y < x) {
            break y;
        }
        if y > 1e30 {
            return -y;
        }
        y = y + y;
    }
}

#[device]
pub fn loops<R: Real>(x: &[R; 4]) -> [R; 4] {
    let n = loop {
        let k = (x[0].to_i32() % 7).abs();
        if k == 3 {
            break 0;
        }
        for j in 0..k {
            if j == 4 {
                break;
            }
        }
        break k;
    };
    let mut turns = 0;
    let found: R = loop {
        turns += 1;
        if turns > 4 || x[1] > R::from_i32(turns) {
            break x[2];
        }
        if x[3] > x[2] {
            continue;
        }
        break {
            let half = 0.5 * x[3];
            half + half
        };
    };
    let class = match n {
        -3..=-1 => -1,
        0 | 1 => 0,
        2..5 => 1,
        i32::MAX => 3,
        _ => 2,
    };
    [
        power_above(x[0]),
        found,
        R::from_i32(n * 10 + turns),
        R::from_i32(class),
    ]
}

#[device]
pub const M_PI: f64 = 3.25;

/// Names that are reserved in C++, its headers or the text itself.
#[device]
#[derive(Clone, Copy)]
pub struct Names<R> {
    pub template: R,
    pub register: [R; 2],
    pub NAN: R,
    pub RS_FN: bool,
}

#[device]
fn operator<R: Real>(double: R, M_E: R, r#struct: R) -> R {
    double + M_E * r#struct
}

#[device]
pub fn names<R: Real>(x: &[R; 4]) -> [R; 8] {
    let (s_, s_1_, t_1_, e_1_) = (x[0], x[1], x[2], x[3]);
    let double = Names {
        template: s_,
        register: [s_1_, t_1_],
        NAN: e_1_,
        RS_FN: s_ > s_1_,
    };
    let λ = double.template;
    let NULL = λ + double.register[1];
    let double = Names {
        template: NULL,
        ..double
    };
    let mut sum = R::lit(0.0);
    for t in 0..2 {
        let t = t + 1;
        let t = R::from_i32(t) * sum + x[0];
        {
            let sum = t;
            let t = sum * 0.5;
            if t > x[1] && double.RS_FN {
                break;
            }
        }
        sum = sum + t;
    }
    let int = [[double.NAN; 2]; 2];
    let same = int[0] == int[1] && (x[0], x[1]) != (x[1], x[0]);
    let several = [double, Names { NAN: sum, ..double }];
    let throw = operator(several[1].NAN, -several[0].template, R::lit(M_PI));
    [
        throw,
        λ,
        NULL,
        sum,
        int[1][0] - -2.0,
        if same { 1.0 } else { 0.0 },
        several[1].register[1],
        -x[0].abs() * -2.0 - -x[1],
    ]
}
