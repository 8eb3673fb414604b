//! The device's side of the solver: what its kernels take, and their texts.

use crate::mesh::parameters::GatherView;
use nestar_device::{Address, Item, device};

/// Every kernel of the solver; the unknowns are those of the field that the program is made for.
pub const MULTIGRID: &str = concat!(
    include_str!("ghost_values.cuh"),
    include_str!("level.cu"),
    include_str!("coarse.cu"),
    include_str!("composite.cu"),
    include_str!("moments.cu"),
    include_str!("bottom.cu"),
    include_str!("expansion.cu")
);

/// Cells that a block of the kernels works on.
pub const CELLS_PER_BLOCK: usize = 512;

/// Every structure.
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

/// As [`Source`](super::source::Source).
#[device]
#[derive(Clone, Copy)]
pub struct SourceParameters<R> {
    /// A density in the cells.
    pub density: Address<R>,
    /// What it is multiplied by.
    pub coefficient: f64,
    /// Its mean over a periodic domain, else 0.
    pub mean: f64,
}

/// As [`Exterior`](super::exterior::Exterior).
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
    /// Where the coefficients of splines begin.
    pub coefficients: i32,
}

/// As [`LevelGrid`](super::level::LevelGrid), and what a kernel is told.
#[device]
#[derive(Clone, Copy)]
pub struct LevelParameters<R> {
    /// The unknowns.
    pub view: GatherView<R>,
    /// What is beyond the domain.
    pub exterior: ExteriorParameters<R>,
    /// What the level itself knows of the right-hand side.
    pub source: SourceParameters<R>,
    /// What the finer level adds to it, if it counts.
    pub tau: Address<R>,
    /// Where residuals go, in rows of 4^3 cells.
    pub residual: Address<R>,
    /// Corrections that begin with 0.
    pub correction: Address<R>,
    /// Own rows.
    pub rows: Address<i32>,
    /// How many.
    pub count: i32,
    /// The cells that are relaxed.
    pub colour: i32,
    /// 1 / width^2 along the axes.
    pub weights: [f64; 3],
}

/// Of the kernel that finds the largest residual.
#[device]
#[derive(Clone, Copy)]
pub struct LargestResidualParameters<R> {
    /// The level.
    pub level: LevelParameters<R>,
    /// Bits of the largest residual and of the largest right-hand side.
    pub largest: Address<u64>,
}

/// As [`Change`](super::level::Change).
#[device]
#[derive(Clone, Copy)]
pub struct CoarseChangeParameters<R> {
    /// Tables of the hierarchy.
    pub view: GatherView<R>,
    /// What the change is added to.
    pub from: Address<R>,
    /// Where the sum goes.
    pub to: Address<R>,
    /// The coarser level after the change.
    pub after: Address<R>,
    /// And before it.
    pub before: Address<R>,
    /// What is beyond the domain after the change.
    pub beyond_after: ExteriorParameters<R>,
    /// And what was there before it.
    pub beyond_before: ExteriorParameters<R>,
    /// Own rows.
    pub rows: Address<i32>,
    /// How many.
    pub count: i32,
    /// What the change is multiplied by.
    pub factor: f64,
}

/// As [`CoarseGrid`](super::coarse::CoarseGrid), and what a kernel is told.
#[device]
#[derive(Clone, Copy)]
pub struct CoarseGridParameters<R> {
    /// Own rows.
    pub rows: Address<i32>,
    /// Neighbours, `[row][28]`.
    pub neighbours: Address<i32>,
    /// Indices, `[row][4]`.
    pub index: Address<i32>,
    /// The corrections.
    pub values: Address<R>,
    /// What they are to make up for.
    pub rhs: Address<R>,
    /// Where residuals go, in rows of half as many cells along each axis.
    pub residual: Address<R>,
    /// Corrections that begin with 0.
    pub correction: Address<R>,
    /// Own rows.
    pub count: i32,
    /// The cells that are relaxed.
    pub colour: i32,
    /// 1 / width^2 along the axes.
    pub weights: [f64; 3],
    /// Beyond the border stands a cell's correction times this.
    pub mirror: f64,
    /// Over-relaxation.
    pub omega: f64,
}

/// Of the kernels that interpolate corrections.
#[device]
#[derive(Clone, Copy)]
pub struct ProlongCorrectionParameters<R> {
    /// The corrections.
    pub grid: CoarseGridParameters<R>,
    /// Rows of twice as many cells along each axis.
    pub to: Address<R>,
}

