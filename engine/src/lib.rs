//! The engine of Nestar: hierarchy, fields and particles, communication, time stepping, snapshots and configuration.
//!
//! The engine contains no physics. A field is registered with its metadata, from which ghost exchange, refinement,
//! restriction, flux correction, output and restart are derived.
//!
//! The modules are layers: each uses only those below, `mesh <- device <- data <- comm <- step <- run`. Files form no
//! dependency cycles (`cargo xtask layers`).

pub mod comm;
pub mod data;
pub mod device;
pub mod mesh;
pub mod run;
pub mod step;

pub use step::{Engine, Error, Plugin, PluginState};
