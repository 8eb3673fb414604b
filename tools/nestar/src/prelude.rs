//! What a program with its own physics needs.

pub use crate::assemble::Simulation;
pub use bevy_ecs::prelude::{Res, ResMut, Resource};
pub use nestar_device::math::*;
pub use nestar_device::{Lane, Place, Real, device};
pub use nestar_engine::field::{LevelRows, Pool};
pub use nestar_engine::mesh::LevelClock;
pub use nestar_engine::mesh::Topology;
pub use nestar_engine::ranks::Reduce;
pub use nestar_engine::step::StepLimits;
pub use nestar_engine::{Error, Plugin, Simulation as Engine};
pub use nestar_kernels::hydro::{Conserved, kinetic_energy, pressure};
pub use nestar_systems::fields::{Gas, GasModel};
pub use nestar_systems::order::{Advance, Flag, Initialise, Limit, Regrid, Synchronise};
pub use nestar_systems::register::Register;
