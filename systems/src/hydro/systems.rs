//! Systems of the gas: the Courant limit and the update of a level.

use super::capture::{
    self, ExtraFields, LevelInput, StageContext, StepFailure, StepResult, StepTotals,
};
use super::fallback;
use super::replacements::ReplacementAccount;
use super::solver::{GasReal, GasSolver, HydroSolver, LevelRates, LevelStep};
use super::stages::LevelStage;
use crate::fields::{GAS_COMPONENTS, Gas, GasModel, MagneticFaces, MassFlux};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_device::Real;
use nestar_engine::comm::Comm;
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::mesh::{LevelClock, Topology, parallel};
use nestar_engine::step::{Budgets, FieldView, Read, RunCounters, StepLimits, StepVerdict, Write};
use nestar_engine::{Error, in_precision};
use nestar_kernels::hydro::magnetic::fast_speed;
use nestar_kernels::hydro::{Cleaning, MagneticMethod};
use nestar_kernels::{CELLS, PATCH};

/// Advice for a step that stays unphysical.
const ADVICE: &str = "try a smaller time.courant, hydro.riemann = \"hlle\", hydro.limiter = \"minmod\" or more resolution";

/// Limits the time step by the Courant condition (Schive et al. 2018, eq. 2, with the cell width of each axis).
pub fn limit_by_courant(
    clock: Res<LevelClock>,
    topology: Res<Topology>,
    gas: Read<Gas>,
    mut solver: ResMut<HydroSolver>,
    mut limits: ResMut<StepLimits>,
    tables: Option<Res<DeviceTopology>>,
    model: Res<GasModel>,
    mut rates: ResMut<LevelRates>,
) -> Result<(), Error> {
    if limits.wants_places()
        && let Some((rate, text)) = fastest_cell(&clock, &topology, &gas.own(), &model)?
    {
        limits.place("courant", 1.0 / rate, text);
    }
    if let (HydroSolver::Device(solver), Some(tables)) = (&mut *solver, tables) {
        let rate = solver.largest_rate(&clock, &topology, &tables, &gas.own())?;
        rates.note(clock.level, rate);
        limits.propose("courant", solver.courant() / rate);
        return Ok(());
    }
    let rate = in_precision!(gas.precision(), R =>
        largest_rate::<R>(&clock, &topology, &gas.own(), &mut solver));
    if let Some((rate, courant)) = rate {
        rates.note(clock.level, rate);
        limits.propose("courant", courant / rate);
    }
    Ok(())
}

/// Returns the largest signal rate of the level, and the Courant number.
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
    parallel::for_each(&solver.stale, |&row| {
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
        // keep a NaN
        if rate > most || nestar_device::Lane::is_nan(rate) {
            rate
        } else {
            most
        }
    });
    Some((largest.to_f64(), solver.courant))
}

/// Number of patches that are copied from a device together.
const ROWS_AT_A_TIME: usize = 256;

/// Largest number of components of the gas with a magnetic field, scalars apart.
const MOST_COMPONENTS: usize = GAS_COMPONENTS + MagneticMethod::Glm.components();

