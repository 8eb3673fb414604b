//! Order of a patch update: passes march through the planes of the block from low to high z. Edge states and fluxes of a few planes thus
//! stay in the first-level cache.
use super::passes::{
    EdgePass, FacePlanes, FlattenPass, FluxPass, PlaneOutcome, PredictPass, PrimitivePass,
    ShockPass, SlopePass, UpdatePass,
};
use super::scratch::{PatchScratch, ScratchLayout};
use super::{
    FaceFluxes, HydroReal, PatchOutcome, PatchSolver, PatchStep, Replacements, first_order,
};
use crate::hydro::law::LawNumbers;
use crate::hydro::{FACE, Scheme};
use crate::mesh::Centring;
use crate::{CELLS, PATCH};

/// A flat range of cells of a plane.
#[derive(Clone, Copy)]
pub(super) struct CellRange {
    pub start: usize,
    end: usize,
}

impl CellRange {
    /// Returns rows and columns `from..to` of a plane of `width` columns, including what lies between them.
    fn square(width: usize, from: usize, to: usize) -> Self {
        CellRange {
            start: from * width + from,
            end: (to - 1) * width + to,
        }
    }

    pub fn count(&self) -> usize {
        self.end - self.start
    }
}

/// State of an update in progress.
pub(super) struct March<'a, R: HydroReal> {
    pub solver: &'a PatchSolver<R>,
    pub scratch: &'a mut PatchScratch<R>,
    pub layout: ScratchLayout,
    pub step: PatchStep<'a, R>,
    pub law: LawNumbers<R>,
    /// `true` if the patch has cells in shocks.
    pub shocked: bool,
}

