//! The systems of the gas: the Courant limit and the step of a level.

use super::device::{StepFailure, StepResult};
use super::mending;
use super::solver::{GasReal, GasSolver, HydroSolver, ThreadScratch};
use crate::fields::Gas;
use bevy_ecs::prelude::*;
use nestar_engine::Error;
use nestar_engine::field::device::DeviceTopology;
use nestar_engine::field::{Pool, Precision};
use nestar_engine::mesh::{LevelClock, Topology};
use nestar_engine::ranks::OtherRanks;
use nestar_engine::step::{Fault, RunCounters, StepLimits, StepVerdict};
use nestar_kernels::hydro::{CellMask10, FaceFluxes, PatchOutcome};
use nestar_kernels::mesh::fluxes::{FACE, average_fine};
use nestar_kernels::mesh::gather::{GhostView, Target, gather};
use rayon::prelude::*;

/// What helps where a step stays unphysical.
const ADVICE: &str = "try a smaller time.courant, hydro.riemann = \"hlle\", hydro.limiter = \"minmod\" or more resolution";

/// Limit: no signal crosses more than the Courant number of a cell (Schive et al. 2018, eq. 2, with each axis' own width).
pub fn courant(
    clock: Res<LevelClock>,
    topology: Res<Topology>,
    pool: Res<Pool<Gas>>,
    mut solver: ResMut<HydroSolver>,
    mut limits: ResMut<StepLimits>,
    tables: Option<Res<DeviceTopology>>,
    mut fault: ResMut<Fault>,
) {
    if let (HydroSolver::Device(solver), Some(tables)) = (&mut *solver, tables) {
        match solver.limit(&clock, &topology, &tables, &pool) {
            Ok(dt) => limits.propose("courant", dt),
            Err(error) => fault.0 = Some(error.into()),
        }
        return;
    }
    let rate = match pool.precision() {
        Precision::Single => largest_rate::<f32>(&clock, &topology, &pool, &mut solver),
        Precision::Double => largest_rate::<f64>(&clock, &topology, &pool, &mut solver),
    };
    if let Some((rate, courant)) = rate {
        limits.propose("courant", courant / rate);
    }
}

/// The largest signal rate of the level, and the Courant number.
fn largest_rate<R: GasReal>(
    clock: &LevelClock,
    topology: &Topology,
    pool: &Pool<Gas>,
    solver: &mut HydroSolver,
) -> Option<(f64, f64)> {
    let solver = R::of(solver)?;
    solver.grow(topology.capacity());
    let rows = topology.rows(clock.level);
    solver.stale.clear();
    solver.stale.extend(
        rows.iter()
            .copied()
            .filter(|&row| solver.seen[row as usize] != pool.epoch(row)),
    );
    let inverse_dx = clock.cell_width.map(|w| R::lit(1.0 / w));
    let present = pool.present::<R>(clock.level);
    solver.stale.par_iter().for_each(|&row| {
        let rate = solver.patch.signal_rate(present.row(row), inverse_dx);
        // SAFETY: the rows are distinct.
        unsafe { solver.rates.set(row as usize, rate) };
    });
    for &row in &solver.stale {
        solver.seen[row as usize] = pool.epoch(row);
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
    mut pool: ResMut<Pool<Gas>>,
    mut solver: ResMut<HydroSolver>,
    mut verdict: ResMut<StepVerdict>,
    mut counters: ResMut<RunCounters>,
    tables: Option<Res<DeviceTopology>>,
    mut fault: ResMut<Fault>,
    mut others: OtherRanks,
) {
    let step = if let (HydroSolver::Device(solver), Some(tables)) = (&mut *solver, tables) {
        solver.advance(&clock, &topology, &tables, &mut pool, &mut others)
    } else {
        let advance = match pool.precision() {
            Precision::Single => fluid_level::<f32>,
            Precision::Double => fluid_level::<f64>,
        };
        advance(&clock, &topology, &mut pool, &mut solver, &mut others)
    };
    match step {
        Ok(mended) => counters.mended_cells += mended,
        Err(StepFailure::Rejected(why)) => verdict.rejected = Some(format!("{why}\n{ADVICE}")),
        Err(StepFailure::Faulty(why)) => fault.0 = Some(Error::Setup(why)),
        Err(StepFailure::Device(error)) => fault.0 = Some(error.into()),
        Err(StepFailure::Ranks(error)) => fault.0 = Some(error.into()),
    }
}

/// What the update of any patch of the level needs.
pub(super) struct LevelStep<'a, R: GasReal> {
    pub level: usize,
    pub rates: [R; 3],
    pub inverse_dx: [R; 3],
    pub view: GhostView<'a, R>,
    pub pool: &'a Pool<Gas>,
}

