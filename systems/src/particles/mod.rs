//! Particles: collisionless particles with gravity, and massless tracers of gas.
//!
//! Each level integrates its particles with kick-drift-kick: half a kick, drift, mass deposit, solution of
//! the potential, second half kick (Schive et al. 2018, section 2.4, except for the times at which particles
//! change levels). Positions are fixed-point offsets in patches and mass is deposited in fixed point, so that
//! results do not depend on the order of particles.
//!
//! A level step runs `time_step.rs` (limit), `tracers.rs` (velocities of tracers), `drift.rs` (opening kick and drift,
//! followed by `patch_exchange.rs`), `source.rs` (density for gravity) and `kick.rs` (closing kick). Data are in
//! `species.rs`, `pages.rs` and `records.rs`, or in the folder `device`. `births.rs` lets plugins add and remove particles, `functions.rs` lets
//! them call functions of particles (`function_call.rs`, `function_on_host.rs`, `function_runs.rs`, `device/functions.rs`). There is no `systems.rs`, because each of these
//! steps is a file.

mod audit;
mod births;
mod boundary_zone;
mod config;
mod deposit;
mod device;
mod diagnostics;
mod drift;
mod function_call;
mod function_on_host;
mod function_runs;
mod functions;
pub mod initial;
mod kick;
mod mass_quantum;
mod near_refinement;
mod pages;
mod particle;
mod patch_exchange;
mod records;
mod refinement;
mod selected_particle;
mod selection;
mod source;
mod species;
mod time_step;
mod tracers;
mod vector_window;

pub use births::{BirthCounters, NewParticle, ParticleBirths, ParticlesOnDemand};
pub use config::{Cloud, EntityPolicy, ParticlesConfig, RefineConfig, SpeciesConfig};
pub use function_call::{ParticleCollect, ParticleMap, ParticleValue};
pub use functions::{ChosenParticles, ParticleAccess, ParticleSelection, RecordedParticle};
pub(crate) use mass_quantum::MassQuantum;
pub use particle::Particle;
pub use selected_particle::SelectedParticle;
pub use species::{MovedBy, Species, SpeciesMap};

use crate::declare::Declare;
use crate::fields::{Acceleration, Gas, MassFlux, OwnPotential, PairAcceleration};
use crate::order::{Advance, Aligned, Limit};
use crate::units::{ACCELERATION, Units};
use bevy_ecs::prelude::*;
use device::ParticleKernels;
use nestar_engine::comm::Ranks;
use nestar_engine::data::Pool;
use nestar_engine::data::device::DevicePool;
use nestar_engine::device::{DeviceError, Kernel};
use nestar_engine::mesh::Levels;
use nestar_engine::step::Settings;
use nestar_engine::{Engine, Error, Plugin};
use nestar_kernels::PATCH;
use nestar_kernels::particles::field_kernels::{self, KICK_SOURCE, TRACER_SOURCE};
use patch_exchange::Escaped;
use std::sync::Arc;

/// Plugin for the table `[particles]`.
pub struct Particles;

/// Parameters of the integration of particles.
#[derive(Resource, Clone, Debug)]
struct Motion {
    /// Cells that clouds cover along an axis.
    cloud: i32,
    courant: f64,
    acceleration: f64,
    /// Width of the coarse-fine boundary zone in coarse cells.
    zone: usize,
    /// `true` if particles on finer levels are kicked by [`PairAcceleration`].
    has_pairs: bool,
    /// Reflecting faces of the domain, `[axis][side]`.
    walls: [[bool; 2]; 3],
    /// `true` to permute particles in their patches at each root step.
    shuffle: bool,
    /// Largest velocity of the particles that fall on this rank in cells of the current level per time.
    fastest: f64,
    /// `true` once a remark says that positions are too coarse for the steps.
    is_too_coarse: bool,
    /// Time of the particles that each level moves, if later than the time of the level.
    times: Vec<f64>,
    /// `true` for levels whose particles have been created, removed or changed in mass since the last deposit.
    has_changed: Vec<bool>,
}

impl Motion {
    /// Sets the time of the particles that `level` moves.
    fn set_time(&mut self, level: usize, time: f64) {
        self.times[level] = time;
    }

    /// Returns a remark, once, if even the fastest particles move by so few units of their single-precision positions in a step
    /// `dt` that rounding changes their velocity by a percent or more.
    fn coarse_positions(&mut self, dt: f64) -> Option<String> {
        let units = dt * self.fastest / PATCH as f64 * mass_quantum::power_of_two(32);
        if self.is_too_coarse || units == 0.0 || units >= 50.0 {
            return None;
        }
        self.is_too_coarse = true;
        Some(format!(
            "particles: the fastest particles move by {units:.1} units of their positions in a step. Single precision has 2^32 \
             units per patch (8 cells), and displacements are rounded to units: set run.precision = \"double\", or allow longer \
             steps"
        ))
    }

