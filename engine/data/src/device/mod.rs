//! Fields on a device: banks, registers, and the operators of the engine as kernels.

pub(super) mod cell_records;
mod cell_values;
pub(super) mod cells;
mod operators;
mod registers;
pub(super) mod subcycle;
mod tables;
pub(crate) mod topology;
mod transfer;

pub use registers::{CirculationView, RegisterView};
pub use tables::DeviceTables;
pub use topology::DeviceTopology;

use super::Precision;
use super::field_spec::{Correct, Element, FieldSpec};
use super::registers::StageShare;
use nestar_device::{Item, Number};
use nestar_engine_device::{Buffer, Device, DeviceError, Growable, Kernel, Module, ReusableBuffer};
use nestar_kernels::mesh::device::{
    CIRCULATION_REGISTERS, CIRCULATIONS, FLUXES, FaceText, FieldText, PROLONG, REGISTER_TRANSFER,
    RESTRICT, TOTALS, TRANSFER,
};
use nestar_kernels::mesh::parameters::{GatherView, RepairedCells};
use nestar_kernels::mesh::{Boundaries, FAULT_WORDS, FaceRule, RuleFault};
use registers::DeviceRegisters;
use std::collections::BTreeMap;
use std::sync::Mutex;
use transfer::Staging;

/// Inputs of a gather on a level.
pub type DeviceView = GatherView<Number>;

/// Returns the message of a fault at a domain boundary; `None` if the words record none.
type Explain = dyn Fn(&[u32; FAULT_WORDS]) -> Option<String> + Send + Sync;

/// Kernels of the operators of one field.
struct FieldKernels {
    prolong: Kernel,
    restrict: Kernel,
    share: Kernel,
    sum_patches: Kernel,
    sum_parts: Kernel,
    pack: Kernel,
    unpack: Kernel,
    pack_registers: Kernel,
    unpack_registers: Kernel,
}

impl FieldKernels {
    fn of(module: &Module) -> Result<Self, DeviceError> {
        Ok(Self {
            prolong: module.kernel("mesh_prolong")?,
            restrict: module.kernel("mesh_restrict")?,
            share: module.kernel("mesh_sync_shared")?,
            sum_patches: module.kernel("mesh_sum_patches")?,
            sum_parts: module.kernel("mesh_sum_parts")?,
            pack: module.kernel("mesh_pack")?,
            unpack: module.kernel("mesh_unpack")?,
            pack_registers: module.kernel("mesh_pack_registers")?,
            unpack_registers: module.kernel("mesh_unpack_registers")?,
        })
    }
}

/// Values of a pool on a device: banks of rows `[component][8][8][8]`, each with a constant address.
///
/// Kernels of the engine set the byte in `stale` of every row that they change; code that caches derived values clears
/// it. After kernels that do not, call [`Pool::mark_all_changed`](super::Pool::mark_all_changed).
pub struct DevicePool {
    device: Device,
    precision: Precision,
    components: usize,
    text: FieldText,
    explain: Box<Explain>,
    banks: Vec<Growable<u8>>,
    stale: Growable<u8>,
    /// Marks new patches during the prolongation of faces, `[row]`.
    fresh: Buffer<u8>,
    pub(super) fault: Buffer<u32>,
    repaired: Buffer<RepairedCells>,
    /// The present value of `repaired`; `None` after work that may have changed it.
    known_repaired: Mutex<Option<RepairedCells>>,
    /// Registers, if the field is corrected.
    registers: Option<DeviceRegisters>,
    kernels: FieldKernels,
    /// Kernels of cell and face functions, by skeleton, kernel name and function key.
    functions: Mutex<BTreeMap<(&'static str, &'static str, String), Kernel>>,
    /// Tables among the parameters of functions.
    tables: DeviceTables,
    /// Parameter structures of lists, by their bytes.
    structures: Mutex<Vec<(Vec<u8>, Buffer<u8>)>>,
    /// Results of updates that read neighbouring cells, by row; allocated at the first use.
    results: Growable<u8>,
    /// Scratch memory of cell functions.
    words: Mutex<ReusableBuffer<u64>>,
    staging: Mutex<Option<Staging>>,
    /// Scratch memory of the totals.
    sums: Mutex<ReusableBuffer<f64>>,
    rows: usize,
    most_rows: usize,
}