impl<'a, R: GasReal> LevelStep<'a, R> {
    fn new(clock: &LevelClock, topology: &'a Topology, pool: &'a Pool<Gas>) -> Self {
        Self {
            level: clock.level,
            rates: clock.cell_width.map(|w| R::lit(clock.dt / w)),
            inverse_dx: clock.cell_width.map(|w| R::lit(1.0 / w)),
            view: pool.ghosts::<R>(topology, clock.level),
            pool,
        }
    }

    /// Advances patches, each once; whether a cell came out unphysical.
    fn advance_all(&self, solver: &GasSolver<R>, rows: &[u32]) -> bool {
        let advance = |&row: &u32| {
            let mut scratch = solver.scratch.get();
            // SAFETY: the rows are distinct.
            unsafe { self.advance(solver, &mut scratch, row, None) }.any
        };
        rows.par_iter().map(advance).reduce(|| false, |a, b| a | b)
    }

    /// Advances one patch into the next bank, with its registers.
    ///
    /// # Safety
    /// No other thread may work on `row` meanwhile.
    pub(super) unsafe fn advance(
        &self,
        solver: &GasSolver<R>,
        scratch: &mut ThreadScratch<R>,
        row: u32,
        first_order: Option<&CellMask10>,
    ) -> PatchOutcome<R> {
        let components = solver.patch.components();
        let stride = scratch.patch.component_stride();
        let ghosts = solver.patch.ghosts();
        let mut target = Target {
            values: scratch.patch.input(),
            stride,
            components,
            ghosts,
        };
        gather(&self.view, row, &mut target, &mut scratch.gather);
        let registers = &self.pool.typed::<R>().registers;
        let mut faces: [Option<&mut [R]>; 6] = [const { None }; 6];
        for (face, chunk) in scratch
            .faces
            .chunks_exact_mut(components * FACE)
            .enumerate()
        {
            faces[face] = registers.wants(row, face).then_some(chunk);
        }
        // SAFETY: the caller's contract.
        let out = unsafe { self.pool.next::<R>(self.level).row_mut(row) };
        let mut faces = FaceFluxes(faces);
        let outcome = solver.patch.update(
            &mut scratch.patch,
            self.rates,
            self.inverse_dx,
            out,
            &mut faces,
            first_order,
        );
        for (face, flux) in faces.0.iter().enumerate() {
            let Some(flux) = flux else { continue };
            // SAFETY: the caller's contract.
            if let Some(register) = unsafe { registers.coarse_mut(self.level, row, face) } {
                register.copy_from_slice(flux);
            }
            // SAFETY: the caller's contract.
            if let Some(register) = unsafe { registers.attempt_mut(self.level, row, face) } {
                average_fine(register, flux);
            }
        }
        // SAFETY: the caller's contract.
        unsafe {
            solver.rates.set(row as usize, outcome.signal_rate);
            solver.unphysical.set(row as usize, outcome.unphysical);
        }
        outcome
    }
}

/// Advances a level; the number of mended cells, or why the step cannot stand.
fn fluid_level<R: GasReal>(
    clock: &LevelClock,
    topology: &Topology,
    pool: &mut Pool<Gas>,
    solver: &mut HydroSolver,
    others: &mut OtherRanks,
) -> StepResult<u64> {
    let solver = R::of(solver).ok_or_else(|| {
        StepFailure::Faulty("the gas solver and the pool differ in precision".into())
    })?;
    solver.grow(topology.capacity());
    let rows = topology.rows(clock.level);
    let mut unphysical = false;
    let split = others.split::<Gas>(clock.level);
    if let Some(split) = &split {
        let step = LevelStep::<R>::new(clock, topology, pool);
        unphysical = step.advance_all(solver, &split.interior.rows);
    }
    others.settle(pool)?;
    let step = LevelStep::<R>::new(clock, topology, pool);
    let left = split.as_ref().map_or(rows, |split| &split.border.rows);
    unphysical |= step.advance_all(solver, left);
    let mended = if others.any(unphysical)? {
        mending::mend(&step, topology, solver, others)?
    } else {
        0
    };
    pool.commit(clock.level, clock.end, rows);
    if let Some(typed) = R::typed_mut(&mut pool.storage) {
        typed.registers.commit(clock.level, clock.dt);
    }
    for &row in rows {
        solver.seen[row as usize] = pool.epoch(row);
    }
    Ok(mended)
}
