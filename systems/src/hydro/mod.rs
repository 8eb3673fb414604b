//! Gas dynamics: finite volumes on the adaptive mesh.

pub mod boundary;
pub mod config;
pub mod formulas;
pub mod initial;
pub mod mending;
mod rule_text;
pub mod solver;
pub mod systems;

pub use config::HydroConfig;
pub use initial::{InitialState, Primitive, PrimitiveColumns};

use crate::fields::{Gas, GasModel};
use crate::order::{Advance, Limit, Synchronise};
use nestar_engine::field::{Component, FieldSpec, Precision, Storage, TypedPool};
use nestar_engine::simulation::RunFacts;
use nestar_engine::{Error, Plugin, Simulation};
use nestar_kernels::mesh::prolong::SlopeLimiter;
use solver::HydroSolver;

/// The plugin: registers the gas, its limits and its step.
pub struct Hydro {
    /// Limiter of the interpolation between levels.
    pub prolongation: SlopeLimiter,
}

impl Plugin for Hydro {
    fn build(&self, sim: &mut Simulation) -> Result<(), Error> {
        let config: HydroConfig = sim.deck.table("hydro")?;
        let scalars = config.checked_scalars(&sim.deck)?;
        let spec = spec(&scalars, self.prolongation);
        let model = GasModel {
            gamma: config.gamma,
            scalars,
        };
        let storage = match sim.precision() {
            Precision::Single => Storage::Single(TypedPool::new(
                &spec,
                boundary::rules(sim, &model, &spec)?,
                sim.levels(),
            )),
            Precision::Double => Storage::Double(TypedPool::new(
                &spec,
                boundary::rules(sim, &model, &spec)?,
                sim.levels(),
            )),
        };
        sim.world.insert_resource(HydroSolver::new(
            &config,
            &model,
            sim.precision(),
            sim.settings.time.courant,
        ));
        sim.world.insert_resource(RunFacts {
            gamma: Some(config.gamma),
        });
        sim.world.insert_resource(model);
        sim.register_field::<Gas>(spec, storage, Synchronise::Restrict, Synchronise::Correct);
        sim.systems_in(Limit::Propose, systems::courant);
        sim.systems_in(Advance::Fluid, systems::fluid);
        Ok(())
    }
}

/// Whether a conserved state has positive density and pressure, and finite values, by the very arithmetic of the solver (the
/// sign of the pressure does not depend on gamma: 2 makes its factor exactly 1).
fn is_physical<R: nestar_device::Real>(u: &[R]) -> bool {
    let zero = R::lit(0.0);
    let w = nestar_kernels::hydro::eos::primitive_from_conserved(
        &[u[0], u[1], u[2], u[3], u[4]],
        R::lit(2.0),
    );
    u[0] > zero && w[4] > zero && u.iter().all(|v| nestar_device::Real::is_finite(*v))
}

fn spec(scalars: &[String], prolongation: SlopeLimiter) -> FieldSpec {
    let component = |name: &str, units: &str, dimension, long_name: &str, normal_to| Component {
        name: name.into(),
        units: units.into(),
        dimension,
        long_name: long_name.into(),
        normal_to,
    };
    let density = ("mass/length**3", [-3, 1, 0]);
    let mut components = vec![component(
        "density",
        density.0,
        density.1,
        "mass density",
        None,
    )];
    for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
        let long_name = format!("momentum density along {name}");
        let units = "mass/(length**2*time)";
        components.push(component(
            &format!("momentum_{name}"),
            units,
            [-2, 1, -1],
            &long_name,
            Some(axis),
        ));
    }
    let energy = "total energy density (thermal and kinetic)";
    components.push(component(
        "energy",
        "mass/(length*time**2)",
        [-1, 1, -2],
        energy,
        None,
    ));
    for name in scalars {
        let long_name = format!("mass density of the passive scalar {name}");
        components.push(component(
            &format!("scalar_{name}"),
            density.0,
            density.1,
            &long_name,
            None,
        ));
    }
    FieldSpec {
        components,
        prolongation,
        physical_f32: is_physical::<f32>,
        physical_f64: is_physical::<f64>,
    }
}
