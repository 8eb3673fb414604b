//! The suite: one program, so that the tests of all topics run side by side.

mod analytic;
mod conservation;
mod copies;
mod decks;
mod determinism;
mod device_fluid;
mod device_mesh;
mod device_output;
mod device_runs;
mod entities;
mod fields;
mod halos;
mod hierarchy;
mod memory;
mod mending;
mod order;
mod phases;
mod plugin;
mod plugin_state;
mod ranks;
mod restart;
mod rundir;
mod schemes;
mod shares;
mod symmetry;
mod waves;