/// Returns the largest signal rate of the cells of the level on this rank, and the description of the cell.
fn fastest_cell(
    clock: &LevelClock,
    topology: &Topology,
    gas: &FieldView<Gas>,
    model: &GasModel,
) -> Result<Option<(f64, String)>, Error> {
    let width = clock.cell_width;
    let mut fastest: Option<(f64, u32, usize, [f64; GAS_COMPONENTS])> = None;
    let components = gas.components();
    for rows in gas.rows().chunks(ROWS_AT_A_TIME) {
        let values: Vec<f64> = in_precision!(gas.precision(), R => {
            let values = gas.host::<R>(rows)?;
            values.into_iter().map(Real::to_f64).collect()
        });
        for (n, cell) in (0..rows.len()).flat_map(|n| (0..CELLS).map(move |cell| (n, cell))) {
            let (row, values) = (rows[n], &values[n * components * CELLS..]);
            let mut state = [0.0; MOST_COMPONENTS];
            let of_gas = model.equation.components() + model.field_components();
            for (c, value) in state[..of_gas].iter_mut().enumerate() {
                *value = values[c * CELLS + cell];
            }
            let w = model.primitive(&state);
            let field = &state[GAS_COMPONENTS..];
            let along = |axis: usize| {
                let across = [(axis + 1) % 3, (axis + 2) % 3].map(|a| field[a] * field[a]);
                let across = across[0] + across[1];
                let speed = fast_speed(w[0], w[4].max(0.0), field[axis], across, model.gamma);
                (w[axis + 1].abs() + speed) / width[axis]
            };
            // an unphysical state comes first
            let rate = along(0) + along(1) + along(2);
            let is_physical = w[0] > 0.0 && w[4] > 0.0 && state.iter().all(|x| x.is_finite());
            let rate = match is_physical && !rate.is_nan() {
                true => rate,
                false => f64::INFINITY,
            };
            if fastest.is_none_or(|(most, ..)| rate > most) {
                fastest = Some((rate, row, cell, w));
            }
        }
    }
    Ok(fastest.map(|(rate, row, cell, w)| {
        let cell = [cell % PATCH, cell / PATCH % PATCH, cell / (PATCH * PATCH)];
        let origin = topology.origin(row);
        let left = topology.domain.left_edge;
        let centre: [f64; 3] = std::array::from_fn(|a| {
            left[a] + (f64::from(origin[a]) + cell[a] as f64 + 0.5) * width[a]
        });
        let [density, x, y, z, pressure] = w;
        let patch = gas.index(row);
        let text = format!(
            "cell {cell:?} of patch {patch:?}, centre {centre:?}: density {density:e}, velocity {:?}, pressure {pressure:e}",
            [x, y, z]
        );
        (rate, text)
    }))
}

/// Data of the gas update.
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
    rates: Res<'w, LevelRates>,
    account: Option<Res<'w, ReplacementAccount>>,
    budgets: ResMut<'w, Budgets>,
}

/// Advances the gas of the level from the present bank to the next, which becomes the present one if the step is
/// accepted.
pub fn advance_gas(mut fluid: Fluid) -> Result<(), Error> {
    fluid.advance(None, None)
}

/// Advances the gas, as [`advance_gas`], and stores the mass fluxes.
pub fn advance_gas_with_mass_fluxes(
    mut fluid: Fluid,
    mut mass: Write<MassFlux>,
) -> Result<(), Error> {
    fluid.advance(Some(&mass.change()), None)
}

/// Advances the gas with a magnetic field on cell faces, as [`advance_gas`].
pub fn advance_magnetised_gas(
    mut fluid: Fluid,
    mut field: Write<MagneticFaces>,
) -> Result<(), Error> {
    fluid.advance(None, Some(&mut field))
}

/// Advances the gas with a magnetic field on cell faces, as [`advance_gas`], and stores the mass fluxes.
pub fn advance_magnetised_gas_with_mass_fluxes(
    mut fluid: Fluid,
    mut field: Write<MagneticFaces>,
    mut mass: Write<MassFlux>,
) -> Result<(), Error> {
    fluid.advance(Some(&mass.change()), Some(&mut field))
}

