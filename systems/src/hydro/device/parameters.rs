//! What the kernels of the gas take: the twins of the structures in `fluid.cu` and `rates.cu`.

use bytemuck::{Pod, Zeroable};
use nestar_engine::field::device::{DeviceView, RegisterView};
use nestar_engine::ranks::halos::Rows;

/// Parameters of the kernel `fluid_step`; addresses of device memory are bare numbers.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C)]
pub(super) struct StepParameters {
    pub view: DeviceView,
    pub registers: RegisterView,
    pub next: u64,
    pub rows: u64,
    pub rates: u64,
    pub unphysical: u64,
    pub first_order: u64,
    pub stale: u64,
    pub scratch: u64,
    pub status: u64,
    pub rate: [f64; 3],
    pub inverse_dx: [f64; 3],
    pub count: i32,
    pub reserved: i32,
}

impl StepParameters {
    /// The same for a part of the level.
    pub fn on(&self, rows: &Rows) -> Self {
        Self {
            rows: rows.there,
            count: rows.rows.len() as i32,
            ..*self
        }
    }
}

/// Parameters of the kernel `signal_rates`.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C)]
pub(super) struct RateParameters {
    pub level: u64,
    pub rows: u64,
    pub rates: u64,
    pub stale: u64,
    pub status: u64,
    pub inverse_dx: [f64; 3],
    pub count: i32,
    pub reserved: i32,
}

/// Parameters of the kernel `collect_first_order`.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C)]
pub(super) struct CollectParameters {
    pub rows: u64,
    pub unphysical: u64,
    pub first_order: u64,
    pub status: u64,
    pub count: i32,
    /// Whether to forget earlier first-order cells.
    pub fresh: i32,
}

/// What a launch found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Zeroable, Pod)]
#[repr(C)]
pub(super) struct Status {
    /// Bits of the largest signal rate, in the precision of the run.
    pub largest_rate: u64,
    /// Patches (or words of cells, while cells are collected) that hold unphysical cells.
    pub unphysical: u32,
    /// Cells that take first-order fluxes.
    pub first_order: u32,
}
