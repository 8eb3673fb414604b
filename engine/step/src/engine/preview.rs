//! Preview of the initial hierarchy: the initial state is computed part by part, tested against the criteria
//! and discarded when its memory is needed.

use super::Engine;
use super::hierarchy::HierarchyState;
use crate::config::OutOfMemory;
use crate::{Error, Phase, StepLimits, memory, regrid};
use bevy_ecs::prelude::*;
use nestar_engine_data::{FaultBox, InitialEstimate, Stores};
use nestar_engine_device::DeviceError;
use nestar_engine_mesh::{Changes, NewRows, Topology};
use nestar_kernels::mesh::MissingRow;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Number of patches that are tested at a time; their neighbours are in memory too.
const BATCH: usize = 1024;
/// Reciprocal of the fraction of all patches whose state stays in memory for later tests.
const KEPT_PATCHES: usize = 6;
/// Reciprocal of the fraction of free memory that these patches may take.
const KEPT_MEMORY: u64 = 8;
/// Largest number of patches in a preview; the tables of more would take gigabytes.
const MAX_PATCHES: usize = 1 << 22;

/// Number of patches of a refined finest level above which only some octets are computed. Its state decides on no patch.
const MOST_FINEST: usize = 1 << 13;

/// Holds the results of a preview besides the hierarchy itself.
#[derive(Clone, Debug)]
pub struct HierarchyPreview {
    /// Step length that each level would choose, coarsest first; infinite without a limit.
    pub steps: Vec<f64>,
    /// Limits missing in `steps` because they need whole levels: see [`Engine::step_lengths`].
    pub unknown_limits: Vec<&'static str>,
    /// `true` if patches are missing because the hierarchy is too large for a preview.
    pub is_truncated: bool,
    /// The ratio of all octets of the finest level to those whose state was computed.
    pub finest_sample: usize,
}

/// Builds the initial hierarchy with fields on only some patches at a time.
struct PreviewBuilder<T> {
    found: HierarchyPreview,
    /// Per row, the neighbours that existed at its latest test; 0: not tested yet.
    tested: Vec<u32>,
    cached: CachedOctets,
    /// `true` if a limit of the time step reads neighbours of a patch.
    limits_read_neighbours: bool,
    /// Receives the number of patches from time to time.
    progress: T,
}

impl Engine {
    /// Builds the hierarchy that [`Engine::initialise`] would build, in little host memory. Afterwards the
    /// topology has all patches, but no field has rows. Checks of the initial state are called and must not
    /// read fields. Memory limits the hierarchy only for `run.out_of_memory = "cap"`. `progress` receives the
    /// number of patches from time to time.
    ///
    /// # Errors
    /// As [`Engine::initialise`], except that memory for all fields is not needed; a system that fills or
    /// marks patches reads others than their neighbours.
    pub fn preview_hierarchy(
        &mut self,
        progress: impl FnMut(usize),
    ) -> Result<HierarchyPreview, Error> {
        self.require_fresh()?;
        self.build_order()?;
        let topology = self.world.resource::<Topology>();
        let mut preview = PreviewBuilder {
            found: HierarchyPreview {
                steps: vec![f64::INFINITY; topology.max_level + 1],
                unknown_limits: Vec::new(),
                is_truncated: topology.root_rows() > MAX_PATCHES,
                finest_sample: 1,
            },
            tested: Vec::new(),
            cached: CachedOctets {
                most: kept_octets(&self.world),
                ..CachedOctets::default()
            },
            limits_read_neighbours: limits_read_neighbours(self),
            progress,
        };
        if preview.found.is_truncated {
            return Ok(preview.found);
        }
        keep_octets(&mut self.world, &[])?;
        self.world.insert_resource(InitialEstimate);
        self.build_hierarchy(&mut preview)?;
        let finest = self.world.resource::<Topology>().finest();
        (0..=finest).try_for_each(|level| preview.flag(self, level))?;
        keep_octets(&mut self.world, &[])?;
        self.world.remove_resource::<InitialEstimate>();
        preview.found.steps.truncate(finest + 1);
        if !preview.found.is_truncated {
            self.require_initial()?;
        }
        Ok(preview.found)
    }
}

