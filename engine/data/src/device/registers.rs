//! Registers for fluxes or circulations on a device, with the same meaning as [`FluxRegisters`](crate::FluxRegisters) and
//! [`CirculationRegisters`](crate::CirculationRegisters). The order of slots is arbitrary.

use super::topology::DeviceTopology;
use crate::field_spec::{Correct, FieldSpec};
use crate::registers::StageShare;
use crate::store::{DevicePieces, Piece};
use nestar_device::{Address, Number};
use nestar_engine_device::{
    Buffer, Device, DeviceError, Growable, Kernel, LaunchShape, Module, ReusableBuffer,
};
use nestar_engine_mesh::topology::links::{remote_at_edges, remote_faces};
use nestar_engine_mesh::{LevelClock, Topology};
use nestar_kernels::mesh::circulations::{FINE_SURFACE, SURFACE};
use nestar_kernels::mesh::device::{COMMIT_PER_BLOCK, PATCHES_PER_BLOCK};
use nestar_kernels::mesh::fluxes::{FACE, QUARTER};
use nestar_kernels::mesh::parameters::{
    AssignParameters, CommitParameters, CorrectionParameters, RegisterCounts,
    RegisterTransferParameters, RepairedCells,
};

/// Where a step records the fluxes through coarse-fine faces of a level.
pub type RegisterView = nestar_kernels::mesh::parameters::FluxRegisterView<Number>;

/// Where a step records the circulations along coarse-fine edges of a level.
pub type CirculationView = nestar_kernels::mesh::parameters::CirculationRegisterView<Number>;

/// Size of the registers of one correction, and the kernels that assign and use them.
struct RegisterLayout {
    /// Largest number of registers of a patch on either side.
    slots: usize,
    /// Values of a component in a coarse-side register.
    coarse: usize,
    /// Values of a component in a fine-side register.
    fine: usize,
    assign_coarse: &'static str,
    assign_fine: &'static str,
    correct: &'static str,
}

impl RegisterLayout {
    /// Returns the layout for a correction; `None` if it needs no registers.
    fn of(correct: Correct) -> Option<Self> {
        match correct {
            Correct::None => None,
            Correct::Fluxes => Some(Self {
                slots: 6,
                coarse: FACE,
                fine: QUARTER,
                assign_coarse: "mesh_assign_coarse",
                assign_fine: "mesh_assign_fine",
                correct: "mesh_correct",
            }),
            Correct::Circulations => Some(Self {
                slots: 1,
                coarse: SURFACE,
                fine: FINE_SURFACE,
                assign_coarse: "mesh_assign_coarse_edges",
                assign_fine: "mesh_assign_fine_edges",
                correct: "mesh_correct_faces",
            }),
        }
    }
}

/// The registers between level `l` and `l + 1`.
#[derive(Default)]
struct DeviceLevelPair {
    counts: RegisterCounts,
    /// Patches with coarse-side registers.
    corrected: ReusableBuffer<i32>,
    coarse: ReusableBuffer<u8>,
    reference: ReusableBuffer<u8>,
    change: ReusableBuffer<u8>,
    attempt: ReusableBuffer<u8>,
    /// Coarse and fine fluxes of some of the stages of a step, see `FluxRegisters`.
    stages: [ReusableBuffer<u8>; 2],
    /// `true` after the first fine step within the coarse step.
    begun: bool,
}

/// All registers of a field.
pub(super) struct DeviceRegisters {
    device: Device,
    /// What the registers hold.
    correct_by: Correct,
    layout: RegisterLayout,
    components: usize,
    value_bytes: usize,
    has_stages: bool,
    pairs: Vec<DeviceLevelPair>,
    /// Counts of the registers, `[pair]`.
    counts: Buffer<RegisterCounts>,
    /// Scratch memory: registers of fine patches of other ranks during slot assignment.
    remote: ReusableBuffer<Piece>,
    /// Slots, `[row][slots of a patch]`.
    coarse_slot: Growable<i32>,
    fine_slot: Growable<i32>,
    assign_coarse: Kernel,
    assign_fine: Kernel,
    commit: Kernel,
    correct: Kernel,
    give_slots: Kernel,
}

