//! Gravitational force as the divergence of a stress, which conserves momentum over all levels.
//!
//! The impulse of a step is predicted by a kick with the gradient of the potential before the step; the field
//! [`PendingImpulse`] stores what is still to be applied. After the step is accepted, the momentum fluxes through cell
//! faces are added to the field and to its flux registers. Half of them are of the potential before the step, half of
//! that after it. The gas then gets the pending impulse. At level boundaries the registers leave the difference to the
//! fluxes of the finer level in the field, which the gas gets as well. Nothing is pending between steps. A rejected
//! step leaves its predicted impulse pending, and the shorter step corrects it.

use super::acceleration::add_acceleration;
use super::config::GravityEnergy;
use super::exterior_potential::ExteriorPotential;
use super::gas_kick::{REACH, device_slopes, host_slopes};
use super::level_solver::{DeviceSolver, PendingEnergy, PoissonEquation, for_each_row};
use super::systems::Gravity;
use super::{energy_by_flux, solver_field};
use crate::fields::{Gas, Matter, Potential};
use crate::order::{Advance, Ready, Split, Synchronise};
use crate::register::MatterSources;
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_device::{Address, Lane, Number};
use nestar_engine::data::device::DevicePool;
use nestar_engine::data::{Component, Correct, Element, Field, FieldSpec, Pool};
use nestar_engine::device::{DeviceError, Kernel};
use nestar_engine::mesh::{LevelClock, Levels};
use nestar_engine::step::regrid::correct;
use nestar_engine::step::{FieldView, Read, Write};
use nestar_engine::{Engine, Error, in_precision};
use nestar_kernels::CELLS;
use nestar_kernels::gravity::stress::{
    self, ImpulseCorrection, ImpulsePrediction, ImpulseRows, STRESS, StressParameters, Stresses,
};
use nestar_kernels::{gravity, multigrid};

/// Momentum density still to be added to the gas.
pub(super) struct PendingImpulse;

impl Field for PendingImpulse {
    const NAME: &'static str = "gravity_push";
}

/// Kernels, if the fields are on a device.
struct StressKernels {
    stress: Kernel,
    predict_impulse: Kernel,
    correct_impulse: Kernel,
}

impl StressKernels {
    fn new(pool: &DevicePool) -> Result<Self, DeviceError> {
        let items = [
            multigrid::device_items(),
            gravity::device_items(),
            stress::device_items(),
        ];
        let source = pool.program(&items.concat(), &[STRESS]);
        let module = pool.device().compile("gravity_stress", &source)?;
        Ok(Self {
            stress: module.kernel("gravity_stress")?,
            predict_impulse: module.kernel("gravity_predict_impulse")?,
            correct_impulse: module.kernel("gravity_correct_impulse")?,
        })
    }
}

/// State shared by the systems.
#[derive(Resource)]
struct StressState {
    kernels: Option<StressKernels>,
    /// Per level: the step whose impulse has been corrected.
    corrected_step: Vec<Option<u64>>,
}

/// Registers the fields and the systems.
pub(super) fn register(sim: &mut Engine, energy: GravityEnergy) -> Result<(), Error> {
    sim.register_field::<PendingImpulse>(FieldSpec {
        components: ["x", "y", "z"].map(Component::scalar).to_vec(),
        correct: Correct::Fluxes,
        ..solver_field("gravity_push", 8, 1)
    })?;
    let pool = Pool::<Potential>::of(&sim.world).on_device();
    let kernels = pool.map(StressKernels::new).transpose()?;
    let corrected_step = vec![None; sim.levels()];
    sim.world.insert_resource(StressState {
        kernels,
        corrected_step,
    });
    sim.system_in(Ready::Recompute, refuse_other_matter);
    sim.system_in(Advance::Predict, add_stress_before_step);
    sim.system_in(Advance::Couple, add_stress_after_step)
        .after(add_acceleration);
    match energy {
        GravityEnergy::Fluxes => {
            energy_by_flux::register_flux_work(sim)?;
            sim.system_in(Split::Sources, predict_impulse_and_energy);
            sim.system_in(Advance::Couple, correct_impulse_and_energy)
                .after(add_stress_after_step)
                .after(energy_by_flux::add_work_after_step);
            sim.system_in(Synchronise::Correct, correct_impulse_and_energy_at_faces)
                .after(correct::<PendingImpulse>);
        }
        GravityEnergy::Kicks => {
            sim.system_in(Split::Sources, predict_impulse);
            sim.system_in(Advance::Couple, correct_impulse)
                .after(add_stress_after_step);
            sim.system_in(Synchronise::Correct, correct_impulse_at_faces)
                .after(correct::<PendingImpulse>);
        }
    }
    Ok(())
}

