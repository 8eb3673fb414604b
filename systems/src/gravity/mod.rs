//! Self-gravity: solves Poisson's equation on the adaptive, sub-cycled hierarchy and accelerates the gas.
//!
//! In each step of a level, multigrid cycles compute its potential at the end of the step. The initial guess is the
//! potential before the step plus the prolonged change of the coarser level, which also gives the boundary values. When
//! levels are synchronised, a cycle of the full approximation scheme runs over all of them. Each coarser level then
//! stores the fine-grid correction (`tau`), the term that the finer level adds to its right-hand side. Steps until the
//! next synchronisation include it. The root level is solved by Fourier transforms ([`root_fft`]) or by multigrid cycles.

mod acceleration;
mod config;
mod diagnostics;
mod direct_solver;
mod energy_by_flux;
mod estimate;
mod exterior_potential;
mod fine_correction;
mod gas_kick;
mod kernels;
mod level_solver;
mod multipole;
mod particle_potentials;
pub mod root_fft;
mod root_level;
mod stress;
mod surroundings;
mod systems;
mod v_cycle;

pub use crate::fields::Matter;
pub use crate::register::GravitySources;
pub use config::{
    Coupling, GravityBoundary, GravityConfig, GravityEnergy, GravityForce, RootMethod,
};
pub use exterior_potential::ExteriorPotential;

use crate::declare::{Declare, gas_has_energy};
use crate::fields::{
    AccelerationMirrored, AccelerationRequested, GasModel, GravitationalConstant, MassFlux,
    OwnPotentialRequested, PairAccelerationRequested, Potential,
};
use crate::order::{Advance, Aligned, Limit, Ready, Split};
use crate::units::Units;
use estimate::ExchangeEstimate;
use kernels::GravityKernels;
use level_solver::{
    CoarseCorrection, DeviceSolver, FineCorrection, FineDifferences, PoissonEquation, SolvedRoot,
};
use nestar_engine::comm::Ranks;
use nestar_engine::data::{Component, Field, FieldSpec, Pool, Prolong, Restrict};
use nestar_engine::mesh::Topology;
use nestar_engine::step::{Remarks, SystemOptions};
use nestar_engine::{Engine, Error, Plugin};
use nestar_kernels::multigrid::expansion::MARGIN;

use root_fft::{RootKind, RootSolver};
use root_level::{RootChoice, RootMethods, RootMultigrid};
use std::f64::consts::PI;
use surroundings::Surroundings;
use systems::Gravity;

/// Plugin for the table `[gravity]`.
pub struct SelfGravity;

/// Returns the specification of a field of the solver.
fn solver_field(name: &str, side: usize, banks: usize) -> FieldSpec {
    FieldSpec {
        side,
        banks,
        prolong: Prolong::None,
        restrict: Restrict::None,
        stored: false,
        ..FieldSpec::cells(&[name])
    }
}

/// Returns the field of fine differences, which several ranks exchange; a single rank does not need it.
fn differences(sim: &Engine) -> FieldSpec {
    match sim.world.resource::<Ranks>().is_single() {
        true => solver_field("differences", 1, 1),
        false => FieldSpec {
            components: ["x", "y", "z"].map(Component::scalar).to_vec(),
            ..solver_field("differences", 8, 1)
        },
    }
}

fn matter() -> FieldSpec {
    let mut spec = solver_field("matter", 8, 1);
    spec.components[0].units = "mass/length**3".into();
    spec.components[0].long_name = "density of all matter that attracts".into();
    spec
}

fn potential(sim: &Engine) -> FieldSpec {
    let component = Component {
        units: Units::of_gravity(sim, "length**2/time**2"),
        dimension: [2, 0, -2],
        long_name: "gravitational potential".into(),
        ..Component::scalar("potential")
    };
    FieldSpec {
        components: vec![component],
        // before and after a step, and saved before a correction
        banks: 3,
        time_levels: 2,
        prolong: Prolong::Linear,
        restrict: Restrict::None,
        ..FieldSpec::cells(&[])
    }
}