impl DeviceRegisters {
    /// Creates the registers that the correction of `spec` needs, if any, for values of `value_bytes` bytes.
    pub(super) fn new(
        device: &Device,
        module: &Module,
        spec: &FieldSpec,
        value_bytes: usize,
        levels: usize,
        most_rows: usize,
    ) -> Result<Option<Self>, DeviceError> {
        let Some(layout) = RegisterLayout::of(spec.correct) else {
            return Ok(None);
        };
        Ok(Some(Self {
            device: device.clone(),
            correct_by: spec.correct,
            components: spec.components.len(),
            value_bytes,
            has_stages: spec.stages > 1,
            pairs: (0..levels).map(|_| DeviceLevelPair::default()).collect(),
            counts: device.buffer(levels)?,
            remote: ReusableBuffer::default(),
            coarse_slot: device.growable(layout.slots * most_rows)?,
            fine_slot: device.growable(layout.slots * most_rows)?,
            assign_coarse: module.kernel(layout.assign_coarse)?,
            assign_fine: module.kernel(layout.assign_fine)?,
            commit: module.kernel("mesh_commit")?,
            correct: module.kernel(layout.correct)?,
            give_slots: module.kernel("mesh_assign_slots")?,
            layout,
        }))
    }

    /// Returns `true` if the registers hold circulations.
    pub(super) fn hold_circulations(&self) -> bool {
        self.correct_by == Correct::Circulations
    }

    /// Returns the memory in use, bytes.
    pub(super) fn bytes(&self) -> usize {
        let pair = |p: &DeviceLevelPair| {
            let values = p.reference.bytes() + p.change.bytes() + p.attempt.bytes();
            let stages = p.stages[0].bytes() + p.stages[1].bytes();
            values + stages + p.coarse.bytes() + p.corrected.bytes()
        };
        let pairs: usize = self.pairs.iter().map(pair).sum();
        pairs + self.coarse_slot.bytes() + self.fine_slot.bytes()
    }

    pub(super) fn grow(&mut self, rows: usize) -> Result<(), DeviceError> {
        self.coarse_slot.grow(self.layout.slots * rows)?;
        self.fine_slot.grow(self.layout.slots * rows)
    }

    /// Rebuilds the registers on both sides of `level` after a regrid; all become zero.
    pub(super) fn on_regrid(
        &mut self,
        tables: &DeviceTopology,
        topology: &Topology,
        level: usize,
    ) -> Result<(), DeviceError> {
        let pairs = level.saturating_sub(1)..level + 1;
        self.device.fill_zero(&self.counts, pairs.clone())?;
        for pair in pairs.clone() {
            self.assign(tables, pair)?;
        }
        let mut counts = vec![RegisterCounts::default(); pairs.len()];
        self.device
            .download(&self.counts, pairs.start, &mut counts)?;
        for (pair, mut counts) in pairs.zip(counts) {
            counts.fine += self.add_remote(topology, pair, counts.fine)?;
            self.provide(pair, counts)?;
        }
        Ok(())
    }

    /// Assigns slots from `first` on to registers of other ranks' fine patches that touch patches of `pair` here.
    /// Returns their number.
    fn add_remote(
        &mut self,
        topology: &Topology,
        pair: usize,
        first: u32,
    ) -> Result<u32, DeviceError> {
        let registers: Vec<Piece> = match self.hold_circulations() {
            true => {
                let rows = remote_at_edges(topology, pair).into_iter();
                rows.map(|row| Piece::circulations(row, 0)).collect()
            }
            false => remote_faces(topology, pair)
                .map(|(row, face)| Piece::register(row, face, 0))
                .collect(),
        };
        if registers.is_empty() {
            return Ok(0);
        }
        self.remote.set(&self.device, &registers)?;
        let list = DevicePieces {
            entries: &registers,
            device: &self.device,
            list: self.remote.address(),
            memory: 0,
            stride: 0,
        };
        let parameters = RegisterTransferParameters {
            first: first as i32,
            ..self.transfer(pair, &list)
        };
        self.device
            .launch(&self.give_slots, LaunchShape::of(1, 256), &parameters)?;
        Ok(registers.len() as u32)
    }

