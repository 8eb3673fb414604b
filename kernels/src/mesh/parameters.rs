//! Parameters of the mesh kernels. Their CUDA text is generated. `R` is the type of a field's values, or [`Number`](nestar_device::Number)
//! if only the text knows it.

use super::block::LevelGeometry;
use super::cell_record::CellRecord;
use super::states::MAX_COMPONENTS;
use super::subcycle::{Outcome, Subcycle, SubcycleRound};
use nestar_device::{Address, Item, device};

/// Returns all structures.
#[must_use]
pub fn items() -> Vec<&'static Item> {
    vec![
        GatherView,
        FluxRegisterView,
        CirculationRegisterView,
        GatherFacesParameters,
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
        CellValuesParameters,
        CellParameters,
        FluxParameters,
        SubcycleRound,
        Outcome,
        Subcycle,
        CellRecord,
    ]
}

/// Device counterpart of [`GhostView`](super::GhostView): what a gather on a level reads.
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
    /// Buffer for faults of boundary rules: [`FAULT_WORDS`](super::FAULT_WORDS) words, see `launch::leave_fault`.
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

/// Registers for the fluxes through a level's coarse-fine faces. A level without such faces has no slots.
#[device]
#[derive(Clone, Copy, Debug, Default)]
pub struct FluxRegisterView<R> {
    /// `[row][6]`: slot of a face as the coarse side; -1 for none.
    pub coarse_slot: Address<i32>,
    /// `[row][6]`: slot of a face as the fine side; -1 for none.
    pub fine_slot: Address<i32>,
    /// `[slot][component][8][8]`.
    pub coarse_flux: Address<R>,
    /// `[slot][component][4][4]`: fluxes of the tentative step.
    pub attempt: Address<R>,
}

/// Registers for the circulations along edges of a level's coarse-fine borders. A level without such borders has no slots.
#[device]
#[derive(Clone, Copy, Debug, Default)]
pub struct CirculationRegisterView<R> {
    /// `[row]`: slot of a patch as the coarse side; -1 for none.
    pub coarse_slot: Address<i32>,
    /// `[row]`: slot of a patch as the fine side; -1 for none.
    pub fine_slot: Address<i32>,
    /// `[slot][component][256]`: edges of the surface, see [`index_on_surface`](super::circulations::index_on_surface).
    pub coarse_edges: Address<R>,
    /// `[slot][component][64]`: coarse edges of the tentative step.
    pub attempt: Address<R>,
}

/// Parameters of `mesh_gather_faces`.
#[device]
#[derive(Clone, Copy)]
pub struct GatherFacesParameters<R> {
    /// View of the level.
    pub view: GatherView<R>,
    /// The rows to gather, `[count]`.
    pub rows: Address<i32>,
    /// The blocks, `[count][component][k][j][i]` with one more value along the axis of a component.
    pub out: Address<R>,
    /// Number of rows.
    pub count: i32,
}

/// Parameters of `mesh_prolong`.
#[device]
#[derive(Clone, Copy)]
pub struct ProlongParameters<R> {
    /// View of the level to fill.
    pub view: GatherView<R>,
    /// The bank that `view.level` reads.
    pub rows_of_level: Address<R>,
    /// Rows to fill, one per block.
    pub rows: Address<i32>,
    /// `[row]`: set when a row changes.
    pub stale: Address<u8>,
    /// `[row]`: 1 if the patch is new, for values on faces.
    pub fresh: Address<u8>,
}

/// Parameters of `mesh_sync_shared`.
#[device]
#[derive(Clone, Copy)]
pub struct ShareParameters<R> {
    /// The level's present bank.
    pub level: Address<R>,
    /// The level's rows, one per block.
    pub rows: Address<i32>,
    /// Neighbours, `[row][28]`.
    pub neighbours: Address<i32>,
    /// First children, `[row]`.
    pub first_child: Address<i32>,
    /// `[row]`: set when a row changes.
    pub stale: Address<u8>,
}

/// Parameters of `mesh_restrict`.
#[device]
#[derive(Clone, Copy)]
pub struct RestrictParameters<R> {
    /// The coarse level's present bank.
    pub coarse: Address<R>,
    /// The fine level's present bank.
    pub fine: Address<R>,
    /// The fine level's rows, octet by octet.
    pub rows: Address<i32>,
    /// Parents, `[row]`.
    pub parent: Address<i32>,
    /// `[row]`: set when a row changes.
    pub stale: Address<u8>,
    /// Counts of repaired cells.
    pub repaired: Address<RepairedCells>,
}

