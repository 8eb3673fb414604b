//! A row of patches along one axis, uniform across it, with its own ghost filling and fallback to first-order fluxes.
use crate::hydro::{
    CellMask10, Cleaning, FaceFluxes, FluidMethod, HydroReal, LaneChoice, PatchScratch,
    PatchSolver, PatchStep, Stage,
};
use crate::{CELLS, PATCH};

/// What lies beyond the ends.
#[derive(Clone, Copy, PartialEq)]
pub enum Ends {
    Periodic,
    Outflow,
}

/// A stage of a step of the tube: the step, the cells before it, and the weight of the new state after the first stage.
struct TubeStage<R> {
    dt: f64,
    before: Vec<[R; 6]>,
    weight: Option<f64>,
}

/// A shock tube in the unit cell spacing `dx`.
pub struct Tube<R: HydroReal> {
    pub axis: usize,
    pub ends: Ends,
    pub dx: f64,
    /// Conserved state of each cell: gas and one scalar, or the internal energy where the method carries it.
    pub cells: Vec<[R; 6]>,
    /// Cells that needed first-order fluxes, over all steps.
    pub first_order_cells: usize,
    solver: PatchSolver<R>,
    scratch: PatchScratch<R>,
    stages: &'static [Stage],
}

impl<R: HydroReal> Tube<R> {
    pub fn new(method: FluidMethod, axis: usize, ends: Ends, dx: f64, cells: Vec<[R; 6]>) -> Self {
        assert!(cells.len().is_multiple_of(PATCH));
        let scalars = 6 - method.gas_components();
        let solver = PatchSolver::new(method, 1.4, scalars, LaneChoice::Auto);
        Tube {
            axis,
            ends,
            dx,
            cells,
            first_order_cells: 0,
            scratch: solver.scratch(),
            solver,
            stages: method.scheme.stages(),
        }
    }

    /// The cell at `i`, ghosts included.
    fn index(&self, i: i64) -> usize {
        let n = self.cells.len() as i64;
        (if self.ends == Ends::Periodic {
            i.rem_euclid(n)
        } else {
            i.clamp(0, n - 1)
        }) as usize
    }

    /// Component of the patch that holds component `c` of the tube: the tube's first axis turned to `axis`.
    fn component(&self, c: usize) -> usize {
        if (1..4).contains(&c) {
            1 + (c - 1 + self.axis) % 3
        } else {
            c
        }
    }

    /// A rate along the tube, none across it.
    fn along(&self, rate: f64) -> [R; 3] {
        [0, 1, 2].map(|axis| R::lit(if axis == self.axis { rate } else { 0.0 }))
    }

    fn fill(&mut self, patch: usize) {
        let width = self.scratch.width();
        let stride = self.scratch.component_stride();
        let first = (patch * PATCH) as i64 - self.solver.ghosts() as i64;
        let line: Vec<[R; 6]> = (0..width as i64)
            .map(|i| self.cells[self.index(first + i)])
            .collect();
        for c in 0..6 {
            let start = self.component(c) * stride;
            let block = &mut self.scratch.input()[start..start + width.pow(3)];
            for (row, values) in block.chunks_mut(width).enumerate() {
                match self.axis {
                    0 => values
                        .iter_mut()
                        .zip(&line)
                        .for_each(|(value, cell)| *value = cell[c]),
                    1 => values.fill(line[row % width][c]),
                    _ => values.fill(line[row / width][c]),
                }
            }
        }
    }

    /// Mask of a patch from the flagged cells of the tube; a flag counts for the whole cross-section.
    fn mask(&self, patch: usize, flags: &[bool]) -> CellMask10 {
        let mut mask = CellMask10::new();
        for at in 0..1000 {
            let place = [at % 10 - 1, at / 10 % 10 - 1, at / 100 - 1];
            if flags[self.index((patch * PATCH) as i64 + i64::from(place[self.axis]))] {
                mask.set(place[0], place[1], place[2]);
            }
        }
        mask
    }