/// Refuses other matter: the fluxes would give its momentum to the gas.
fn refuse_other_matter(sources: Res<MatterSources>) -> Result<(), Error> {
    match sources.0.len() == 1 {
        true => Ok(()),
        false => Err(Error::Setup(
            "gravity.force = \"stress\" needs gas as the only source of gravity, but a plugin adds other matter: set gravity.force = \"gradient\""
                .into(),
        )),
    }
}

/// Data of the predicted impulse.
#[derive(SystemParam)]
struct ImpulsePredictor<'w, 's> {
    clock: Res<'w, LevelClock>,
    levels: Res<'w, Levels>,
    gravity: Res<'w, Gravity>,
    equation: Res<'w, PoissonEquation>,
    exterior_potential: Res<'w, ExteriorPotential>,
    solver: Res<'w, DeviceSolver>,
    stress: Res<'w, StressState>,
    potential: Read<'w, 's, Potential, REACH>,
    matter: Read<'w, 's, Matter, REACH>,
    gas: Write<'w, 's, Gas>,
    impulse: Write<'w, 's, PendingImpulse>,
}

fn predict_impulse(mut predictor: ImpulsePredictor) -> Result<(), Error> {
    predictor.apply(None)
}

fn predict_impulse_and_energy(
    mut predictor: ImpulsePredictor,
    mut pending_energy: Write<PendingEnergy>,
) -> Result<(), Error> {
    predictor.apply(Some(&pending_energy.change()))
}

impl ImpulsePredictor<'_, '_> {
    /// Kicks the gas in the first half of the split step; the second half does nothing.
    fn apply(&mut self, pending_energy: Option<&FieldView<PendingEnergy>>) -> Result<(), Error> {
        let clock = &self.clock;
        if self.stress.corrected_step[clock.level] == Some(clock.step) {
            return Ok(());
        }
        // after a rejected step split sources may be ahead in time; their impulse has been corrected already
        let dt = clock.end - self.levels.time(clock.level);
        let (potential, matter) = (self.potential.get(REACH)?, self.matter.get(REACH)?);
        let (gas, impulse) = (self.gas.change(), self.impulse.change());
        if let (Some(kernels), Some(own)) = (&self.solver.kernels, &self.stress.kernels) {
            let slope = device_slopes(
                &potential,
                &matter,
                &self.gravity,
                &self.exterior_potential,
                *self.equation,
                kernels.words(),
            );
            let rows = slope.count as usize;
            let parameters = ImpulsePrediction::<Number> {
                slope,
                gas: gas.device().bank(gas.banks()[0]).into(),
                impulse: impulse.device().bank(0).into(),
                pending_energy: address(pending_energy),
                dt,
                components: gas.components() as i32,
            };
            own.predict_impulse
                .count_work(rows * CELLS, rows * CELLS * 8 * 14);
            return kernels.launch(&own.predict_impulse, rows, &parameters);
        }
        in_precision!(gas.precision(), R => {
            let slopes = host_slopes::<R, _, _>(&potential, &matter, &self.exterior_potential, *self.equation);
            let rows = impulse_rows::<R>(&gas, &impulse, pending_energy);
            let (fourth, dt) = (self.gravity.config.order == 4, R::lit(dt));
            // SAFETY: distinct rows.
            for_each_row(gas.rows(), |row| unsafe { stress::predict_impulse(&slopes, &rows, row, fourth, dt) });
        });
        Ok(())
    }
}

