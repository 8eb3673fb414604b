//! The hierarchy that a run begins with.

use super::Engine;
use crate::comm::{self, Ranks};
use crate::data::particle_entities;
use crate::mesh::{Changes, RefineRequests, Topology};
use crate::step::agreement::agreed;
use crate::step::initial::{Check, StateChecks};
use crate::step::{Error, Phase, RunCounters, check_faults, memory, regrid};
use bevy_ecs::prelude::*;

/// Who knows the state of the patches while the hierarchy is built.
pub(super) trait HierarchyState {
    /// New patches stand in [`NewRows`](crate::mesh::NewRows).
    ///
    /// # Errors
    /// An unphysical state.
    fn fill(&mut self, sim: &mut Engine, level: usize) -> Result<(), Error>;

    /// Asks the criteria about `level`.
    ///
    /// # Errors
    /// A fault that a criterion has set.
    fn flag(&mut self, sim: &mut Engine, level: usize) -> Result<(), Error>;

    /// What is made of the requests of `level`; `None`: nothing.
    ///
    /// # Errors
    /// The patches do not fit into memory; another rank has failed.
    fn changes(&mut self, sim: &mut Engine, level: usize) -> Result<Option<Changes>, Error>;
}

/// The beginning of a run: all patches have their fields.
struct FullState;

impl HierarchyState for FullState {
    fn fill(&mut self, sim: &mut Engine, level: usize) -> Result<(), Error> {
        let world = &mut sim.world;
        sim.driver.run_phase(world, Phase::Initialise, level, 0.0)
    }

    fn flag(&mut self, sim: &mut Engine, level: usize) -> Result<(), Error> {
        sim.driver.flag(&mut sim.world, level)
    }

    fn changes(&mut self, sim: &mut Engine, level: usize) -> Result<Option<Changes>, Error> {
        let verdict = regrid::changes(&mut sim.world, level, |changes| changes.coarsen.clear())?;
        verdict.transpose().map_err(Error::Memory)
    }
}

impl Engine {
    /// Builds the hierarchy level by level from the initial condition itself.
    ///
    /// # Errors
    /// An unphysical initial state, or one that a check refuses; a simulation that is under way already; a hierarchy that does not
    /// fit into memory; a fault that the audit finds.
    pub fn initialise(&mut self) -> Result<(), Error> {
        self.require_fresh()?;
        self.require_room_for_root()?;
        self.build_hierarchy(&mut FullState)?;
        for level in (0..self.world.resource::<Topology>().finest()).rev() {
            self.driver
                .run_phase(&mut self.world, Phase::Synchronise, level, 0.0)?;
        }
        particle_entities::initialise(&mut self.world)?;
        self.driver.run_ready(&mut self.world)?;
        self.require_initial()?;
        self.world.insert_resource(RunCounters::default());
        Ok(())
    }

    /// The root grid must fit into memory, whatever `run.out_of_memory` says.
    fn require_room_for_root(&self) -> Result<(), Error> {
        let rows = self.world.resource::<Topology>().root_rows();
        memory::shortage(&self.world, rows, 0)?.map_or(Ok(()), |s| Err(Error::Memory(s)))
    }

    /// Asks all checks about the initial state.
    pub(super) fn require_initial(&self) -> Result<(), Error> {
        self.require(|checks| &checks.initial)
    }

    /// Asks all checks about a restored state that is not what the snapshot's run had.
    pub(crate) fn require_changed(&self) -> Result<(), Error> {
        self.require(|checks| &checks.changed)
    }

    fn require(&self, checks: impl Fn(&StateChecks) -> &Vec<Check>) -> Result<(), Error> {
        let ranks = self.world.resource::<Ranks>();
        let mut checks = checks(self.world.resource::<StateChecks>()).iter();
        checks.try_for_each(|check| agreed(ranks, check(&self.world)))
    }

    /// Makes the root grid, then flags and refines until nothing changes any more. A pass hands the wishes of fine levels down by one
    /// level, where the next pass can grant them; each pass can only refine, so the loop ends.
    pub(super) fn build_hierarchy(
        &mut self,
        beginning: &mut impl HierarchyState,
    ) -> Result<(), Error> {
        self.build_order()?;
        regrid::create_root(&mut self.world);
        check_faults(&self.world)?;
        beginning.fill(self, 0)?;
        // now it is known what lies in the root grid
        comm::regrid::rebalance_root(&mut self.world, self.settings.run.imbalance)?;
        let wishes = |world: &World| {
            let topology = world.resource::<Topology>();
            world
                .resource::<RefineRequests>()
                .all_nesting_requests(topology)
        };
        let mut before = wishes(&self.world);
        loop {
            let changed = self.refine_once(beginning)?;
            let now = wishes(&self.world);
            let unsettled = changed || now != before;
            if !self.world.resource::<Ranks>().any(unsettled)? {
                return Ok(());
            }
            before = now;
        }
    }

    /// Flags and refines every level once; whether anything changed.
    fn refine_once(&mut self, beginning: &mut impl HierarchyState) -> Result<bool, Error> {
        let mut changed = false;
        for level in 0..self.settings.mesh.max_level {
            if self.world.resource::<Topology>().count(level) == 0 {
                break;
            }
            beginning.flag(self, level)?;
            let Some(changes) = beginning.changes(self, level)? else {
                continue;
            };
            regrid::apply(&mut self.world, level, &changes);
            check_faults(&self.world)?;
            beginning.fill(self, level + 1)?;
            changed = true;
        }
        self.audit()?;
        Ok(changed)
    }
}
