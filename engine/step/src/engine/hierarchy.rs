//! Construction of the initial hierarchy, and checks of the deck values that describe it.

use super::Engine;
use crate::config::{BoundaryKind, DomainConfig};
use crate::error::agreed;
use crate::initial::{Check, StateChecks};
use crate::{Error, Phase, RunCounters, check_faults, memory, regrid};
use bevy_ecs::prelude::*;
use nestar_deck::Deck;
use nestar_engine_comm as comm;
use nestar_engine_comm::Ranks;
use nestar_engine_data::particle_entities;
use nestar_engine_mesh::partition::bits_for;
use nestar_engine_mesh::{Changes, Domain, PATCH, RefineRequests, Topology};

/// Provides the state of patches while the hierarchy is built.
pub(super) trait HierarchyState {
    /// Fills the new patches listed in [`NewRows`](nestar_engine_mesh::NewRows).
    ///
    /// # Errors
    /// An unphysical state.
    fn fill(&mut self, sim: &mut Engine, level: usize) -> Result<(), Error>;

    /// Runs the refinement criteria of `level`.
    ///
    /// # Errors
    /// A criterion has reported a fault.
    fn flag(&mut self, sim: &mut Engine, level: usize) -> Result<(), Error>;

    /// Turns the refinement requests of `level` into changes; `None` if there are none.
    ///
    /// # Errors
    /// The patches do not fit into memory; another rank has failed.
    fn changes(&mut self, sim: &mut Engine, level: usize) -> Result<Option<Changes>, Error>;
}

/// Keeps the fields of all patches, as a run needs them.
struct FullState<'a> {
    /// See [`Engine::initialise_with`].
    progress: &'a mut dyn FnMut(usize, usize),
}

