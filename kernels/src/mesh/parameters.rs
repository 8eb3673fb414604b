//! What the kernels of the mesh take. The text of these structures is generated; `R` is the type of a field's values, or
//! [`Number`](nestar_device::Number) where only the text knows it.

use super::block::LevelGeometry;
use super::states::MAX_COMPONENTS;
use super::subcycle::{Outcome, Subcycle, SubcycleRound};
use nestar_device::{Address, Item, device};

/// Every structure.
#[must_use]
pub fn items() -> Vec<&'static Item> {
    vec![
        GatherView,
        FluxRegisterView,
        ProlongParameters,
        RestrictParameters,
        ShareParameters,
        RepairedCells,
        RegisterCounts,
        AssignParameters,
        RegisterTransferParameters,
        CommitParameters,
        CorrectionParameters,
        TotalsParameters,
        TransferParameters,
        CellParameters,
        FluxParameters,
        SubcycleRound,
        Outcome,
        Subcycle,
    ]
}

/// What a gather on a level reads, as [`GhostView`](super::GhostView).
#[device]
#[derive(Clone, Copy, Debug)]
pub struct GatherView<R> {
    /// The bank with this level's present state.
    pub level: Address<R>,
    /// The bank with the coarser level before its step.
    pub coarse_old: Address<R>,
    /// The bank with the coarser level after its step.
    pub coarse_new: Address<R>,
    /// Neighbours, `[row][28]`.
    pub neighbours: Address<i32>,
    /// Parents, `[row]`.
    pub parent: Address<i32>,
    /// First children, `[row]`.
    pub first_child: Address<i32>,
    /// Index on the level in patches, and the level, `[row][4]`.
    pub index: Address<i32>,
    /// Where a boundary rule leaves a fault: [`FAULT_WORDS`](super::FAULT_WORDS), see `launch::leave_fault`.
    pub fault: Address<u32>,
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
}

/// Where the fluxes through a level's coarse-fine faces go. There are no slots where the level has no such faces.
#[device]
#[derive(Clone, Copy, Debug, Default)]
pub struct FluxRegisterView<R> {
    /// `[row][6]`: slot of a face as the coarse side, -1: none.
    pub coarse_slot: Address<i32>,
    /// `[row][6]`: slot of a face as the fine side, -1: none.
    pub fine_slot: Address<i32>,
    /// `[slot][component][8][8]`.
    pub coarse_flux: Address<R>,
    /// `[slot][component][4][4]`.
    pub attempt: Address<R>,
}

/// Of the kernel `mesh_prolong`.
#[device]
#[derive(Clone, Copy)]
pub struct ProlongParameters<R> {
    /// Gathers on the level to fill.
    pub view: GatherView<R>,
    /// The bank that `view.level` reads.
    pub rows_of_level: Address<R>,
    /// The rows to fill, one a block.
    pub rows: Address<i32>,
    /// `[row]`: set where a row changes.
    pub stale: Address<u8>,
    /// `[row]`: whether the patch is new, for values on faces.
    pub fresh: Address<u8>,
}

/// Of the kernel `mesh_sync_shared`.
#[device]
#[derive(Clone, Copy)]
pub struct ShareParameters<R> {
    /// The level's present bank.
    pub level: Address<R>,
    /// The level's rows, one a block.
    pub rows: Address<i32>,
    /// Neighbours, `[row][28]`.
    pub neighbours: Address<i32>,
    /// First children, `[row]`.
    pub first_child: Address<i32>,
    /// `[row]`: set where a row changes.
    pub stale: Address<u8>,
}

/// Of the kernel `mesh_restrict`.
#[device]
#[derive(Clone, Copy)]
pub struct RestrictParameters<R> {
    /// The coarse level's present bank.
    pub coarse: Address<R>,
    /// The fine level's.
    pub fine: Address<R>,
    /// The fine level's rows, octet by octet.
    pub rows: Address<i32>,
    /// Parents, `[row]`.
    pub parent: Address<i32>,
    /// `[row]`: set where a row changes.
    pub stale: Address<u8>,
    /// Counts of mended cells.
    pub mended: Address<RepairedCells>,
}

/// Cells that round-off made unphysical and that were mended, since the start of a run.
#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C)]
pub struct RepairedCells {
    /// Averages of finer cells.
    pub averages: u64,
    /// Corrections at coarse-fine faces.
    pub corrections: u64,
}

