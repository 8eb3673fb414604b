//! Kicks of the gas by the acceleration before and after its update, and the time-step limit.

use super::diagnostics::report_non_finite;
use super::exterior_potential::ExteriorPotential;
use super::level_solver::{DeviceSolver, PendingEnergy, PoissonEquation, for_each_row};
use super::systems::Gravity;
use crate::fields::{Gas, GasModel, Matter, Potential, gravity_strength};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_device::{Address, Lane, Number};
use nestar_engine::data::{Element, Field, LevelRows};
use nestar_engine::mesh::{LevelClock, Levels, parallel};
use nestar_engine::step::{FieldView, Read, StepLimits, Write};
use nestar_engine::{Error, in_precision};
use nestar_kernels::CELLS;
use nestar_kernels::gravity::{self, KickSettings, KickStage, SlopeParameters};
use nestar_kernels::multigrid::ghost_values::PotentialSlopes;

/// Number of ghost layers for slopes.
pub(super) const REACH: usize = 2;

/// Returns the slopes of the current level on the host.
pub(super) fn host_slopes<'a, R: Element, P: Field, E: Field>(
    potential: &FieldView<'a, P>,
    matter: &FieldView<'a, Matter>,
    exterior_potential: &'a ExteriorPotential<E>,
    equation: PoissonEquation,
) -> PotentialSlopes<'a, R> {
    let place = potential.place();
    PotentialSlopes {
        view: potential.ghosts::<R>(),
        exterior: exterior_potential.on_host(potential.weights_on(0)[1]),
        source: equation.on_host(matter),
        first_child: place.topology.first_child_table(),
        width: place.clock.cell_width.map(R::lit),
    }
}

/// Returns the slopes of the current level for a device.
pub(super) fn device_slopes<P: Field, E: Field>(
    potential: &FieldView<P>,
    matter: &FieldView<Matter>,
    gravity: &Gravity,
    exterior_potential: &ExteriorPotential<E>,
    equation: PoissonEquation,
    largest: u64,
) -> SlopeParameters<Number> {
    let place = potential.place();
    SlopeParameters {
        view: potential.on_device(),
        exterior: exterior_potential.on_device(potential.weights_on(0)[1]),
        source: equation.on_device(matter),
        rows: place.on_device().rows(potential.level()).into(),
        largest: Address::from(largest),
        width: place.clock.cell_width,
        count: potential.rows().len() as i32,
        fourth: gravity.config.order == 4,
    }
}

/// Data of kicks.
#[derive(SystemParam)]
pub(super) struct GasKick<'w, 's> {
    pub clock: Res<'w, LevelClock>,
    pub levels: Res<'w, Levels>,
    gravity: Res<'w, Gravity>,
    equation: Res<'w, PoissonEquation>,
    exterior_potential: Res<'w, ExteriorPotential>,
    solver: Res<'w, DeviceSolver>,
    potential: Read<'w, 's, Potential, REACH>,
    matter: Read<'w, 's, Matter, REACH>,
    gas: Write<'w, 's, Gas>,
    model: Res<'w, GasModel>,
}

/// Kicks the gas of the level over the current split step, half of the step of the level.
pub(super) fn kick_gas(mut kick: GasKick) -> Result<(), Error> {
    kick.apply(KickStage::Plain)
}

/// Returns the address of the pending energy, and the number of the stage.
fn on_device(stage: &KickStage<&FieldView<PendingEnergy>>) -> (Address<Number>, i32) {
    match stage {
        KickStage::Plain => (Address::NONE, 0),
        KickStage::First(pending_energy) => (pending_energy.device().bank(0).into(), 1),
        KickStage::Last(pending_energy) => (pending_energy.device().bank(0).into(), 2),
    }
}

impl GasKick<'_, '_> {
    /// Returns `true` if the kick is that before the step.
    pub fn is_first(&self) -> bool {
        self.clock.time == self.levels.time(self.clock.level)
    }