impl DevicePool {
    /// Creates an empty pool for the field `spec` with boundary conditions `boundaries`, and compiles its kernels.
    ///
    /// # Errors
    /// A boundary rule works on the host only; a kernel does not compile; the device refuses.
    pub(crate) fn new<R: Element>(
        device: &Device,
        spec: &FieldSpec,
        boundaries: Boundaries<R>,
        levels: usize,
    ) -> Result<Self, DeviceError> {
        let text = field_text(spec, &boundaries)?;
        let source = text.program(&[], &skeletons(spec.correct));
        let module = device.compile("mesh", &source)?;
        let value_bytes = size_of::<R>();
        let row_bytes = spec.row_values() * value_bytes;
        let fitting = device.memory()?.total as usize / (spec.banks * row_bytes);
        let most_rows = fitting.min(i32::MAX as usize / 8);
        Ok(Self {
            device: device.clone(),
            precision: R::PRECISION,
            components: spec.components.len(),
            text,
            explain: Box::new(move |words| explain(&boundaries, words)),
            banks: (0..spec.banks)
                .map(|_| device.growable(most_rows * row_bytes))
                .collect::<Result<_, _>>()?,
            stale: device.growable(most_rows)?,
            fresh: device.buffer(0)?,
            fault: device.buffer(FAULT_WORDS)?,
            repaired: device.buffer(1)?,
            known_repaired: Mutex::new(Some(RepairedCells::default())),
            registers: DeviceRegisters::new(device, &module, spec, value_bytes, levels, most_rows)?,
            kernels: FieldKernels::of(&module)?,
            functions: Mutex::new(BTreeMap::new()),
            tables: DeviceTables::new(device, R::PRECISION),
            structures: Mutex::default(),
            results: device.growable(most_rows * row_bytes)?,
            words: Mutex::default(),
            staging: Mutex::default(),
            sums: Mutex::default(),
            rows: 0,
            most_rows,
        })
    }

    /// Returns the device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the precision of the values.
    #[must_use]
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Returns the number of components.
    #[must_use]
    pub fn components(&self) -> usize {
        self.components
    }

    /// Returns the number of rows in each bank.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the largest number of rows that fit in device memory: the address range to reserve for data per row.
    #[must_use]
    pub fn most_rows(&self) -> usize {
        self.most_rows
    }

    /// Returns the address of a bank, `[row][component][8][8][8]`.
    #[must_use]
    pub fn bank(&self, bank: usize) -> u64 {
        self.banks[bank].address()
    }

    /// Returns the memory of the registers, bytes.
    #[must_use]
    pub fn register_bytes(&self) -> usize {
        self.registers.as_ref().map_or(0, DeviceRegisters::bytes)
    }

    /// Returns the address of the change marks, one byte per row, set since they were last cleared.
    #[must_use]
    pub fn stale(&self) -> u64 {
        self.stale.address()
    }

    /// Returns where a step of `level` records the fluxes through coarse-fine faces.
    #[must_use]
    pub fn register_view(&self, level: usize) -> RegisterView {
        self.flux_view(level, false)
    }

    /// As [`DevicePool::register_view`]; with `adds`, fluxes are added to those of the step.
    #[must_use]
    pub fn flux_view(&self, level: usize, adds: bool) -> RegisterView {
        let registers = self.flux_registers();
        registers.map_or_else(RegisterView::default, |r| r.view(level, adds))
    }

    /// Returns where a stage of a step of `level` records its fluxes, and where those of earlier stages are stored.
    #[must_use]
    pub fn stage_views(&self, level: usize, stage: StageShare) -> [RegisterView; 2] {
        let registers = self.flux_registers();
        registers.map_or_else(Default::default, |r| r.stage_views(level, stage))
    }

    fn flux_registers(&self) -> Option<&DeviceRegisters> {
        let registers = self.registers.as_ref();
        registers.filter(|r| !r.hold_circulations())
    }

    /// Returns where a step of `level` records the circulations along coarse-fine edges, by `mesh::store_circulations` of
    /// [`nestar_kernels::mesh::device::CIRCULATIONS`].
    ///
    /// # Panics
    /// If circulations of the field are not corrected.
    #[must_use]
    pub fn circulation_view(&self, level: usize) -> CirculationView {
        let registers = self.registers.as_ref();
        let registers = registers.filter(|r| r.hold_circulations());
        let registers = registers.expect("the field has circulation registers");
        registers.circulation_view(level)
    }