impl Engine {
    /// Returns the step length that each level would choose in the present state, coarsest first; infinite
    /// without a limit. Collective.
    ///
    /// # Errors
    /// A limit is 0 or NaN; a system has reported a fault.
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

    /// Tests patches whose neighbours have changed since their latest test; the state of all others is
    /// unchanged.
    fn flag(&mut self, sim: &mut Engine, level: usize) -> Result<(), Error> {
        let topology = sim.world.resource::<Topology>();
        self.tested.resize(topology.capacity(), 0);
        let finest = level == topology.max_level;
        let around = |row: u32| match finest {
            true => 1,
            false => topology.present_around(row),
        };
        let rows = topology.rows(level).iter();
        let now: Vec<(u32, u32)> = rows.map(|&row| (row, around(row))).collect();
        let sample = match finest && level > 0 {
            true => now.len().div_ceil(MOST_FINEST).max(1),
            false => 1,
        };
        self.found.finest_sample = sample;
        let other = |(row, around): &&(u32, u32)| {
            self.tested[*row as usize] != *around && (*row as usize / 8).is_multiple_of(sample)
        };
        let others: Vec<u32> = now.iter().filter(other).map(|(row, _)| *row).collect();
        for (row, around) in now {
            self.tested[row as usize] = around;
        }
        for part in others.chunks(BATCH) {
            let looked = catch_unwind(AssertUnwindSafe(|| self.test_patches(sim, level, part)));
            looked.unwrap_or_else(|panic| Err(distant_read(sim, panic)))?;
            (self.progress)(sim.world.resource::<Topology>().patches());
        }
        Ok(())
    }

    fn changes(&mut self, sim: &mut Engine, level: usize) -> Result<Option<Changes>, Error> {
        let (world, refines_only) = (&mut sim.world, |changes: &mut Changes| {
            changes.coarsen.clear()
        });
        let changes = match sim.settings.run.out_of_memory {
            OutOfMemory::Stop => {
                let mut changes = nestar_engine_comm::regrid::decide(world, level)?;
                refines_only(&mut changes);
                (!changes.refine.is_empty()).then_some(changes)
            }
            OutOfMemory::Cap => {
                let verdict = regrid::changes(world, level, refines_only)?;
                verdict.transpose().map_err(Error::Memory)?
            }
        };
        let patches = world.resource::<Topology>().patches();
        let fits = |changes: &Changes| patches + 8 * changes.refine.len() <= MAX_PATCHES;
        self.found.is_truncated |= !changes.iter().all(fits);
        Ok(changes.filter(fits))
    }
}