    /// Returns the factor of accelerations at the time of the potential: that of the begin or of the end of the step.
    fn strength(&self) -> f64 {
        let clock = &self.clock;
        let time = if self.is_first() {
            clock.time
        } else {
            clock.end
        };
        gravity_strength(&self.levels, time)
    }

    /// Applies the kick as a stage of a step.
    pub fn apply(&mut self, stage: KickStage<&FieldView<PendingEnergy>>) -> Result<(), Error> {
        let (potential, matter) = (self.potential.get(REACH)?, self.matter.get(REACH)?);
        let (gravity, exterior, equation) =
            (&self.gravity, &*self.exterior_potential, *self.equation);
        let dt = self.clock.dt * self.strength();
        let gas = self.gas.change();
        let energy = self.model.equation.has_energy();
        if let Some(kernels) = &self.solver.kernels {
            let slope = device_slopes(
                &potential,
                &matter,
                gravity,
                exterior,
                equation,
                kernels.words(),
            );
            let rows = slope.count as usize;
            let (pending_energy, stage) = on_device(&stage);
            let parameters = gravity::KickParameters {
                slope,
                gas: gas.device().bank(gas.banks()[0]).into(),
                dt,
                components: gas.components() as i32,
                pending_energy,
                stage,
                energy,
            };
            kernels.kick.count_work(rows * CELLS, rows * CELLS * 8 * 11);
            return kernels.launch(&kernels.kick, rows, &parameters);
        }
        in_precision!(gas.precision(), R => {
            let slopes = host_slopes::<R, _, _>(&potential, &matter, exterior, equation);
            let settings = KickSettings { fourth: gravity.config.order == 4, dt: R::lit(dt), energy };
            let rows = gas.present::<R>();
            let stage = match stage {
                KickStage::Plain => KickStage::Plain,
                KickStage::First(pending_energy) => KickStage::First(pending_energy.present::<R>()),
                KickStage::Last(pending_energy) => KickStage::Last(pending_energy.present::<R>()),
            };
            // SAFETY: distinct rows.
            for_each_row(gas.rows(), |row| unsafe { gravity::kick(&slopes, &rows, row, settings, &stage) });
        });
        Ok(())
    }
}

/// Limits the time step: gas is accelerated across at most `limit` cell widths.
pub(super) fn limit_by_gravity(
    rows: LevelRows,
    gravity: Res<Gravity>,
    equation: Res<PoissonEquation>,
    exterior_potential: Res<ExteriorPotential>,
    solver: Res<DeviceSolver>,
    read_potential: Read<Potential, REACH>,
    read_matter: Read<Matter, REACH>,
    levels: Res<Levels>,
    mut limits: ResMut<StepLimits>,
) -> Result<(), Error> {
    // there is no potential yet
    if rows.is_estimate() {
        limits.leave_out("gravity");
        return Ok(());
    }
    let (potential, matter) = (read_potential.get(REACH)?, read_matter.get(REACH)?);
    let fourth = gravity.config.order == 4;
    let rate = if let Some(kernels) = &solver.kernels {
        kernels.largest_rate_over_width(&device_slopes(
            &potential,
            &matter,
            &gravity,
            &exterior_potential,
            *equation,
            kernels.words(),
        ))?
    } else {
        in_precision!(potential.precision(), R => {
            let slopes = host_slopes::<R, _, _>(&potential, &matter, &exterior_potential, *equation);
            let rates = parallel::map(potential.rows(), |&row| gravity::largest_rate(&slopes, row, fourth));
            rates.into_iter().fold(0.0, |a, b| if a >= b || a.is_nan() { a } else { b })
        })
    };
    if !rate.is_finite() {
        let (matter, potential) = (&read_matter, &read_potential);
        report_non_finite(
            &rows,
            |level| matter.own_on(level),
            |level| potential.own_on(level),
        )?;
    }
    // all ranks propose; if no cell was reported, a non-finite value stops the run
    let rate = rate * gravity_strength(&levels, levels.time(rows.level()));
    let dt = (gravity.config.limit / rate).sqrt();
    limits.propose("gravity", dt);
    Ok(())
}