impl HierarchyState for FullState<'_> {
    fn fill(&mut self, sim: &mut Engine, level: usize) -> Result<(), Error> {
        let world = &mut sim.world;
        (self.progress)(level, world.resource::<Topology>().count(level));
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
    /// Builds the hierarchy level by level from the initial condition.
    ///
    /// # Errors
    /// An unphysical initial state, or one that a check rejects; a simulation that has started already; too
    /// little memory; an inconsistency found by the audit.
    pub fn initialise(&mut self) -> Result<(), Error> {
        self.initialise_with(&mut |_, _| ())
    }

    /// Builds the hierarchy as [`Engine::initialise`]. Calls `progress` with the number of a level and its number of
    /// patches before new patches are filled.
    ///
    /// # Errors
    /// As [`Engine::initialise`].
    pub fn initialise_with(&mut self, progress: &mut dyn FnMut(usize, usize)) -> Result<(), Error> {
        self.require_fresh()?;
        self.require_memory_for_root()?;
        self.build_hierarchy(&mut FullState { progress })?;
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

    /// Checks that the root grid fits into memory, for any `run.out_of_memory`.
    fn require_memory_for_root(&self) -> Result<(), Error> {
        let rows = self.world.resource::<Topology>().root_rows();
        memory::shortage(&self.world, rows, 0)?.map_or(Ok(()), |s| Err(Error::Memory(s)))
    }

    /// Runs all checks of the initial state.
    pub(super) fn require_initial(&self) -> Result<(), Error> {
        self.require(|checks| &checks.initial)
    }

    /// Runs all checks of a restored state that differs from the snapshot.
    pub fn require_changed(&self) -> Result<(), Error> {
        self.require(|checks| &checks.changed)
    }

    fn require(&self, checks: impl Fn(&StateChecks) -> &Vec<Check>) -> Result<(), Error> {
        let ranks = self.world.resource::<Ranks>();
        let mut checks = checks(self.world.resource::<StateChecks>()).iter();
        checks.try_for_each(|check| agreed(ranks, check(&self.world)))
    }

    /// Creates the root grid, then flags and refines until nothing changes. Each pass hands requests of fine
    /// levels to the next coarser level. The loop ends because passes only refine.
    pub(super) fn build_hierarchy(&mut self, state: &mut impl HierarchyState) -> Result<(), Error> {
        self.build_order()?;
        regrid::create_root(&mut self.world);
        check_faults(&self.world)?;
        state.fill(self, 0)?;
        // the content of the root grid is known only now
        comm::regrid::rebalance_root(&mut self.world, self.settings.run.imbalance)?;
        agreed(self.world.resource::<Ranks>(), check_faults(&self.world))?;
        let requests = |world: &World| {
            let topology = world.resource::<Topology>();
            world
                .resource::<RefineRequests>()
                .all_nesting_requests(topology)
        };
        let mut before = requests(&self.world);
        loop {
            let changed = self.refine_once(state)?;
            let now = requests(&self.world);
            let unsettled = changed || now != before;
            if !self.world.resource::<Ranks>().any(unsettled)? {
                return Ok(());
            }
            before = now;
        }
    }

    /// Flags and refines every level once; returns `true` if anything changed.
    fn refine_once(&mut self, state: &mut impl HierarchyState) -> Result<bool, Error> {
        let mut changed = false;
        for level in 0..self.settings.mesh.max_level {
            if self.world.resource::<Topology>().count(level) == 0 {
                break;
            }
            state.flag(self, level)?;
            let Some(changes) = state.changes(self, level)? else {
                continue;
            };
            regrid::apply(&mut self.world, level, &changes);
            check_faults(&self.world)?;
            state.fill(self, level + 1)?;
            changed = true;
        }
        self.audit()?;
        Ok(changed)
    }
}

/// Checks `[domain]` and returns the domain.
pub(super) fn check_domain(deck: &Deck, config: &DomainConfig) -> Result<Domain, Error> {
    let mut root = [0; 3];
    for a in 0..3 {
        if !config.cells[a].is_multiple_of(PATCH as u32) {
            let message = format!(
                "must be a multiple of {PATCH} along every axis, found {}",
                config.cells[a]
            );
            return Err(deck.error_at(&format!("domain.cells[{a}]"), message).into());
        }
        root[a] = (config.cells[a] as usize / PATCH) as i32;
        let (left, right) = (config.left_edge[a], config.right_edge[a]);
        if right <= left {
            let message =
                format!("must lie above left_edge along every axis, found {right} after {left}");
            return Err(deck
                .error_at(&format!("domain.right_edge[{a}]"), message)
                .into());
        }
    }
    let domain = Domain {
        root,
        left_edge: config.left_edge,
        right_edge: config.right_edge,
        periodic: periodic_axes(deck, config)?,
    };
    check_widths(deck, domain.cell_width(0))?;
    Ok(domain)
}

/// Checks that volumes of cells, their inverses and ratios of their widths are in the range of numbers.
fn check_widths(deck: &Deck, widths: [f64; 3]) -> Result<(), Error> {
    const RANGE: [f64; 2] = [1e-100, 1e100];
    const MAX_RATIO: f64 = 1e6;
    let refuse = |axis: usize, why: String| {
        let message = format!(
            "cells are {:?} wide along {}, {why}",
            widths[axis],
            ["x", "y", "z"][axis]
        );
        let path = format!("domain.right_edge[{axis}]");
        Err(deck.error_at(&path, message).into())
    };
    let narrowest = widths.into_iter().fold(f64::INFINITY, f64::min);
    for (axis, width) in widths.into_iter().enumerate() {
        if !(RANGE[0]..=RANGE[1]).contains(&width) {
            return refuse(
                axis,
                format!("but must be between {:e} and {:e}", RANGE[0], RANGE[1]),
            );
        }
        if width > MAX_RATIO * narrowest {
            let why = format!(
                "more than {MAX_RATIO:e} times as wide as along another axis ({narrowest:?}): change domain.cells or the edges"
            );
            return refuse(axis, why);
        }
    }
    Ok(())
}

/// Checks that the centres of the narrowest cells are different numbers.
fn check_positions(deck: &Deck, domain: &Domain, max_level: usize) -> Result<(), Error> {
    /// Smallest width of a cell relative to its coordinates, 2^-45: 128 different positions in a cell.
    const RESOLUTION: f64 = 1.0 / 35_184_372_088_832.0;
    for (axis, width) in domain.cell_width(max_level).into_iter().enumerate() {
        let far = domain.left_edge[axis]
            .abs()
            .max(domain.right_edge[axis].abs());
        if width < RESOLUTION * far {
            let message = format!(
                "cells of level {max_level} are {width:e} wide, too little for coordinates of {far:e}: move the origin into the domain"
            );
            let path = format!("domain.left_edge[{axis}]");
            return Err(deck.error_at(&path, message).into());
        }
    }
    Ok(())
}

/// Returns the axes that are periodic.
fn periodic_axes(deck: &Deck, config: &DomainConfig) -> Result<[bool; 3], Error> {
    let mut periodic = [false; 3];
    for (a, sides) in config.boundary.faces().into_iter().enumerate() {
        let count = sides
            .iter()
            .filter(|&k| *k == BoundaryKind::Periodic)
            .count();
        if count == 1 {
            let message = format!(
                "the {} axis is periodic on one side only",
                ["x", "y", "z"][a]
            );
            return Err(deck.error_at("domain.boundary", message).into());
        }
        periodic[a] = count == 2;
    }
    Ok(periodic)
}

/// Checks the size of the finest level. The Hilbert curve has 21 bits per axis, and rows are counted in 32
/// bits.
pub(super) fn check_mesh(deck: &Deck, domain: &Domain, max_level: usize) -> Result<(), Error> {
    let bits = bits_for(domain.root, max_level);
    if bits > 21 {
        let message = format!(
            "the finest level would have more than 2^21 patches along an axis (2^{bits}); \
             lower mesh.max_level by {} or take a smaller root grid",
            bits - 21
        );
        return Err(deck.error_at("mesh.max_level", message).into());
    }
    let patches: i64 = domain.root.iter().map(|&n| i64::from(n)).product();
    if patches > i64::from(i32::MAX) / 16 {
        let message = format!("{patches} root patches are more than one process can count");
        return Err(deck.error_at("domain.cells", message).into());
    }
    check_positions(deck, domain, max_level)
}