/// What a pair of levels counts.
#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C)]
pub struct RegisterCounts {
    /// Coarse-side registers.
    pub coarse: u32,
    /// Patches that have any.
    pub corrected: u32,
    /// Fine-side registers.
    pub fine: u32,
}

/// Of the kernels `mesh_assign_coarse` and `mesh_assign_fine`.
#[device]
#[derive(Clone, Copy)]
pub struct AssignParameters {
    /// The level's rows, `[count]`.
    pub rows: Address<i32>,
    /// Neighbours, `[row][28]`.
    pub neighbours: Address<i32>,
    /// First children, `[row]`.
    pub first_child: Address<i32>,
    /// `[row][6]`, as in [`FluxRegisterView`].
    pub coarse_slot: Address<i32>,
    /// `[row][6]`.
    pub fine_slot: Address<i32>,
    /// Patches with coarse-side registers, in no order.
    pub corrected: Address<i32>,
    /// What is counted.
    pub counts: Address<RegisterCounts>,
    /// Rows.
    pub count: i32,
    /// Whether the level has no fine-side registers, being the coarsest.
    pub clear: bool,
}

/// Of the kernels that move fine-side registers between ranks.
#[device]
#[derive(Clone, Copy)]
pub struct RegisterTransferParameters<R> {
    /// The faces, one a block.
    pub pieces: Address<Piece>,
    /// `[row][6]`, as in [`FluxRegisterView`].
    pub fine_slot: Address<i32>,
    /// `[slot][component][4][4]`: fluxes of the first fine step.
    pub reference: Address<R>,
    /// `[slot][component][4][4]`: what later steps differ by, times their lengths.
    pub change: Address<R>,
    /// `[piece][2][component][4][4]`.
    pub packed: Address<R>,
    /// Slot of the first face, for `mesh_assign_slots`.
    pub first: i32,
    /// Faces, for `mesh_assign_slots`.
    pub count: i32,
}

/// Of the kernel `mesh_commit`.
#[device]
#[derive(Clone, Copy)]
pub struct CommitParameters<R> {
    /// `[slot][component][4][4]`: the fluxes of the step.
    pub attempt: Address<R>,
    /// As in [`Faces`].
    pub reference: Address<R>,
    /// As in [`Faces`].
    pub change: Address<R>,
    /// Length of the step.
    pub dt: f64,
    /// Values.
    pub count: i64,
    /// Whether the coarse step has seen a fine step yet.
    pub begun: bool,
}

/// Of the kernel `mesh_correct`.
#[device]
#[derive(Clone, Copy)]
pub struct CorrectionParameters<R> {
    /// The coarse level's present bank.
    pub level: Address<R>,
    /// The rows to correct, one a block.
    pub rows: Address<i32>,
    /// Neighbours, `[row][28]`.
    pub neighbours: Address<i32>,
    /// First children, `[row]`.
    pub first_child: Address<i32>,
    /// As in [`FluxRegisterView`].
    pub coarse_slot: Address<i32>,
    /// As in [`FluxRegisterView`].
    pub fine_slot: Address<i32>,
    /// As in [`FluxRegisterView`].
    pub coarse_flux: Address<R>,
    /// As in [`Faces`].
    pub reference: Address<R>,
    /// As in [`Faces`].
    pub change: Address<R>,
    /// `[row]`: set where a row changes.
    pub stale: Address<u8>,
    /// Counts of mended cells.
    pub mended: Address<RepairedCells>,
    /// Length of the coarse step.
    pub dt: f64,
    /// 1 / width of a coarse cell.
    pub inverse_width: [f64; 3],
}

/// Most stretches of a level that one rank sums: two for every halving of a level that 31 bits count.
#[device]
pub const MAX_SUM_NODES: usize = 64;

/// Of the kernels `mesh_sum_patches` and `mesh_sum_parts`.
#[device]
#[derive(Clone, Copy)]
pub struct TotalsParameters<R> {
    /// The level's present bank.
    pub level: Address<R>,
    /// The level's rows in Hilbert order.
    pub rows: Address<i32>,
    /// First children, `[row]`.
    pub first_child: Address<i32>,
    /// `[patch][component]`.
    pub sums: Address<f64>,
    /// `[part][component]`.
    pub parts: Address<f64>,
    /// Nodes.
    pub count: i32,
    /// Stretches of patches: from, to, halvings that are left to the host, first part.
    pub nodes: [[i32; 4]; MAX_SUM_NODES],
}

