//! The gas solver of a run: patch solver, scratch memory, cached signal rates, and the update of patches on the host.

use super::HydroConfig;
use super::capture::{ExtraFields, LevelInput};
use super::device::GasDevice;
use super::stages::LevelStage;
use crate::fields::{Gas, GasModel, MagneticFaces};
use bevy_ecs::prelude::*;
use nestar_engine::comm::{Comm, RanksError};
use nestar_engine::data::{Element, Precision};
use nestar_engine::device::parallel::{PerThread, SharedCells};
use nestar_engine::mesh::{LevelClock, parallel};
use nestar_engine::step::FieldView;
use nestar_kernels::CELLS;
use nestar_kernels::hydro::{
    CellMask10, Cleaning, FaceFluxes, HydroReal, LaneChoice, PatchOutcome, PatchScratch,
    PatchSolver, PatchStep, Replacements,
};
use nestar_kernels::mesh::fluxes::{FACE, with_share};
use nestar_kernels::mesh::gather::{GatherTarget, GhostView, gather};
use nestar_kernels::mesh::{Centring, GatherScratch, Rows, gather_faces};

/// Floating-point types in which the gas can be advanced.
pub trait GasReal: HydroReal + Element {
    /// Returns the solver if the run has this precision.
    fn of(solver: &mut HydroSolver) -> Option<&mut GasSolver<Self>>;
}

impl GasReal for f32 {
    fn of(solver: &mut HydroSolver) -> Option<&mut GasSolver<Self>> {
        if let HydroSolver::Single(s) = solver {
            Some(s)
        } else {
            None
        }
    }
}

impl GasReal for f64 {
    fn of(solver: &mut HydroSolver) -> Option<&mut GasSolver<Self>> {
        if let HydroSolver::Double(s) = solver {
            Some(s)
        } else {
            None
        }
    }
}

/// Largest signal rate of the patches of this rank on each level, at the latest evaluation of the time-step limit.
#[derive(Resource, Default)]
pub struct LevelRates(Vec<f64>);

impl LevelRates {
    /// Notes the rate of a level.
    pub(super) fn note(&mut self, level: usize, rate: f64) {
        if self.0.len() <= level {
            self.0.resize(level + 1, 0.0);
        }
        self.0[level] = rate;
    }

    /// Returns the cleaning of a magnetic field in the coming step of a level. Collective.
    ///
    /// # Errors
    /// Another rank or the transport has failed.
    pub(super) fn cleaning(
        &self,
        clock: &LevelClock,
        ranks: &Comm,
    ) -> Result<Cleaning, RanksError> {
        let own = self.0.get(clock.level).copied().unwrap_or(0.0);
        // numbers that are not negative are in the order of their bits
        let rate = f64::from_bits(ranks.max(own.to_bits())?);
        Ok(Cleaning::of(rate, clock.cell_width, clock.dt))
    }
}

/// The gas solver in the precision of the run, on the host or on a device.
#[derive(Resource)]
pub enum HydroSolver {
    /// Single precision on the host.
    Single(GasSolver<f32>),
    /// Double precision on the host.
    Double(GasSolver<f64>),
    /// Either precision on a device.
    Device(Box<GasDevice>),
}

/// The gas solver on the host in one precision.
pub struct GasSolver<R: GasReal> {
    /// Advances one patch.
    pub patch: PatchSolver<R>,
    /// Courant number.
    pub courant: f64,
    pub(super) scratch: PerThread<ThreadScratch<R>>,
    /// Per row: largest signal rate, valid while `seen` equals the change count of the row in the pool. No change later
    /// than `counts` may concern all rows of the level.
    pub(super) rates: SharedCells<R>,
    pub(super) seen: Vec<u32>,
    /// Per level: change count of the pool at the latest evaluation of all rows.
    pub(super) counts: Vec<u64>,
    /// Per row: cells with an unphysical state after the latest update.
    pub(super) unphysical: SharedCells<[u64; 8]>,
    /// Per row: cells in which the internal energy replaced the total one in the latest update.
    pub(super) replacements: SharedCells<Replacements<R>>,
    /// Per row: cells that use first-order fluxes in the step being corrected.
    pub(super) first_order: Vec<[u64; 8]>,
    /// Rows of the current level with an outdated signal rate.
    pub(super) stale: Vec<u32>,
}

