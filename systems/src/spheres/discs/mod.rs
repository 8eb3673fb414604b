//! Exponential discs of particles and gas inside spheres.
//!
//! All mass attracts: the spheres of the same centre and all discs. The force of a disc of finite height is
//! tabulated once, from that of a thin disc.

mod force;
mod gas;
mod grid;
mod shape;
mod stars;
mod thin;

pub use force::GalaxyForce;
pub use gas::{GasDisc, GasDiscState, Medium};
pub use shape::DiscShape;
pub use stars::{Disc, DiscMotion};
#[cfg(test)]
pub(super) use thin::force as thin_force;