impl Plugin for SelfGravity {
    fn name(&self) -> &str {
        "gravity"
    }

    fn after(&self) -> &[&str] {
        &["hydro", "acceleration"]
    }

    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has("gravity") {
            return Ok(());
        }
        if let Some(units) = Units::find(sim) {
            let newton = units.gravitational_constant();
            sim.deck.fill("gravity.constant", "units", newton);
        }
        let config: GravityConfig = sim.deck.table("gravity")?;
        sim.world
            .insert_resource(GravitationalConstant(config.constant));
        if config.boundary == GravityBoundary::Auto {
            sim.world.insert_resource(AccelerationMirrored);
        }
        let has_energy = gas_has_energy(&mut sim.deck)?;
        match config.energy {
            _ if !has_energy => Ok(()),
            GravityEnergy::Fluxes => sim.request::<MassFlux>(),
            GravityEnergy::Kicks => Ok(()),
        }
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has("gravity") {
            return Ok(());
        }
        let mut config: GravityConfig = sim.deck.table("gravity")?;
        config.check(&sim.deck)?;
        let has_energy = sim.world.resource::<GasModel>().equation.has_energy();
        if !has_energy && config.force == GravityForce::Stress {
            let why = "\"stress\" corrects the energy of the gas, and the gas has none (hydro.eos): set gravity.force = \"gradient\"";
            return Err(sim.deck.error_at("gravity.force", why).into());
        }
        sim.keep_keys(&["gravity.constant", "gravity.boundary"]);
        let surroundings = Surroundings::of(sim, config.boundary)?;
        let domain = sim.world.resource::<Topology>().domain;
        if config.root == RootMethod::Auto {
            let choice = RootChoice::of(&domain, surroundings);
            config.root = choice.method;
            sim.world.resource_mut::<Remarks>().0.push(choice.reason);
        }
        register_fields(sim)?;
        let pool = Pool::<Potential>::of(&sim.world).on_device();
        let kernels = pool.map(GravityKernels::new).transpose()?;
        sim.world.insert_resource(DeviceSolver {
            kernels,
            mirrored: surroundings.mirrored_faces(),
        });
        sim.world.insert_resource(SolvedRoot(f64::NAN));
        let root = root_solver(sim, &config, surroundings)?;
        let limited = config.limit > 0.0;
        let (force, energy) = (config.force, config.energy);
        sim.world.insert_resource(PoissonEquation {
            coefficient: 4.0 * PI * config.constant,
            mean: 0.0,
            outer_mean: 0.0,
        });
        let cycle_settings =
            config.cycle_settings(sim.world.contains_resource::<AccelerationRequested>());
        let own = sim.world.contains_resource::<OwnPotentialRequested>();
        let pairs = sim.world.contains_resource::<PairAccelerationRequested>();
        let effects =
            ExchangeEstimate::of(&config, cycle_settings, own, pairs, &domain, surroundings);
        sim.declare_exchanges(move |shape| effects.waits(shape));
        sim.world.insert_resource(Gravity {
            cycle_settings,
            config,
            root,
        });
        systems::register_density(sim, surroundings.is_closed());
        sim.register_state("gravity", exterior_state::<Potential>(sim, surroundings))?;
        diagnostics::register(sim);
        let frozen = sim.world.resource::<GasModel>().frozen;
        register(sim, limited && !frozen);
        register_couplings(sim, surroundings, force, energy)
    }
}