/// Data of the stress.
#[derive(SystemParam)]
struct StressFlux<'w, 's> {
    clock: Res<'w, LevelClock>,
    gravity: Res<'w, Gravity>,
    equation: Res<'w, PoissonEquation>,
    exterior_potential: Res<'w, ExteriorPotential>,
    solver: Res<'w, DeviceSolver>,
    stress: Res<'w, StressState>,
    potential: Read<'w, 's, Potential, 1>,
    matter: Read<'w, 's, Matter, 1>,
    impulse: Write<'w, 's, PendingImpulse>,
}

/// Adds half of the momentum fluxes of a step, with the potential before it.
fn add_stress_before_step(mut flux: StressFlux) -> Result<(), Error> {
    flux.apply(false)?;
    Ok(flux.impulse.commit()?)
}

/// Adds the other half, with the potential after it.
fn add_stress_after_step(mut flux: StressFlux) -> Result<(), Error> {
    flux.apply(true)
}

impl StressFlux<'_, '_> {
    /// Returns the factor of stresses for half a step, and the contribution of the mean density.
    fn scale_and_mean_source(&self) -> (f64, f64) {
        let PoissonEquation {
            coefficient, mean, ..
        } = *self.equation;
        let scale = if coefficient > 0.0 {
            0.5 / coefficient
        } else {
            0.0
        };
        (scale, coefficient * mean)
    }

    /// Adds the momentum fluxes at the present potential; `adds` is `true` if the registers hold fluxes of this step.
    fn apply(&mut self, adds: bool) -> Result<(), Error> {
        let (scale, mean_source) = self.scale_and_mean_source();
        let (potential, matter) = (self.potential.get(1)?, self.matter.get(1)?);
        let (clock, impulse) = (&self.clock, self.impulse.change());
        let (level, dt, width) = (clock.level, clock.dt, clock.cell_width);
        let rate = width.map(|w| dt / w);
        if let (Some(kernels), Some(own)) = (&self.solver.kernels, &self.stress.kernels) {
            let slope = device_slopes(
                &potential,
                &matter,
                &self.gravity,
                &self.exterior_potential,
                *self.equation,
                0,
            );
            let rows = slope.count as usize;
            let parameters = StressParameters::<Number> {
                view: slope.view,
                exterior: slope.exterior,
                source: slope.source,
                registers: impulse.device().flux_view(level, adds),
                rows: slope.rows,
                impulse: impulse.device().bank(0).into(),
                width,
                rate,
                dt,
                mean_source,
                scale,
                count: slope.count,
                adds,
            };
            own.stress.count_work(rows * CELLS, rows * CELLS * 8 * 8);
            return kernels.launch(&own.stress, rows, &parameters);
        }
        in_precision!(impulse.precision(), R => {
            let stresses = Stresses {
                slopes: host_slopes::<R, _, _>(&potential, &matter, &self.exterior_potential, *self.equation),
                inverse: width.map(|w| R::lit(1.0 / w)),
                mean_source: R::lit(mean_source),
                scale: R::lit(scale),
            };
            add_fluxes(&stresses, &impulse, rate.map(R::lit), adds.then_some(dt));
        });
        Ok(())
    }
}

/// Adds the momentum fluxes on the host; `adds` is the step length if the registers hold fluxes of this step.
fn add_fluxes<R: Element>(
    stresses: &Stresses<R>,
    impulse: &FieldView<PendingImpulse>,
    rate: [R; 3],
    adds: Option<f64>,
) {
    let (rows, registers, level) = (
        impulse.present::<R>(),
        impulse.registers::<R>(),
        impulse.level(),
    );
    for_each_row(impulse.rows(), |row| {
        let flows = stresses.of(row);
        // SAFETY: distinct rows.
        unsafe { flows.add(row, &rows, &rate) };
        for face in (0..6).filter(|&face| registers.has_register(row, face)) {
            // SAFETY: as above.
            unsafe { registers.record(level, row, face, &flows.through(face), adds) };
        }
    });
}