    /// New cells of a patch after a stage, and flags for the unphysical ones.
    fn update(
        &mut self,
        patch: usize,
        stage: &TubeStage<R>,
        flags: &[bool],
        bad: &mut [bool],
    ) -> Vec<[R; 6]> {
        self.fill(patch);
        let mask = flags
            .iter()
            .any(|flag| *flag)
            .then(|| self.mask(patch, flags));
        let mut out = vec![R::lit(0.0); 6 * CELLS];
        let before = self.row(&stage.before[patch * PATCH..(patch + 1) * PATCH]);
        let step = PatchStep {
            rates: self.along(stage.dt / self.dx),
            inverse_dx: self.along(1.0 / self.dx),
            first_order: mask.as_ref(),
            cleaning: Cleaning::default(),
            before: stage.weight.map(|weight| (&before[..], R::lit(weight))),
        };
        let (scratch, mut none) = (&mut self.scratch, FaceFluxes::default());
        let outcome = self.solver.update(scratch, &step, &mut out, &mut none);
        let step = [1, PATCH, PATCH * PATCH][self.axis];
        for i in 0..PATCH {
            let at = i * step;
            bad[patch * PATCH + i] |= outcome.unphysical[at / 64] >> (at % 64) & 1 == 1;
        }
        (0..PATCH)
            .map(|i| [0, 1, 2, 3, 4, 5].map(|c| out[self.component(c) * CELLS + i * step]))
            .collect()
    }

    /// A patch with these cells along the axis, `[component][512]`.
    fn row(&self, cells: &[[R; 6]]) -> Vec<R> {
        let step = [1, PATCH, PATCH * PATCH][self.axis];
        let mut row = vec![R::lit(0.0); 6 * CELLS];
        for at in 0..CELLS {
            for (c, value) in cells[at / step % PATCH].into_iter().enumerate() {
                row[self.component(c) * CELLS + at] = value;
            }
        }
        row
    }

    /// Largest signal rate of the tube.
    fn signal_rate(&self) -> f64 {
        let rows = self.cells.chunks(PATCH).map(|cells| {
            self.solver
                .signal_rate(&self.row(cells), [R::lit(1.0 / self.dx); 3])
                .to_f64()
        });
        rows.fold(0.0, f64::max)
    }

    /// Tries a step with the flagged cells at first order; flags those that came out unphysical.
    fn attempt(&mut self, dt: f64, flags: &mut [bool]) -> Option<Vec<[R; 6]>> {
        let before = self.cells.clone();
        let mut bad = vec![false; flags.len()];
        for (n, stage) in self.stages.iter().enumerate() {
            let stage = TubeStage {
                dt,
                before: before.clone(),
                weight: (n > 0).then_some(stage.weight),
            };
            self.cells = (0..flags.len() / PATCH)
                .flat_map(|p| self.update(p, &stage, flags, &mut bad))
                .collect();
        }
        flags
            .iter_mut()
            .zip(&bad)
            .for_each(|(flag, bad)| *flag |= *bad);
        let new = std::mem::replace(&mut self.cells, before);
        (!bad.contains(&true)).then_some(new)
    }

    /// Advances to `end` with the given Courant number; updates unphysical cells with first-order fluxes.
    ///
    /// # Panics
    /// If first-order fluxes do not help.
    pub fn run(&mut self, end: f64, courant: f64) {
        let mut time = 0.0;
        while time < end * (1.0 - 1e-12) {
            let rate = self.signal_rate();
            assert!(rate.is_finite(), "unphysical state at t = {time}");
            let dt = (courant / rate).min(end - time);
            let mut flags = vec![false; self.cells.len()];
            let mut tries = 0;
            let new = loop {
                if let Some(new) = self.attempt(dt, &mut flags) {
                    break new;
                }
                tries += 1;
                assert!(tries < 5, "first-order fluxes failed at t = {time}");
            };
            self.first_order_cells += flags.iter().filter(|flag| **flag).count();
            self.cells = new;
            time += dt;
        }
    }
}
