//! Mending unphysical cells: first-order fluxes for the cell and its neighbours' matching faces (Schive et al. 2018,
//! section 2.2, step ii), and a report when that does not help.

use super::device::{StepFailure, StepResult};
use super::solver::{GasReal, GasSolver};
use super::step::LevelStep;
use nestar_engine::mesh::Topology;
use nestar_engine::ranks::OtherRanks;
use nestar_kernels::CELLS;
use nestar_kernels::hydro::CellMask10;
use nestar_kernels::mesh::face_direction;
use rayon::prelude::*;

/// How often the set of first-order cells may grow before the step is given up.
pub(super) const ROUNDS: usize = 4;

/// Repeats the update of every patch that has an unphysical cell, or touches one, with first-order fluxes there, until all
/// cells are physical. Returns the number of cells mended.
///
/// Conservation holds: a face beside a first-order cell has the same flux on both sides, also across patch borders.
pub(super) fn mend<R: GasReal>(
    step: &LevelStep<R>,
    topology: &Topology,
    solver: &mut GasSolver<R>,
    others: &OtherRanks,
) -> StepResult<u64> {
    let rows = topology.rows(step.level);
    for &row in rows {
        solver.first_order[row as usize] = [0; 8];
    }
    for _ in 0..ROUNDS {
        if !others.any(collect(rows, solver))? {
            return Ok(others.sum(count(rows, solver))?);
        }
        share(step.level, solver, others)?;
        let touched: Vec<u32> = rows
            .iter()
            .copied()
            .filter(|&row| touches(topology, solver, row))
            .collect();
        let solver = &*solver;
        touched.par_iter().for_each(|&row| {
            let mask = surroundings(topology, solver, row);
            let mut scratch = solver.scratch.get();
            // SAFETY: the rows are distinct.
            unsafe { step.advance(solver, &mut scratch, row, Some(&mask)) };
        });
    }
    if others.any(collect(rows, solver))? {
        let report = others.first_message(report(step, topology, solver))?;
        Err(StepFailure::Rejected(report.unwrap_or_default()))
    } else {
        Ok(others.sum(count(rows, solver))?)
    }
}

/// Tells other ranks which cells beside theirs take first-order fluxes.
fn share<R: GasReal>(
    level: usize,
    solver: &mut GasSolver<R>,
    others: &OtherRanks,
) -> StepResult<()> {
    if others.are_none() {
        return Ok(());
    }
    let mut received = Vec::new();
    let mask = |row: u32| solver.first_order[row as usize];
    others.forward(level, mask, |row, mask| received.push((row, mask)))?;
    for (row, mask) in received {
        solver.first_order[row as usize] = mask;
    }
    Ok(())
}

/// Adds the cells that are unphysical now to the first-order ones; whether there are any.
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

/// Whether a patch has a first-order cell or shares a face with a patch that has one.
fn touches<R: GasReal>(topology: &Topology, solver: &GasSolver<R>, row: u32) -> bool {
    let has = |row: u32| solver.first_order[row as usize] != [0; 8];
    let around = topology.neighbours(row);
    has(row) || (0..6).any(|f| u32::try_from(around[face_direction(f)]).is_ok_and(has))
}

/// The first-order cells of a patch and of the layer beyond each of its faces.
fn surroundings<R: GasReal>(topology: &Topology, solver: &GasSolver<R>, row: u32) -> CellMask10 {
    let mut mask = CellMask10::new();
    let mut enter = |row: i32, shift: [i32; 3]| {
        let Ok(row) = u32::try_from(row) else { return };
        for (k, &word) in solver.first_order[row as usize].iter().enumerate() {
            for bit in (0..64).filter(|bit| word >> bit & 1 == 1) {
                let [i, j, k] = [bit % 8 + shift[0], bit / 8 + shift[1], k as i32 + shift[2]];
                if [i, j, k].iter().all(|c| (-1..=8).contains(c)) {
                    mask.set(i, j, k);
                }
            }
        }
    };
    enter(row as i32, [0; 3]);
    for face in 0..6 {
        let mut shift = [0; 3];
        shift[face / 2] = if face % 2 == 0 { -8 } else { 8 };
        enter(topology.neighbours(row)[face_direction(face)], shift);
    }
    mask
}

/// Names the first cell that could not be mended, with its state.
fn report<R: GasReal>(
    step: &LevelStep<R>,
    topology: &Topology,
    solver: &mut GasSolver<R>,
) -> Option<String> {
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
    let after = state(step.gas.next::<R>().row(row));
    Some(describe(topology, row, cell, &before, &after))
}

/// What became of a cell that could not be mended.
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
