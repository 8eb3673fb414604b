//! Systems of the expansion: the limit of the time step, and the internal energy of gas whose ratio of specific heats is not 5/3.

use super::background::Background;
use crate::fields::{Gas, GasModel, MeanDensity};
use crate::order::{Advance, Limit, Ready};
use crate::register::prepare_chosen_update;
use bevy_ecs::prelude::*;
use nestar_device::math::{exp, ln, pow};
use nestar_device::{Real, device};
use nestar_engine::data::{Components, LevelRows};
use nestar_engine::mesh::LevelClock;
use nestar_engine::step::{Remarks, StepLimits, Write};
use nestar_engine::{Engine, Error};
use nestar_kernels::hydro::{Conserved, kinetic_energy};
use std::sync::Arc;

/// The expansion of the run.
#[derive(Resource)]
pub(super) struct Expansion {
    pub background: Arc<Background>,
    /// Largest relative growth of the scale factor in a step.
    pub max_growth: f64,
}

/// How the expansion acts on the gas.
#[derive(Resource)]
struct InternalEnergy {
    /// Power of the scale factor with which the internal energy grows.
    exponent: f64,
    /// Components of the gas at rest.
    components: Components,
}

/// Multiplies the internal energy by a factor.
#[device]
fn scaled_internal_energy<R: Real>(u: Conserved<R>, factor: R) -> Conserved<R> {
    let kinetic = kinetic_energy(u);
    let mut gas = u;
    gas.energy = kinetic + (u.energy - kinetic) * factor;
    gas
}

/// Registers the systems.
pub(super) fn register(sim: &mut Engine) -> Result<(), Error> {
    sim.system_in(Limit::Propose, limit_by_expansion);
    sim.system_in(Ready::Recompute, check_mean_density);
    let model = sim.world.resource::<GasModel>();
    let exponent = 5.0 - 3.0 * model.gamma;
    if exponent.abs() > 1e-12 && !model.frozen {
        let components = model.components_at_rest(&[])?;
        prepare_chosen_update::<Gas, scaled_internal_energy>(sim, components);
        sim.world.insert_resource(InternalEnergy {
            exponent,
            components,
        });
        sim.system_in(Advance::Sources, scale_internal_energy);
    }
    Ok(())
}

/// Warns if the mean density of all matter is not 1, which the expansion assumes.
fn check_mean_density(rows: LevelRows, mean: Res<MeanDensity>, mut remarks: ResMut<Remarks>) {
    if rows.level() == 0 && !rows.is_estimate() && (mean.0 - 1.0).abs() > TOLERANCE {
        remarks.0.push(format!(
            "[cosmology] the mean density of gas and particles is {}, but the expansion is that of matter with a mean density of 1 in code units: \
             structures grow at another rate; scale the density of the gas or the masses of the particles",
            mean.0
        ));
    }
}

/// Difference from 1 of the mean density of matter that is reported.
const TOLERANCE: f64 = 2e-3;

/// Limits the growth of the scale factor in a step.
fn limit_by_expansion(
    expansion: Res<Expansion>,
    clock: Res<LevelClock>,
    mut limits: ResMut<StepLimits>,
) {
    let table = &expansion.background;
    let later = table.scale_factor(clock.time) * (1.0 + expansion.max_growth);
    let step = table.time_of(later) - clock.time;
    // the table ends after the run; only a measurement of speed goes on
    if step > 0.0 {
        limits.propose("expansion", step);
    }
}

/// Multiplies the internal energy by the power of the scale factor over a step. In code units, which follow the expansion, the internal
/// energy of gas with a ratio of specific heats of 5/3 is constant.
fn scale_internal_energy(
    mut rows: LevelRows,
    clock: Res<LevelClock>,
    expansion: Res<Expansion>,
    internal: Res<InternalEnergy>,
    mut gas: Write<Gas>,
) {
    rows.choose(internal.components);
    let scale_factor = |time| ln(expansion.background.scale_factor(time));
    let growth = exp(scale_factor(clock.end) - scale_factor(clock.time));
    let factor = pow(growth, internal.exponent);
    gas.update::<scaled_internal_energy>(&rows, (), &[factor]);
}
