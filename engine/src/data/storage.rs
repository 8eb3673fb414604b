//! Where a pool's values live: on the host in one of two precisions, or on a device.

use super::Precision;
use super::device::DevicePool;
use super::element::{Element, boundaries};
use super::registers::FluxRegisters;
use super::slab::RowSlabs;
use super::spec::{BoundaryCondition, FieldSpec};
use crate::device::parallel::PerThread;
use crate::device::{Device, DeviceError};
use crate::in_precision;
use nestar_kernels::CELLS;
use nestar_kernels::mesh::{Boundaries, GatherScratch, Rows, StateFunctions};
use std::any::Any;

/// The banks of one precision, and the rules beyond the domain's faces.
pub struct TypedPool<R> {
    banks: Vec<RowSlabs<R>>,
    /// Ghost rules at the domain's faces.
    pub(super) boundaries: Boundaries<R>,
    /// Flux registers at coarse-fine faces.
    pub registers: FluxRegisters<R>,
    /// Working space of gathers.
    pub(super) gather_scratch: PerThread<GatherScratch<R>>,
    /// Results of maps that read the states around cells, row by row; made at the first use.
    pub(super) results: RowSlabs<R>,
    /// Working space of functions of cells: a block with ghost cells, and results in a row.
    pub(super) cell_scratch: PerThread<[Vec<R>; 2]>,
    /// Working space of the flux correction, `[axis][component][512]`.
    pub(super) correct_scratch: PerThread<Vec<R>>,
    /// What is known of states.
    pub(super) states: Option<StateFunctions<R>>,
}

impl<R: Element> TypedPool<R> {
    /// Empty banks for the field `spec`.
    fn new(spec: &FieldSpec, beyond: &[[BoundaryCondition; 2]; 3], levels: usize) -> Self {
        let components = spec.components.len();
        Self {
            banks: (0..spec.banks)
                .map(|_| RowSlabs::new(spec.row_values()))
                .collect(),
            boundaries: boundaries(spec, beyond),
            registers: FluxRegisters::new(components, levels),
            gather_scratch: PerThread::new(|| GatherScratch::new(components)),
            results: RowSlabs::new(spec.row_values()),
            cell_scratch: PerThread::new(Default::default),
            correct_scratch: PerThread::new(|| vec![R::lit(0.0); 3 * components * CELLS]),
            states: spec.states.as_ref().map(R::states),
        }
    }

    /// The rows of a bank.
    pub(super) fn bank(&self, bank: usize) -> Rows<'_, R> {
        self.banks[bank].rows()
    }

    /// Bytes reserved by all banks and results.
    pub(super) fn bytes(&self) -> usize {
        let all = self.banks.iter().chain([&self.results]);
        all.map(RowSlabs::bytes).sum()
    }

    /// Holds the rows of some octets alone.
    pub(super) fn allocate_octets(&mut self, octets: &[u32]) -> Result<(), DeviceError> {
        self.banks
            .iter_mut()
            .try_for_each(|bank| bank.allocate_octets(octets))
    }

    /// Whether a part of the rows is held alone.
    pub(super) fn is_partial(&self) -> bool {
        self.banks
            .iter()
            .any(|bank| bank.allocated_octets().is_some())
    }

    /// Room for the results of maps that read the states around cells, of `rows` rows or of those held.
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

/// A pool's values in the precision and on the device that the deck chooses.
pub enum Storage {
    /// 32-bit values.
    Single(TypedPool<f32>),
    /// 64-bit values.
    Double(TypedPool<f64>),
    /// Values on a device, in either precision.
    Device(Box<DevicePool>),
}

impl Storage {
    /// Room for the field `spec`, without rows.
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

    /// The values on the host, if they are there and of this type.
    pub(super) fn typed<R: Element>(&self) -> Option<&TypedPool<R>> {
        let typed: &dyn Any = match self {
            Self::Single(typed) => typed,
            Self::Double(typed) => typed,
            Self::Device(_) => return None,
        };
        typed.downcast_ref()
    }
}

/// Evaluates one expression where a [`Storage`] is on the host, for either precision: with `$typed` bound to its [`TypedPool`], or
/// with `$R` for the type of its values; another where it is on a device, with `$device` bound to its [`DevicePool`].
macro_rules! with_storage {
    ($storage:expr, <$R:ident> => $body:expr, $device:pat => $on_device:expr) => {
        match $storage {
            $crate::data::storage::Storage::Single(_) => {
                type $R = f32;
                $body
            }
            $crate::data::storage::Storage::Double(_) => {
                type $R = f64;
                $body
            }
            $crate::data::storage::Storage::Device($device) => $on_device,
        }
    };
    ($storage:expr, $typed:ident => $body:expr, $device:pat => $on_device:expr) => {
        match $storage {
            $crate::data::storage::Storage::Single($typed) => $body,
            $crate::data::storage::Storage::Double($typed) => $body,
            $crate::data::storage::Storage::Device($device) => $on_device,
        }
    };
}
pub(super) use with_storage;
