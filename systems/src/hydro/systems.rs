//! The systems of the gas: the Courant limit and the step of a level.

use super::capture::{StepFailure, StepResult};
use super::solver::{GasReal, HydroSolver};
use super::step::LevelStep;
use super::{capture, mending};
use crate::fields::{Gas, GasModel};
use bevy_ecs::prelude::*;
use nestar_engine::field::device::DeviceTopology;
use nestar_engine::mesh::{LevelClock, Topology};
use nestar_engine::ranks::OtherRanks;
use nestar_engine::step::{Read, RunCounters, StepLimits, StepVerdict, View, Write};
use nestar_engine::{Error, in_precision};
use rayon::prelude::*;

/// What helps where a step stays unphysical.
const ADVICE: &str = "try a smaller time.courant, hydro.riemann = \"hlle\", hydro.limiter = \"minmod\" or more resolution";

/// Limit: no signal crosses more than the Courant number of a cell (Schive et al. 2018, eq. 2, with each axis' own width).
pub fn courant(
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
    gas: &View<Gas>,
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

/// Advances the gas of the level from its present bank to the next, which becomes the present one if the step stands.
pub fn fluid(
    clock: Res<LevelClock>,
    topology: Res<Topology>,
    mut gas: Write<Gas>,
    mut solver: ResMut<HydroSolver>,
    mut verdict: ResMut<StepVerdict>,
    mut counters: ResMut<RunCounters>,
    tables: Option<Res<DeviceTopology>>,
    mut ranks: OtherRanks,
    model: Res<GasModel>,
) -> Result<(), Error> {
    let wanted = verdict.last.then_some(&*model);
    let step = if let (HydroSolver::Device(solver), Some(tables)) = (&mut *solver, tables) {
        solver.advance(&clock, &topology, &tables, &mut gas, &mut ranks, wanted)
    } else {
        in_precision!(gas.precision(), R =>
            fluid_level::<R>(&clock, &topology, &mut gas, &mut solver, &mut ranks, wanted))
    };
    match step {
        Ok(mended) => counters.mended_cells += mended,
        Err(StepFailure::Rejected(hopeless)) => {
            verdict.rejected = Some(format!("{}\n{ADVICE}", hopeless.why));
            verdict.capture = hopeless.capture;
        }
        Err(StepFailure::Failed(error)) => return Err(error),
    }
    Ok(())
}

/// Advances a level; the number of mended cells, or why the step cannot stand.
fn fluid_level<R: GasReal>(
    clock: &LevelClock,
    topology: &Topology,
    gas: &mut Write<Gas>,
    solver: &mut HydroSolver,
    ranks: &mut OtherRanks,
    wanted: Option<&GasModel>,
) -> StepResult<u64> {
    let differ = || Error::Setup("the gas solver and the pool differ in precision".into());
    let solver = R::of(solver).ok_or_else(differ)?;
    let level = clock.level;
    solver.grow(topology.capacity(), level);
    let rows = topology.rows(level);
    let mut unphysical = false;
    let split = gas.begin(ranks)?;
    if let Some(split) = &split {
        let step = LevelStep::<R>::new(clock, gas.interior(split));
        unphysical = step.advance_all(solver, &split.interior.rows);
    }
    gas.finish(ranks)?;
    let step = LevelStep::<R>::new(clock, gas.get(solver.patch.ghosts())?);
    let left = split.as_ref().map_or(rows, |split| &split.border.rows);
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