/// Of the kernel that does all that corrections go through between two visits of the level itself.
#[device]
#[derive(Clone, Copy)]
pub struct CoarseCycleParameters<R> {
    /// In rows of 4^3 cells.
    pub four: CoarseGridParameters<R>,
    /// Of 2^3 cells.
    pub two: CoarseGridParameters<R>,
    /// Of one.
    pub one: CoarseGridParameters<R>,
    /// Relaxations of a colour of rows of 4^3 and 2^3 cells, on the way down and up.
    pub relaxations: i32,
    /// Of rows of one cell.
    pub relaxations_of_one: i32,
}

/// As [`Pair`](super::composite::Pair).
#[device]
#[derive(Clone, Copy)]
pub struct LevelPairParameters<R> {
    /// The coarse level.
    pub coarse: LevelParameters<R>,
    /// The unknowns of the fine one.
    pub fine: Address<R>,
    /// Means of its residual, in rows of 4^3 cells.
    pub residual: Address<R>,
    /// Rows of the fine level, octet by octet.
    pub fine_rows: Address<i32>,
    /// Octets of the fine level.
    pub octets: i32,
    /// Where several ranks share the hierarchy: by how much the fine unknowns change along each axis in covered cells of the coarse level,
    /// `[row][3][512]`.
    pub differences: Address<R>,
}

/// As [`Moments`](super::moments::Moments).
#[device]
#[derive(Clone, Copy)]
pub struct MomentsParameters<R> {
    /// What the level itself knows of the right-hand side.
    pub source: SourceParameters<R>,
    /// What the finer level adds to it, if it counts.
    pub tau: Address<R>,
    /// Own rows.
    pub rows: Address<i32>,
    /// Indices, `[row][4]`.
    pub index: Address<i32>,
    /// Bits of the largest sum of sizes over a patch, then the sums of moments as whole numbers.
    pub words: Address<u64>,
    /// How many rows.
    pub count: i32,
    /// How many of them a block adds up.
    pub each: i32,
    /// The highest order.
    pub order: i32,
    /// Cells of the level along the axes.
    pub cells: [i32; 3],
    /// Half the width of a cell along the axes, in units of the moments' length.
    pub half: [f64; 3],
    /// What moments are multiplied by to become whole; 0: only the largest sum of sizes is wanted.
    pub factor: f64,
}

/// Of the kernels that pass the root level in rows of one cell to the whole level, and back.
#[device]
#[derive(Clone, Copy)]
pub struct CoarsestLevelParameters<R> {
    /// Own rows.
    pub rows: Address<i32>,
    /// Indices, `[row][4]`.
    pub index: Address<i32>,
    /// A value a row.
    pub values: Address<R>,
    /// How many rows, or pairs.
    pub count: i32,
    /// Patches of the level along the axes.
    pub cells: [i32; 3],
    /// Pairs of a place in the whole level and a value.
    pub pairs: Address<f64>,
    /// The whole level, `[z][y][x]`.
    pub whole: Address<f64>,
}

/// Of the kernel that goes from cells to modes along an axis of the whole root level, or back.
#[device]
#[derive(Clone, Copy)]
pub struct AxisTransformParameters {
    /// Values.
    pub from: Address<f64>,
    /// Where the others go.
    pub to: Address<f64>,
    /// `[from][to]`, along the axis.
    pub weights: Address<f64>,
    /// Cells along the axis.
    pub cells: i32,
    /// From one of them to the next.
    pub stride: i32,
    /// Values.
    pub count: i32,
}

/// Of the kernel that divides modes of the whole root level by their eigenvalues.
#[device]
#[derive(Clone, Copy)]
pub struct EigenvalueParameters {
    /// The modes, `[z][y][x]`.
    pub values: Address<f64>,
    /// Eigenvalues along the axes.
    pub along: [Address<f64>; 3],
    /// Modes along the axes.
    pub cells: [i32; 3],
    /// Sums of eigenvalues that count as 0.
    pub nothing: f64,
}

/// Of the kernels that find what is around an isolated domain.
#[device]
#[derive(Clone, Copy)]
pub struct ExteriorTableParameters<R> {
    /// The potential, in the order of [`cell_around`](super::expansion::cell_around).
    pub values: Address<f64>,
    /// Values, then coefficients of splines.
    pub table: Address<R>,
    /// Of the expansion: by the derivatives' powers of x, of these by those of z (none or one), of these by those of y, what each is
    /// multiplied by and the two factors of [`next_derivative`](super::expansion::next_derivative).
    pub terms: Address<f64>,
    /// The first value that is worked out.
    pub first: i32,
    /// Values, or entries of the table.
    pub count: i32,
    /// The highest order.
    pub order: i32,
    /// Cells of the level along the axes.
    pub cells: [i32; 3],
    /// Half the width of a cell along the axes, in units of the moments' length.
    pub half: [f64; 3],
    /// The centre of the expansion in these units, from the middle.
    pub centre: [f64; 3],
    /// The square of the smallest distance for which it is worked out.
    pub nearest: f64,
}