    /// Returns the kernel parameters for the fine-side registers between `level` and the next finer one.
    pub(super) fn transfer(
        &self,
        level: usize,
        list: &DevicePieces,
    ) -> RegisterTransferParameters<Number> {
        let pair = &self.pairs[level];
        RegisterTransferParameters {
            pieces: list.list.into(),
            fine_slot: self.fine_slot.address().into(),
            reference: pair.reference.address().into(),
            change: pair.change.address().into(),
            packed: list.memory.into(),
            slots: self.layout.slots as i32,
            values: (self.layout.fine * self.components) as i32,
            groups: match self.hold_circulations() {
                true => self.components as i32 / 3,
                false => self.components as i32,
            },
            first: 0,
            count: list.entries.len() as i32,
        }
    }

    /// Assigns slots to the patches between `pair` and `pair + 1` and counts them.
    fn assign(&mut self, tables: &DeviceTopology, pair: usize) -> Result<(), DeviceError> {
        let (coarse, fine) = (tables.count(pair), tables.count(pair + 1));
        self.pairs[pair].corrected.provide(&self.device, coarse)?;
        let parameters = AssignParameters {
            rows: tables.rows(pair).into(),
            neighbours: tables.neighbours().into(),
            first_child: tables.first_child().into(),
            coarse_slot: self.coarse_slot.address().into(),
            fine_slot: self.fine_slot.address().into(),
            corrected: self.pairs[pair].corrected.address().into(),
            counts: (self.counts.address() + (pair * size_of::<RegisterCounts>()) as u64).into(),
            count: coarse as i32,
            clear: pair == 0,
        };
        self.device
            .launch(&self.assign_coarse, patches(coarse), &parameters)?;
        if fine == 0 {
            return Ok(());
        }
        let parameters = AssignParameters {
            rows: tables.rows(pair + 1).into(),
            count: fine as i32,
            ..parameters
        };
        self.device
            .launch(&self.assign_fine, patches(fine), &parameters)
    }

    /// Allocates the counted registers and sets them to zero.
    fn provide(&mut self, pair: usize, counts: RegisterCounts) -> Result<(), DeviceError> {
        let value = self.components * self.value_bytes;
        let pair = &mut self.pairs[pair];
        pair.counts = counts;
        let fine = counts.fine as usize * self.layout.fine * value;
        let coarse = counts.coarse as usize * self.layout.coarse * value;
        let stages = usize::from(self.has_stages);
        let [of_coarse, of_fine] = &mut pair.stages;
        for (values, bytes) in [
            (&mut pair.coarse, coarse),
            (&mut pair.reference, fine),
            (&mut pair.change, fine),
            (&mut pair.attempt, fine),
            (of_coarse, stages * coarse),
            (of_fine, stages * fine),
        ] {
            let values = values.provide(&self.device, bytes)?;
            self.device.fill_zero(values, 0..bytes)?;
        }
        Ok(())
    }

    /// Returns where a step of `level` records its fluxes. With `adds`, fine fluxes are added to the change of later
    /// steps.
    pub(super) fn view(&self, level: usize, adds: bool) -> RegisterView {
        let mut view = RegisterView::default();
        let coarse = &self.pairs[level];
        if coarse.counts.coarse > 0 {
            view.coarse_slot = self.coarse_slot.address().into();
            view.coarse_flux = coarse.coarse.address().into();
        }
        if let Some(fine) = level.checked_sub(1).map(|below| &self.pairs[below])
            && fine.counts.fine > 0
        {
            view.fine_slot = self.fine_slot.address().into();
            let values = if adds { &fine.change } else { &fine.attempt };
            view.attempt = values.address().into();
        }
        view
    }

