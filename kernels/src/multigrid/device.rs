//! Device version of the solver: kernel parameters and kernel text.

use crate::mesh::parameters::GatherView;
use nestar_device::{Address, Item, device};

/// Text of all kernels of the solver, for the field of the potential.
pub const MULTIGRID: &str = concat!(
    include_str!("ghost_values.cuh"),
    include_str!("level.cu"),
    include_str!("coarse.cu"),
    include_str!("composite.cu"),
    include_str!("moments.cu"),
    include_str!("direct_solver.cu"),
    include_str!("expansion.cu")
);

/// Cells per block of the kernels.
pub const CELLS_PER_BLOCK: usize = 512;

/// Returns all parameter structures.
#[must_use]
pub fn parameters() -> Vec<&'static Item> {
    vec![
        SourceParameters,
        ExteriorParameters,
        LevelParameters,
        CoarseChangeParameters,
        CoarseGridParameters,
        ProlongCorrectionParameters,
        CoarseCycleParameters,
        LevelPairParameters,
        LargestResidualParameters,
        MomentsParameters,
        CoarsestLevelParameters,
        AxisTransformParameters,
        EigenvalueParameters,
        ExteriorTableParameters,
    ]
}

/// [`PoissonSource`](super::stencil::PoissonSource) on a device.
#[device]
#[derive(Clone, Copy)]
pub struct SourceParameters<R> {
    /// Density.
    pub density: Address<R>,
    /// Coefficient of Poisson's equation.
    pub coefficient: f64,
    /// Mean density of a domain without isolated faces; otherwise 0.
    pub mean: f64,
}

/// [`Exterior`](super::exterior::Exterior) on a device.
#[device]
#[derive(Clone, Copy)]
pub struct ExteriorParameters<R> {
    /// Tables before the step of the root level.
    pub older: Address<R>,
    /// Tables after it.
    pub newer: Address<R>,
    /// Weight of the newer ones, 0 to 1.
    pub weight: f64,
    /// Cells of the root level.
    pub cells: [i32; 3],
    /// Bit mask of the faces beyond which the potential continues evenly.
    pub mirrored: i32,
    /// Index of the first spline coefficient.
    pub coefficients: i32,
}

/// [`LevelGrid`](super::level::LevelGrid) on a device, and output of kernels.
#[device]
#[derive(Clone, Copy)]
pub struct LevelParameters<R> {
    /// Potential.
    pub view: GatherView<R>,
    /// Potential outside the domain.
    pub exterior: ExteriorParameters<R>,
    /// Right-hand side without fine-grid correction.
    pub source: SourceParameters<R>,
    /// Fine-grid correction, if used.
    pub tau: Address<R>,
    /// Output of restricted residuals, in rows of 4^3 cells.
    pub residual: Address<R>,
    /// Corrections, which are set to 0.
    pub correction: Address<R>,
    /// Own rows.
    pub rows: Address<i32>,
    /// Number of rows.
    pub count: i32,
    /// Colour to be relaxed.
    pub colour: i32,
    /// 1 / width^2 along the axes.
    pub weights: [f64; 3],
    /// Over-relaxation factor.
    pub omega: f64,
}

/// Parameters of the kernel for the largest residual.
#[device]
#[derive(Clone, Copy)]
pub struct LargestResidualParameters<R> {
    /// The level.
    pub level: LevelParameters<R>,
    /// Bits of the largest residual and of the largest right-hand side.
    pub largest: Address<u64>,
    /// 1 if covered cells count, 0 if only leaves do.
    pub covered: i32,
}

/// [`CoarseChange`](super::level::CoarseChange) on a device.
#[device]
#[derive(Clone, Copy)]
pub struct CoarseChangeParameters<R> {
    /// Tables of the hierarchy.
    pub view: GatherView<R>,
    /// Values to which the change is added.
    pub from: Address<R>,
    /// Output.
    pub to: Address<R>,
    /// The coarser level after the change.
    pub after: Address<R>,
    /// The coarser level before the change.
    pub before: Address<R>,
    /// Exterior potential after the change.
    pub exterior_after: ExteriorParameters<R>,
    /// Exterior potential before the change.
    pub exterior_before: ExteriorParameters<R>,
    /// Own rows.
    pub rows: Address<i32>,
    /// Number of rows.
    pub count: i32,
    /// Factor of the change.
    pub factor: f64,
}

/// [`CoarseGrid`](super::coarse::CoarseGrid) on a device, and output of kernels.
#[device]
#[derive(Clone, Copy)]
pub struct CoarseGridParameters<R> {
    /// Own rows.
    pub rows: Address<i32>,
    /// Neighbours, `[row][28]`.
    pub neighbours: Address<i32>,
    /// Indices, `[row][4]`.
    pub index: Address<i32>,
    /// Corrections.
    pub values: Address<R>,
    /// Right-hand side.
    pub rhs: Address<R>,
    /// Output of restricted residuals, in rows of half as many cells along each axis.
    pub residual: Address<R>,
    /// Corrections, which are set to 0.
    pub correction: Address<R>,
    /// Number of rows.
    pub count: i32,
    /// Colour to be relaxed.
    pub colour: i32,
    /// 1 / width^2 along the axes.
    pub weights: [f64; 3],
    /// Factor from the correction of a cell to that of its ghost cell outside the level.
    pub mirror: f64,
    /// Bit mask of the faces of the domain beyond which corrections continue evenly.
    pub mirrored: i32,
    /// Number of patches of the level along the axes.
    pub patches: [i32; 3],
    /// Over-relaxation factor.
    pub omega: f64,
}

