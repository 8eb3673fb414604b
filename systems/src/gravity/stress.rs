//! The force as the divergence of a stress, which conserves momentum over all levels.
//!
//! A kick by the slope of the potential before a step is a loan: the field [`Push`] keeps what gas is owed since. Once the step stands,
//! what flows through the faces of cells, half of it at the potential before the step and half at that after it, is added to it, the flux
//! registers of [`Push`] get it, and the gas is given all that it is owed. Where levels meet, the registers leave in [`Push`] by how
//! much the finer level's fluxes differ, which gas is given too. Nothing is owed between steps, and a rejected step leaves a loan alone,
//! which the shorter one returns.

use super::beyond::ExteriorPotential;
use super::config::Energy;
use super::grids::{Due, Equation, Solver, each};
use super::kick::{REACH, fall, slopes};
use super::systems::Gravity;
use super::{work, working};
use crate::fields::{Gas, GasModel, Matter, Potential};
use crate::order::{Advance, Ready, Split, Synchronise};
use crate::register::MatterSources;
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_device::{Address, Lane, Number};
use nestar_engine::data::device::DevicePool;
use nestar_engine::data::{Component, Correct, Element, Field, FieldSpec, Pool};
use nestar_engine::device::{DeviceError, Kernel};
use nestar_engine::mesh::{LevelClock, Levels};
use nestar_engine::step::{FieldView, Read, Write};
use nestar_engine::{Engine, Error, in_precision};
use nestar_kernels::CELLS;
use nestar_kernels::gravity::stress::{self, Flow, Loan, STRESS, Settle, Stresses};
use nestar_kernels::{gravity, multigrid};

/// Momentum that gas is owed, by volume.
pub(super) struct Push;

impl Field for Push {
    const NAME: &'static str = "gravity_push";
}

/// The kernels, where fields live on a device.
struct StressKernels {
    stress: Kernel,
    lend: Kernel,
    settle: Kernel,
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
            lend: module.kernel("gravity_lend")?,
            settle: module.kernel("gravity_settle")?,
        })
    }
}

/// What the systems know of each other.
#[derive(Resource)]
struct Stress {
    kernels: Option<StressKernels>,
    /// Per level: the step whose gas is owed nothing any more.
    settled: Vec<Option<u64>>,
}

/// Enters the fields and the systems.
pub(super) fn register(sim: &mut Engine, energy: Energy) -> Result<(), Error> {
    sim.register_field::<Push>(FieldSpec {
        components: ["x", "y", "z"].map(Component::scalar).to_vec(),
        correct: Correct::Fluxes,
        ..working("gravity_push", 8, 1)
    })?;
    let pool = Pool::<Potential>::of(&sim.world).on_device();
    let kernels = pool.map(StressKernels::new).transpose()?;
    let settled = vec![None; sim.levels()];
    sim.world.insert_resource(Stress { kernels, settled });
    sim.system_in(Ready::Recompute, refuse_other_matter);
    sim.system_in(Advance::Deposit, before);
    sim.system_in(Advance::Couple, after);
    match energy {
        Energy::Fluxes => {
            work::register_work(sim)?;
            sim.system_in(Split::Sources, lend_with_energy);
            sim.system_in(Advance::Couple, settle_with_energy);
            sim.system_in(Synchronise::Correct, correct_with_energy);
        }
        Energy::Kicks => {
            sim.system_in(Split::Sources, lend);
            sim.system_in(Advance::Couple, settle);
            sim.system_in(Synchronise::Correct, correct);
        }
    }
    Ok(())
}

/// What flows would give the gas the momentum of other matter too.
fn refuse_other_matter(sources: Res<MatterSources>) -> Result<(), Error> {
    match sources.0.len() == 1 {
        true => Ok(()),
        false => Err(Error::Setup(
            "gravity.force = \"stress\" is for gas alone, but a plugin adds matter that attracts: set gravity.force = \"gradient\""
                .into(),
        )),
    }
}

/// What loans are made of.
#[derive(SystemParam)]
struct Lender<'w, 's> {
    clock: Res<'w, LevelClock>,
    levels: Res<'w, Levels>,
    gravity: Res<'w, Gravity>,
    equation: Res<'w, Equation>,
    beyond: Res<'w, ExteriorPotential>,
    solver: Res<'w, Solver>,
    stress: Res<'w, Stress>,
    potential: Read<'w, 's, Potential, REACH>,
    matter: Read<'w, 's, Matter, REACH>,
    gas: Write<'w, 's, Gas>,
    push: Write<'w, 's, Push>,
}

