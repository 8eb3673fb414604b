//! The hierarchy that a run begins with, without its fields: the initial state is made, asked about and forgotten part by part.

use super::Engine;
use super::hierarchy::Beginning;
use crate::device::DeviceError;
use crate::field::{FaultBox, InParts, Stores};
use crate::mesh::{Changes, NewRows, Topology};
use crate::ranks::nesting;
use crate::step::config::OutOfMemory;
use crate::step::{Error, Phase, StepLimits, memory, regrid};
use bevy_ecs::prelude::*;
use nestar_kernels::mesh::NotHeld;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Patches that are looked at together.
const PART: usize = 1024;
/// Most bytes of fields that are kept, beside those of a part and of what surrounds it: to fill a patch again takes longer than to look at it.
const KEPT: u64 = 1 << 30;
/// Rows of which the memory is taken, to be shared by them.
const MANY: usize = 1 << 20;
/// Patches behind which nobody looks any further: with more, the tables alone take gigabytes.
const MOST: usize = 1 << 22;

/// What is known of the beginning of a run beside its hierarchy.
#[derive(Clone, Debug)]
pub struct Foresight {
    /// The length of the step that each level would take by itself, the coarsest first; infinite where nothing limits it.
    pub steps: Vec<f64>,
    /// Limits of the step that are not among them, as they take whole levels: see [`Engine::first_steps`].
    pub left_out: Vec<&'static str>,
    /// Whether patches are missing, since there are more than can be looked at.
    pub unfinished: bool,
}

/// The beginning of a run of which only a part has fields at a time.
struct Foreseen<T> {
    found: Foresight,
    /// By row: which patches of its level were around it when it was last looked at; 0: none yet.
    seen: Vec<u32>,
    /// By row: whether its state has been made, and is held.
    filled: Vec<bool>,
    /// Most octets that are held for later.
    kept: usize,
    /// Is told the number of patches now and then.
    tell: T,
}