/// Data of the corrected impulse.
#[derive(SystemParam)]
struct ImpulseCorrector<'w, 's> {
    clock: Res<'w, LevelClock>,
    solver: Res<'w, DeviceSolver>,
    stress: ResMut<'w, StressState>,
    gas: Write<'w, 's, Gas>,
    impulse: Write<'w, 's, PendingImpulse>,
}

/// Corrects the impulse at the end of the step of the current level.
fn correct_impulse(mut corrector: ImpulseCorrector) -> Result<(), Error> {
    corrector.end_step(None)
}

fn correct_impulse_and_energy(
    mut corrector: ImpulseCorrector,
    mut pending_energy: Write<PendingEnergy>,
) -> Result<(), Error> {
    corrector.end_step(Some(&pending_energy.change()))
}

/// Adds the flux difference of the finer level to cells at its boundary.
fn correct_impulse_at_faces(mut corrector: ImpulseCorrector) -> Result<(), Error> {
    corrector.apply(None)
}

/// Adds the flux difference of the finer level and keeps the total energy.
fn correct_impulse_and_energy_at_faces(
    mut corrector: ImpulseCorrector,
    mut pending_energy: Write<PendingEnergy>,
) -> Result<(), Error> {
    corrector.apply(Some(&pending_energy.change()))
}

impl ImpulseCorrector<'_, '_> {
    fn end_step(&mut self, pending_energy: Option<&FieldView<PendingEnergy>>) -> Result<(), Error> {
        self.stress.corrected_step[self.clock.level] = Some(self.clock.step);
        self.apply(pending_energy)
    }

    fn apply(&mut self, pending_energy: Option<&FieldView<PendingEnergy>>) -> Result<(), Error> {
        let (gas, impulse) = (self.gas.change(), self.impulse.change());
        if let (Some(kernels), Some(own)) = (&self.solver.kernels, &self.stress.kernels) {
            let rows = gas.rows().len();
            let parameters = ImpulseCorrection::<Number> {
                rows: gas.place().on_device().rows(gas.level()).into(),
                gas: gas.device().bank(gas.banks()[0]).into(),
                impulse: impulse.device().bank(0).into(),
                pending_energy: address(pending_energy),
                components: gas.components() as i32,
                count: rows as i32,
            };
            own.correct_impulse
                .count_work(rows * CELLS, rows * CELLS * 8 * 16);
            return kernels.launch(&own.correct_impulse, rows, &parameters);
        }
        in_precision!(gas.precision(), R => {
            let rows = impulse_rows::<R>(&gas, &impulse, pending_energy);
            // SAFETY: distinct rows.
            for_each_row(gas.rows(), |row| unsafe { stress::correct_impulse(&rows, row) });
        });
        Ok(())
    }
}

/// Returns the rows that the prediction and the correction change on the host.
fn impulse_rows<'a, R: Element>(
    gas: &FieldView<'a, Gas>,
    impulse: &FieldView<'a, PendingImpulse>,
    pending_energy: Option<&FieldView<'a, PendingEnergy>>,
) -> ImpulseRows<'a, R> {
    ImpulseRows {
        gas: gas.present::<R>(),
        impulse: impulse.present::<R>(),
        pending_energy: pending_energy.map(|pending_energy| pending_energy.present::<R>()),
    }
}

/// Returns the address of the pending energy on a device.
fn address(pending_energy: Option<&FieldView<PendingEnergy>>) -> Address<Number> {
    pending_energy.map_or(Address::NONE, |pending_energy| {
        pending_energy.device().bank(0).into()
    })
}
