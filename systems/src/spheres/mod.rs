//! Spheres in equilibrium: collisionless particles and hydrostatic gas around a centre.
//!
//! A [`Profile`] is a density as a function of radius. A [`Sphere`] is a component of particles with
//! isotropic velocities in equilibrium in the total potential; [`HydrostaticGas`] is a component supported by
//! pressure. An [`Orbit`] places two spheres relative to each other. All values are in code units and have the
//! same bits on every machine. [`NamedSpheres`] holds the spheres of a deck.

mod config;
mod density_table;
mod distribution;
mod entropy;
mod error;
mod gas;
mod mass_model;
mod named_spheres;
mod orbit;
mod profile;
mod radial_function;
mod remainder;
mod speed_distribution;
mod sphere;

pub use config::{
    Ambient, EncounterConfig, EntropyConfig, GasConfig, ProfileConfig, SphereConfig, SpheresConfig,
};
pub use entropy::Entropy;
pub use error::SphereError;
pub use gas::HydrostaticGas;
pub use named_spheres::{NamedSpheres, Spheres};
pub use orbit::{Centre, Orbit};
pub use profile::Profile;
pub use sphere::{Sphere, UNIFORMS};

#[cfg(test)]
mod tests;
