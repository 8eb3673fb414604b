//! Counter-based random numbers: Philox 4x32-10, after J. K. Salmon, M. A. Moraes, R. O. Dror & D. E. Shaw, "Parallel random numbers: as
//! easy as 1, 2, 3", SC11 (2011), doi:10.1145/2063384.2063405.
//!
//! A random number is a function of a seed, a purpose, a step and a cell or particle. It is the same on any number of threads, ranks and
//! devices and after a restart, and needs no state. Each call gives a *block* of four 32-bit words, from which [`uniforms`] and [`normals`]
//! make two numbers. All functions are `#[device]` and give the same bits on every device.
use crate::math::{cos, ln, sin};
use crate::{Place, Real, device};
use std::fmt;

/// Identifies a stream of random numbers. [`Purposes::register`] returns it; it is passed to `#[device]` functions in their parameters.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Seed chosen by the user.
    pub seed: u32,
    /// Number of the purpose, below 65536; unique within a run.
    pub purpose: u32,
    /// Step of the level, or any other counter.
    pub step: u32,
}

impl Stream {
    /// Returns the stream at a step; only its lower 32 bits are used.
    #[must_use]
    pub const fn at_step(self, step: u64) -> Self {
        Self {
            step: step as u32,
            ..self
        }
    }
}

/// Computes Philox 4x32 with ten rounds: four random words from a counter and a key. It is a bijection of the counter for each key.
#[device]
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let (mut c, mut k) = (counter, key);
    for _ in 0..10 {
        let first = c[0] as u64 * 0xd251_1f53;
        let second = c[2] as u64 * 0xcd9e_8d57;
        c = [
            (second >> 32) as u32 ^ c[1] ^ k[0],
            second as u32,
            (first >> 32) as u32 ^ c[3] ^ k[1],
            first as u32,
        ];
        k = [
            k[0].wrapping_add(0x9e37_79b9),
            k[1].wrapping_add(0xbb67_ae85),
        ];
    }
    c
}

/// Returns block `n` (0 to 255) of random words of a cell. It depends on level, index on the level, seed, purpose and step.
#[device]
pub fn in_cell<R: Real>(stream: &Stream, at: &Place<R>, n: u32) -> [u32; 4] {
    let [i, j, k] = at.index;
    let level = at.level as u32 & 0xff;
    philox(
        [i as u32, j as u32, k as u32, stream.step],
        [stream.seed, stream.purpose << 16 | level << 8 | n & 0xff],
    )
}

/// Returns block `n` (0 to 255) of random words of a particle, wave or other object with a number.
#[device]
pub fn of_id(stream: &Stream, id: u64, n: u32) -> [u32; 4] {
    // no cell has level 255
    philox(
        [id as u32, (id >> 32) as u32, 0, stream.step],
        [stream.seed, stream.purpose << 16 | 0xff00 | n & 0xff],
    )
}

/// Returns the centre of one of 2^52 (single precision: 2^23) equal parts of the interval from 0 to 1.
#[device]
fn open_unit<R: Real>(high: u32, low: u32) -> R {
    let bits = (high as u64) << 32 | low as u64;
    let unused: u32 = if R::EPSILON > 1e-10 { 41 } else { 12 };
    R::from_f64(((bits >> unused) as f64 + 0.5f64) * R::EPSILON.to_f64())
}

/// Returns two numbers, uniform in the open interval from 0 to 1.
#[device]
pub fn uniforms<R: Real>(block: [u32; 4]) -> [R; 2] {
    [
        open_unit::<R>(block[0], block[1]),
        open_unit::<R>(block[2], block[3]),
    ]
}

/// Returns two independent normal deviates with mean 0 and variance 1. Their size is at most 8.6 (single precision: 5.8).
///
/// After G. E. P. Box & M. E. Muller, Ann. Math. Statist. 29, 610 (1958), doi:10.1214/aoms/1177706645.
#[device]
pub fn normals<R: Real>(block: [u32; 4]) -> [R; 2] {
    let [u, v] = uniforms::<R>(block);
    let radius = (-2.0 * ln(u)).sqrt();
    let angle = 2.0 * R::PI * v;
    [radius * cos(angle), radius * sin(angle)]
}

/// Registers the purposes for which a run draws random numbers, so that no two share a stream.
#[derive(Clone, Debug, Default)]
pub struct Purposes {
    taken: Vec<(u32, String)>,
}

/// Error: two purposes would draw the same numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPurpose {
    name: String,
    other: String,
}

impl fmt::Display for SharedPurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, other } = self;
        if name == other {
            write!(
                f,
                "the purpose \"{name}\" draws random numbers already; give each use a name of its own"
            )
        } else {
            write!(
                f,
                "the purposes \"{name}\" and \"{other}\" would draw the same random numbers; rename one of them"
            )
        }
    }
}

impl std::error::Error for SharedPurpose {}

impl Purposes {
    /// Registers a purpose and returns its stream. Its number is a hash of the name, independent of other purposes.
    ///
    /// # Errors
    /// The purpose is already registered, or another one has the same number (probability 1 in 65536).
    pub fn register(&mut self, name: &str, seed: u32) -> Result<Stream, SharedPurpose> {
        // FNV-1a, both halves
        let hash = name.bytes().fold(0x811c_9dc5u32, |h, b| {
            (h ^ u32::from(b)).wrapping_mul(0x0100_0193)
        });
        let purpose = (hash >> 16) ^ (hash & 0xffff);
        if let Some((_, other)) = self.taken.iter().find(|(number, _)| *number == purpose) {
            let (name, other) = (name.into(), other.clone());
            return Err(SharedPurpose { name, other });
        }
        self.taken.push((purpose, name.into()));
        Ok(Stream {
            seed,
            purpose,
            step: 0,
        })
    }

    /// Iterates over the names in the order of registration.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.taken.iter().map(|(_, name)| name.as_str())
    }
}