impl Fluid<'_, '_> {
    fn advance(
        &mut self,
        mass: Option<&FieldView<MassFlux>>,
        mut field: Option<&mut Write<MagneticFaces>>,
    ) -> Result<(), Error> {
        let (gas, ranks) = (&mut self.gas, &mut self.ranks);
        let cleaning = match self.model.magnetic {
            Some(MagneticMethod::Glm) => self.rates.cleaning(&self.clock, ranks)?,
            _ => Cleaning::default(),
        };
        let input = LevelInput {
            cleaning,
            clock: &self.clock,
            topology: &self.topology,
            capture: self.verdict.last.then_some(&*self.model),
        };
        let ghosts = self.solver.ghosts();
        let faces = field.as_ref().map(|field| field.get(ghosts)).transpose()?;
        let extra = ExtraFields {
            mass,
            field: faces.as_ref(),
        };
        let step = if let (HydroSolver::Device(solver), Some(tables)) =
            (&mut *self.solver, &self.tables)
        {
            solver.advance(input, tables, gas, extra, ranks)
        } else {
            in_precision!(gas.precision(), R =>
                advance_level::<R>(input, gas, extra, &mut self.solver, ranks))
        };
        if step.is_err() {
            self.gas.end_stages();
        }
        match step {
            Ok(totals) => {
                self.counters.fallback_cells += totals.corrected;
                if let Some(account) = &self.account {
                    account.add(&mut self.budgets, self.clock.level, totals.replacements);
                }
                if let Some(field) = &mut field {
                    field.commit()?;
                }
            }
            Err(StepFailure::Rejected(cell)) => {
                self.verdict.rejected = Some(format!("{}\n{ADVICE}", cell.why));
                self.verdict.capture = cell.capture;
            }
            Err(StepFailure::Failed(error)) => return Err(error),
        }
        Ok(())
    }
}

/// Advances a level on the host. Returns its totals, or why the step is rejected.
fn advance_level<R: GasReal>(
    input: LevelInput,
    gas: &mut Write<Gas>,
    extra: ExtraFields,
    solver: &mut HydroSolver,
    ranks: &mut Comm,
) -> StepResult<StepTotals> {
    let LevelInput {
        clock, topology, ..
    } = input;
    let differ =
        || Error::Setup("the precision of the gas solver differs from that of the pool".into());
    let solver = R::of(solver).ok_or_else(differ)?;
    let level = clock.level;
    solver.grow(topology.capacity(), level);
    let rows = topology.rows(level);
    let mut totals = StepTotals::default();
    for (time, stage) in LevelStage::of(solver.patch.scheme()) {
        gas.begin_stage(stage.share.stage, time);
        totals.corrected += advance_stage(&input, gas, extra, solver, stage, ranks)?;
        if solver.patch.has_dual_energy() {
            let found = solver.replacements.as_mut_slice();
            let of_row = |row: u32| found[row as usize];
            (totals.replacements).add_stage((topology, level), stage, of_row);
        }
    }
    gas.commit()?;
    let gas = gas.own();
    for &row in rows {
        solver.seen[row as usize] = gas.epoch(row);
    }
    solver.counts[level] = gas.changes();
    Ok(totals)
}

/// Advances a level on the host by one stage. Returns the number of corrected cells.
fn advance_stage<R: GasReal>(
    input: &LevelInput,
    gas: &mut Write<Gas>,
    extra: ExtraFields,
    solver: &mut GasSolver<R>,
    stage: LevelStage,
    ranks: &mut Comm,
) -> StepResult<u64> {
    let LevelInput {
        clock,
        topology,
        capture,
        ..
    } = *input;
    let level = clock.level;
    let rows = topology.rows(level);
    let mut unphysical = false;
    let split = gas.begin_refresh(ranks, level)?;
    if let Some(split) = &split {
        let step = LevelStep::<R>::new(input, gas.interior(level, split), extra, stage);
        unphysical = step.advance_all(solver, &split.interior.rows);
    }
    gas.finish_refresh(ranks, level)?;
    let step = LevelStep::<R>::new(input, gas.get(solver.patch.ghosts())?, extra, stage);
    let left = split.as_ref().map_or(rows, |split| &split.boundary.rows);
    unphysical |= step.advance_all(solver, left);
    if !ranks.any(unphysical)? {
        return Ok(0);
    }
    let faces = extra.field.map(|field| (field, solver.patch.ghosts()));
    let attempt = StageContext::of(input, stage.share.stage, faces);
    capture::apply_fallback(&step.gas, attempt, capture, ranks, |log| {
        if log.repeat {
            step.advance_all(solver, rows);
        }
        fallback::first_order_fallback(&step, topology, solver, ranks, log)
    })
}