/// Counts cells that round-off made unphysical and that were repaired, since the start of a run.
#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C)]
pub struct RepairedCells {
    /// Averages of finer cells.
    pub averages: u64,
    /// Corrections at coarse-fine faces.
    pub corrections: u64,
}

/// Counts the registers between two levels.
#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C)]
pub struct RegisterCounts {
    /// Coarse-side registers.
    pub coarse: u32,
    /// Patches with coarse-side registers.
    pub corrected: u32,
    /// Fine-side registers.
    pub fine: u32,
}

/// Parameters of the kernels that assign slots: `mesh_assign_coarse` and `mesh_assign_fine` for fluxes, `mesh_assign_coarse_edges` and
/// `mesh_assign_fine_edges` for circulations.
#[device]
#[derive(Clone, Copy)]
pub struct AssignParameters {
    /// The level's rows, `[count]`.
    pub rows: Address<i32>,
    /// Neighbours, `[row][28]`.
    pub neighbours: Address<i32>,
    /// First children, `[row]`.
    pub first_child: Address<i32>,
    /// `[row][6]`, as in [`FluxRegisterView`], or `[row]`, as in [`CirculationRegisterView`].
    pub coarse_slot: Address<i32>,
    /// The same for the fine side.
    pub fine_slot: Address<i32>,
    /// Patches with coarse-side registers, in any order.
    pub corrected: Address<i32>,
    /// Counters.
    pub counts: Address<RegisterCounts>,
    /// Number of rows.
    pub count: i32,
    /// `true` if the level is the coarsest and has no fine-side registers.
    pub clear: bool,
}

/// Parameters of the kernels that pack and unpack fine-side registers.
#[device]
#[derive(Clone, Copy)]
pub struct RegisterTransferParameters<R> {
    /// The registers, one per block.
    pub pieces: Address<Piece>,
    /// `[row][slots]`, as in [`FluxRegisterView`] or [`CirculationRegisterView`].
    pub fine_slot: Address<i32>,
    /// `[slot][values]`: fluxes or circulations of the first fine step.
    pub reference: Address<R>,
    /// `[slot][values]`: sum over later steps of step length times (attempt - reference).
    pub change: Address<R>,
    /// `[piece][2][values]`.
    pub packed: Address<R>,
    /// Largest number of registers of a row.
    pub slots: i32,
    /// Values of a register, of all components.
    pub values: i32,
    /// Components or vectors: values of the packed buffer for each that pieces count.
    pub groups: i32,
    /// Slot of the first register, for `mesh_assign_slots`.
    pub first: i32,
    /// Number of registers, for `mesh_assign_slots`.
    pub count: i32,
}

/// Parameters of `mesh_commit`.
#[device]
#[derive(Clone, Copy)]
pub struct CommitParameters<R> {
    /// Fluxes or circulations of the step on the fine side.
    pub attempt: Address<R>,
    /// Those of the first fine step.
    pub reference: Address<R>,
    /// Sum over later steps of step length times (attempt - reference).
    pub change: Address<R>,
    /// Length of the step.
    pub dt: f64,
    /// Number of values.
    pub count: i64,
    /// `true` if the coarse step already contains a fine step.
    pub begun: bool,
}

/// Parameters of `mesh_correct` for fluxes and `mesh_correct_faces` for circulations.
#[device]
#[derive(Clone, Copy)]
pub struct CorrectionParameters<R> {
    /// The coarse level's present bank.
    pub level: Address<R>,
    /// Rows to correct, one per block.
    pub rows: Address<i32>,
    /// Neighbours, `[row][28]`.
    pub neighbours: Address<i32>,
    /// First children, `[row]`.
    pub first_child: Address<i32>,
    /// See [`FluxRegisterView`] and [`CirculationRegisterView`].
    pub coarse_slot: Address<i32>,
    /// The same for the fine side.
    pub fine_slot: Address<i32>,
    /// Fluxes or circulations of the step on the coarse side.
    pub coarse: Address<R>,
    /// See [`CommitParameters`].
    pub reference: Address<R>,
    /// See [`CommitParameters`].
    pub change: Address<R>,
    /// `[row]`: set when a row changes.
    pub stale: Address<u8>,
    /// Counts of repaired cells.
    pub repaired: Address<RepairedCells>,
    /// Length of the coarse step.
    pub dt: f64,
    /// 1 / width of a coarse cell.
    pub inverse_width: [f64; 3],
}

