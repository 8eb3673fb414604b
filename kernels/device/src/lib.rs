//! Numerical functions written once: scalar and vector code for the CPU, CUDA C++ for the GPU.
//!
//! [`#[device]`](device) keeps a function, structure or constant as ordinary Rust and adds a companion of the same name
//! whose `ITEM` holds the equivalent CUDA C++ text. A numerical function is generic over its number type:
//!
//! - `R: `[`Lane`] may be a whole SIMD register ([`simd`]); an `if` on such numbers becomes a selection;
//! - `R: `[`Real`] is one `f32` or `f64`, with loops and branches on its value.
//!
//! ```
//! use nestar_device::{Lane, device, program};
//!
//! /// The monotonised central slope.
//! #[device]
//! pub fn slope<R: Lane>(left: R, right: R) -> R {
//!     let smaller = left.abs().min(right.abs());
//!     let central = 0.5 * (left + right);
//!     if left * right > 0.0 { central.abs().min(2.0 * smaller).copysign(central) } else { 0.0 }
//! }
//!
//! assert_eq!(slope(1.0f64, 3.0), 2.0);
//! assert!(program(&[slope::ITEM]).contains("R slope(const R left, const R right)"));
//! ```
//!
//! CPU and GPU agree bit for bit when the text is compiled without contraction (`--fmad=false` for NVRTC): every operation
//! of the subset is either correctly rounded by IEEE 754 or defined here, and the transcendental functions of [`math`] are
//! themselves `#[device]` functions.
// the attribute's output names this crate by its public name, inside the crate too
extern crate self as nestar_device;

mod cell_fn;
mod ghost;
mod item;
mod lane;
pub mod math;
mod parameter;
mod particle_fn;
pub mod random;
mod real;
pub mod simd;
mod table;

pub use cell_fn::{BlockFace, CellFn, CellInputs, Face, FaceFn, FaceStencil, Place, Stencil};
pub use ghost::{Ghost, InnerCells, MAX_INNER_CELLS};
pub use item::{
    Functions, Generic, Item, Kind, LAUNCH, Marked, PRELUDE, TextPiece, instantiate,
    instantiate_with, program, unmarked,
};
pub use lane::{Lane, Mask, Num, Pick};
pub use nestar_device_macro::device;
pub use parameter::{Address, Members, Number, Parameter, StructLayout};
pub use particle_fn::{ParticleFn, ParticleInputs, ParticlePlace};
pub use real::{Bits, CellState, Precise, Real};
pub use table::{Table, interpolate};
