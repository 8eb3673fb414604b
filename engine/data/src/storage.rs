//! Storage of the values of a pool: in slabs on the host in one of two precisions, or on a device.

use super::Precision;
use super::circulations::CirculationRegisters;
use super::device::DevicePool;
use super::field_spec::{BoundaryCondition, Element, FieldSpec, boundaries};
use super::registers::FluxRegisters;
use crate::in_precision;
use nestar_engine_device::parallel::PerThread;
use nestar_engine_device::{Device, DeviceError, format_bytes};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::{Boundaries, GatherScratch, Rows, StateFunctions};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::ptr::null_mut;

/// Banks in one precision with boundary conditions and flux registers.
pub struct TypedPool<R> {
    banks: Vec<RowSlabs<R>>,
    /// Boundary conditions of the domain.
    pub(super) boundaries: Boundaries<R>,
    /// Flux registers at coarse-fine faces.
    pub registers: FluxRegisters<R>,
    /// Circulation registers along coarse-fine edges.
    pub circulations: CirculationRegisters<R>,
    /// Scratch memory of gathers.
    pub(super) gather_scratch: PerThread<GatherScratch<R>>,
    /// Results of updates that read neighbouring cells, by row; allocated at the first use.
    pub(super) results: RowSlabs<R>,
    /// Scratch memory of cell functions: a block with ghost cells, and the results of a row.
    pub(super) cell_scratch: PerThread<[Vec<R>; 2]>,
    /// Scratch memory of the flux correction, `[axis][component][512]`.
    pub(super) correct_scratch: PerThread<Vec<R>>,
    /// State functions of the field.
    pub(super) states: Option<StateFunctions<R>>,
}

impl<R: Element> TypedPool<R> {
    /// Creates empty banks for the field `spec`.
    fn new(spec: &FieldSpec, beyond: &[[BoundaryCondition; 2]; 3], levels: usize) -> Self {
        let components = spec.components.len();
        Self {
            banks: (0..spec.banks)
                .map(|_| RowSlabs::new(spec.row_values()))
                .collect(),
            boundaries: boundaries(spec, beyond),
            registers: FluxRegisters::new(components, levels, spec.stages),
            circulations: CirculationRegisters::new(components, levels),
            gather_scratch: PerThread::new(|| GatherScratch::new(components)),
            results: RowSlabs::new(spec.row_values()),
            cell_scratch: PerThread::new(Default::default),
            correct_scratch: PerThread::new(|| vec![R::lit(0.0); 3 * components * CELLS]),
            states: spec.states.as_ref().map(R::states),
        }
    }

    /// Returns the rows of a bank.
    pub(super) fn bank(&self, bank: usize) -> Rows<'_, R> {
        self.banks[bank].rows()
    }

    /// Returns the bytes reserved by banks and results.
    pub(super) fn bytes(&self) -> usize {
        let all = self.banks.iter().chain([&self.results]);
        all.map(RowSlabs::bytes).sum()
    }

    /// Replaces all rows by zeroed rows of `octets`.
    pub(super) fn allocate_octets(&mut self, octets: &[u32]) -> Result<(), DeviceError> {
        self.banks
            .iter_mut()
            .try_for_each(|bank| bank.allocate_octets(octets))
    }

    /// Returns `true` if only some rows are stored.
    pub(super) fn is_partial(&self) -> bool {
        self.banks
            .iter()
            .any(|bank| bank.allocated_octets().is_some())
    }

    /// Allocates the result buffer for `rows` rows, or for the allocated octets.
    pub(super) fn provide_results(&mut self, rows: usize) -> Result<(), DeviceError> {
        match self.banks.iter().find_map(RowSlabs::allocated_octets) {
            Some(octets) => self.results.allocate_octets(octets),
            None => self.results.grow(rows),
        }
    }

    /// Grows the banks to `rows` rows.
    pub(super) fn grow(&mut self, rows: usize) -> Result<(), DeviceError> {
        self.banks.iter_mut().try_for_each(|bank| bank.grow(rows))
    }
}

/// Values in the precision and on the device chosen by the deck.
pub enum Storage {
    /// 32-bit values.
    Single(TypedPool<f32>),
    /// 64-bit values.
    Double(TypedPool<f64>),
    /// Values on a device, in either precision.
    Device(Box<DevicePool>),
}

impl Storage {
    /// Creates storage for the field `spec`, without rows.
    pub(super) fn new(
        spec: &FieldSpec,
        beyond: &[[BoundaryCondition; 2]; 3],
        precision: Precision,
        device: Option<&Device>,
        levels: usize,
    ) -> Result<Self, DeviceError> {
        Ok(match (device, precision) {
            (None, Precision::Single) => Self::Single(TypedPool::new(spec, beyond, levels)),
            (None, Precision::Double) => Self::Double(TypedPool::new(spec, beyond, levels)),
            (Some(device), precision) => {
                let pool = in_precision!(precision, R => DevicePool::new::<R>(device, spec, boundaries(spec, beyond), levels));
                Self::Device(Box::new(pool?))
            }
        })
    }

    /// Returns the values, if they are on the host and of this type.
    pub(super) fn typed<R: Element>(&self) -> Option<&TypedPool<R>> {
        let typed: &dyn Any = match self {
            Self::Single(typed) => typed,
            Self::Double(typed) => typed,
            Self::Device(_) => return None,
        };
        typed.downcast_ref()
    }
}

/// Binary logarithm of the rows per slab, for growing storage and for storage by octets.
const SHIFT: u32 = 7;
const OCTET: u32 = 3;

