//! The systems of the gas: the Courant limit and the step of a level.

use super::capture::{Given, StepFailure, StepResult};
use super::solver::{GasReal, HydroSolver};
use super::step::LevelStep;
use super::{capture, mending};
use crate::fields::{Gas, GasModel, MassFlux};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_engine::comm::Comm;
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::mesh::{LevelClock, Topology};
use nestar_engine::step::{FieldView, Read, RunCounters, StepLimits, StepVerdict, Write};
use nestar_engine::{Error, in_precision};
use rayon::prelude::*;

/// What helps where a step stays unphysical.
const ADVICE: &str = "try a smaller time.courant, hydro.riemann = \"hlle\", hydro.limiter = \"minmod\" or more resolution";

/// Limit: no signal crosses more than the Courant number of a cell (Schive et al. 2018, eq. 2, with each axis' own width).
pub fn limit_by_courant(
    clock: Res<LevelClock>,
    topology: Res<Topology>,
    gas: Read<Gas>,
    mut solver: ResMut<HydroSolver>,
    mut limits: ResMut<StepLimits>,
    tables: Option<Res<DeviceTopology>>,
) -> Result<(), Error> {
    if let (HydroSolver::Device(solver), Some(tables)) = (&mut *solver, tables) {
        let dt = solver.limit(&clock, &topology, &tables, &gas.own())?;
        limits.propose("courant", dt);
        return Ok(());
    }
    let rate = in_precision!(gas.precision(), R =>
        largest_rate::<R>(&clock, &topology, &gas.own(), &mut solver));
    if let Some((rate, courant)) = rate {
        limits.propose("courant", courant / rate);
    }
    Ok(())
}

/// The largest signal rate of the level, and the Courant number.
fn largest_rate<R: GasReal>(
    clock: &LevelClock,
    topology: &Topology,
    gas: &FieldView<Gas>,
    solver: &mut HydroSolver,
) -> Option<(f64, f64)> {
    let solver = R::of(solver)?;
    let level = clock.level;
    solver.grow(topology.capacity(), level);
    let rows = topology.rows(level);
    let any = gas.any_row_changed_since(solver.counts[level]);
    solver.counts[level] = gas.changes();
    let seen = &solver.seen;
    let changed = |row: &u32| any || seen[*row as usize] != gas.epoch(*row);
    solver.stale.clear();
    solver.stale.extend(rows.iter().copied().filter(changed));
    let inverse_dx = clock.cell_width.map(|w| R::lit(1.0 / w));
    solver.stale.par_iter().for_each(|&row| {
        let rate = solver.patch.signal_rate(gas.row(row), inverse_dx);
        // SAFETY: the rows are distinct.
        unsafe { solver.rates.set(row as usize, rate) };
    });
    for &row in &solver.stale {
        solver.seen[row as usize] = gas.epoch(row);
    }
    let rates = solver.rates.as_mut_slice();
    let largest = rows.iter().fold(R::lit(0.0), |most, &row| {
        let rate = rates[row as usize];
        // a NaN must not be passed over
        if rate > most || nestar_device::Lane::is_nan(rate) {
            rate
        } else {
            most
        }
    });
    Some((largest.to_f64(), solver.courant))
}

/// What the step of the gas works with.
#[derive(SystemParam)]
pub struct Fluid<'w, 's> {
    clock: Res<'w, LevelClock>,
    topology: Res<'w, Topology>,
    gas: Write<'w, 's, Gas>,
    solver: ResMut<'w, HydroSolver>,
    verdict: ResMut<'w, StepVerdict>,
    counters: ResMut<'w, RunCounters>,
    tables: Option<Res<'w, DeviceTopology>>,
    ranks: Comm<'w>,
    model: Res<'w, GasModel>,
}

/// Advances the gas of the level from its present bank to the next, which becomes the present one if the step stands.
pub fn advance_gas(mut fluid: Fluid) -> Result<(), Error> {
    fluid.advance(None)
}

/// The same, and leaves the mass fluxes.
pub fn advance_gas_with_mass_fluxes(
    mut fluid: Fluid,
    mut mass: Write<MassFlux>,
) -> Result<(), Error> {
    fluid.advance(Some(&mass.change()))
}

impl Fluid<'_, '_> {
    fn advance(&mut self, mass: Option<&FieldView<MassFlux>>) -> Result<(), Error> {
        let wanted = self.verdict.last.then_some(&*self.model);
        let (clock, topology, gas) = (&*self.clock, &*self.topology, &mut self.gas);
        let (given, ranks) = ((clock, topology, wanted), &mut self.ranks);
        let step = if let (HydroSolver::Device(solver), Some(tables)) =
            (&mut *self.solver, &self.tables)
        {
            solver.advance(given, tables, gas, mass, ranks)
        } else {
            in_precision!(gas.precision(), R =>
                fluid_level::<R>(given, gas, mass, &mut self.solver, ranks))
        };
        match step {
            Ok(mended) => self.counters.fallback_cells += mended,
            Err(StepFailure::Rejected(hopeless)) => {
                self.verdict.rejected = Some(format!("{}\n{ADVICE}", hopeless.why));
                self.verdict.capture = hopeless.capture;
            }
            Err(StepFailure::Failed(error)) => return Err(error),
        }
        Ok(())
    }
}

/// Advances a level; the number of mended cells, or why the step cannot stand.
fn fluid_level<R: GasReal>(
    (clock, topology, wanted): Given,
    gas: &mut Write<Gas>,
    mass: Option<&FieldView<MassFlux>>,
    solver: &mut HydroSolver,
    ranks: &mut Comm,
) -> StepResult<u64> {
    let mass = mass.map(|mass| mass.present::<R>());
    let differ = || Error::Setup("the gas solver and the pool differ in precision".into());
    let solver = R::of(solver).ok_or_else(differ)?;
    let level = clock.level;
    solver.grow(topology.capacity(), level);
    let rows = topology.rows(level);
    let mut unphysical = false;
    let split = gas.begin_refresh(ranks)?;
    if let Some(split) = &split {
        let step = LevelStep::<R>::new(clock, gas.interior(split), mass);
        unphysical = step.advance_all(solver, &split.interior.rows);
    }
    gas.finish_refresh(ranks)?;
    let step = LevelStep::<R>::new(clock, gas.get(solver.patch.ghosts())?, mass);
    let left = split.as_ref().map_or(rows, |split| &split.boundary.rows);
    unphysical |= step.advance_all(solver, left);
    let mended = if ranks.any(unphysical)? {
        capture::mended(&step.gas, clock, wanted, ranks, |watch| {
            if watch.again {
                step.advance_all(solver, rows);
            }
            mending::mend(&step, topology, solver, ranks, watch)
        })?
    } else {
        0
    };
    gas.commit()?;
    let gas = gas.own();
    for &row in rows {
        solver.seen[row as usize] = gas.epoch(row);
    }
    solver.counts[level] = gas.changes();
    Ok(mended)
}