impl Engine {
    /// Finds the hierarchy that [`Engine::initialise`] would build, as it does, in memory for a part of the patches' fields where these live on
    /// the host: the topology has all patches afterwards, and no field has rows. Checks of the initial state are asked too, and
    /// must read no field. `run.out_of_memory = "cap"` alone keeps the hierarchy within memory. `tell` is called with the number of
    /// patches now and then.
    ///
    /// # Errors
    /// As [`Engine::initialise`], except that memory for fields need not suffice; the name of a system that fills or marks patches and
    /// reads others than those around its own.
    pub fn foresee(&mut self, tell: impl FnMut(usize)) -> Result<Foresight, Error> {
        self.require_fresh()?;
        let topology = self.world.resource::<Topology>();
        let mut foreseen = Foreseen {
            found: Foresight {
                steps: vec![f64::INFINITY; topology.max_level + 1],
                left_out: Vec::new(),
                unfinished: topology.root_rows() > MOST,
            },
            seen: Vec::new(),
            filled: Vec::new(),
            kept: octets_kept(self),
            tell,
        };
        if foreseen.found.unfinished {
            return Ok(foreseen.found);
        }
        hold(&mut self.world, &[])?;
        self.world.insert_resource(InParts);
        self.begin(&mut foreseen)?;
        let finest = self.world.resource::<Topology>().finest();
        (0..=finest).try_for_each(|level| foreseen.limit(self, level))?;
        hold(&mut self.world, &[])?;
        self.world.remove_resource::<InParts>();
        foreseen.found.steps.truncate(finest + 1);
        if !foreseen.found.unfinished {
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
    pub fn first_steps(&mut self) -> Result<Vec<f64>, Error> {
        let levels = 0..=self.world.resource::<Topology>().finest();
        let step = |level| Ok(self.driver.limit(&mut self.world, level)?.1);
        levels.map(step).collect()
    }
}

impl<T: FnMut(usize)> Beginning for Foreseen<T> {
    fn fill(&mut self, _: &mut Engine, _: usize) -> Result<(), Error> {
        Ok(())
    }

    /// Asks about the patches of which the surroundings are others than before: the state of all others is what it was.
    fn flag(&mut self, sim: &mut Engine, level: usize) -> Result<(), Error> {
        let topology = sim.world.resource::<Topology>();
        self.seen.resize(topology.capacity(), 0);
        let mut others = Vec::new();
        for &row in topology.rows(level) {
            let around = topology.present_around(row);
            if std::mem::replace(&mut self.seen[row as usize], around) != around {
                others.push(row);
            }
        }
        self.look(sim, level, &others, |_, sim| {
            sim.driver.flag(&mut sim.world, level)
        })
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
        self.found.unfinished |= !changes.iter().all(fits);
        Ok(changes.filter(fits))
    }
}

impl<T: FnMut(usize)> Foreseen<T> {
    /// Asks limits about the patches of `level`, once all patches are there: what is made ready for them is nothing that criteria see.
    fn limit(&mut self, sim: &mut Engine, level: usize) -> Result<(), Error> {
        let rows = sim.world.resource::<Topology>().rows(level).to_vec();
        self.look(sim, level, &rows, |found, sim| {
            let world = &mut sim.world;
            sim.driver.run_phase(world, Phase::Ready, level, 0.0)?;
            let (_, dt) = sim.driver.limit(world, level)?;
            found.steps[level] = found.steps[level].min(dt);
            for &name in world.resource::<StepLimits>().unknown() {
                if !found.left_out.contains(&name) {
                    found.left_out.push(name);
                }
            }
            Ok(())
        })
    }

    /// Asks about some patches of `level`, part by part.
    fn look(
        &mut self,
        sim: &mut Engine,
        level: usize,
        rows: &[u32],
        ask: impl Fn(&mut Foresight, &mut Engine) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for part in rows.chunks(PART) {
            let looked = catch_unwind(AssertUnwindSafe(|| {
                self.provide(sim, level, part)?;
                narrowed(sim, level, part.to_vec(), |sim| ask(&mut self.found, sim))
            }));
            looked.unwrap_or_else(|panic| Err(too_far(sim, panic)))?;
            (self.tell)(sim.world.resource::<Topology>().patches());
        }
        Ok(())
    }

    /// Makes the state of the patches `part` of `level` and of what surrounds them, as far as it is not at hand.
    fn provide(&mut self, sim: &mut Engine, level: usize, part: &[u32]) -> Result<(), Error> {
        let topology = sim.world.resource::<Topology>();
        let rows = topology.capacity().next_multiple_of(8);
        self.filled.resize(rows, false);
        let [coarse, own] = topology.around(part);
        let mut octets: Vec<u32> = coarse.iter().chain(&own).map(|row| row / 8).collect();
        octets.sort_unstable();
        octets.dedup();
        self.hold(&mut sim.world, octets)?;
        for (level, mut rows) in [(level.wrapping_sub(1), coarse), (level, own)] {
            rows.retain(|&row| !std::mem::replace(&mut self.filled[row as usize], true));
            if !rows.is_empty() {
                narrowed(sim, level, rows.clone(), |sim| {
                    let mut new = sim.world.resource_mut::<NewRows>();
                    (new.level, new.rows) = (level, rows);
                    let world = &mut sim.world;
                    sim.driver.run_phase(world, Phase::Initialise, level, 0.0)
                })?;
            }
        }
        Ok(())
    }

    /// Lets stores hold `octets`, ascending, and those that have been filled if all are not too many.
    fn hold(&mut self, world: &mut World, octets: Vec<u32>) -> Result<(), Error> {
        let (filled, _) = self.filled.as_chunks::<8>();
        let is_filled = |octet: u32| filled[octet as usize].contains(&true);
        let all = 0..filled.len() as u32;
        let all: Vec<u32> = all
            .filter(|octet| is_filled(*octet) || octets.binary_search(octet).is_ok())
            .collect();
        if all.len() <= self.kept {
            return Ok(hold(world, &all)?);
        }
        let (filled, _) = self.filled.as_chunks_mut::<8>();
        for (octet, rows) in (0..).zip(filled) {
            if octets.binary_search(&octet).is_err() {
                *rows = [false; 8];
            }
        }
        Ok(hold(world, &octets)?)
    }
}

/// Octets whose fields may be kept: within `run.memory_limit`, and a quarter of the memory that is free.
fn octets_kept(sim: &Engine) -> usize {
    let octet = 8 * memory::of_fields(&sim.world, MANY) / MANY as u64;
    let limit = match sim.settings.run.memory_limit {
        0 => KEPT,
        mebibytes => KEPT.min(mebibytes.saturating_mul(1 << 20)),
    };
    let free = memory::machine::free().map_or(KEPT, |free| free / 4);
    (limit.min(free) / octet.max(1)) as usize
}

/// The error of a system that reads a row which is not held; other panics go on.
fn too_far(sim: &Engine, panic: Box<dyn Any + Send>) -> Error {
    if !panic.is::<NotHeld>() {
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
    let whole = sim.world.resource_mut::<Topology>().narrow(level, rows);
    let done = work(sim);
    sim.world.resource_mut::<Topology>().narrow(level, whole);
    done
}

/// Lets all stores hold the rows of some octets, ascending, alone.
fn hold(world: &mut World, octets: &[u32]) -> Result<(), DeviceError> {
    let stores = world.resource::<Stores>().all();
    let mut stores = stores.into_iter();
    stores.try_for_each(|store| store.of_mut(world).hold(octets))
}
