//! Self-gravity: Poisson's equation on the adaptive, sub-cycled hierarchy, and what gas feels of its solution.
//!
//! At each step of a level its potential is found for the gas at the end of the step: a multigrid cycle, begun with the potential before
//! and what the coarser level has changed, with the border that the coarser level gives at that time. Where levels meet, a cycle over
//! them all brings them into line, and each coarser level learns by how much the finer one changes its equation (`tau`), so that on its own
//! it has the solution of both. The root level is solved exactly ([`root_fft`]), or by cycles as well.

mod acceleration;
mod around;
mod beyond;
mod border;
mod bottom_kernels;
mod change;
mod columns;
mod composite;
mod config;
mod copy;
mod cycle;
mod faults;
mod foretell;
mod grids;
mod kernels;
mod kick;
mod lowest;
mod matter;
mod own;
mod remark;
pub mod root_fft;
mod root_kernels;
mod root_level;
mod stress;
mod sums;
mod systems;
mod tell;
mod work;

pub use crate::fields::Matter;
pub use crate::register::GravitySources;
pub use beyond::ExteriorPotential;
pub use config::{Coupling, Energy, Force, GravityConfig, RootMethod, Surroundings};

use crate::declare::Declare;
use crate::fields::{
    AccelerationAsked, GasModel, GravitationalConstant, OwnPotentialAsked, Potential,
};
use crate::order::{Advance, Aligned, Limit, Ready, Split};
use crate::units::Units;
use composite::RootMethods;
use foretell::Effects;
use grids::{Correction, Differences, Equation, Lag, Solver};
use kernels::Kernels;
use nestar_engine::comm::Ranks;
use nestar_engine::data::{Component, Field, FieldSpec, Pool, Prolong, Restrict};
use nestar_engine::mesh::Topology;
use nestar_engine::step::SystemOptions;
use nestar_engine::{Engine, Error, Plugin};
use nestar_kernels::multigrid::expansion::MARGIN;
use root_fft::{RootKind, RootSolver};
use root_level::RootGrid;
use std::f64::consts::PI;
use systems::Gravity;

/// The plugin: reads the table `[gravity]`, if the deck has it. Add it behind the gas.
pub struct SelfGravity;

/// A field of the solver.
fn working(name: &str, side: usize, banks: usize) -> FieldSpec {
    FieldSpec {
        side,
        banks,
        prolong: Prolong::None,
        restrict: Restrict::None,
        stored: false,
        ..FieldSpec::cells(&[name])
    }
}

/// What ranks tell each other of the finer level; one rank looks for itself.
fn differences(sim: &Engine) -> FieldSpec {
    match sim.world.resource::<Ranks>().is_single() {
        true => working("differences", 1, 1),
        false => FieldSpec {
            components: ["x", "y", "z"].map(Component::scalar).to_vec(),
            ..working("differences", 8, 1)
        },
    }
}

fn matter() -> FieldSpec {
    let mut spec = working("matter", 8, 1);
    spec.components[0].units = "mass/length**3".into();
    spec.components[0].long_name = "density of all matter that attracts".into();
    spec
}

fn potential() -> FieldSpec {
    let component = Component {
        units: "length**2/time**2".into(),
        dimension: [2, 0, -2],
        long_name: "gravitational potential".into(),
        ..Component::scalar("potential")
    };
    FieldSpec {
        components: vec![component],
        // before and after a step, and what is kept before a correction
        banks: 3,
        time_levels: 2,
        prolong: Prolong::Linear,
        restrict: Restrict::None,
        ..FieldSpec::cells(&[])
    }
}

impl Plugin for SelfGravity {
    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has("gravity") {
            return Ok(());
        }
        if let Some(units) = Units::find(sim) {
            let newton = units.gravitational_constant();
            sim.deck.fill("gravity.constant", newton);
        }
        let config: GravityConfig = sim.deck.table("gravity")?;
        sim.world
            .insert_resource(GravitationalConstant(config.constant));
        match config.energy {
            Energy::Fluxes => sim.mass_fluxes(),
            Energy::Kicks => Ok(()),
        }
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has("gravity") {
            return Ok(());
        }
        let config: GravityConfig = sim.deck.table("gravity")?;
        config.check(&sim.deck)?;
        sim.keep_keys(&["gravity.constant", "gravity.boundary"]);
        let periodic = periodic(sim, config.boundary)?;
        register_fields(sim)?;
        let pool = Pool::<Potential>::of(&sim.world).on_device();
        let kernels = pool.map(Kernels::new).transpose()?;
        sim.world.insert_resource(Solver { kernels });
        let root = root_solver(sim, &config, periodic)?;
        let limited = config.limit > 0.0;
        let (force, energy) = (config.force, config.energy);
        sim.world.insert_resource(Equation {
            coefficient: 4.0 * PI * config.constant,
            mean: 0.0,
        });
        let effort = config.effort(sim.world.contains_resource::<AccelerationAsked>());
        let own = sim.world.contains_resource::<OwnPotentialAsked>();
        let effects = Effects::of(&config, effort, own, periodic);
        sim.declare_exchanges(move |shape| effects.waits(shape));
        sim.world.insert_resource(Gravity {
            effort,
            config,
            periodic,
            root,
        });
        matter::register(sim);
        sim.register_state("gravity", beyond::<Potential>(sim, periodic))?;
        columns::register(sim);
        let frozen = sim.world.resource::<GasModel>().frozen;
        register(sim, limited && !frozen);
        register_effects(sim, periodic, (force, energy))
    }
}

