//! The machine of Nestar: world, patches, pools, levels, time, files and configuration.
//!
//! Nothing here knows physics: a field is registered with its metadata, and ghost exchange, refinement, restriction, flux
//! correction, output and restart follow from that.

pub mod config;
pub mod device;
pub mod error;
pub mod field;
pub mod memory;
pub mod mesh;
pub mod parallel;
pub mod patch;
pub mod ranks;
pub mod run;
pub mod schedule;
pub mod simulation;
pub mod time;

pub use error::Error;
pub use simulation::{Plugin, Simulation};