impl<T> PreviewBuilder<T> {
    /// Fills the patches `part` of `level` and their neighbours, then runs criteria and limits on `part`.
    fn test_patches(&mut self, sim: &mut Engine, level: usize, part: &[u32]) -> Result<(), Error> {
        let topology = sim.world.resource::<Topology>();
        let finest = level == topology.max_level;
        let [coarse, own] = match finest && !self.limits_read_neighbours {
            true => [Vec::new(), part.to_vec()],
            false => topology.gather_rows(part),
        };
        let patches = topology.patches();
        let read: Vec<u32> = coarse.iter().chain(&own).map(|row| row / 8).collect();
        keep_octets(&mut sim.world, &self.cached.with(read, patches / 8))?;
        for (level, rows) in [(level.wrapping_sub(1), coarse), (level, own)] {
            let rows = self.cached.unfilled(rows);
            if !rows.is_empty() {
                with_rows(sim, level, rows.clone(), |sim| {
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
        with_rows(sim, level, part.to_vec(), |sim| {
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

/// Octets whose rows are in memory. A state is computed again only if its octet has been dropped.
#[derive(Default)]
struct CachedOctets {
    /// Most octets that memory allows to keep.
    most: usize,
    /// Number of batches so far.
    batches: u32,
    /// Per octet, the latest batch that has used it; 0: not in memory.
    used: Vec<u32>,
    /// Per octet, the rows that have been filled, as bits.
    filled: Vec<u8>,
}

impl CachedOctets {
    /// Adds octets to those in memory, and drops the least recently used of the others. Returns all in memory,
    /// ascending. `all` is the number of octets of the hierarchy.
    fn with(&mut self, octets: Vec<u32>, all: usize) -> Vec<u32> {
        self.batches += 1;
        let length = octets.iter().max().map_or(0, |&last| last as usize + 1);
        let length = length.max(self.used.len());
        self.used.resize(length, 0);
        self.filled.resize(length, 0);
        for octet in octets {
            self.used[octet as usize] = self.batches;
        }
        let of_use = |octet: &u32| self.used[*octet as usize];
        let mut cached: Vec<u32> = (0..length as u32)
            .filter(|octet| of_use(octet) > 0)
            .collect();
        cached.sort_by_key(|octet| std::cmp::Reverse(of_use(octet)));
        let now = cached.partition_point(|octet| of_use(octet) == self.batches);
        let most = now.max(self.most.min(all / KEPT_PATCHES));
        for octet in cached.drain(most.min(cached.len())..) {
            (self.used[octet as usize], self.filled[octet as usize]) = (0, 0);
        }
        cached.sort_unstable();
        cached
    }

    /// Returns those of `rows` that have not been filled, and regards them as filled.
    fn unfilled(&mut self, mut rows: Vec<u32>) -> Vec<u32> {
        rows.retain(|row| {
            let (filled, bit) = (&mut self.filled[*row as usize / 8], 1 << (row % 8));
            let is_new = *filled & bit == 0;
            *filled |= bit;
            is_new
        });
        rows
    }
}

/// Returns `true` if a system that prepares or limits a step reads the halo of a field of the initial state.
fn limits_read_neighbours(sim: &Engine) -> bool {
    let initial = sim.order(Phase::Initialise);
    let written = |field: &str| {
        let mut fields = initial.iter().flat_map(|system| &system.fields);
        fields.any(|access| access.writes && access.field == field)
    };
    let phases = [Phase::Ready, Phase::Limit].map(|phase| sim.order(phase));
    let mut fields = phases.iter().flatten().flat_map(|system| &system.fields);
    fields.any(|access| access.layers > 0 && written(access.field))
}

/// Returns the number of octets that a part of the free memory holds.
fn kept_octets(world: &World) -> usize {
    let free = memory::machine::free().unwrap_or_default();
    let octet = memory::field_bytes(world, 1024) / 128;
    (free / KEPT_MEMORY / octet.max(1)) as usize
}

/// Builds the error of a system that reads a missing row; resumes other panics.
fn distant_read(sim: &Engine, panic: Box<dyn Any + Send>) -> Error {
    if !panic.is::<MissingRow>() {
        resume_unwind(panic);
    }
    let system = sim.world.resource::<FaultBox>().system();
    Error::Setup(format!(
        "`{system}` reads patches far from those that it fills or marks, so the initial hierarchy cannot be previewed patch by \
         patch: run the deck with time.max_steps = 1 to see its patches and memory"
    ))
}

/// Runs `work` while the level has only `rows`.
fn with_rows(
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

/// Makes all stores hold only the rows of some octets.
fn keep_octets(world: &mut World, octets: &[u32]) -> Result<(), DeviceError> {
    let stores = world.resource::<Stores>().all();
    let mut stores = stores.into_iter();
    stores.try_for_each(|store| store.of_mut(world).allocate_octets(octets))
}