fn lend(mut lender: Lender) -> Result<(), Error> {
    lender.act(None)
}

fn lend_with_energy(mut lender: Lender, mut due: Write<Due>) -> Result<(), Error> {
    lender.act(Some(&due.change()))
}

impl Lender<'_, '_> {
    /// Kicks the gas over the first half of the step at hand. Nothing is left to do in its other half.
    fn act(&mut self, due: Option<&FieldView<Due>>) -> Result<(), Error> {
        let clock = &self.clock;
        if self.stress.settled[clock.level] == Some(clock.step) {
            return Ok(());
        }
        // where split sources are ahead after a step that was rejected, what they have given was settled all the same
        let dt = clock.end - self.levels.time(clock.level);
        let (potential, matter) = (self.potential.get(REACH)?, self.matter.get(REACH)?);
        let (gas, push) = (self.gas.change(), self.push.change());
        if let (Some(kernels), Some(own)) = (&self.solver.kernels, &self.stress.kernels) {
            let given = (&*self.gravity, &*self.beyond, *self.equation);
            let fall = fall(&potential, &matter, given, kernels.words());
            let rows = fall.count as usize;
            let given = Loan::<Number> {
                fall,
                gas: gas.device().bank(gas.banks()[0]).into(),
                push: push.device().bank(0).into(),
                due: address(due),
                dt,
                components: gas.components() as i32,
            };
            own.lend.count_work(rows * CELLS, rows * CELLS * 8 * 14);
            return kernels.launch(&own.lend, rows, &given);
        }
        in_precision!(gas.precision(), R => {
            let slopes = slopes::<R, _>(&potential, &matter, (&self.beyond, *self.equation));
            let (to, owed) = (gas.present::<R>(), push.present::<R>());
            let due = due.map(|due| due.present::<R>());
            let how = (self.gravity.config.order == 4, R::lit(dt));
            // SAFETY: distinct rows.
            each(gas.rows(), |row| unsafe { stress::lend(&slopes, (&to, &owed, due.as_ref()), row, how) });
        });
        Ok(())
    }
}

/// What stresses are made of.
#[derive(SystemParam)]
struct Flowing<'w, 's> {
    clock: Res<'w, LevelClock>,
    gravity: Res<'w, Gravity>,
    equation: Res<'w, Equation>,
    beyond: Res<'w, ExteriorPotential>,
    solver: Res<'w, Solver>,
    stress: Res<'w, Stress>,
    potential: Read<'w, 's, Potential, 1>,
    matter: Read<'w, 's, Matter, 1>,
    push: Write<'w, 's, Push>,
}

/// Half of what flows in a step, at the potential before it.
fn before(mut flowing: Flowing) -> Result<(), Error> {
    flowing.act(false)?;
    Ok(flowing.push.commit()?)
}

/// The other half, at the potential after it.
fn after(mut flowing: Flowing) -> Result<(), Error> {
    flowing.act(true)
}

impl Flowing<'_, '_> {
    /// What stresses are multiplied by for half a step, and what the mean density adds to them.
    fn scale_and_pull(&self) -> (f64, f64) {
        let Equation { coefficient, mean } = *self.equation;
        let scale = if coefficient > 0.0 {
            0.5 / coefficient
        } else {
            0.0
        };
        (scale, coefficient * mean)
    }

