//! Update of the patches of a level on the host.

use super::solver::{GasReal, GasSolver, ThreadScratch};
use crate::fields::Gas;
use nestar_engine::mesh::{LevelClock, parallel};
use nestar_engine::step::FieldView;
use nestar_kernels::hydro::{CellMask10, FaceFluxes, PatchOutcome};
use nestar_kernels::mesh::Rows;
use nestar_kernels::mesh::fluxes::FACE;
use nestar_kernels::mesh::gather::{GatherTarget, GhostView, gather};

/// Data for the update of any patch of a level.
pub(super) struct LevelStep<'a, R: GasReal> {
    pub level: usize,
    pub rates: [R; 3],
    pub inverse_dx: [R; 3],
    pub view: GhostView<'a, R>,
    pub gas: FieldView<'a, Gas>,
    /// Output of the mass fluxes, if requested.
    pub mass: Option<Rows<'a, R>>,
}

impl<'a, R: GasReal> LevelStep<'a, R> {
    pub fn new(clock: &LevelClock, gas: FieldView<'a, Gas>, mass: Option<Rows<'a, R>>) -> Self {
        Self {
            level: clock.level,
            rates: clock.cell_width.map(|w| R::lit(clock.dt / w)),
            inverse_dx: clock.cell_width.map(|w| R::lit(1.0 / w)),
            view: gas.ghosts::<R>(),
            gas,
            mass,
        }
    }

    /// Advances distinct patches. Returns `true` if a cell is unphysical afterwards.
    pub fn advance_all(&self, solver: &GasSolver<R>, rows: &[u32]) -> bool {
        let advance = |row: &u32| {
            let mut scratch = solver.scratch.get();
            // SAFETY: the rows are distinct.
            u64::from(unsafe { self.advance(solver, &mut scratch, *row, None) }.any)
        };
        parallel::sum(rows, advance) > 0
    }

    /// Advances one patch into the next bank and fills its flux registers.
    ///
    /// # Safety
    /// No other thread may use `row` meanwhile.
    pub unsafe fn advance(
        &self,
        solver: &GasSolver<R>,
        scratch: &mut ThreadScratch<R>,
        row: u32,
        first_order: Option<&CellMask10>,
    ) -> PatchOutcome<R> {
        let components = solver.patch.components();
        let stride = scratch.patch.component_stride();
        let ghosts = solver.patch.ghosts();
        let mut target = GatherTarget {
            values: scratch.patch.input(),
            stride,
            components,
            ghosts,
        };
        gather(&self.view, row, &mut target, &mut scratch.gather);
        let registers = self.gas.registers::<R>();
        let mut faces = FaceFluxes {
            // SAFETY: the caller's contract.
            mass: (self.mass).map(|mass| unsafe { mass.row_mut(row) }),
            ..FaceFluxes::default()
        };
        let sides = scratch.faces.chunks_exact_mut(components * FACE);
        for (face, chunk) in sides.enumerate() {
            faces.sides[face] = registers.has_register(row, face).then_some(chunk);
        }
        // SAFETY: the caller's contract.
        let out = unsafe { self.gas.next::<R>().row_mut(row) };
        let outcome = solver.patch.update(
            &mut scratch.patch,
            self.rates,
            self.inverse_dx,
            out,
            &mut faces,
            first_order,
        );
        // SAFETY: the caller's contract.
        unsafe {
            for (face, flux) in faces.sides.iter().enumerate() {
                if let Some(flux) = flux {
                    registers.record(self.level, row, face, flux, None);
                }
            }
            solver.rates.set(row as usize, outcome.signal_rate);
            solver.unphysical.set(row as usize, outcome.unphysical);
        }
        outcome
    }
}