/// Rows of fixed length in slabs of 128 rows. A slab never moves; a new slab is zero and uses no memory until written.
pub struct RowSlabs<R> {
    slabs: Vec<*mut R>,
    length: usize,
    shift: u32,
    /// Allocated octets, if only some rows are stored.
    held: Option<Vec<u32>>,
}

// SAFETY: the slabs are owned by this value alone; access follows the borrow of `self` or the contract of
// `Rows::row_mut`.
unsafe impl<R: Send> Send for RowSlabs<R> {}
// SAFETY: as above.
unsafe impl<R: Sync> Sync for RowSlabs<R> {}

impl<R: bytemuck::Zeroable + Copy> RowSlabs<R> {
    /// Creates storage for rows of `length` values, without rows.
    #[must_use]
    pub fn new(length: usize) -> Self {
        assert!(length > 0, "a row has at least one value");
        Self {
            slabs: Vec::new(),
            length,
            shift: SHIFT,
            held: None,
        }
    }

    /// Allocates a slab of zeros.
    fn take(&self) -> Result<*mut R, DeviceError> {
        let layout = layout::<R>(self.length << self.shift);
        // SAFETY: the layout has a non-zero size; zero bytes are valid values (`Zeroable`).
        let slab = unsafe { alloc_zeroed(layout) }.cast::<R>();
        if slab.is_null() {
            return Err(DeviceError::Failed {
                doing: "cannot allocate memory for patches".into(),
                why: format!(
                    "the system refuses {}: check the limits of the process (ulimit -v) or set run.memory_limit",
                    format_bytes(layout.size() as u64)
                ),
            });
        }
        Ok(slab)
    }

    /// Grows to at least `rows` rows; storage by octets is unchanged.
    ///
    /// # Errors
    /// The system provides no memory; existing rows remain.
    pub fn grow(&mut self, rows: usize) -> Result<(), DeviceError> {
        while self.held.is_none() && self.slabs.len() << SHIFT < rows {
            let slab = self.take()?;
            self.slabs.push(slab);
        }
        Ok(())
    }

    /// Keeps only the rows of `octets`; octet `n` has rows `8 n` to `8 n + 7`. Octets of the latest call keep their values,
    /// the others are zero.
    ///
    /// # Errors
    /// The system provides no memory.
    pub fn allocate_octets(&mut self, octets: &[u32]) -> Result<(), DeviceError> {
        if self.held.is_none() {
            self.free();
            self.shift = OCTET;
        }
        let length = octets.iter().max().map_or(0, |&last| last as usize + 1);
        let mut kept = vec![null_mut(); length];
        for &octet in octets {
            if let Some(slab) = self.slabs.get_mut(octet as usize) {
                std::mem::swap(&mut kept[octet as usize], slab);
            }
        }
        self.free();
        self.slabs = kept;
        self.held = Some(octets.to_vec());
        for &octet in octets {
            if self.slabs[octet as usize].is_null() {
                self.slabs[octet as usize] = self.take()?;
            }
        }
        Ok(())
    }

    /// Returns the allocated octets, if only some rows are stored.
    #[must_use]
    pub fn allocated_octets(&self) -> Option<&[u32]> {
        self.held.as_deref()
    }

    /// Returns the reserved memory, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let slabs = self.slabs.iter().filter(|slab| !slab.is_null());
        slabs.count() * (self.length << self.shift) * size_of::<R>()
    }

    /// Returns a view of all rows.
    #[must_use]
    pub fn rows(&self) -> Rows<'_, R> {
        // SAFETY: each slab is null or holds `length << shift` values, and lives until `self` changes.
        unsafe { Rows::new(&self.slabs, self.shift, self.length) }
    }
}

impl<R> RowSlabs<R> {
    /// Frees all slabs.
    fn free(&mut self) {
        let layout = layout::<R>(self.length << self.shift);
        for slab in self.slabs.drain(..).filter(|slab| !slab.is_null()) {
            // SAFETY: allocated in `take` with the same layout; `shift` changes only after `free`.
            unsafe { dealloc(slab.cast(), layout) };
        }
    }
}

impl<R> Drop for RowSlabs<R> {
    fn drop(&mut self) {
        self.free();
    }
}

/// Returns the layout of a slab of `values` values.
fn layout<R>(values: usize) -> Layout {
    // 64 bytes: a cache line and the widest vector
    Layout::array::<R>(values)
        .and_then(|l| l.align_to(64))
        .expect("a slab fits the address space")
}

/// Evaluates the first body for a [`Storage`] on the host, the second for one on a device.
/// On the host, `$typed` is bound to the [`TypedPool`], or `$R` to the type of its values. On a device, `$device` is
/// bound to the [`DevicePool`].
macro_rules! with_storage {
    ($storage:expr, <$R:ident> => $body:expr, $device:pat => $on_device:expr) => {
        match $storage {
            $crate::storage::Storage::Single(_) => {
                type $R = f32;
                $body
            }
            $crate::storage::Storage::Double(_) => {
                type $R = f64;
                $body
            }
            $crate::storage::Storage::Device($device) => $on_device,
        }
    };
    ($storage:expr, $typed:ident => $body:expr, $device:pat => $on_device:expr) => {
        match $storage {
            $crate::storage::Storage::Single($typed) => $body,
            $crate::storage::Storage::Double($typed) => $body,
            $crate::storage::Storage::Device($device) => $on_device,
        }
    };
}
pub(super) use with_storage;