/// Enters what acts on gas and on whatever asks for accelerations.
fn register_effects(sim: &mut Engine, periodic: bool, of: (Force, Energy)) -> Result<(), Error> {
    if sim.world.contains_resource::<OwnPotentialAsked>() {
        own::register(sim, periodic)?;
    }
    if sim.world.contains_resource::<AccelerationAsked>() {
        acceleration::register(sim);
        if !periodic && sim.levels() > 1 {
            remark::register(sim);
        }
    }
    match of {
        _ if sim.world.resource::<GasModel>().frozen => Ok(()),
        (Force::Stress, energy) => stress::register(sim, energy),
        (Force::Gradient, Energy::Fluxes) => work::register(sim),
        (Force::Gradient, Energy::Kicks) => {
            sim.system_in(Split::Sources, kick::kick);
            Ok(())
        }
    }
}

fn register_fields(sim: &mut Engine) -> Result<(), Error> {
    sim.register_field::<Potential>(potential())?;
    sim.register_field::<Matter>(matter())?;
    sim.register_field::<Lag>(working("poisson_lag", 8, 1))?;
    sim.register_field::<Differences>(differences(sim))?;
    sim.register_field::<Correction<4>>(working("correction_4", 4, 2))?;
    sim.register_field::<Correction<2>>(working("correction_2", 2, 2))?;
    sim.register_field::<Correction<1>>(working("correction_1", 1, 2))
}

/// Enters the systems.
fn register(sim: &mut Engine, limited: bool) {
    sim.system_in(Ready::Recompute, matter::on_level);
    relaxes::<Potential>(sim.system_in(Ready::Recompute, systems::ready));
    sim.system_in(Advance::Potential, matter::on_level);
    relaxes::<Potential>(sim.system_in(Advance::Potential, systems::solve));
    sim.system_in(Aligned::Solve, matter::on_aligned);
    relaxes::<Potential>(sim.system_in(Aligned::Solve, systems::align));
    if limited {
        sim.system_in(Limit::Propose, kick::limit);
    }
}

/// A system that relaxes exchanges copies itself.
fn relaxes<P: Field>(mut system: SystemOptions) {
    system
        .manages_own_halo::<P>()
        .manages_own_halo::<Differences>()
        .manages_own_halo::<Correction<4>>()
        .manages_own_halo::<Correction<2>>()
        .manages_own_halo::<Correction<1>>();
}

/// Whether the domain is surrounded by itself.
fn periodic(sim: &Engine, wanted: Surroundings) -> Result<bool, Error> {
    let axes = sim.world.resource::<Topology>().domain.periodic;
    let all = axes.iter().all(|&periodic| periodic);
    match wanted {
        Surroundings::Periodic if !all => Err(sim.deck.error_at(
            "gravity.boundary",
            "\"periodic\" needs domain.boundary = \"periodic\"",
        ))?,
        Surroundings::Isolated if axes.contains(&true) => Err(sim.deck.error_at(
            "gravity.boundary",
            "\"isolated\" needs faces of the domain that are not periodic",
        ))?,
        Surroundings::Auto if !all && axes.contains(&true) => Err(sim.deck.error_at(
            "gravity.boundary",
            "a domain that is periodic along some axes only is neither periodic nor isolated: make domain.boundary periodic on all faces or on none",
        ))?,
        _ => Ok(all),
    }
}

fn beyond<P: Field>(sim: &Engine, periodic: bool) -> ExteriorPotential<P> {
    let cells = sim.world.resource::<Topology>().domain.cells(0);
    let precision = Pool::<Potential>::of(&sim.world).precision();
    ExteriorPotential::new((!periodic).then_some(cells), precision)
}

fn root_solver(sim: &Engine, config: &GravityConfig, periodic: bool) -> Result<RootMethods, Error> {
    let domain = &sim.world.resource::<Topology>().domain;
    if config.root == RootMethod::Multigrid {
        let order = (!periodic).then_some(config.multipole_order);
        let (sweeps, cycles) = (config.sweeps_aligned, config.root_cycles);
        return Ok(RootMethods::Multigrid(RootGrid::new(
            domain, order, sweeps, cycles,
        )));
    }
    let kind = match periodic {
        true => RootKind::Periodic,
        false => RootKind::Isolated { margin: MARGIN },
    };
    let (cells, width) = (domain.cells(0), domain.cell_width(0));
    let ranks = sim.world.resource::<Ranks>();
    let solver = RootSolver::new(cells.map(|n| n as usize), width, kind, ranks)?;
    Ok(RootMethods::Fft(solver))
}
