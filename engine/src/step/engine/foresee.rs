//! The hierarchy that a run begins with, without its fields: the initial state is made, asked about and forgotten part by part.

use super::Engine;
use super::hierarchy::HierarchyState;
use crate::comm::nesting;
use crate::data::{FaultBox, InitialEstimate, Stores};
use crate::device::DeviceError;
use crate::mesh::{Changes, NewRows, Topology};
use crate::step::config::OutOfMemory;
use crate::step::{Error, Phase, StepLimits, regrid};
use bevy_ecs::prelude::*;
use nestar_kernels::mesh::MissingRow;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Patches whose state is at hand at a time, beside those around them.
const PART: usize = 1024;
/// Patches behind which nobody looks any further: with more, the tables alone take gigabytes.
const MOST: usize = 1 << 22;

/// What is known of the beginning of a run beside its hierarchy.
#[derive(Clone, Debug)]
pub struct HierarchyPreview {
    /// The length of the step that each level would take by itself, the coarsest first; infinite where nothing limits it.
    pub steps: Vec<f64>,
    /// Limits of the step that are not among them, as they take whole levels: see [`Engine::step_lengths`].
    pub unknown_limits: Vec<&'static str>,
    /// Whether patches are missing, since there are more than can be looked at.
    pub is_truncated: bool,
}

/// The beginning of a run of which only a part has fields at a time.
struct PreviewBuilder<T> {
    found: HierarchyPreview,
    /// By row: which patches of its level were around it when it was last looked at; 0: none yet.
    seen: Vec<u32>,
    /// Is told the number of patches now and then.
    tell: T,
}

impl Engine {
    /// Finds the hierarchy that [`Engine::initialise`] would build, as it does, in memory for a few patches' fields where these live on
    /// the host: the topology has all patches afterwards, and no field has rows. Checks of the initial state are asked too, and
    /// must read no field. `run.out_of_memory = "cap"` alone keeps the hierarchy within memory. `tell` is called with the number of
    /// patches now and then.
    ///
    /// # Errors
    /// As [`Engine::initialise`], except that memory for fields need not suffice; the name of a system that fills or marks patches and
    /// reads others than those around its own.
    pub fn preview_hierarchy(
        &mut self,
        tell: impl FnMut(usize),
    ) -> Result<HierarchyPreview, Error> {
        self.require_fresh()?;
        let topology = self.world.resource::<Topology>();
        let mut foreseen = PreviewBuilder {
            found: HierarchyPreview {
                steps: vec![f64::INFINITY; topology.max_level + 1],
                unknown_limits: Vec::new(),
                is_truncated: topology.root_rows() > MOST,
            },
            seen: Vec::new(),
            tell,
        };
        if foreseen.found.is_truncated {
            return Ok(foreseen.found);
        }
        hold(&mut self.world, &[])?;
        self.world.insert_resource(InitialEstimate);
        self.build_hierarchy(&mut foreseen)?;
        let finest = self.world.resource::<Topology>().finest();
        (0..=finest).try_for_each(|level| foreseen.flag(self, level))?;
        hold(&mut self.world, &[])?;
        self.world.remove_resource::<InitialEstimate>();
        foreseen.found.steps.truncate(finest + 1);
        if !foreseen.found.is_truncated {
            self.require_initial()?;
        }
        Ok(foreseen.found)
    }
}

impl Engine {
    /// The length of the step that each level would take by itself as it stands, the coarsest first; infinite where nothing limits it.
    /// The state is the initial one or a restored one. All ranks call it.
    ///
    /// # Errors
    /// A limit that is 0 or no number; a fault that a system has set.
    pub fn step_lengths(&mut self) -> Result<Vec<f64>, Error> {
        let levels = 0..=self.world.resource::<Topology>().finest();
        let step = |level| Ok(self.driver.limit(&mut self.world, level)?.1);
        levels.map(step).collect()
    }
}

impl<T: FnMut(usize)> HierarchyState for PreviewBuilder<T> {
    fn fill(&mut self, _: &mut Engine, _: usize) -> Result<(), Error> {
        Ok(())
    }