/// What the kernels for functions of a cell read and write beside the functions' own parameters.
#[device]
#[derive(Clone, Copy)]
pub struct CellInput<R> {
    /// Present banks of the fields that the function reads.
    pub fields: [Address<R>; 4],
    /// Components of each.
    pub components: [i32; 4],
    /// Gathers of the first field.
    pub view: GatherView<R>,
    /// A block with ghost cells for each block of the launch, where they do not fit into shared memory.
    pub blocks: Address<R>,
    /// Where a map's results go.
    pub out: Address<R>,
    /// Components of a row there.
    pub out_components: i32,
    /// The components of the first field that states consist of.
    pub chosen: [i32; MAX_COMPONENTS],
    /// The cells that are mapped, by the parity of the sum of their indices; -1: all.
    pub colour: i32,
    /// The level's rows.
    pub rows: Address<i32>,
    /// How many there are.
    pub count: i32,
    /// Index on the level in patches, and the level, `[row][4]`.
    pub index: Address<i32>,
    /// First children, `[row]`.
    pub first_child: Address<i32>,
    /// Of the field that a map changes, `[row]`: set where a row changes.
    pub stale: Address<u8>,
    /// The largest key of a value, which begins as 0.
    pub largest: Address<u64>,
    /// Sums of each patch, `[count]`, of each number that is summed.
    pub sums: Address<f64>,
    /// The patches around each that want something, `[count]`.
    pub sectors: Address<u32>,
    /// The cells that are called, as [`SubcycleRound`] counts them; none: all.
    pub list: Address<u32>,
    /// Those that are unfinished; none: the round is the last one.
    pub next: Address<u32>,
    /// What a round of calls leaves.
    pub round: Address<SubcycleRound>,
    /// Cells of the list.
    pub listed: i32,
    /// Calls in a cell before it is taken down as unfinished.
    pub calls: i32,
    /// What cells hand on to their next call, or give to be summed, `[patch][number][512]`.
    pub kept: Address<R>,
    /// The field in whose place it stands; -1: none.
    pub carried: i32,
    /// Work of each patch, `[count]`.
    pub work: Address<u32>,
    /// What the places of cells are made of.
    pub geometry: LevelGeometry,
    /// Structures of parameters that functions of a list take.
    pub given: Address<u8>,
    /// Cells around a marked one that count too, 0 to 8.
    pub buffer: i32,
    /// Whether the largest negative value is wanted.
    pub negate: bool,
}

/// Of the kernels for functions of a cell.
#[device]
#[derive(Clone, Copy)]
pub struct CellParameters<R, P> {
    /// Fields, rows and results.
    pub input: CellInput<R>,
    /// The function's own parameters.
    pub given: P,
}

/// Of the kernels for functions of a face.
#[device]
#[derive(Clone, Copy)]
pub struct FluxParameters<R, P> {
    /// Fields, rows and results.
    pub input: CellInput<R>,
    /// Where the fluxes go; where they are added, `attempt` is what later steps differ by, times their lengths.
    pub registers: FluxRegisterView<R>,
    /// Length of the step over the width of a cell along each axis.
    pub rate: [f64; 3],
    /// Length of the step.
    pub dt: f64,
    /// Whether fluxes are added to those that the step has had.
    pub adds: bool,
    /// The function's own parameters.
    pub given: P,
}

/// A box of a row's cells on its way, with the values on its sides where a field is staggered: 16 bytes. Or a flux register, see
/// [`Piece::register`].
#[device]
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C)]
pub struct Piece {
    /// Values of the pieces before it in the packed memory, as [`Piece::values`] counts them.
    pub before: u64,
    /// The row.
    pub row: u32,
    /// First cell, then length, along x, y, z: four bits each.
    pub(super) bounds: u32,
}

/// Of the kernels `mesh_pack` and `mesh_unpack`.
#[device]
#[derive(Clone, Copy)]
pub struct TransferParameters<R> {
    /// The bank.
    pub level: Address<R>,
    /// `[piece][component][value]`.
    pub packed: Address<R>,
    /// The pieces, one a block.
    pub pieces: Address<Piece>,
    /// `[row]`: set where a row changes.
    pub stale: Address<u8>,
    /// First component.
    pub first: i32,
    /// Components; of what is not a whole row, all.
    pub count: i32,
    /// Of whole rows that are packed: values from a component of all of them to the next; 0: piece after piece.
    pub stride: i64,
}