/// Parameters of the kernels that prolong corrections.
#[device]
#[derive(Clone, Copy)]
pub struct ProlongCorrectionParameters<R> {
    /// Corrections.
    pub grid: CoarseGridParameters<R>,
    /// Rows of twice as many cells along each axis.
    pub to: Address<R>,
}

/// Parameters of the kernel for the coarse part of a V-cycle.
#[device]
#[derive(Clone, Copy)]
pub struct CoarseCycleParameters<R> {
    /// In rows of 4^3 cells.
    pub coarse_4: CoarseGridParameters<R>,
    /// In rows of 2^3 cells.
    pub coarse_2: CoarseGridParameters<R>,
    /// In rows of one cell.
    pub coarse_1: CoarseGridParameters<R>,
    /// Relaxations of a colour of rows of 4^3 and 2^3 cells, on the way down and up.
    pub relaxations: i32,
    /// Relaxations of a colour of rows of one cell.
    pub coarse_1_relaxations: i32,
}

/// [`LevelPair`](super::composite::LevelPair) on a device.
#[device]
#[derive(Clone, Copy)]
pub struct LevelPairParameters<R> {
    /// Coarse level.
    pub coarse: LevelParameters<R>,
    /// Potential of the fine level.
    pub fine: Address<R>,
    /// Restricted residual of the fine level, in rows of 4^3 cells.
    pub residual: Address<R>,
    /// Rows of the fine level, octet by octet.
    pub fine_rows: Address<i32>,
    /// Octets of the fine level.
    pub octets: i32,
    /// Differences of the fine potential along each axis in covered cells of the coarse level, `[row][3][512]`, if
    /// several ranks share the hierarchy.
    pub differences: Address<R>,
}

/// [`Moments`](super::moments::Moments) on a device.
#[device]
#[derive(Clone, Copy)]
pub struct MomentsParameters<R> {
    /// Right-hand side without fine-grid correction.
    pub source: SourceParameters<R>,
    /// Fine-grid correction, if used.
    pub tau: Address<R>,
    /// Own rows.
    pub rows: Address<i32>,
    /// Indices, `[row][4]`.
    pub index: Address<i32>,
    /// Bits of the largest sum of absolute values over a patch, then fixed-point sums of moments.
    pub words: Address<u64>,
    /// Number of rows.
    pub count: i32,
    /// Number of rows per block.
    pub each: i32,
    /// Highest order.
    pub order: i32,
    /// Cells of the level along the axes.
    pub cells: [i32; 3],
    /// Half the cell width along the axes, in units of the length of the moments.
    pub half: [f64; 3],
    /// Factor to fixed point; 0: only the largest sum of absolute values is computed.
    pub factor: f64,
}

/// Parameters of the kernels that gather and scatter the coarsest grid of the root level.
#[device]
#[derive(Clone, Copy)]
pub struct CoarsestLevelParameters<R> {
    /// Own rows.
    pub rows: Address<i32>,
    /// Indices, `[row][4]`.
    pub index: Address<i32>,
    /// One value per row.
    pub values: Address<R>,
    /// Number of rows or pairs.
    pub count: i32,
    /// Patches of the level along the axes.
    pub cells: [i32; 3],
    /// Pairs of an index in the whole level and a value.
    pub pairs: Address<f64>,
    /// The whole level, `[z][y][x]`.
    pub whole: Address<f64>,
}

/// Parameters of the kernel that transforms the whole root level along an axis, from cells to modes or back.
#[device]
#[derive(Clone, Copy)]
pub struct AxisTransformParameters {
    /// Input.
    pub from: Address<f64>,
    /// Output.
    pub to: Address<f64>,
    /// Matrix `[from][to]` along the axis.
    pub weights: Address<f64>,
    /// Number of cells along the axis.
    pub cells: i32,
    /// Distance of neighbours along the axis.
    pub stride: i32,
    /// Number of values.
    pub count: i32,
}

/// Parameters of the kernel that divides modes of the whole root level by their eigenvalues.
#[device]
#[derive(Clone, Copy)]
pub struct EigenvalueParameters {
    /// Modes, `[z][y][x]`.
    pub values: Address<f64>,
    /// Eigenvalues along the axes.
    pub along: [Address<f64>; 3],
    /// Number of modes along the axes.
    pub cells: [i32; 3],
    /// Largest sum of eigenvalues that counts as 0.
    pub zero_limit: f64,
}

/// Parameters of the kernels for the potential around an isolated domain.
#[device]
#[derive(Clone, Copy)]
pub struct ExteriorTableParameters<R> {
    /// Potential, in the order of [`exterior_cell`](super::expansion::exterior_cell).
    pub values: Address<f64>,
    /// Values, then spline coefficients.
    pub table: Address<R>,
    /// Expansion: per derivative, ordered by its order along x, then z (0 or 1), then y, its coefficient and the two
    /// factors of [`next_derivative`](super::expansion::next_derivative).
    pub terms: Address<f64>,
    /// First value to be evaluated.
    pub first: i32,
    /// Number of values or table entries.
    pub count: i32,
    /// Highest order.
    pub order: i32,
    /// Cells of the level along the axes.
    pub cells: [i32; 3],
    /// Half the cell width along the axes, in units of the length of the moments.
    pub half: [f64; 3],
    /// Centre of the expansion in these units, relative to the centre of the domain.
    pub centre: [f64; 3],
    /// Square of the smallest distance; smaller distances are replaced by it.
    pub nearest: f64,
}