    /// Returns the width of the coarse-fine boundary zone for a species, in coarse cells. A species without mass exerts no
    /// force on itself and therefore has no zone.
    fn zone_of(&self, species: &Species) -> usize {
        if species.has_mass() { self.zone } else { 0 }
    }

    /// Returns `true` if the particles that `level` moves have been moved to `time`.
    fn is_at(&self, level: usize, time: f64) -> bool {
        self.times[level] == time
    }

    /// Returns `time` minus the time of the particles that each level moves, with one more entry of 0.
    fn time_offsets(&self, levels: &Levels, time: f64) -> Vec<f64> {
        let offset = |(level, moved_to): (usize, &f64)| time - moved_to.max(levels.time(level));
        let mut time_offsets: Vec<f64> = self.times.iter().enumerate().map(offset).collect();
        time_offsets.push(0.0);
        time_offsets
    }
}

/// Returns the reflecting faces of the domain, `[axis][side]`, as bits `2 * axis + side`.
fn wall_bits(walls: [[bool; 2]; 3]) -> u32 {
    let walls = walls.as_flattened().iter().enumerate();
    walls.map(|(n, &wall)| u32::from(wall) << n).sum()
}

impl Plugin for Particles {
    fn name(&self) -> &str {
        "particles"
    }

    fn after(&self) -> &[&str] {
        &["gravity", "spheres", "cosmology"]
    }

    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has("particles") {
            return Ok(());
        }
        let config: ParticlesConfig = sim.deck.table("particles")?;
        if config.moves(MovedBy::MassFluxes) {
            sim.request::<MassFlux>()?;
        }
        if !config.moves(MovedBy::Fall) {
            return Ok(());
        }
        sim.request::<Acceleration>()?;
        if has_pairs(sim, &config) {
            sim.request::<PairAcceleration>()?;
        }
        match config.zone > 0 && sim.levels() > 1 {
            true => sim.request::<OwnPotential>(),
            false => Ok(()),
        }
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has("particles") {
            return Ok(());
        }
        let config: ParticlesConfig = sim.deck.table("particles")?;
        let (mut species, sources) = species(sim, &config)?;
        let falls = config.moves(MovedBy::Fall);
        go_to_device(sim, &mut species)?;
        sim.keep_keys(&["particles.cloud", "particles.zone"]);
        sim.world.insert_resource(motion(sim, &config));
        let lost = vec![Escaped::default(); species.len()];
        let names = species.iter().map(|species| species.name.clone()).collect();
        sim.register_particle_set(SpeciesMap(species, 0))?;
        sim.register_state(
            "particles",
            MassQuantum {
                lost,
                names,
                ..MassQuantum::default()
            },
        )?;
        initial::register(sim, sources);
        register_motion(sim);
        if falls {
            source::register(sim)?;
            kick::register(sim);
        }
        diagnostics::register(sim, falls);
        near_refinement::register(sim, &config.refine.near)?;
        refinement::register(sim, &config)
    }
}

/// Registers the systems that limit the time step and move particles, with the audits before and after.
fn register_motion(sim: &mut Engine) {
    sim.system_in(Limit::Propose, time_step::limit_by_particles)
        .keeps_particles();
    tracers::register(sim);
    sim.system_in(Advance::Predict, drift::drift_particles)
        .after(tracers::advect_tracers)
        .after(tracers::jump_with_mass_fluxes);
    if sim.world.resource::<Settings>().run.audit {
        sim.system_in(Aligned::Solve, audit::check_particles_of_aligned_levels)
            .keeps_particles();
        sim.system_in(Advance::Predict, audit::check_particles_before_drift)
            .before(tracers::advect_tracers)
            .before(tracers::jump_with_mass_fluxes)
            .before(drift::drift_particles)
            .keeps_particles();
        sim.system_in(Advance::Predict, audit::check_particles_after_drift)
            .after(drift::drift_particles)
            .keeps_particles();
    }
}

/// Creates the species of the deck and their sources.
fn species(
    sim: &mut Engine,
    config: &ParticlesConfig,
) -> Result<(Vec<Species>, initial::ParticleSources), Error> {
    let (mut species, mut sources) = (Vec::new(), Vec::new());
    for (name, own) in &config.species {
        config::check(sim, config, name, own)?;
        let (made, source) = new_species(sim, name, own, config.weight)?;
        species.push(made);
        sources.push(source);
    }
    Ok((species, sources))
}

