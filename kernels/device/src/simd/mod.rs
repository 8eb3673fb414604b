//! Lane types: SIMD registers of `f32` or `f64` ([`x86`]), and the scalars themselves with one lane.
//!
//! Every operation gives each lane the bits that the scalar operation gives.
use crate::{Lane, Num, Real};

#[cfg(target_arch = "x86_64")]
pub mod x86;

/// Upper limit for the number of lanes of any type.
const MAX_LANES: usize = 16;

/// A SIMD register of numbers with loads and stores.
pub trait Simd: Lane {
    /// Type of one lane.
    type E: Real;
    /// Number of lanes.
    const N: usize;

    /// Returns `true` if this processor has the instructions of the type. Otherwise no value of it may be created.
    fn available() -> bool;

    /// Loads `N` consecutive numbers from `p`.
    ///
    /// # Safety
    /// `p` is valid for reading `N` numbers. It needs no alignment beyond that of one number.
    unsafe fn load(p: *const Self::E) -> Self;

    /// Writes `N` consecutive numbers to `p`.
    ///
    /// # Safety
    /// `p` is valid for writing `N` numbers. It needs no alignment beyond that of one number.
    unsafe fn store(self, p: *mut Self::E);

    /// Loads rows of 8: like [`load`](Simd::load) for up to 8 lanes; with 16 lanes, 8 numbers from `p` and 8 from `p + stride`.
    ///
    /// # Safety
    /// As for `load`, at both places.
    #[inline(always)]
    unsafe fn load2(p: *const Self::E, stride: usize) -> Self {
        let _ = stride;
        // SAFETY: one row; the caller vouches for it
        unsafe { Self::load(p) }
    }

    /// Stores rows of 8: like [`store`](Simd::store) for up to 8 lanes; with 16 lanes, 8 numbers to `p` and 8 to `p + stride`.
    ///
    /// # Safety
    /// As for `store`, at both places.
    #[inline(always)]
    unsafe fn store2(self, p: *mut Self::E, stride: usize) {
        let _ = stride;
        // SAFETY: one row; the caller vouches for it
        unsafe { self.store(p) }
    }

    /// Returns the largest lane, by `max` from the first lane to the last.
    #[inline(always)]
    fn hmax(self) -> Self::E {
        let mut lanes = [Self::E::lit(0.0); MAX_LANES];
        // SAFETY: N is at most MAX_LANES
        unsafe { self.store(lanes.as_mut_ptr()) }
        let mut largest = lanes[0];
        for lane in &lanes[1..Self::N] {
            largest = Num::max(largest, *lane);
        }
        largest
    }
}

macro_rules! scalar {
    ($t:ty) => {
        impl Simd for $t {
            type E = $t;
            const N: usize = 1;
            #[inline(always)]
            fn available() -> bool {
                true
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> $t {
                // SAFETY: the caller vouches for one number
                unsafe { *p }
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $t) {
                // SAFETY: the caller vouches for one number
                unsafe { *p = self }
            }
        }
    };
}
scalar!(f32);
scalar!(f64);
