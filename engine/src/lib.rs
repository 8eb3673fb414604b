//! The engine of Nestar: hierarchy, fields and particles, communication, time stepping, snapshots and configuration.
//!
//! The engine contains no physics. A field is registered with its metadata, from which ghost exchange, refinement,
//! restriction, flux correction, output and restart are derived.
//!
//! The engine consists of layers, one crate each. `mesh` and `device` are the lowest, followed by `data`, `comm`, `step` and
//! `run`. A layer uses only lower ones. This crate has them as modules.

#[doc(inline)]
pub use nestar_engine_comm as comm;
#[doc(inline)]
pub use nestar_engine_data as data;
#[doc(inline)]
pub use nestar_engine_device as device;
#[doc(inline)]
pub use nestar_engine_mesh as mesh;
#[doc(inline)]
pub use nestar_engine_run as run;
#[doc(inline)]
pub use nestar_engine_step as step;

pub use nestar_engine_data::in_precision;
pub use nestar_engine_step::{Engine, Error, Plugin, PluginState};
