//! Spheres in equilibrium: collisionless particles and hydrostatic gas around a centre.
//!
//! A [`Profile`] is a density as a function of radius. A [`Sphere`] is a component of particles with
//! isotropic velocities in equilibrium in the total potential; [`HydrostaticGas`] is a component supported by
//! pressure. An [`Orbit`] lets two spheres encounter each other. All values are in code units and have the
//! same bits on every machine. [`NamedSpheres`] holds the spheres of a deck.

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
