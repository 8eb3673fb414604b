//! Fourier transforms of the root grid: real numbers in double precision, with planes distributed over ranks.
//!
//! A [`Filter`] transforms a box of numbers, multiplies every mode by a factor and transforms back. With [`Shape::padded`] this
//! is a convolution without periodic images. [`box_of_modes`] makes a box from its modes, and [`BoxModes`] are those of a box. rustfft's generic algorithms transform several rows at a time in vector registers.
//! The bits are the same on any number of threads and ranks and on any machine: plans do not depend on the processor, and twiddle
//! factors are exactly rounded.

mod batch;
mod fft;
mod filter;
mod modes;
mod power;
mod roots;

#[cfg(test)]
mod tests;

pub use batch::{Batch, LANES};
pub use fft::{Fft, RealFft};
pub use filter::{Filter, Shape};
pub use modes::{BoxModes, box_of_modes};
pub use power::{ShellPart, power_by_shell, sum_by_shell};
pub use roots::{root_of_unity, smooth_length};
