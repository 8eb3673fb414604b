//! Gravitational energy source of the gas by mass fluxes. Kicks before and after a step change the kinetic energy; the
//! last kick replaces their work by that of the mass fluxes.

use super::acceleration::add_acceleration;
use super::exterior_potential::ExteriorPotential;
use super::gas_kick::GasKick;
use super::level_solver::{DeviceSolver, PendingEnergy, for_each_row};
use super::solver_field;
use crate::fields::{GasLosses, MassFlux, Potential, gravity_strength};
use crate::order::{Advance, Split};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_device::Lane;
use nestar_engine::mesh::{LevelClock, Levels};
use nestar_engine::step::{Read, Write};
use nestar_engine::{Engine, Error, in_precision};
use nestar_kernels::CELLS;
use nestar_kernels::gravity::{self, FluxWork, KickStage};

/// Per level: `true` if the kicks of the current step cover exactly its length, and no gas has become particles. Kicks of a rejected step
/// cover more than the shorter step.
#[derive(Resource)]
pub(super) struct CompleteKicks(Vec<bool>);

/// Registers the field and the systems.
pub(super) fn register(sim: &mut Engine) -> Result<(), Error> {
    let levels = sim.levels();
    sim.world
        .insert_resource(CompleteKicks(vec![false; levels]));
    sim.world.init_resource::<GasLosses>();
    sim.system_in(Split::Sources, kick_gas_with_flux_work);
    register_flux_work(sim)
}

/// Registers the flux work for kicks of other systems, which apply the pending energy in each step.
pub(super) fn register_flux_work(sim: &mut Engine) -> Result<(), Error> {
    sim.register_field::<PendingEnergy>(solver_field("gravity_due", 8, 1))?;
    // first with the potential before the step, then with the potential after it
    sim.system_in(Advance::Predict, add_work_before_step);
    sim.system_in(Advance::Couple, add_work_after_step)
        .after(add_acceleration);
    Ok(())
}

/// Kicks the gas before a step, and after it with the pending energy.
fn kick_gas_with_flux_work(
    mut kick: GasKick,
    mut complete: ResMut<CompleteKicks>,
    mut pending_energy: Write<PendingEnergy>,
) -> Result<(), Error> {
    let level = kick.clock.level;
    if kick.is_first() {
        complete.0[level] = true;
        return kick.apply(KickStage::First(&pending_energy.change()));
    }
    match std::mem::take(&mut complete.0[level]) {
        true => kick.apply(KickStage::Last(&pending_energy.change())),
        false => kick.apply(KickStage::Plain),
    }
}

/// Adds the flux work over the first half of a step, at the potential before it.
fn add_work_before_step(mut work: FluxWorkInput) -> Result<(), Error> {
    let time = work.clock.time;
    work.add(time)
}

/// Adds the flux work over the second half of a step, at the potential after it.
pub(super) fn add_work_after_step(
    mut work: FluxWorkInput,
    losses: Option<ResMut<GasLosses>>,
) -> Result<(), Error> {
    let (level, time) = (work.clock.level, work.clock.end);
    let has_lost = losses.is_some_and(|mut losses| losses.take(level));
    if let Some(complete) = work.complete.as_mut().filter(|_| has_lost) {
        // the kick that follows is that of the gas that is left
        complete.0[level] = false;
    }
    work.add(time)
}

/// Data of the flux work.
#[derive(SystemParam)]
pub(super) struct FluxWorkInput<'w, 's> {
    clock: Res<'w, LevelClock>,
    levels: Res<'w, Levels>,
    complete: Option<ResMut<'w, CompleteKicks>>,
    solver: Res<'w, DeviceSolver>,
    exterior_potential: Res<'w, ExteriorPotential>,
    potential: Read<'w, 's, Potential, 1>,
    mass: Read<'w, 's, MassFlux>,
    pending_energy: Write<'w, 's, PendingEnergy>,
}

impl FluxWorkInput<'_, '_> {
    /// Returns `true` if a kick of the gas takes the work of this step.
    fn is_due(&mut self) -> bool {
        let Some(complete) = &mut self.complete else {
            return true;
        };
        let level = self.clock.level;
        if self.levels.clock(level).split >= self.clock.end {
            // no kick follows
            complete.0[level] = false;
        }
        complete.0[level]
    }

    /// Adds the flux work over half a step at the present potential, which is that of `time`, to the pending energy.
    fn add(&mut self, time: f64) -> Result<(), Error> {
        if !self.is_due() {
            return Ok(());
        }
        let clock = &self.clock;
        let half = 0.5 * clock.dt * gravity_strength(&self.levels, time);
        let potential = self.potential.get(1)?;
        let (mass, pending_energy) = (self.mass.own(), self.pending_energy.change());
        let (weight, rates) = (
            potential.weights_on(0)[1],
            clock.cell_width.map(|w| half / w),
        );
        if let Some(kernels) = &self.solver.kernels {
            let rows = pending_energy.rows().len();
            let parameters = gravity::FluxWorkParameters {
                view: potential.on_device(),
                exterior: self.exterior_potential.on_device(weight),
                rows: potential.place().on_device().rows(clock.level).into(),
                mass: mass.device().bank(0).into(),
                pending_energy: pending_energy.device().bank(0).into(),
                rates,
                count: rows as i32,
            };
            kernels.work.count_work(rows * CELLS, rows * CELLS * 8 * 6);
            return kernels.launch(&kernels.work, rows, &parameters);
        }
        in_precision!(pending_energy.precision(), R => {
            let gained = FluxWork {
                view: potential.ghosts::<R>(),
                exterior: self.exterior_potential.on_host(weight),
                mass: mass.present::<R>(),
                rates: rates.map(R::lit),
            };
            let to = pending_energy.present::<R>();
            // SAFETY: distinct rows.
            for_each_row(pending_energy.rows(), |row| unsafe { gravity::add_flux_work(&gained, row, &to) });
        });
        Ok(())
    }
}
