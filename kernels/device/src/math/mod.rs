//! Mathematical functions with one definition for the scalar CPU, the vector CPU and CUDA.
//!
//! No libm agrees with another in the last bits, nor with CUDA's. These functions are made of correctly rounded
//! operations only, so that each gives the same bits everywhere. The transcendental ones compute in double precision
//! for both number types: in single precision they are nearly always correctly rounded. They take scalars (`R: Real`),
//! treat zeros, infinities, NaN and denormals as C's functions do, and state their largest error in units in the last
//! place (ulp), which the tests hold against a reference of 100 bits.
mod double;
mod error_function;
mod exponential;
mod hyperbolic;
mod sums;
mod trigonometric;

pub use error_function::erf;
pub use exponential::{exp, exp_m1, ln, ln_1p, ln_ratio, log10, pow, sqrt};
pub use hyperbolic::{cosh, sinh, tanh};
pub use sums::{sum3, sum4};
pub use trigonometric::{atan, atan2, cos, sin, tan};
