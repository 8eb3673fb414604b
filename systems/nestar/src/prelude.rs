//! Names for programs with additional physics.

pub use crate::app::App;
pub use crate::assemble::Simulation;
/// Needed by the derives of components and resources.
pub use bevy_ecs;
pub use bevy_ecs::prelude::{
    Commands, Component, Entity, In, Query, Res, ResMut, Resource, With, Without,
};
pub use nestar_deck::{Deck, DeckError, TableFile, deck};
pub use nestar_device::math::*;
pub use nestar_device::random::{self, Stream};
pub use nestar_device::{
    Face, FaceStencil, Ghost, Lane, Place, Real, Stencil, Table, device, interpolate,
};
pub use nestar_engine::comm::{Comm, Reduce};
pub use nestar_engine::data::{
    Correct, Field, FieldSpec, LevelRows, ParticleEntities, ParticleId, Pool, Precision,
};
pub use nestar_engine::mesh::{
    Cost, CostPart, Costs, Level, LevelClock, Observed, Owner, Parent, PatchComponent, PatchIndex,
    PatchRow, Pinned, Topology,
};
pub use nestar_engine::step::{
    AlignedLevels, Around, BudgetId, Budgets, FieldView, Read, StepLimits, Write,
};
pub use nestar_engine::{Engine, Error, Plugin, PluginState};
pub use nestar_kernels::hydro::{Conserved, internal_energy, kinetic_energy, pressure};
pub use nestar_kernels::mesh::nothing;
pub use nestar_kernels::mesh::subcycle::{CONTINUE, DONE, FAILED, Outcome, RETRY, Subcycle};
pub use nestar_scenarios::{Parameters, Setting};
pub use nestar_systems::cooling::{CoolingLaws, CoolingRates};
pub use nestar_systems::declare::{Declare, GasFrame};
pub use nestar_systems::fields::{External, ExternalState, Gas, GasModel, OwnPotential};
pub use nestar_systems::gravity::{GravitySources, Matter};
pub use nestar_systems::hydro::{InitialState, Primitive};
pub use nestar_systems::order::{
    Advance, Aligned, Flag, Initialise, Limit, Ready, Regrid, Split, Synchronise,
};
pub use nestar_systems::register::Register;
pub use nestar_systems::subcycling::Subcycling;