/// Largest number of patch ranges of a level that one rank sums: two for every halving of a 31-bit count.
#[device]
pub const MAX_SUM_NODES: usize = 64;

/// Parameters of `mesh_sum_patches` and `mesh_sum_parts`.
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
    /// Number of nodes.
    pub count: i32,
    /// Ranges of patches: start, end, number of halvings left to the host, first part.
    pub nodes: [[i32; 4]; MAX_SUM_NODES],
}

/// Input and output of kernels for cell functions, apart from the functions' own parameters.
#[device]
#[derive(Clone, Copy)]
pub struct CellInput<R> {
    /// Present banks of the fields that the function reads.
    pub fields: [Address<R>; 4],
    /// Number of components of each field.
    pub components: [i32; 4],
    /// View of the first field for gathers.
    pub view: GatherView<R>,
    /// A block with ghost cells for each block of the launch, if they do not fit into shared memory.
    pub blocks: Address<R>,
    /// Destination of a map's results.
    pub out: Address<R>,
    /// Components of a destination row.
    pub out_components: i32,
    /// Components of the first field that make up a state.
    pub chosen: [i32; MAX_COMPONENTS],
    /// Parity of the index sum of the cells to map; -1: all cells.
    pub colour: i32,
    /// The level's rows.
    pub rows: Address<i32>,
    /// Number of rows.
    pub count: i32,
    /// Index on the level in patches, and the level, `[row][4]`.
    pub index: Address<i32>,
    /// First children, `[row]`.
    pub first_child: Address<i32>,
    /// `[row]` of the updated field: set when a row changes.
    pub stale: Address<u8>,
    /// Largest order key of a value; initially 0.
    pub largest: Address<u64>,
    /// Sums of each patch, `[count]` for each summed number.
    pub sums: Address<f64>,
    /// Bit mask of the patches within the flag buffer, `[count]`.
    pub sectors: Address<u32>,
    /// Cells to call, numbered as in [`SubcycleRound`]; null: all.
    pub list: Address<u32>,
    /// List of the cells to call again; null in the last round.
    pub next: Address<u32>,
    /// Result of a round of calls.
    pub round: Address<SubcycleRound>,
    /// Number of cells in the list.
    pub listed: i32,
    /// Largest number of calls of a cell in this launch.
    pub calls: i32,
    /// Values carried to the next call of a cell, or its sums, `[patch][number][512]`.
    pub kept: Address<R>,
    /// Index of the field that is replaced by carried values; -1 for none.
    pub carried: i32,
    /// Work of each patch, `[count]`.
    pub work: Address<u32>,
    /// Geometry of the level.
    pub geometry: LevelGeometry,
    /// Parameter structures of the functions of a list.
    pub parameters: Address<u8>,
    /// Flag buffer: cells around a flagged one that count as flagged, 0 to 8.
    pub buffer: i32,
    /// `true` to find the largest negative value.
    pub negate: bool,
}

/// Parameters of the kernels for cell functions.
#[device]
#[derive(Clone, Copy)]
pub struct CellParameters<R, P> {
    /// Fields, rows and results.
    pub input: CellInput<R>,
    /// The function's own parameters.
    pub parameters: P,
}

/// Options of sums along an axis.
#[device]
#[derive(Clone, Copy)]
pub struct ColumnOptions {
    /// Factors of the cells by their place along the axis, `[row of the launch][8]`.
    pub factors: Address<f64>,
    /// Results, `[row of the launch][quantity][64]`.
    pub sums: Address<f64>,
    /// The axis.
    pub axis: i32,
    /// `true` to multiply the other quantities by the last one.
    pub weighted: bool,
}

/// Parameters of the kernels for face functions.
#[device]
#[derive(Clone, Copy)]
pub struct FluxParameters<R, P> {
    /// Fields, rows and results.
    pub input: CellInput<R>,
    /// Registers for the fluxes. If fluxes are added, `attempt` holds the sum of step length times (flux - reference).
    pub registers: FluxRegisterView<R>,
    /// Step length over cell width along each axis.
    pub rate: [f64; 3],
    /// Length of the step.
    pub dt: f64,
    /// `true` to add to the fluxes that the step already has.
    pub adds: bool,
    /// The function's own parameters.
    pub parameters: P,
}

