//! Fourier transforms of the root grid, for whoever wants them: real numbers in double precision, planes over ranks.
//!
//! A [`Filter`] multiplies every mode of a box of numbers by a factor and returns to space; with [`Shape::padded`] that is a
//! convolution without periodic images. The transforms are this folder's own because their bits are part of a run's: they are
//! the same on any number of threads and ranks and on any machine. Libraries take twiddle factors from the platform's
//! mathematics, whose last digits differ between machines, and choose their algorithms by what the processor has.

mod batch;
mod fft;
mod filter;
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
