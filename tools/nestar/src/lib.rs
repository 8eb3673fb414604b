//! Nestar: adaptive mesh refinement for astrophysical fluids.
//!
//! This crate is what a user's program depends on: [`Simulation`] from a deck, plugins, and the [`prelude`].

pub mod assemble;
pub mod order;
pub mod prelude;
pub mod report;
pub mod watch;

/// What generated code of `#[device]` refers to.
pub use nestar_device as device_runtime;
pub use nestar_engine as engine;
pub use nestar_kernels as kernels;
pub use nestar_mpi as mpi;
pub use nestar_scenarios as scenarios;
pub use nestar_snapshot as snapshot;
pub use nestar_systems as systems;

pub use assemble::Simulation;
pub use nestar_engine::Error;
