//! Corner transport upwind: first fluxes, and the states at faces that they correct (Colella 1990; Gardiner & Stone 2008).
use super::HydroReal;
use super::march::March;
use super::passes::{CorrectionPass, FacePlanes, FluxPass};
use crate::PATCH;

impl<R: HydroReal> March<'_, R> {
    /// Computes the first fluxes of the gas through the faces of plane `k`, of the patch and one layer of cells around it: those along the plane, and
    /// those through its lower faces if the plane below was reconstructed.
    pub fn first_fluxes(&mut self, k: usize) {
        let axes = if k >= self.layout.ghosts { 3 } else { 2 };
        for axis in 0..axes {
            let Some(to) = self.first_plane(axis, k) else {
                return;
            };
            let arguments = FluxPass {
                components: self.layout.variables,
                gas: self.layout.variables,
                ..self.flux_pass([axis, k], to, true)
            };
            // as the predictor, they take the fluxes of the solver everywhere
            self.solve(&arguments, false);
        }
    }

    /// Returns the offset of the first fluxes through the lower faces of plane `k` normal to `axis`; `None` with other schemes.
    fn first_plane(&self, axis: usize, k: usize) -> Option<usize> {
        let slot = 2 * axis + k % 2;
        self.layout
            .first
            .map(|from| from + slot * self.layout.planes())
    }

    /// Corrects the states of the gas at the faces of the cells in plane `k` by the first fluxes along the other axes. In the planes below and above
    /// the patch only those along z are needed.
    pub fn correct(&mut self, k: usize) {
        let (g, span) = (self.layout.ghosts, self.around_patch());
        let [low, high] = self.edge_planes(k, span);
        let p = self.scratch.pointer();
        let first = |axis: usize, k: usize, at: usize| {
            let plane = self.first_plane(axis, k).unwrap_or_default();
            p.wrapping_add(plane + at).cast_const()
        };
        let (at, width) = (span.start, self.layout.width);
        let arguments = CorrectionPass {
            low,
            high,
            from_axis: if k >= g && k < g + PATCH { 0 } else { 2 },
            faces: FacePlanes {
                below: [0, 1, 2].map(|axis| first(axis, k, at)),
                above: [
                    first(0, k, at + 1),
                    first(1, k, at + width),
                    first(2, k + 1, at),
                ],
                stride: self.layout.plane,
            },
            count: span.count(),
            rates: self.step.rates,
            law: self.law,
        };
        // SAFETY: states and first fluxes of the span lie inside the arena, padded for the widest vector
        unsafe { (self.solver.passes.correct)(&arguments) }
    }
}