    /// Adds what flows at the present potential; `adds` if the registers have had fluxes in this step.
    fn act(&mut self, adds: bool) -> Result<(), Error> {
        let (scale, pull) = self.scale_and_pull();
        let (potential, matter) = (self.potential.get(1)?, self.matter.get(1)?);
        let (clock, push) = (&self.clock, self.push.change());
        let (level, dt, width) = (clock.level, clock.dt, clock.cell_width);
        let rate = width.map(|w| dt / w);
        if let (Some(kernels), Some(own)) = (&self.solver.kernels, &self.stress.kernels) {
            let given = (&*self.gravity, &*self.beyond, *self.equation);
            let fall = fall(&potential, &matter, given, 0);
            let rows = fall.count as usize;
            let given = Flow::<Number> {
                view: fall.view,
                exterior: fall.exterior,
                source: fall.source,
                registers: push.device().flux_view(level, adds),
                rows: fall.rows,
                push: push.device().bank(0).into(),
                width,
                rate,
                dt,
                pull,
                scale,
                count: fall.count,
                adds,
            };
            own.stress.count_work(rows * CELLS, rows * CELLS * 8 * 8);
            return kernels.launch(&own.stress, rows, &given);
        }
        in_precision!(push.precision(), R => {
            let stresses = Stresses {
                slopes: slopes::<R, _>(&potential, &matter, (&self.beyond, *self.equation)),
                inverse: width.map(|w| R::lit(1.0 / w)),
                pull: R::lit(pull),
                scale: R::lit(scale),
            };
            flow(&stresses, &push, rate.map(R::lit), adds.then_some(dt));
        });
        Ok(())
    }
}

/// Adds what flows on the host; the length of the step is given if the registers have had fluxes in it.
fn flow<R: Element>(
    stresses: &Stresses<R>,
    push: &FieldView<Push>,
    rate: [R; 3],
    adds: Option<f64>,
) {
    let (rows, registers, level) = (push.present::<R>(), push.registers::<R>(), push.level());
    each(push.rows(), |row| {
        let flows = stresses.of(row);
        // SAFETY: distinct rows.
        unsafe { flows.add(row, &rows, &rate) };
        for face in (0..6).filter(|&face| registers.has_register(row, face)) {
            // SAFETY: as above.
            unsafe { registers.record(level, row, face, &flows.through(face), adds) };
        }
    });
}

/// What gives gas what it is owed.
#[derive(SystemParam)]
struct Settler<'w, 's> {
    clock: Res<'w, LevelClock>,
    solver: Res<'w, Solver>,
    stress: ResMut<'w, Stress>,
    gas: Write<'w, 's, Gas>,
    push: Write<'w, 's, Push>,
    model: Res<'w, GasModel>,
}

/// Ends the step of the level at hand.
fn settle(mut settler: Settler) -> Result<(), Error> {
    settler.end_step(None)
}

fn settle_with_energy(mut settler: Settler, mut due: Write<Due>) -> Result<(), Error> {
    settler.end_step(Some(&due.change()))
}

/// Gives cells beside a finer level what its fluxes differ by.
fn correct(mut settler: Settler) -> Result<(), Error> {
    settler.act(None)
}

/// The same, and the total energy stays.
fn correct_with_energy(mut settler: Settler, mut due: Write<Due>) -> Result<(), Error> {
    settler.act(Some(&due.change()))
}

impl Settler<'_, '_> {
    fn end_step(&mut self, due: Option<&FieldView<Due>>) -> Result<(), Error> {
        self.stress.settled[self.clock.level] = Some(self.clock.step);
        self.act(due)
    }

    fn act(&mut self, due: Option<&FieldView<Due>>) -> Result<(), Error> {
        let internal = self.model.internal_energy().is_some();
        let (gas, push) = (self.gas.change(), self.push.change());
        if let (Some(kernels), Some(own)) = (&self.solver.kernels, &self.stress.kernels) {
            let rows = gas.rows().len();
            let given = Settle::<Number> {
                rows: gas.place().on_device().rows(gas.level()).into(),
                gas: gas.device().bank(gas.banks()[0]).into(),
                push: push.device().bank(0).into(),
                due: address(due),
                components: gas.components() as i32,
                count: rows as i32,
                internal,
            };
            own.settle.count_work(rows * CELLS, rows * CELLS * 8 * 16);
            return kernels.launch(&own.settle, rows, &given);
        }
        in_precision!(gas.precision(), R => {
            let (to, owed) = (gas.present::<R>(), push.present::<R>());
            let due = due.map(|due| due.present::<R>());
            // SAFETY: distinct rows.
            each(gas.rows(), |row| unsafe { stress::settle((&to, internal), &owed, due.as_ref(), row) });
        });
        Ok(())
    }
}

/// Where what is due lies on a device.
fn address(due: Option<&FieldView<Due>>) -> Address<Number> {
    due.map_or(Address::NONE, |due| due.device().bank(0).into())
}
