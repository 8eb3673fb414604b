//! Nestar: adaptive mesh refinement for astrophysical fluids.
//!
//! This is the only crate that a user's program depends on. The [`prelude`] has the names for plugins and scenarios, [`entities`],
//! [`particles`], [`births`], [`stiff`] and [`math`] those of single subjects. [`cli::main`] gives the program the complete command line. Alternatively, a program runs a [`Simulation`] of a deck directly.

extern crate self as nestar;

pub mod app;
pub mod assemble;
pub mod cli;
pub mod monitor;
pub mod order;
mod pictures;
mod plot_fields;
mod plugin_catalogue;
pub mod prelude;
pub mod report;
mod tables;
pub mod testing;

pub use nestar_deck as deck;
/// Crate used by code that `#[device]` generates.
pub use nestar_device as device_runtime;
pub use nestar_device::math;
pub use nestar_engine as engine;
pub use nestar_kernels as kernels;
pub use nestar_mpi as mpi;
pub use nestar_scenarios as scenarios;
pub use nestar_snapshot as snapshot;
pub use nestar_systems as systems;

pub use app::App;
pub use assemble::Simulation;
pub use nestar_engine::Error;
pub use plugin_catalogue::RegisteredPlugin;

/// Names for programs that use patches and particles as entities.
pub mod entities {
    pub use bevy_ecs::prelude::{Commands, Component, Entity, Query, With, Without};
    pub use nestar_engine::data::{ParticleEntities, ParticleId, Patches};
    pub use nestar_engine::mesh::{
        Cost, Level, Observed, Owner, Parent, PatchComponent, PatchIndex, PatchRow, Pinned,
        RefinementFlags, Topology,
    };
}

/// Names for programs with functions of particles.
pub mod particles {
    pub use nestar_device::ParticlePlace;
    pub use nestar_kernels::mesh::cell_record::CellRecord;
    pub use nestar_kernels::particles::functions::Body;
    pub use nestar_systems::particles::{ParticleAccess, ParticleSelection, RecordedParticle};
}

/// Names for programs with sub-cycled sources, their energy budgets and their load balance.
pub mod stiff {
    pub use nestar_engine::data::Patches;
    pub use nestar_engine::mesh::Cost;
    pub use nestar_engine::step::{BudgetId, Budgets};
    pub use nestar_kernels::mesh::subcycle::{CONTINUE, DONE, FAILED, Outcome, RETRY, Subcycle};
    pub use nestar_systems::subcycling::Subcycling;
}

/// Names for programs that create and remove particles during a run, such as stars and sinks, and for their feedback.
pub mod births {
    pub use nestar_engine::data::{CellAddress, RecordedCell};
    pub use nestar_kernels::mesh::cell_record::CellRecord;
    pub use nestar_systems::births::{
        NewParticle, ParticleBirths, ParticlesOnDemand, SelectedParticle,
    };
    pub use nestar_systems::feedback::{
        FeedbackEvent, FeedbackKinds, Injection, Injections, Surroundings, kinetic, mechanical,
        shell_radius, thermal,
    };
    pub use nestar_systems::sinks::{
        FormingSink, SinkCell, SinkRule, SinkRules, SinkState, bound_excess, is_collapsing,
    };
    pub use nestar_systems::star_formation::{FormingStar, StarBirths, StarMasses, form_star};
}