/// Registers the systems that accelerate the gas and other matter.
fn register_couplings(
    sim: &mut Engine,
    surroundings: Surroundings,
    force: GravityForce,
    energy: GravityEnergy,
) -> Result<(), Error> {
    if sim.world.contains_resource::<OwnPotentialRequested>() {
        particle_potentials::register(sim, surroundings)?;
    }
    if sim.world.contains_resource::<AccelerationRequested>() {
        acceleration::register(sim);
        if !surroundings.is_closed() && sim.levels() > 1 {
            acceleration::register_boundary_check(sim, surroundings);
        }
    }
    let has_energy = sim.world.resource::<GasModel>().equation.has_energy();
    match (force, energy) {
        _ if sim.world.resource::<GasModel>().frozen => Ok(()),
        _ if !has_energy => {
            sim.system_in(Split::Sources, gas_kick::kick_gas);
            Ok(())
        }
        (GravityForce::Stress, energy) => stress::register(sim, energy),
        (GravityForce::Gradient, GravityEnergy::Fluxes) => energy_by_flux::register(sim),
        (GravityForce::Gradient, GravityEnergy::Kicks) => {
            sim.system_in(Split::Sources, gas_kick::kick_gas);
            Ok(())
        }
    }
}

fn register_fields(sim: &mut Engine) -> Result<(), Error> {
    sim.register_field::<Potential>(potential(sim))?;
    sim.register_field::<Matter>(matter())?;
    sim.register_field::<FineCorrection>(working(solver_field("poisson_lag", 8, 1)))?;
    sim.register_field::<FineDifferences>(working(differences(sim)))?;
    sim.register_field::<CoarseCorrection<4>>(working(solver_field("correction_4", 4, 2)))?;
    sim.register_field::<CoarseCorrection<2>>(working(solver_field("correction_2", 2, 2)))?;
    sim.register_field::<CoarseCorrection<1>>(working(solver_field("correction_1", 1, 2)))
}

/// Declares a field of the solver that no other method reads.
fn working(spec: FieldSpec) -> FieldSpec {
    FieldSpec {
        working: true,
        ..spec
    }
}

/// Registers the systems of the solver.
fn register(sim: &mut Engine, limited: bool) {
    exchanges_own_halos::<Potential>(
        &mut sim.system_in(Ready::Recompute, systems::solve_initial_potential),
    );
    exchanges_own_halos::<Potential>(
        &mut sim.system_in(Advance::Potential, systems::solve_potential),
    );
    exchanges_own_halos::<Potential>(
        &mut sim.system_in(Aligned::Solve, systems::solve_aligned_levels),
    );
    if limited {
        sim.system_in(Limit::Propose, gas_kick::limit_by_gravity);
    }
}

/// Declares that a system exchanges the halo of the solver fields itself.
fn exchanges_own_halos<P: Field>(system: &mut SystemOptions) {
    system
        .manages_own_halo::<P>()
        .manages_own_halo::<FineDifferences>()
        .manages_own_halo::<CoarseCorrection<4>>()
        .manages_own_halo::<CoarseCorrection<2>>()
        .manages_own_halo::<CoarseCorrection<1>>();
}

fn exterior_state<P: Field>(sim: &Engine, surroundings: Surroundings) -> ExteriorPotential<P> {
    let cells = sim.world.resource::<Topology>().domain.cells(0);
    let precision = Pool::<Potential>::of(&sim.world).precision();
    ExteriorPotential::new(cells, surroundings, precision)
}

fn root_solver(
    sim: &Engine,
    config: &GravityConfig,
    surroundings: Surroundings,
) -> Result<RootMethods, Error> {
    let domain = &sim.world.resource::<Topology>().domain;
    if config.root == RootMethod::Multigrid {
        let order = config.multipole_order;
        let solver = RootMultigrid::new(domain, surroundings, order, config.root_cycles);
        return Ok(RootMethods::Multigrid(solver));
    }
    let kind = match surroundings.is_closed() {
        true => RootKind::Periodic,
        false => RootKind::Isolated { margin: MARGIN },
    };
    let (cells, width) = (domain.cells(0), domain.cell_width(0));
    let ranks = sim.world.resource::<Ranks>();
    let solver = RootSolver::beside_mirrors(
        cells.map(|n| n as usize),
        width,
        kind,
        surroundings.mirrored(),
        ranks,
    )?;
    Ok(RootMethods::Fft(solver))
}
