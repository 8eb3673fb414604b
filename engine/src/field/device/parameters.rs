//! What the kernels of the mesh take: the twins of the structures in the `.cu` files of `nestar_kernels::mesh`. Addresses of
//! device memory are bare numbers.

use bytemuck::{Pod, Zeroable};

/// What a gather on a level reads; the twin of `mesh::View`.
#[derive(Clone, Copy, Debug, Zeroable, Pod)]
#[repr(C)]
pub struct DeviceView {
    /// The bank with this level's present state.
    pub level: u64,
    /// The bank with the coarser level before its step.
    pub coarse_old: u64,
    /// The bank with the coarser level after its step.
    pub coarse_new: u64,
    /// Neighbours, `[row][28]`.
    pub neighbours: u64,
    /// Parents, `[row]`.
    pub parent: u64,
    /// First children, `[row]`.
    pub first_child: u64,
    /// Index on the level in patches, and the level, `[row][4]`.
    pub index: u64,
    /// Where a boundary rule leaves a fault: nine words, see `launch::leave_fault`.
    pub fault: u64,
    /// Weight of `coarse_new`, 0 to 1.
    pub weight: f64,
    /// Simulation time of the values gathered.
    pub time: f64,
    /// Lower edge of the domain, code length.
    pub left: [f64; 3],
    /// Upper edge of the domain, code length.
    pub right: [f64; 3],
    /// Cells of the domain on this level.
    pub domain_cells: [i32; 3],
    /// Nothing.
    pub reserved: i32,
}

/// Where the fluxes through a level's coarse-fine faces go; the twin of `mesh::Registers`. Slots are 0 where the level has no
/// such faces.
#[derive(Clone, Copy, Debug, Default, Zeroable, Pod)]
#[repr(C)]
pub struct RegisterView {
    /// `[row][6]`: slot of a face as the coarse side, -1: none.
    pub coarse_slot: u64,
    /// `[row][6]`: slot of a face as the fine side, -1: none.
    pub fine_slot: u64,
    /// `[slot][component][8][8]`.
    pub coarse_flux: u64,
    /// `[slot][component][4][4]`.
    pub attempt: u64,
}

/// The twin of `mesh::Prolong`.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C)]
pub(super) struct ProlongParameters {
    pub view: DeviceView,
    pub rows_of_level: u64,
    pub rows: u64,
    pub stale: u64,
}

/// The twin of `mesh::Restrict`.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C)]
pub(super) struct RestrictParameters {
    pub coarse: u64,
    pub fine: u64,
    pub rows: u64,
    pub parent: u64,
    pub stale: u64,
}

/// Registers between two levels; the twin of `mesh::Counts`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Zeroable, Pod)]
#[repr(C)]
pub(super) struct RegisterCounts {
    pub coarse: u32,
    pub corrected: u32,
    pub fine: u32,
    pub reserved: u32,
}

/// The twin of `mesh::Assign`.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C)]
pub(super) struct AssignParameters {
    pub rows: u64,
    pub neighbours: u64,
    pub first_child: u64,
    pub coarse_slot: u64,
    pub fine_slot: u64,
    pub corrected: u64,
    pub counts: u64,
    pub count: i32,
    pub clear: i32,
}

/// The twin of `mesh::Faces`.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C)]
pub(super) struct FacesParameters {
    pub faces: u64,
    pub fine_slot: u64,
    pub reference: u64,
    pub change: u64,
    pub packed: u64,
    pub stride: i64,
    pub before: i64,
    pub first: i32,
    pub count: i32,
}

/// The twin of `mesh::Commit`.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C)]
pub(super) struct CommitParameters {
    pub attempt: u64,
    pub reference: u64,
    pub change: u64,
    pub dt: f64,
    pub count: i64,
    pub begun: i32,
    pub reserved: i32,
}

/// The twin of `mesh::Correct`.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C)]
pub(super) struct CorrectParameters {
    pub level: u64,
    pub rows: u64,
    pub neighbours: u64,
    pub first_child: u64,
    pub coarse_slot: u64,
    pub fine_slot: u64,
    pub coarse_flux: u64,
    pub reference: u64,
    pub change: u64,
    pub stale: u64,
    pub skipped: u64,
    pub dt: f64,
    pub inverse_width: [f64; 3],
}

/// The twin of `mesh::Totals`.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C)]
pub(super) struct TotalsParameters {
    pub level: u64,
    pub rows: u64,
    pub first_child: u64,
    pub sums: u64,
    pub parts: u64,
    pub count: i32,
    pub reserved: i32,
    pub nodes: [[i32; 4]; MOST_NODES],
}

/// Most stretches of a level that one rank sums: two for every halving of a level that 31 bits count.
pub(super) const MOST_NODES: usize = 64;

/// The twin of `mesh::Transfer`.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C)]
pub(super) struct TransferParameters {
    pub level: u64,
    pub packed: u64,
    pub rows: u64,
    pub stale: u64,
    pub first: i32,
    pub count: i32,
    pub group: i32,
    pub total: i32,
}

/// The twin of `mesh::Pieces`.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C)]
pub(super) struct PieceParameters {
    pub level: u64,
    pub packed: u64,
    pub pieces: u64,
    pub stale: u64,
    pub width: i64,
    pub first: i64,
}

/// The twin of `mesh::Map`.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C)]
pub(super) struct MapParameters {
    pub level: u64,
    pub rows: u64,
    pub stale: u64,
    pub values: [f64; 8],
}

/// The twin of `topology::Adopt`.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C)]
pub(super) struct AdoptParameters {
    pub rows: u64,
    pub parents: u64,
    pub children: u64,
    pub parent: u64,
    pub index: u64,
    pub first_child: u64,
    pub level: i32,
    pub count: i32,
}

/// The twin of `topology::Set`.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C)]
pub(super) struct SetParameters {
    pub rows: u64,
    pub values: u64,
    pub table: u64,
    pub width: i32,
    pub count: i32,
}

/// The twin of `topology::Link`.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C)]
pub(super) struct LinkParameters {
    pub rows: u64,
    pub parent: u64,
    pub index: u64,
    pub first_child: u64,
    pub neighbours: u64,
    pub count: i32,
    pub reserved: i32,
}

/// The twin of `topology::Scatter`.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C)]
pub(super) struct ScatterParameters {
    pub rows: u64,
    pub words: u64,
    pub neighbours: u64,
    pub parent: u64,
    pub first_child: u64,
    pub index: u64,
    pub count: i32,
    pub reserved: i32,
}