    fn value_bytes(&self) -> usize {
        self.precision.bytes()
    }

    /// Returns the number of values of a component in a row.
    fn values(&self) -> usize {
        self.text.shape.values()
    }

    fn row_values(&self) -> usize {
        self.components * self.values()
    }

    fn row_bytes(&self) -> usize {
        self.row_values() * self.value_bytes()
    }

    /// Returns the device memory in use, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let banks: usize = self.banks.iter().map(Growable::bytes).sum();
        banks + self.results.bytes() + self.stale.bytes() + self.register_bytes()
    }

    /// Allocates the result buffer for `rows` rows.
    pub(super) fn provide_results(&mut self, rows: usize) -> Result<(), DeviceError> {
        self.results.grow(rows * self.row_bytes())
    }

    /// Grows to `rows` rows.
    ///
    /// # Errors
    /// The memory of the device does not suffice.
    pub fn grow(&mut self, rows: usize) -> Result<(), DeviceError> {
        if rows > self.rows {
            let bytes = self.row_bytes();
            for bank in &mut self.banks {
                bank.grow(rows * bytes)?;
            }
            self.stale.grow(rows)?;
            if let Some(registers) = &mut self.registers {
                registers.grow(rows)?;
            }
            self.rows = rows;
        }
        Ok(())
    }

    /// Returns the source of a program for this field: `items`, everything that gathers need in the namespaces `field`
    /// and `mesh`, then `skeletons`.
    #[must_use]
    pub fn program(&self, items: &[&'static Item], skeletons: &[&str]) -> String {
        self.text.program(items, skeletons)
    }

    /// Returns the text of the field, for programs that are built later.
    #[must_use]
    pub fn text(&self) -> &FieldText {
        &self.text
    }

    /// Returns the message of a boundary rule that has failed. Waits for the device if any face has a rule.
    ///
    /// # Errors
    /// The device fails.
    pub fn fault(&self) -> Result<Option<String>, DeviceError> {
        let mut faces = self.text.faces.iter().flatten();
        if !faces.any(|face| matches!(face, FaceText::Rule(_))) {
            return Ok(None);
        }
        let mut words = [0; FAULT_WORDS];
        self.device.download(&self.fault, 0, &mut words)?;
        Ok(self.explain(&words))
    }

    /// Returns the message of a fault at a domain boundary; `None` if the words record none.
    #[must_use]
    pub fn explain(&self, words: &[u32; FAULT_WORDS]) -> Option<String> {
        (self.explain)(words)
    }
}

fn explain<R>(boundaries: &Boundaries<R>, words: &[u32; FAULT_WORDS]) -> Option<String> {
    let fault = RuleFault::of_words(words)?;
    match &boundaries.faces[fault.axis][fault.side] {
        FaceRule::Rule(rule) => rule.fault_message(&fault),
        _ => None,
    }
}

/// Returns the texts of the operators of a field that is corrected by `correct`.
fn skeletons(correct: Correct) -> Vec<&'static str> {
    let mut texts = vec![
        PROLONG,
        RESTRICT,
        FLUXES,
        REGISTER_TRANSFER,
        TOTALS,
        TRANSFER,
    ];
    if correct == Correct::Circulations {
        texts.extend([CIRCULATIONS, CIRCULATION_REGISTERS]);
    }
    texts
}

fn field_text<R: Element>(
    spec: &FieldSpec,
    boundaries: &Boundaries<R>,
) -> Result<FieldText, DeviceError> {
    let faces = FaceText::of(boundaries).map_err(|(axis, side)| {
        let (axis, side) = (["x", "y", "z"][axis], ["lower", "upper"][side]);
        DeviceError::Setup(format!(
            "the boundary rule at the {side} {axis} face works on the host only; set run.device = \"cpu\""
        ))
    })?;
    Ok(FieldText {
        double: R::PRECISION == Precision::Double,
        components: spec.components.len(),
        shape: spec.shape(),
        faces,
        normal: boundaries.normal,
        limiter: spec.prolong.limiter(),
        states: spec.states.map(|rules| rules.items),
    })
}
