//! Mathematical functions with one definition for the scalar CPU, the vector CPU and CUDA.
//!
//! Results of libms and of CUDA differ in the last bits. These functions consist of correctly rounded operations only, so that each gives
//! the same bits everywhere. The transcendental ones compute in double precision for both number types; in single precision they are nearly
//! always correctly rounded. They take scalars (`R: Real`) and treat zeros, infinities, NaN and denormals as C's functions do. Their
//! largest errors are stated in units in the last place (ulp), and tested against a 100-bit reference.
mod double;
mod error_function;
mod exponential;
mod sums;
mod trigonometric;

pub use error_function::erf;
pub use exponential::{cosh, exp, exp_m1, ln, ln_1p, ln_ratio, log10, pow, sinh, sqrt, tanh};
pub use sums::{sum3, sum4};
pub use trigonometric::{atan, atan2, cos, sin, tan};
