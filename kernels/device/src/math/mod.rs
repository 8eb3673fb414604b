//! Mathematical functions with one definition for the scalar CPU, the vector CPU and CUDA.
//!
//! No libm agrees with another in the last bits, nor with CUDA's. These functions are made of correctly rounded
//! operations only, so that each gives the same bits everywhere. The transcendental ones compute in double precision
//! for both number types: in single precision they are nearly always correctly rounded.
mod double;
mod exponential;
mod sums;

pub use exponential::{exp, ln, pow};
pub use sums::{sum3, sum4};