/// Scratch memory of one thread.
pub struct ThreadScratch<R> {
    pub(super) patch: PatchScratch<R>,
    pub(super) gather: GatherScratch<R>,
    /// Fluxes through the six faces, `[face][component][8][8]`.
    pub(super) faces: Vec<R>,
    /// Electric fields on the edges of a patch, `[axis][648]`, if there is a magnetic field on faces.
    pub(super) electric: Vec<R>,
}

impl HydroSolver {
    /// Builds the solver for a deck.
    #[must_use]
    pub fn new(config: &HydroConfig, model: &GasModel, precision: Precision, courant: f64) -> Self {
        match precision {
            Precision::Single => Self::Single(GasSolver::new(config, model, courant)),
            Precision::Double => Self::Double(GasSolver::new(config, model, courant)),
        }
    }

    /// Returns the number of ghost layers that a step reads.
    #[must_use]
    pub fn ghosts(&self) -> usize {
        match self {
            Self::Single(solver) => solver.patch.ghosts(),
            Self::Double(solver) => solver.patch.ghosts(),
            Self::Device(solver) => solver.ghosts(),
        }
    }
}

impl<R: GasReal> GasSolver<R> {
    fn new(config: &HydroConfig, model: &GasModel, courant: f64) -> Self {
        let patch = PatchSolver::<R>::new(
            config.method(),
            config.law(),
            model.scalars.len(),
            LaneChoice::Auto,
        )
        .with_sets(model.sets);
        let components = patch.components();
        let scratch = PerThread::new(|| ThreadScratch {
            patch: patch.scratch(),
            gather: GatherScratch::new(components),
            faces: vec![R::lit(0.0); 6 * components * FACE],
            electric: match config.method().has_face_field() {
                true => vec![R::lit(0.0); 3 * Centring::Edge.values()],
                false => Vec::new(),
            },
        });
        Self {
            patch,
            courant,
            scratch,
            rates: SharedCells::default(),
            seen: Vec::new(),
            counts: Vec::new(),
            unphysical: SharedCells::default(),
            replacements: SharedCells::default(),
            first_order: Vec::new(),
            stale: Vec::new(),
        }
    }

    /// Allocates memory for `rows` rows on levels up to `level`.
    pub(super) fn grow(&mut self, rows: usize, level: usize) {
        if self.counts.len() <= level {
            self.counts.resize(level + 1, 0);
        }
        if self.seen.len() < rows {
            self.rates.resize(rows, R::lit(0.0));
            // marks the rate of a new row as outdated
            self.seen.resize(rows, u32::MAX);
            self.unphysical.resize(rows, [0; 8]);
            let none = Replacements {
                cells: 0,
                gain: R::lit(0.0),
            };
            self.replacements.resize(rows, none);
            self.first_order.resize(rows, [0; 8]);
        }
    }
}

const _: () = assert!(
    CELLS == 512,
    "the masks of unphysical cells are eight words of 64 cells"
);

/// The magnetic field on faces in a step of a level.
pub(super) struct FaceFieldStep<'a, R: GasReal> {
    view: GhostView<'a, R>,
    field: &'a FieldView<'a, MagneticFaces>,
    /// Output of the step.
    out: Rows<'a, R>,
}

impl<'a, R: GasReal> FaceFieldStep<'a, R> {
    fn new(field: &'a FieldView<'a, MagneticFaces>) -> Self {
        Self {
            view: field.ghosts::<R>(),
            field,
            out: field.next::<R>(),
        }
    }

    /// Gathers the faces of a patch and of its ghost cells.
    fn gather(&self, row: u32, ghosts: usize, scratch: &mut PatchScratch<R>) {
        let (values, stride) = scratch.face_input();
        let mut target = GatherTarget {
            values,
            stride,
            components: 3,
            ghosts,
        };
        gather_faces(&self.view, row, &mut target);
    }
}