    /// Looks at the patches of which the surroundings are others than before: the state of all others is what it was.
    fn flag(&mut self, sim: &mut Engine, level: usize) -> Result<(), Error> {
        let topology = sim.world.resource::<Topology>();
        self.seen.resize(topology.capacity(), 0);
        let finest = level == topology.max_level;
        let around = |row: u32| match finest {
            true => 1,
            false => topology.present_around(row),
        };
        let rows = topology.rows(level).iter();
        let now: Vec<(u32, u32)> = rows.map(|&row| (row, around(row))).collect();
        let other = |(row, around): &&(u32, u32)| self.seen[*row as usize] != *around;
        let others: Vec<u32> = now.iter().filter(other).map(|(row, _)| *row).collect();
        for (row, around) in now {
            self.seen[row as usize] = around;
        }
        for part in others.chunks(PART) {
            let looked = catch_unwind(AssertUnwindSafe(|| self.look(sim, level, part)));
            looked.unwrap_or_else(|panic| Err(too_far(sim, panic)))?;
            (self.tell)(sim.world.resource::<Topology>().patches());
        }
        Ok(())
    }

    fn changes(&mut self, sim: &mut Engine, level: usize) -> Result<Option<Changes>, Error> {
        let (world, refines_only) = (&mut sim.world, |changes: &mut Changes| {
            changes.coarsen.clear()
        });
        let changes = match sim.settings.run.out_of_memory {
            OutOfMemory::Stop => {
                let mut changes = nesting::decide(world, level)?;
                refines_only(&mut changes);
                (!changes.refine.is_empty()).then_some(changes)
            }
            OutOfMemory::Cap => {
                let verdict = regrid::changes(world, level, refines_only)?;
                verdict.transpose().map_err(Error::Memory)?
            }
        };
        let patches = world.resource::<Topology>().patches();
        let fits = |changes: &Changes| patches + 8 * changes.refine.len() <= MOST;
        self.found.is_truncated |= !changes.iter().all(fits);
        Ok(changes.filter(fits))
    }
}

impl<T> PreviewBuilder<T> {
    /// Makes the state of the patches `part` of `level` and of what surrounds them, and asks criteria and limits about them.
    fn look(&mut self, sim: &mut Engine, level: usize, part: &[u32]) -> Result<(), Error> {
        let topology = sim.world.resource::<Topology>();
        let finest = level == topology.max_level;
        let [coarse, own] = topology.gather_rows(part);
        let mut octets: Vec<u32> = coarse.iter().chain(&own).map(|row| row / 8).collect();
        octets.sort_unstable();
        octets.dedup();
        hold(&mut sim.world, &octets)?;
        for (level, rows) in [(level.wrapping_sub(1), coarse), (level, own)] {
            if !rows.is_empty() {
                narrowed(sim, level, rows.clone(), |sim| {
                    let mut new = sim.world.resource_mut::<NewRows>();
                    (new.level, new.rows) = (level, rows);
                    let world = &mut sim.world;
                    sim.driver.run_phase(world, Phase::Initialise, level, 0.0)
                })?;
            }
        }
        let HierarchyPreview {
            steps,
            unknown_limits,
            ..
        } = &mut self.found;
        narrowed(sim, level, part.to_vec(), |sim| {
            let (driver, world) = (&mut sim.driver, &mut sim.world);
            if !finest {
                driver.flag(world, level)?;
            }
            driver.run_phase(world, Phase::Ready, level, 0.0)?;
            let (_, dt) = driver.limit(world, level)?;
            steps[level] = steps[level].min(dt);
            for &name in world.resource::<StepLimits>().unknown() {
                if !unknown_limits.contains(&name) {
                    unknown_limits.push(name);
                }
            }
            Ok(())
        })
    }
}

/// The error of a system that reads a row which is not held; other panics go on.
fn too_far(sim: &Engine, panic: Box<dyn Any + Send>) -> Error {
    if !panic.is::<MissingRow>() {
        resume_unwind(panic);
    }
    let system = sim.world.resource::<FaultBox>().system();
    Error::Setup(format!(
        "`{system}` reads patches far from those that it fills or marks, so that the beginning of a run cannot be looked at part by \
         part: run the deck, with time.max_steps = 1 say, to see its patches and memory"
    ))
}

/// Works with `rows` in place of all rows of a level.
fn narrowed(
    sim: &mut Engine,
    level: usize,
    rows: Vec<u32>,
    work: impl FnOnce(&mut Engine) -> Result<(), Error>,
) -> Result<(), Error> {
    let whole = sim
        .world
        .resource_mut::<Topology>()
        .replace_rows(level, rows);
    let done = work(sim);
    sim.world
        .resource_mut::<Topology>()
        .replace_rows(level, whole);
    done
}

/// Lets all stores hold the rows of some octets alone.
fn hold(world: &mut World, octets: &[u32]) -> Result<(), DeviceError> {
    let stores = world.resource::<Stores>().all();
    let mut stores = stores.into_iter();
    stores.try_for_each(|store| store.of_mut(world).allocate_octets(octets))
}