/// Describes a box of a row's cells in a packed buffer, including shared face values if the field is staggered, or a flux register (see
/// [`Piece::register`]). 16 bytes.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C)]
pub struct Piece {
    /// Number of values before it in the packed buffer, as counted by [`Piece::values`].
    pub before: u64,
    /// The row.
    pub row: u32,
    /// First cell, then length, along x, y, z; four bits each.
    pub(super) bounds: u32,
}

/// Parameters of `mesh_pack` and `mesh_unpack`.
#[device]
#[derive(Clone, Copy)]
pub struct TransferParameters<R> {
    /// The bank.
    pub level: Address<R>,
    /// `[piece][component][value]`.
    pub packed: Address<R>,
    /// The pieces, one per block.
    pub pieces: Address<Piece>,
    /// `[row]`: set when a row changes.
    pub stale: Address<u8>,
    /// First component.
    pub first: i32,
    /// Number of components; all of them unless whole rows are packed.
    pub count: i32,
    /// For whole rows: values between two components in the packed buffer; 0: piece after piece.
    pub stride: i64,
}

/// Parameters of `mesh_read_cells` and `mesh_write_cells`.
#[device]
#[derive(Clone, Copy)]
pub struct CellValuesParameters<R> {
    /// The bank.
    pub level: Address<R>,
    /// `[cell][component]`.
    pub values: Address<R>,
    /// Row and cell, `[count][2]`; distinct.
    pub cells: Address<i32>,
    /// `[row]`: set when a row changes.
    pub stale: Address<u8>,
    /// Number of cells.
    pub count: i32,
}

/// Returns the structures of the kernels for topology tables.
#[must_use]
pub fn topology_items() -> Vec<&'static Item> {
    vec![
        AdoptParameters,
        SetParameters,
        LinkParameters,
        ScatterParameters,
    ]
}

/// Parameters of `topology_adopt`.
#[device]
#[derive(Clone, Copy)]
pub struct AdoptParameters {
    /// The level's rows, octet by octet.
    pub rows: Address<i32>,
    /// `[count / 8]`.
    pub parents: Address<i32>,
    /// `[count]`: new values of `first_child`.
    pub children: Address<i32>,
    /// Parents, `[row]`.
    pub parent: Address<i32>,
    /// Index and level, `[row][4]`.
    pub index: Address<i32>,
    /// First children, `[row]`.
    pub first_child: Address<i32>,
    /// Refinement level.
    pub level: i32,
    /// Number of rows.
    pub count: i32,
}

/// Parameters of `topology_set`.
#[device]
#[derive(Clone, Copy)]
pub struct SetParameters {
    /// The rows, `[count]`.
    pub rows: Address<i32>,
    /// `[count][width]`.
    pub values: Address<i32>,
    /// `[row][width]`.
    pub table: Address<i32>,
    /// Entries of a row.
    pub width: i32,
    /// Number of rows.
    pub count: i32,
}

/// Parameters of `topology_link`.
#[device]
#[derive(Clone, Copy)]
pub struct LinkParameters {
    /// The rows, `[count]`.
    pub rows: Address<i32>,
    /// Parents, `[row]`.
    pub parent: Address<i32>,
    /// Index and level, `[row][4]`.
    pub index: Address<i32>,
    /// First children, `[row]`.
    pub first_child: Address<i32>,
    /// Neighbours, `[row][28]`; the output.
    pub neighbours: Address<i32>,
    /// Number of rows.
    pub count: i32,
}

/// Parameters of `topology_scatter`.
#[device]
#[derive(Clone, Copy)]
pub struct ScatterParameters {
    /// The rows, all different, `[count]`.
    pub rows: Address<i32>,
    /// `[count][34]`: entries of all tables.
    pub words: Address<i32>,
    /// Neighbours, `[row][28]`.
    pub neighbours: Address<i32>,
    /// Parents, `[row]`.
    pub parent: Address<i32>,
    /// First children, `[row]`.
    pub first_child: Address<i32>,
    /// Index and level, `[row][4]`.
    pub index: Address<i32>,
    /// Number of rows.
    pub count: i32,
}
