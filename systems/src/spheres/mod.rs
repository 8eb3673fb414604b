//! Spheres in equilibrium: particles without collisions and hydrostatic gas, around a centre.
//!
//! A [`Profile`] is a density as a function of radius. A [`Sphere`] is a component of particles with such a density, whose velocities
//! keep it in equilibrium in the potential of itself and other mass; a [`Gas`] is a component whose pressure does. An [`Orbit`] puts
//! two of them in motion around each other. Everything is in code units, and the same bits on every machine.
//! [`NamedSpheres`] has those of a deck.

mod config;
mod curve;
mod distribution;
mod entropy;
mod error;
mod gas;
mod matter;
mod named;
mod orbit;
mod profile;
mod rest;
mod speeds;
mod sphere;
mod table;
mod tables;

pub use config::ProfileConfig;
pub use entropy::Entropy;
pub use error::SphereError;
pub use gas::HydrostaticGas;
pub use named::{NamedSpheres, Spheres};
pub use orbit::{Centre, Orbit};
pub use profile::Profile;
pub use sphere::{Sphere, UNIFORMS};
pub use tables::{Ambient, EncounterConfig, EntropyConfig, GasConfig, SphereConfig, SpheresConfig};

#[cfg(test)]
mod tests;
