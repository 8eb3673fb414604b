//! Reproducible numbers for the tests.
#![allow(dead_code, reason = "each test takes what it needs")]
use nestar_device::Real;

/// SplitMix64 (Steele, Lea & Flood, OOPSLA 2014).
pub struct Random(u64);

impl Random {
    /// A generator for every seed.
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in [low, high).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }
}

/// A third ordinary numbers, a third of any magnitude, a third special: zeros, small integers, denormals, any bit
/// pattern, the largest and smallest, infinities, NaN, and repetitions of the number before.
pub fn mixed<R: Real>(count: usize, seed: u64) -> Vec<R> {
    let mut random = Random::new(seed);
    let decades = if size_of::<R>() == 4 { 37.0 } else { 300.0 };
    let mut numbers: Vec<R> = Vec::with_capacity(count);
    for _ in 0..count {
        let ordinary = R::lit(random.between(-30.0, 30.0));
        let number = match random.bits() % 3 {
            0 => ordinary,
            1 => {
                let size = 10f64.powf(random.between(-decades, decades));
                R::lit(if random.bits() & 1 == 0 { size } else { -size })
            }
            _ => special(&mut random, numbers.last().copied().unwrap_or(ordinary)),
        };
        numbers.push(number);
    }
    numbers
}

fn special<R: Real>(random: &mut Random, before: R) -> R {
    let single = size_of::<R>() == 4;
    let mantissa = if single { 23 } else { 52 };
    match random.bits() % 12 {
        0 => R::lit(0.0),
        1 => R::lit(-0.0),
        2 | 3 => R::from_i32((random.bits() % 41) as i32 - 20),
        4 => R::from_i32((random.bits() % 41) as i32 - 20) * R::lit(0.5),
        5 => R::from_bits64(random.bits() % (1 << mantissa)),
        6 | 7 => R::from_bits64(if single {
            random.bits() >> 32
        } else {
            random.bits()
        }),
        8 => [R::MAX, -R::MAX, R::MIN_POSITIVE, R::EPSILON][(random.bits() % 4) as usize],
        9 => [R::INFINITY, -R::INFINITY, R::NAN][(random.bits() % 3) as usize],
        _ => before,
    }
}