    /// Returns where a stage of a step of `level` records its fluxes, and where those of earlier stages are stored (no addresses in the first
    /// stage).
    pub(super) fn stage_views(&self, level: usize, stage: StageShare) -> [RegisterView; 2] {
        let tentative = self.view(level, false);
        let mut other = tentative;
        if self.pairs[level].counts.coarse > 0 {
            other.coarse_flux = self.pairs[level].stages[0].address().into();
        }
        if let Some(fine) = level.checked_sub(1).map(|below| &self.pairs[below])
            && fine.counts.fine > 0
        {
            other.attempt = fine.stages[1].address().into();
        }
        let [to, from] = match stage.is_tentative() {
            true => [tentative, other],
            false => [other, tentative],
        };
        let earlier = match stage.stage {
            0 => RegisterView::default(),
            _ => from,
        };
        [to, earlier]
    }

    /// Returns where a step of `level` records its circulations.
    pub(super) fn circulation_view(&self, level: usize) -> CirculationView {
        let sides = self.view(level, false);
        CirculationView {
            coarse_slot: sides.coarse_slot,
            fine_slot: sides.fine_slot,
            coarse_edges: sides.coarse_flux,
            attempt: sides.attempt,
        }
    }

    /// Accepts a step of `level` of length `dt`: adds its fluxes or circulations to the sums for the coarser level.
    /// The sums of the finer level restart.
    pub(super) fn commit(&mut self, level: usize, dt: f64) -> Result<(), DeviceError> {
        self.pairs[level].begun = false;
        let Some(pair) = level.checked_sub(1).map(|below| &mut self.pairs[below]) else {
            return Ok(());
        };
        let begun = std::mem::replace(&mut pair.begun, true);
        let count = pair.counts.fine as usize * self.layout.fine * self.components;
        let parameters = CommitParameters::<Number> {
            attempt: pair.attempt.address().into(),
            reference: pair.reference.address().into(),
            change: pair.change.address().into(),
            dt,
            count: count as i64,
            begun,
        };
        // three arrays are read or written, one of them twice
        self.commit.count_work(0, 4 * count * self.value_bytes);
        self.device.launch(
            &self.commit,
            LaunchShape::of(count.div_ceil(COMMIT_PER_BLOCK), 256),
            &parameters,
        )
    }

    /// Corrects the coarse cells or faces of the level after a step; `level` is its present bank. Returns `true` if there
    /// are any.
    pub(super) fn correct(
        &self,
        tables: &DeviceTopology,
        level: Address<Number>,
        stale: Address<u8>,
        repaired: Address<RepairedCells>,
        clock: &LevelClock,
    ) -> Result<bool, DeviceError> {
        let pair = &self.pairs[clock.level];
        let parameters = CorrectionParameters {
            level,
            rows: pair.corrected.address().into(),
            neighbours: tables.neighbours().into(),
            first_child: tables.first_child().into(),
            coarse_slot: self.coarse_slot.address().into(),
            fine_slot: self.fine_slot.address().into(),
            coarse: pair.coarse.address().into(),
            reference: pair.reference.address().into(),
            change: pair.change.address().into(),
            stale,
            repaired,
            dt: clock.dt,
            inverse_width: clock.cell_width.map(|w| 1.0 / w),
        };
        let corrected = pair.counts.corrected as usize;
        self.device
            .launch(&self.correct, LaunchShape::of(corrected, 128), &parameters)?;
        Ok(corrected > 0)
    }
}

/// Returns the shape of a launch over `count` patches.
fn patches(count: usize) -> LaunchShape {
    LaunchShape::of(count.div_ceil(PATCHES_PER_BLOCK), PATCHES_PER_BLOCK as u32)
}
