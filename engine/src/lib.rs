//! The machine of Nestar: world, patches, pools, levels, time, files and configuration.
//!
//! Nothing here knows physics: a field is registered with its metadata, and ghost exchange, refinement, restriction, flux
//! correction, output and restart follow from that.
//!
//! The modules are floors: each names those below it only, `mesh <- device <- field <- ranks <- step <- run`, and none is
//! part of a circle of files (`cargo xtask layers`).

pub mod comm;
pub mod data;
pub mod device;
pub mod mesh;
pub mod run;
pub mod step;

pub use step::{Engine, Error, Plugin, PluginState};