/// Creates a species and its source.
fn new_species(
    sim: &mut Engine,
    name: &str,
    own: &SpeciesConfig,
    weight: f64,
) -> Result<(Species, Arc<dyn initial::ParticleSource>), Error> {
    let traces = own.moved_by != MovedBy::Fall;
    // tracers need no mass in the deck
    let is_massless = traces && !matches!(own.initial, initial::InitialParticlesConfig::Sphere(_));
    let about = initial::SpeciesInfo {
        name,
        mass: own.mass.or(is_massless.then_some(0.0)),
        scalars: &own.scalars,
    };
    let source = initial::source(sim, &about, &own.initial)?;
    let mass = own.mass.or(source.mass()).or(traces.then_some(0.0));
    if traces && mass != Some(0.0) {
        let key = format!("particles.species.{name}.moved_by");
        let why = match own.mass {
            Some(_) => "a tracer of gas has no mass: remove `mass`",
            None => {
                "a tracer of gas has no mass, but this kind of `initial` gives one: choose another kind"
            }
        };
        return Err(sim.deck.error_at(&key, why).into());
    }
    let mut made = Species::new(name, sim.precision(), mass, own.scalars.clone());
    made.acceleration_units = Units::of_gravity(sim, ACCELERATION);
    made.moved_by = own.moved_by;
    made.keys.push(format!("particles.species.{name}.mass"));
    if own.mass.is_none() && !traces {
        // the kind of source decides whether each particle has its own mass
        made.keys
            .push(format!("particles.species.{name}.initial.kind"));
    }
    if own.moved_by == MovedBy::MassFluxes {
        made.stream = sim.random_stream(&format!("ways of {name}"), own.seed)?;
    }
    made.expected = source.count();
    made.source = Some(source.clone());
    made.weight = weight;
    made.entities = own.are_entities(made.expected / sim.world.resource::<Ranks>().size() as u64);
    Ok((made, source))
}

/// Moves the species to the device if their fields are there; the field also determines the kernel that moves
/// them.
fn go_to_device(sim: &Engine, all: &mut [Species]) -> Result<(), Error> {
    let pool = |what: MovedBy| match what {
        MovedBy::Fall => Pool::<Acceleration>::of(&sim.world).on_device(),
        MovedBy::Gas | MovedBy::MassFluxes => Pool::<Gas>::of(&sim.world).on_device(),
    };
    let mut kernels = None;
    for what in [MovedBy::Fall, MovedBy::Gas, MovedBy::MassFluxes] {
        let mut moved = all.iter_mut().filter(|s| s.moved_by == what).peekable();
        let Some(pool) = moved.peek().and_then(|_| pool(what)) else {
            continue;
        };
        let shared = match &kernels {
            Some(shared) => shared,
            None => kernels.insert(Arc::new(ParticleKernels::new(pool)?)),
        };
        let mover = mover(pool, what)?;
        moved.for_each(|species| species.go_to_device(shared, &mover, sim.levels()));
    }
    Ok(())
}

/// Compiles the kernel that moves particles of a kind, in the program of the field that it reads
/// (acceleration or gas).
///
/// # Errors
/// As [`ParticleKernels::new`].
fn mover(pool: &DevicePool, what: MovedBy) -> Result<Kernel, DeviceError> {
    let (name, text, kernel) = match what {
        MovedBy::Fall => ("particle_kick", KICK_SOURCE, "particles_kick"),
        MovedBy::Gas => ("tracers", TRACER_SOURCE, "particles_advect"),
        MovedBy::MassFluxes => ("tracers", TRACER_SOURCE, "particles_jump"),
    };
    let program = pool.program(&field_kernels::items(), &[text]);
    pool.device().compile(name, &program)?.kernel(kernel)
}

/// Returns `true` if particles on finer levels are kicked by [`PairAcceleration`].
fn has_pairs(sim: &Engine, config: &ParticlesConfig) -> bool {
    let is_wide = config.zone as usize >= deposit::WIDE_ZONE;
    is_wide && sim.levels() > 1 && sim.deck.has("gravity") && config.moves(MovedBy::Fall)
}

fn motion(sim: &Engine, config: &ParticlesConfig) -> Motion {
    use nestar_engine::step::config::BoundaryKind;
    let faces = sim.world.resource::<Settings>().domain.boundary.faces();
    Motion {
        cloud: config.cloud.width(),
        courant: config.courant,
        acceleration: config.acceleration,
        zone: config.zone as usize,
        has_pairs: has_pairs(sim, config),
        shuffle: config.shuffle,
        fastest: 0.0,
        is_too_coarse: false,
        walls: faces.map(|sides| sides.map(|kind| kind == BoundaryKind::Reflecting)),
        times: vec![f64::NEG_INFINITY; sim.levels()],
        has_changed: vec![false; sim.levels()],
    }
}
