//! What a program with its own physics needs.

pub use crate::app::App;
pub use crate::assemble::Simulation;
/// The derives of components and resources refer to it.
pub use bevy_ecs;
pub use bevy_ecs::prelude::{
    Commands, Component, Entity, In, Query, Res, ResMut, Resource, With, Without,
};
pub use nestar_deck::{Deck, DeckError, TableFile, deck};
pub use nestar_device::math::*;
pub use nestar_device::random::{self, Stream};
pub use nestar_device::{
    Across, Around, Face, Ghost, Lane, Place, Real, Table, device, interpolate,
};
pub use nestar_engine::field::{
    Correct, Field, FieldSpec, Individuals, Item, LevelRows, Pool, Precision,
};
pub use nestar_engine::mesh::{
    Carried, Cost, CostPart, Costs, Level, LevelClock, Observed, Owner, Parent, PatchIndex, PatchRow, Pinned,
    Topology,
};
pub use nestar_engine::ranks::{OtherRanks, Reduce};
pub use nestar_engine::step::{Account, Accounts, AlignedLevels, Read, StepLimits, View, Write};
pub use nestar_engine::{Engine, Error, Plugin, PluginState};
pub use nestar_kernels::hydro::{Conserved, internal_energy, kinetic_energy, pressure};
pub use nestar_kernels::mesh::attempt::{Attempt, DONE, FAILED, Outcome, UNFINISHED, WAITING};
pub use nestar_kernels::mesh::nothing;
pub use nestar_scenarios::{Parameters, Setting};
pub use nestar_systems::attempts::Attempts;
pub use nestar_systems::declare::Declare;
pub use nestar_systems::fields::{External, Gas, GasModel, Outside, OwnPotential};
pub use nestar_systems::gravity::{Gravitates, Matter};
pub use nestar_systems::hydro::{InitialState, Primitive};
pub use nestar_systems::order::{
    Advance, Aligned, Flag, Initialise, Limit, Ready, Regrid, Split, Synchronise,
};
pub use nestar_systems::register::Register;
