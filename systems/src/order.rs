//! The order of a level step. All changes of the state are systems of these sets.
//!
//! ```text
//! Ready          after the hierarchy is built or restored, level by level
//!                  1 Deposit    matter to the mesh
//!                  2 Recompute  what snapshots do not hold
//! advance(level, until):
//!   while t[level] < until:
//!     Limit        all limits of the time step of the level; the smallest wins, synchronised with parent and child
//!                  (Schive et al. 2018, sec. 2.1)
//!     Split        1 Sources    split sources, half a step (Strang 1968)
//!     Advance      1 Exchange   halo exchanges of plugins
//!                  2 Fluid      gas from the present bank to the next; a rejected step is repeated from here
//!                  3 Predict    kick and drift of particles; fluxes and work of gravity with the potential before the step
//!                  4 Deposit    matter to the mesh: gas, particles, what plugins add
//!                  5 Potential  Poisson solve
//!                  6 Couple     gravitational acceleration
//!                  7 Correct    second kick
//!                  8 Sources    cooling, chemistry, drag, star formation, feedback
//!     Split        1 Sources    split sources, the other half
//!     advance(level + 1, t[level])
//!     Synchronise  1 Restrict   covered cells take the averages of their children
//!                  2 Correct    cells beside coarse-fine faces take the fine fluxes; second kick of level + 1 by this level
//!     Flag         1 Criteria   flags cells for refinement, with their buffers
//!                  2 Close      removes the flags of levels that may not be refined
//!     Regrid       1 Refine     nests, refines and removes patches of level + 1, fills the new ones
//!                  2 Complete   work on new patches that have their values: `NewRows` names them
//!     Aligned      unless t[level] = until > t[0]: work on all levels from this one on, which are at the same time
//!                  1 Deposit    matter to the mesh
//!                  2 Solve      solves for all aligned levels together
//!                  3 Correct    corrects second kicks
//! ```
//!
//! In a set, systems of one plugin have the order that the plugin states: `sim.system_in(set, cool).after(heat)`, or
//! `sim.chain_in(set, (heat, cool))`. Without it, two systems that access the same data are an error. Systems of different
//! plugins run in the order in which the plugins are built, unless one of them states otherwise.
//!
//! [Floors of the gas](crate::floors) are the last system of each set of `Split`, `Advance` and `Synchronise::Correct` in which
//! another system writes the gas. They are added when all plugins are built.
//!
//! A system whose signature reads halo patches is preceded by an exchange, which runs if they are out of date
//! (`nestar_engine::step::Schedules`). Averages and fine fluxes are sent between `Restrict` and `Correct`. The set `Exchange` is for
//! other exchanges of plugins.
//!
//! `Initialise` fills new patches while the initial hierarchy is built. Systems before the verdict of `Fluid` write to the next bank only;
//! the fluid and later systems run only if the step is accepted.

use bevy_ecs::prelude::*;
use bevy_ecs::schedule::IntoScheduleConfigs;
use nestar_engine::Engine;
pub use nestar_engine::step::Synchronise;
use nestar_engine::step::regrid::exchange_averages_and_fluxes;
use nestar_engine::step::{Phase, StepSet, regrid, step_accepted};

macro_rules! sets {
    ($(#[$doc:meta])* $name:ident, $phase:ident: $($(#[$set_doc:meta])* $set:ident),+ $(,)?) => {
        $(#[$doc])*
        #[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$set_doc])* $set),+
        }
        impl StepSet for $name {
            fn phase(self) -> Phase {
                Phase::$phase
            }
        }
    };
}

sets! {
    /// Sets of the phase `Initialise`.
    Initialise, Initialise:
    /// The initial condition.
    State,
}
sets! {
    /// Sets of the phase `Ready`, in order.
    Ready, Ready:
    /// Deposit of matter to the mesh.
    Deposit,
    /// Recomputes data that snapshots do not hold.
    Recompute,
}
sets! {
    /// Sets of the phase `Split`.
    Split, Split:
    /// Source terms, half a step before and half a step after `Advance`.
    Sources,
}
sets! {
    /// Sets of the phase `Aligned`, in order.
    Aligned, Aligned:
    /// Deposit of matter to the mesh.
    Deposit,
    /// Work on several levels at once.
    Solve,
    /// Corrections of second kicks.
    Correct,
}
sets! {
    /// Sets of the phase `Limit`.
    Limit, Limit:
    /// Limits of the time step, in any order.
    Propose,
}
sets! {
    /// Sets of the phase `Advance`, in order.
    Advance, Advance:
    /// Halo exchanges of plugins, in addition to those of the engine.
    Exchange,
    /// Gas dynamics; accepts or rejects the step.
    Fluid,
    /// Kick and drift of particles, and what needs the potential before the step, after the step is accepted.
    Predict,
    /// Deposit of matter to the mesh.
    Deposit,
    /// Poisson solve.
    Potential,
    /// Gravitational acceleration.
    Couple,
    /// Second kick.
    Correct,
    /// Source terms.
    Sources,
}
sets! {
    /// Sets of the phase `Flag`.
    Flag, Flag:
    /// Refinement criteria.
    Criteria,
    /// Removal of flags.
    Close,
}
sets! {
    /// Sets of the phase `Regrid`.
    Regrid, Regrid:
    /// Refinement and derefinement.
    Refine,
    /// Work on new patches, which have the values of all fields and their particles.
    Complete,
}

/// Configures the schedules of `sim`.
pub fn configure(sim: &mut Engine) {
    let advance = sim.schedule(Phase::Advance);
    advance.configure_sets(
        (
            Advance::Exchange,
            Advance::Fluid,
            Advance::Predict,
            Advance::Deposit,
            Advance::Potential,
            Advance::Couple,
            Advance::Correct,
            Advance::Sources,
        )
            .chain(),
    );
    // includes the fluid, which would commit a step that an earlier system has rejected
    advance.configure_sets(
        (
            Advance::Fluid,
            Advance::Predict,
            Advance::Deposit,
            Advance::Potential,
            Advance::Couple,
            Advance::Correct,
            Advance::Sources,
        )
            .run_if(step_accepted),
    );
    sim.schedule(Phase::Synchronise)
        .configure_sets((Synchronise::Restrict, Synchronise::Correct).chain());
    sim.schedule(Phase::Regrid)
        .configure_sets((Regrid::Refine, Regrid::Complete).chain());
    sim.schedule(Phase::Initialise)
        .configure_sets(Initialise::State);
    sim.schedule(Phase::Limit).configure_sets(Limit::Propose);
    sim.schedule(Phase::Flag)
        .configure_sets((Flag::Criteria, Flag::Close).chain());
    sim.schedule(Phase::Ready)
        .configure_sets((Ready::Deposit, Ready::Recompute).chain());
    sim.schedule(Phase::Split).configure_sets(Split::Sources);
    sim.schedule(Phase::Aligned)
        .configure_sets((Aligned::Deposit, Aligned::Solve, Aligned::Correct).chain());
    sim.system_in(Synchronise::Correct, exchange_averages_and_fluxes)
        .keeps_particles();
    sim.system_in(Regrid::Refine, regrid::refine);
}
