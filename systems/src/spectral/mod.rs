//! Fourier transforms of the root grid: real numbers in double precision, with planes distributed over ranks.
//!
//! A [`Filter`] multiplies every mode of a box of numbers by a factor and returns to space; with [`Shape::padded`] that is a
//! convolution without periodic images. rustfft's generic algorithms transform several rows side by side in vector registers. The
//! bits are the same on any number of threads and ranks and on any machine: plans do not depend on the processor, and twiddle
//! factors are exactly rounded in place of those that the platform's sine and cosine give.

mod batch;
mod fft;
mod filter;
mod lanes;
mod plan;
mod real;
mod roots;
mod shape;
mod transpose;

#[cfg(test)]
mod tests;

pub use batch::{Batch, LANES};
pub use fft::Fft;
pub use filter::Filter;
pub use real::RealFft;
pub use roots::{root_of_unity, smooth_length};
pub use shape::Shape;