/// Data for the update of any patch of a level.
pub(super) struct LevelStep<'a, R: GasReal> {
    pub level: usize,
    pub rates: [R; 3],
    pub inverse_dx: [R; 3],
    pub cleaning: Cleaning,
    pub view: GhostView<'a, R>,
    pub gas: FieldView<'a, Gas>,
    /// Output of the mass fluxes, if requested, and those of earlier stages.
    pub mass: Option<[Rows<'a, R>; 2]>,
    /// Magnetic field on faces, if there is one.
    pub field: Option<FaceFieldStep<'a, R>>,
    pub stage: LevelStage,
    /// Output of the step or stage.
    pub out: Rows<'a, R>,
}

impl<'a, R: GasReal> LevelStep<'a, R> {
    pub fn new(
        input: &LevelInput,
        gas: FieldView<'a, Gas>,
        extra: ExtraFields<'a>,
        stage: LevelStage,
    ) -> Self {
        let LevelInput {
            clock, cleaning, ..
        } = *input;
        let mass = extra.mass.map(|mass| match stage.is_one_of_several() {
            true => stage.in_order([mass.present::<R>(), mass.scratch::<R>(0)]),
            false => [mass.present::<R>(); 2],
        });
        Self {
            level: clock.level,
            rates: clock.cell_width.map(|w| R::lit(clock.dt / w)),
            inverse_dx: clock.cell_width.map(|w| R::lit(1.0 / w)),
            cleaning,
            view: gas.ghosts::<R>(),
            out: gas.bank::<R>(gas.stage_bank(stage.share.stage)),
            gas,
            mass,
            field: extra.field.map(FaceFieldStep::new),
            stage,
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

    /// Advances one patch into the bank of the stage and fills its flux registers.
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
            mass: (self.mass).map(|[mass, _]| unsafe { mass.row_mut(row) }),
            ..FaceFluxes::default()
        };
        if let Some(field) = &self.field {
            field.gather(row, ghosts, &mut scratch.patch);
            // SAFETY: the caller's contract.
            faces.field = Some(unsafe { field.out.row_mut(row) });
            let circulations = field.field.circulations::<R>();
            faces.electric = circulations
                .has_register(row)
                .then_some(&mut scratch.electric);
        }
        let sides = scratch.faces.chunks_exact_mut(components * FACE);
        for (face, chunk) in sides.enumerate() {
            faces.sides[face] = registers.has_register(row, face).then_some(chunk);
        }
        // SAFETY: the caller's contract.
        let out = unsafe { self.out.row_mut(row) };
        let before = self.gas.present::<R>();
        let step = PatchStep {
            rates: self.rates,
            inverse_dx: self.inverse_dx,
            first_order,
            cleaning: self.cleaning,
            before: (!self.stage.is_first()).then(|| (before.row(row), R::lit(self.stage.weight))),
        };
        let outcome = solver
            .patch
            .update(&mut scratch.patch, &step, out, &mut faces);
        self.add_mass_fluxes(row, faces.mass);
        // SAFETY: the caller's contract.
        unsafe {
            for (face, flux) in faces.sides.iter().enumerate() {
                let Some(flux) = flux else { continue };
                match self.stage.is_one_of_several() {
                    true => {
                        registers.record_stage(self.level, row, face, flux, self.stage.share);
                    }
                    false => registers.record(self.level, row, face, flux, None),
                }
            }
            if let (Some(field), Some(electric)) = (&self.field, &faces.electric) {
                let circulations = field.field.circulations::<R>();
                circulations.record(self.level, row, electric);
            }
            solver.rates.set(row as usize, outcome.signal_rate);
            solver.unphysical.set(row as usize, outcome.unphysical);
            solver.replacements.set(row as usize, outcome.replacements);
        }
        outcome
    }

    /// Replaces the mass fluxes of a stage by their share in those of the step, added to those of earlier stages.
    fn add_mass_fluxes(&self, row: u32, fluxes: Option<&mut [R]>) {
        let (Some(fluxes), Some([_, earlier])) = (fluxes, self.mass) else {
            return;
        };
        if !self.stage.is_one_of_several() {
            return;
        }
        let share = R::lit(self.stage.share.share);
        for (flux, &earlier) in fluxes.iter_mut().zip(earlier.row(row)) {
            let earlier = match self.stage.is_first() {
                true => R::lit(0.0),
                false => earlier,
            };
            *flux = with_share(earlier, *flux, share);
        }
    }
}