impl<R: HydroReal> March<'_, R> {
    /// Runs all passes: primitives, shocks, (van Leer: predictor,) then plane by plane slopes, edges, (corner transport upwind: first fluxes and
    /// corrections of the edges one plane behind,) fluxes and update.
    pub fn run(&mut self, out: &mut [R], faces: &mut FaceFluxes<'_, R>) -> PatchOutcome<R> {
        let g = self.layout.ghosts;
        self.primitives();
        self.shocked = self.solver.method.cures_shocks() && self.find_shocks();
        if self.solver.method.scheme == Scheme::VanLeer {
            self.predict();
        }
        let mut outcome = PatchOutcome {
            signal_rate: R::lit(0.0),
            unphysical: [0; PATCH],
            any: false,
            replacements: Replacements {
                cells: 0,
                gain: R::lit(0.0),
            },
        };
        let with_field = self.layout.transport.is_some();
        if with_field {
            self.begin_transport();
        }
        for k in g - 1..=g + PATCH {
            self.reconstruct(k);
            if self.layout.first.is_some() {
                self.first_fluxes(k);
                if k >= g {
                    self.correct(k - 1);
                    self.advance_plane(k - 1, out, faces, &mut outcome);
                }
                continue;
            }
            // electric fields on edges need those through faces of two planes
            if with_field {
                self.fluxes_along_plane(k, faces);
            }
            self.advance_plane(k, out, faces, &mut outcome);
        }
        if self.layout.first.is_some() {
            self.correct(g + PATCH);
            self.advance_plane(g + PATCH, out, faces, &mut outcome);
        }
        self.finish_transport(faces);
        if self.solver.method.dual.is_some() {
            let gains = self.layout.gains;
            outcome.replacements = Replacements::of(self.scratch.values_mut(gains..gains + CELLS));
        }
        outcome
    }

    /// Computes the fluxes through the lower faces of plane `k`, the new states of the plane below, and the fluxes along the plane, as far as they
    /// belong to the patch.
    fn advance_plane(
        &mut self,
        k: usize,
        out: &mut [R],
        faces: &mut FaceFluxes<'_, R>,
        outcome: &mut PatchOutcome<R>,
    ) {
        let (g, with_field) = (self.layout.ghosts, self.layout.transport.is_some());
        if k >= g {
            self.fluxes(2, k);
            self.store_fluxes(2, k, faces);
            if with_field {
                self.transport(k);
            }
        }
        if k > g {
            let plane = self.update(k - 1, out);
            outcome.add(k - 1 - g, plane);
        }
        if !with_field && k >= g && k < g + PATCH {
            self.fluxes_along_plane(k, faces);
        }
    }

    /// Computes the fluxes through the faces in plane `k` normal to x and y.
    fn fluxes_along_plane(&mut self, k: usize, faces: &mut FaceFluxes<'_, R>) {
        for axis in 0..2 {
            self.fluxes(axis, k);
            self.store_fluxes(axis, k, faces);
        }
    }

    fn primitives(&mut self) {
        let (l, p) = (self.layout, self.scratch.pointer());
        let arguments = PrimitivePass {
            conserved: p,
            primitive: p.wrapping_add(l.primitive),
            stride: l.block,
            components: l.components,
            count: l.width.pow(3),
            law: self.law,
        };
        // SAFETY: both blocks lie inside the arena, padded for the widest vector
        unsafe { (self.solver.passes.primitives)(&arguments) }
    }

    /// Finds shocks in the patch and one layer around it. Returns `false` if there are none.
    fn find_shocks(&mut self) -> bool {
        let (l, p) = (self.layout, self.scratch.pointer());
        let g = l.ghosts;
        let span = CellRange::square(l.width, g - 1, g + PATCH + 1);
        let arguments = ShockPass {
            block: p.wrapping_add(l.primitive),
            block_count: l.width.pow(3),
            first: (g - 1) * l.steps()[2] + span.start,
            steps: l.steps(),
            cell_stride: l.block,
            planes: PATCH + 2,
            count: span.count(),
            along: p.wrapping_add(l.shocks),
            law: self.law,
        };
        // SAFETY: the ranges keep at least one cell away from the block's surface, and the arrays are padded
        unsafe { (self.solver.passes.shocks)(&arguments) }
    }

    /// Computes slopes and edge states in plane `k` of the block, in a square one cell larger than the patch. In the planes below and above
    /// the patch the square has its size, and only z edges are used, unless there is a field on faces or edges are corrected.
    fn reconstruct(&mut self, k: usize) {
        let (g, w) = (self.layout.ghosts, self.layout.width);
        let wide = self.layout.transport.is_some() || self.layout.first.is_some();
        let inside = wide || (k >= g && k < g + PATCH);
        let span = if inside {
            self.around_patch()
        } else {
            CellRange::square(w, g, g + PATCH)
        };
        // without half steps, no transverse slopes of the gas are needed outside the patch
        let half_steps = self.solver.method.scheme == Scheme::MusclHancock
            || self.layout.components > self.layout.gas;
        let first = if inside || half_steps { 0 } else { 2 };
        for axis in first..3 {
            self.slopes(axis, k, span);
            if self.shocked {
                self.flatten(axis, k, span);
            }
        }
        self.edges(k, span);
        self.set_normal_field(k);
    }

    /// Returns the cells of a plane that belong to the patch or to one layer around it.
    pub fn around_patch(&self) -> CellRange {
        let g = self.layout.ghosts;
        CellRange::square(self.layout.width, g - 1, g + PATCH + 1)
    }

    fn slopes(&mut self, axis: usize, k: usize, span: CellRange) {
        let (l, p) = (self.layout, self.scratch.pointer());
        let place = axis * l.planes() + span.start;
        let arguments = SlopePass {
            cells: p.wrapping_add(l.primitive + k * l.steps()[2] + span.start),
            step: l.steps()[axis],
            cell_stride: l.block,
            lower: p.wrapping_add(l.lower + place),
            upper: p.wrapping_add(l.upper + place),
            stride: l.plane,
            components: l.components,
            variables: l.variables,
            gas: l.gas,
            count: span.count(),
            theta: self.solver.theta,
            axis,
            law: self.law,
        };
        // SAFETY: the span keeps as many cells from the block's surface as the reconstruction reads
        unsafe { (self.solver.passes.slopes)(&arguments) }
    }

    /// Reduces the slopes along `axis` in slow shocks along it to first order.
    fn flatten(&mut self, axis: usize, k: usize, span: CellRange) {
        let (l, p) = (self.layout, self.scratch.pointer());
        let place = axis * l.planes() + span.start;
        let shocks = l.shocks + axis * l.block + k * l.steps()[2] + span.start;
        let arguments = FlattenPass {
            shocks: p.wrapping_add(shocks).cast_const(),
            lower: p.wrapping_add(l.lower + place),
            upper: p.wrapping_add(l.upper + place),
            stride: l.plane,
            variables: l.variables,
            count: span.count(),
        };
        // SAFETY: the slopes of the span were just computed, and shocks were found in one layer around the patch
        unsafe { (self.solver.passes.flatten)(&arguments) }
    }

    fn edges(&mut self, k: usize, span: CellRange) {
        let (l, p) = (self.layout, self.scratch.pointer());
        let plane = |array: usize, n: usize| p.wrapping_add(array + n * l.planes() + span.start);
        let axes = |array: usize| [plane(array, 0), plane(array, 1), plane(array, 2)];
        let [low, high] = self.edge_planes(k, span);
        let arguments = EdgePass {
            cells: p.wrapping_add(l.primitive + k * l.steps()[2] + span.start),
            cell_stride: l.block,
            steps: l.steps(),
            lower: axes(l.lower).map(<*mut R>::cast_const),
            upper: axes(l.upper).map(<*mut R>::cast_const),
            low,
            high,
            electric: match l.electric_in_cells(k) {
                Some(from) => p.wrapping_add(from + span.start),
                None => std::ptr::null_mut(),
            },
            stride: l.plane,
            components: l.components,
            count: span.count(),
            // states at the faces are those at the beginning of a stage
            rates: match self.solver.method.has_stages() {
                true => [R::lit(0.0); 3],
                false => self.step.rates,
            },
            law: self.law,
        };
        // SAFETY: the span lies inside the block and the planes
        unsafe { (self.solver.passes.edges)(&arguments) }
    }

    /// Returns pointers to the states of the cells of plane `k` at their lower and upper faces, by axis.
    pub fn edge_planes(&mut self, k: usize, span: CellRange) -> [[*mut R; 3]; 2] {
        let (l, p) = (self.layout, self.scratch.pointer());
        let at = |plane: usize| p.wrapping_add(plane + span.start);
        [
            [0, 1, 2].map(|axis| at(l.low_plane(axis, k))),
            [0, 1, 2].map(|axis| at(l.high_plane(axis, k))),
        ]
    }

    /// Computes the fluxes through the faces of the patch's cells in plane `k` normal to `axis`: both faces of each cell for x and y, the
    /// lower one for z. With a field on faces those of one cell around the patch are added.
    fn fluxes(&mut self, axis: usize, k: usize) {
        // electric fields on edges need the faces of one layer of cells around the patch
        let wide = self.layout.transport.is_some();
        let arguments = self.flux_pass([axis, k], self.layout.flux_plane(axis, k), wide);
        self.solve(&arguments, self.shocked);
    }

    /// Returns the arguments for the fluxes through faces in plane `k` normal to `axis`, stored in the plane at `to`. With `wide` they include those
    /// of one layer of cells around the patch.
    pub fn flux_pass(&mut self, [axis, k]: [usize; 2], to: usize, wide: bool) -> FluxPass<R> {
        let (l, p) = (self.layout, self.scratch.pointer());
        let corner = match wide {
            true => l.corner() - l.width - 1,
            false => l.corner(),
        };
        let before = if axis == 2 {
            corner
        } else {
            corner - l.steps()[axis]
        };
        // x faces form one flat range, including those between the rows
        let (rows, length) = match wide {
            true => (1, (PATCH + 1) * l.width + PATCH + 2),
            false => [
                (1, (PATCH - 1) * l.width + PATCH + 1),
                (PATCH + 1, PATCH),
                (PATCH, PATCH),
            ][axis],
        };
        let left = l.high_plane(axis, if axis == 2 { k - 1 } else { k });
        let cells = l.shocks + k * l.steps()[2] + corner;
        FluxPass {
            shocks: [cells - l.steps()[axis], cells].map(|at| p.wrapping_add(at).cast_const()),
            shock_stride: l.block,
            left: p.wrapping_add(left + before),
            right: p.wrapping_add(l.low_plane(axis, k) + corner),
            state_stride: l.plane,
            flux: p.wrapping_add(to + corner),
            flux_stride: l.plane,
            axis,
            components: l.components,
            gas: l.gas,
            sets: self.solver.sets,
            rows,
            length,
            pitch: l.width,
            law: self.law,
        }
    }

    /// Computes the fluxes of the gas, of its internal energy, then of the scalars.
    pub fn solve(&self, arguments: &FluxPass<R>, damped: bool) {
        // SAFETY: states and fluxes of these faces lie inside the arena, padded for the widest vector
        unsafe {
            (self.solver.passes.fluxes)(arguments);
            if damped {
                (self.solver.passes.damped_fluxes)(arguments);
            }
            if arguments.gas > self.layout.variables {
                (self.solver.passes.internal_fluxes)(arguments);
            }
            if arguments.components > arguments.gas {
                (self.solver.passes.scalar_fluxes)(arguments);
            }
        }
    }

    /// Replaces the fluxes at flagged cells and copies those through the patch's own faces.
    fn store_fluxes(&mut self, axis: usize, k: usize, faces: &mut FaceFluxes<'_, R>) {
        let (l, w) = (self.layout, self.layout.width);
        let place = l.flux_plane(axis, k);
        if let Some(cells) = self.step.first_order {
            let solver = (self.solver, self.law);
            first_order::first_order_fluxes(solver, self.scratch, cells, [axis, k], place);
        }
        let inside = k >= l.ghosts && k < l.ghosts + PATCH + usize::from(axis == 2);
        if !inside {
            return;
        }
        let k = k - l.ghosts;
        let from = place + l.corner();
        self.copy_mass_fluxes(faces, axis, [from, w], k);
        match axis {
            0 | 1 => {
                let (along, step) = if axis == 0 { (1, w) } else { (w, 1) };
                self.copy_face_row(faces, 2 * axis, [from, step], k);
                self.copy_face_row(faces, 2 * axis + 1, [from + PATCH * along, step], k);
            }
            _ if k == 0 || k == PATCH => {
                for j in 0..PATCH {
                    self.copy_face_row(faces, 4 + k / PATCH, [from + j * w, 1], j);
                }
            }
            _ => {}
        }
    }

    /// Copies a row of eight fluxes, from `from` on and `step` elements apart, to row `row` of a face. Fluxes without corrections between
    /// levels are left out.
    fn copy_face_row(
        &self,
        faces: &mut FaceFluxes<'_, R>,
        face: usize,
        [from, step]: [usize; 2],
        row: usize,
    ) {
        let Some(target) = &mut faces.sides[face] else {
            return;
        };
        let corrected = |c: &usize| Some(*c) != self.layout.uncorrected;
        for c in (0..self.layout.components).filter(corrected) {
            let start = from + c * self.layout.plane;
            let fluxes = self.scratch.values(start..start + (PATCH - 1) * step + 1);
            let to = c * FACE + row * PATCH;
            for (value, flux) in target[to..to + PATCH]
                .iter_mut()
                .zip(fluxes.iter().step_by(step))
            {
                *value = *flux;
            }
        }
    }

    /// Copies the mass fluxes of plane `k` through faces normal to `axis`, starting at `from` in rows `pitch` apart.
    fn copy_mass_fluxes(
        &self,
        faces: &mut FaceFluxes<'_, R>,
        axis: usize,
        [from, pitch]: [usize; 2],
        k: usize,
    ) {
        let Some(target) = &mut faces.mass else {
            return;
        };
        let [wide, high, _] = Centring::Face.lengths(axis, [PATCH; 3]);
        let to = axis * Centring::Face.values() + k * wide * high;
        let rows = target[to..to + wide * high].chunks_exact_mut(wide);
        for (j, row) in rows.enumerate() {
            let start = from + j * pitch;
            row.copy_from_slice(self.scratch.values(start..start + wide));
        }
    }

    /// Returns pointers to the fluxes around the cells at `at` of plane `k`.
    fn faces(&mut self, k: usize, at: usize) -> FacePlanes<R> {
        let (l, p) = (self.layout, self.scratch.pointer());
        let flux = |axis: usize, k: usize, at: usize| {
            p.wrapping_add(l.flux_plane(axis, k) + at).cast_const()
        };
        FacePlanes {
            below: [flux(0, k, at), flux(1, k, at), flux(2, k, at)],
            above: [
                flux(0, k, at + 1),
                flux(1, k, at + l.width),
                flux(2, k + 1, at),
            ],
            stride: l.plane,
        }
    }

    /// Computes the new states of plane `k` of the block.
    fn update(&mut self, k: usize, out: &mut [R]) -> PlaneOutcome<R> {
        let l = self.layout;
        assert!(
            out.len() >= l.components * CELLS,
            "the output holds {} values",
            out.len()
        );
        let faces = self.faces(k, l.corner());
        let p = self.scratch.pointer();
        let first = k * l.steps()[2] + l.corner();
        let (before, weight) = match self.step.before {
            Some((state, weight)) => {
                let enough = state.len() >= l.components * CELLS;
                assert!(enough, "the state holds {} values", state.len());
                (state[(k - l.ghosts) * FACE..].as_ptr(), weight)
            }
            None => (std::ptr::null(), R::lit(1.0)),
        };
        let arguments = UpdatePass {
            conserved: p.wrapping_add(first),
            primitive: p.wrapping_add(l.primitive + first),
            steps: l.steps(),
            block_stride: l.block,
            pitch: l.width,
            faces,
            out: out[(k - l.ghosts) * FACE..].as_mut_ptr(),
            components: l.components,
            gains: p.wrapping_add(l.gains + (k - l.ghosts) * FACE),
            rates: self.step.rates,
            inverse_dx: self.step.inverse_dx,
            law: self.law,
            thresholds: self.solver.thresholds,
            field: self.next_field(first),
            before,
            weight,
        };
        // SAFETY: the plane lies inside the block, its faces were just computed, the output was checked
        unsafe { (self.solver.passes.update)(&arguments) }
    }

    /// Predictor of the van Leer scheme: advances the gas in place by half a step of donor-cell fluxes, up to one layer below the block's
    /// surface.
    fn predict(&mut self) {
        let l = self.layout;
        let (g, w) = (l.ghosts, l.width);
        let inner = CellRange::square(w, 1, w - 1);
        let outer = CellRange::square(w, g, g + PATCH);
        let beside = |k: usize| k >= g && k < g + PATCH;
        for k in 1..w {
            let span = if beside(k) { inner } else { outer };
            let below = if beside(k - 1) { inner } else { outer };
            self.donor_fluxes(2, k, if beside(k - 1) { below } else { span });
            if k > 1 {
                self.predict_plane(k - 1, below);
            }
            if k < w - 1 {
                self.donor_fluxes(0, k, span);
                self.donor_fluxes(1, k, span);
            }
        }
    }

    /// Computes the fluxes from cell averages through all lower faces of a range, and the upper ones of its last cells.
    fn donor_fluxes(&mut self, axis: usize, k: usize, span: CellRange) {
        let (l, p) = (self.layout, self.scratch.pointer());
        let step = l.steps()[axis];
        let cells = l.primitive + k * l.steps()[2] + span.start;
        let arguments = FluxPass {
            // the predictor takes the fluxes of the solver everywhere
            shocks: [p.cast_const(); 2],
            shock_stride: 0,
            left: p.wrapping_add(cells - step),
            right: p.wrapping_add(cells),
            state_stride: l.block,
            flux: p.wrapping_add(l.flux_plane(axis, k) + span.start),
            flux_stride: l.plane,
            axis,
            components: l.variables,
            gas: l.variables,
            sets: self.solver.sets,
            rows: 1,
            length: span.count() + if axis == 2 { 0 } else { step },
            pitch: l.width,
            law: self.law,
        };
        self.solve(&arguments, false);
    }

    fn predict_plane(&mut self, k: usize, span: CellRange) {
        let l = self.layout;
        let faces = self.faces(k, span.start);
        let p = self.scratch.pointer();
        let cells = k * l.steps()[2] + span.start;
        let arguments = PredictPass {
            conserved: p.wrapping_add(cells),
            primitive: p.wrapping_add(l.primitive + cells),
            block_stride: l.block,
            faces,
            count: span.count(),
            rates: self.step.rates.map(|rate| R::lit(0.5) * rate),
            law: self.law,
        };
        // SAFETY: the span lies inside the block and its faces were just computed
        unsafe { (self.solver.passes.predict)(&arguments) }
    }
}
