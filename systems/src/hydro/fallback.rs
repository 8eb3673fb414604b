//! First-order fallback: corrects unphysical cells by first-order fluxes at the cell and at the matching faces of its
//! neighbours (Schive et al. 2018, section 2.2, step ii).

use super::capture::{
    FallbackLog, FoundCell, StepFailure, StepResult, UnphysicalCell, mask_with_layer,
};
use super::solver::{GasReal, GasSolver, LevelStep};
use nestar_engine::comm::Comm;
use nestar_engine::mesh::{Topology, parallel};
use nestar_kernels::CELLS;

/// Number of times that the set of first-order cells may grow before the step is rejected.
pub(super) const ROUNDS: usize = 4;

/// Repeats the update of patches with or beside unphysical cells, with first-order fluxes there, until all cells are
/// physical. Returns the number of corrected cells.
///
/// The update stays conservative: a face of a first-order cell has the same flux on both sides, also across patch
/// borders.
pub(super) fn first_order_fallback<R: GasReal>(
    step: &LevelStep<R>,
    topology: &Topology,
    solver: &mut GasSolver<R>,
    others: &Comm,
    log: &mut FallbackLog,
) -> StepResult<u64> {
    let rows = topology.rows(step.level);
    for &row in rows {
        solver.first_order[row as usize] = [0; 8];
    }
    for _ in 0..ROUNDS {
        if !others.any(collect(rows, solver))? {
            return Ok(others.sum(count(rows, solver))?);
        }
        exchange_masks(step.level, solver, others)?;
        log.note(topology, |row| solver.first_order[row as usize]);
        let touched: Vec<u32> = rows
            .iter()
            .copied()
            .filter(|&row| touches(topology, solver, row))
            .collect();
        let solver = &*solver;
        parallel::for_each(&touched, |&row| {
            let mask = mask_with_layer(topology, |row| solver.first_order[row as usize], row);
            let mut scratch = solver.scratch.get();
            // SAFETY: the rows are distinct.
            unsafe { step.advance(solver, &mut scratch, row, Some(&mask)) };
        });
    }
    if others.any(collect(rows, solver))? {
        let cell = UnphysicalCell::agreed(report(step, topology, solver), others)?;
        Err(StepFailure::Rejected(cell))
    } else {
        Ok(others.sum(count(rows, solver))?)
    }
}

/// Sends the masks of first-order cells to ranks with adjacent patches.
fn exchange_masks<R: GasReal>(
    level: usize,
    solver: &mut GasSolver<R>,
    others: &Comm,
) -> StepResult<()> {
    let mut received = Vec::new();
    let mask = |row: u32| solver.first_order[row as usize];
    others.update_halo_values(level, mask, |row, mask| received.push((row, mask)))?;
    for (row, mask) in received {
        solver.first_order[row as usize] = mask;
    }
    Ok(())
}

/// Adds unphysical cells to the first-order cells. Returns `true` if there are any.
fn collect<R: GasReal>(rows: &[u32], solver: &mut GasSolver<R>) -> bool {
    let unphysical = solver.unphysical.as_mut_slice();
    let mut any = false;
    for &row in rows {
        for (mask, &bad) in solver.first_order[row as usize]
            .iter_mut()
            .zip(&unphysical[row as usize])
        {
            any |= bad != 0;
            *mask |= bad;
        }
    }
    any
}

fn count<R: GasReal>(rows: &[u32], solver: &GasSolver<R>) -> u64 {
    rows.iter()
        .flat_map(|&row| solver.first_order[row as usize])
        .map(|word| u64::from(word.count_ones()))
        .sum()
}

/// Returns `true` if a patch or one of its 26 neighbours has a first-order cell.
fn touches<R: GasReal>(topology: &Topology, solver: &GasSolver<R>, row: u32) -> bool {
    let has = |row: u32| solver.first_order[row as usize] != [0; 8];
    let mut around = topology.neighbours(row).iter();
    around.any(|&row| u32::try_from(row).is_ok_and(has))
}

/// Finds the first cell that could not be corrected.
fn report<R: GasReal>(
    step: &LevelStep<R>,
    topology: &Topology,
    solver: &mut GasSolver<R>,
) -> Option<FoundCell> {
    let unphysical = solver.unphysical.as_mut_slice();
    let found = topology.rows(step.level).iter().find_map(|&row| {
        let words = unphysical[row as usize];
        let k = words.iter().position(|&word| word != 0)?;
        Some((row, k * 64 + words[k].trailing_zeros() as usize))
    });
    let (row, cell) = found?;
    let state = |values: &[R]| -> Vec<f64> {
        values
            .iter()
            .skip(cell)
            .step_by(CELLS)
            .map(|v| v.to_f64())
            .collect()
    };
    let before = state(step.gas.row(row));
    let after = state(step.out.row(row));
    Some(FoundCell {
        why: describe(topology, row, cell, &before, &after),
        place: (row, cell),
        after,
    })
}

/// Describes a cell that could not be corrected.
pub(super) fn describe(
    topology: &Topology,
    row: u32,
    cell: usize,
    before: &[f64],
    after: &[f64],
) -> String {
    let origin = topology.origin(row);
    let place = [cell % 8, cell / 8 % 8, cell / 64];
    let global: Vec<i32> = (0..3).map(|a| origin[a] + place[a] as i32).collect();
    format!(
        "patch {:?} (row {row}), cell {place:?} (index {global:?} on its level): conserved state {before:?} became {after:?} \
         (density, momentum x y z, energy, scalars)",
        topology.index(row),
    )
}
