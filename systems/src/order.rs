//! The order of a level step. Nothing that changes the state runs outside it.
//!
//! ```text
//! Ready          the hierarchy was made or restored: what snapshots do not keep is filled, level by level
//! advance(level, until):
//!   while t[level] < until:
//!     Limit        every registered limit of the level's time step; the smallest wins, synchronised with parent and child
//!                  (Schive et al. 2018, sec. 2.1)
//!     Split        1 Sources    split sources, half a step (Strang 1968)
//!     Advance      1 Exchange   what plugins need of other ranks' patches
//!                  2 Fluid      gas from the present bank to the next; a rejected step is tried again from here
//!                  3 Predict    kick and drift of particles
//!                  4 Deposit    particle mass onto the mesh
//!                  5 Potential  Poisson solve
//!                  6 Couple     gas feels gravity
//!                  7 Correct    second kick
//!                  8 Sources    cooling, chemistry, drag, star formation, feedback
//!     Split        1 Sources    split sources, the other half
//!     advance(level + 1, t[level])
//!     Synchronise  1 Restrict   covered cells take the averages of their children
//!                  2 Correct    cells beside coarse-fine faces take the fine fluxes
//!     Flag         1 Criteria   cells that want refinement, with their buffers
//!     Regrid       1 Refine     nest, refine and remove patches of level + 1, fill the new ones
//!                  2 Complete   work on new patches that have their values: `NewRows` names them
//!     Aligned      unless t[level] = until > t[0]: work on all levels from this one on, which stand at one time
//!                  1 Solve      what levels together make of each other
//!                  2 Correct    second kicks are mended
//! ```
//!
//! A system whose signature reads copies of other ranks' patches has an exchange in front of it, which runs if they are out of
//! date (`nestar_engine::step::Schedules`); averages and fine fluxes travel between `Restrict` and `Correct`. The set `Exchange` is
//! for what plugins exchange besides.
//!
//! `Initialise` fills new patches while the initial hierarchy is built. Systems before the verdict of `Fluid` write to the
//! next bank only; the fluid and those behind it run only if the step stands.

use bevy_ecs::prelude::*;
use bevy_ecs::schedule::IntoScheduleConfigs;
use nestar_engine::Engine;
pub use nestar_engine::step::Synchronise;
use nestar_engine::step::synchronise::exchange_averages_and_fluxes;
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
    /// Sets of the phase `Ready`.
    Ready, Ready:
    /// What follows from the state that snapshots keep.
    Recompute,
}
sets! {
    /// Sets of the phase `Split`.
    Split, Split:
    /// Source terms that are integrated over half a step before and half a step after `Advance`.
    Sources,
}
sets! {
    /// Sets of the phase `Aligned`.
    Aligned, Aligned:
    /// Work that takes several levels at once.
    Solve,
    /// What has used the ends of the levels' steps before is mended.
    Correct,
}
sets! {
    /// Sets of the phase `Limit`.
    Limit, Limit:
    /// Limits of the time step; their order does not matter.
    Propose,
}
sets! {
    /// Sets of the phase `Advance`, in order.
    Advance, Advance:
    /// What plugins need of other ranks' patches besides the engine's own exchanges.
    Exchange,
    /// Gas dynamics; gives the verdict on the step.
    Fluid,
    /// Kick and drift of particles, once the step stands.
    Predict,
    /// Particle mass onto the mesh.
    Deposit,
    /// Poisson solve.
    Potential,
    /// Gas feels gravity.
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
}
sets! {
    /// Sets of the phase `Regrid`.
    Regrid, Regrid:
    /// Changes of the hierarchy.
    Refine,
    /// Work on the patches that are new: they have the values of all fields, and all items that lie in them.
    Complete,
}

/// Enters the order into the schedules of `sim`.
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
    // also the fluid: it would commit a step that a system before it has rejected
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
    sim.schedule(Phase::Ready).configure_sets(Ready::Recompute);
    sim.schedule(Phase::Split).configure_sets(Split::Sources);
    sim.schedule(Phase::Aligned)
        .configure_sets((Aligned::Solve, Aligned::Correct).chain());
    sim.system_in(Synchronise::Correct, exchange_averages_and_fluxes);
    sim.system_in(Regrid::Refine, regrid::refine);
}
