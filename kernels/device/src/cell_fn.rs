//! Functions of one cell and its neighbours, as types.
use crate::{CellState, Generic, Item, Kind, Precise, Real, TextPiece, device};
use std::marker::PhantomData;

/// Describes position, size and time of a cell.
#[device]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place<R> {
    /// Centre of the cell, code length.
    pub centre: [R; 3],
    /// Width of the cell along each axis, code length.
    pub width: [R; 3],
    /// Index of the cell on its level, counted from the domain's lower edges.
    pub index: [i32; 3],
    /// Refinement level.
    pub level: i32,
    /// Simulation time at the beginning of the step.
    pub time: f64,
    /// Length of the step; 0 outside one.
    pub dt: R,
    /// Numbers that follow the simulation time, in double precision; 1 where no plugin defines them.
    pub numbers: [f64; 2],
}

/// Gives a function the states around a cell, instead of the cell's state alone.
///
/// Use `&Stencil<R, S>` for states `S` of a field, `&Stencil<R>` for a field with one component, and `&Stencil<R, S, 2>` to reach two cells
/// far.
pub struct Stencil<'a, R, S = R, const REACH: usize = 1> {
    /// `[component][n][n][n]` with `n = 8 + 2 * REACH`.
    block: &'a [R],
    /// Position of the cell in the block.
    cell: usize,
    state: PhantomData<S>,
}

impl<'a, R: Copy, S: CellState<R>, const REACH: usize> Stencil<'a, R, S, REACH> {
    /// Creates the stencil of a cell (0 to 511) of a patch; the block is `[component][n][n][n]` with `n = 8 + 2 * REACH`.
    #[inline(always)]
    pub fn new((block, cell): (&'a [R], usize)) -> Self {
        let [i, j, k] = [cell % 8, cell / 8 % 8, cell / 64].map(|i| i + REACH);
        Self {
            block,
            cell: i + Self::N * (j + Self::N * k),
            state: PhantomData,
        }
    }

    const N: usize = 8 + 2 * REACH;

    /// Returns the state `i`, `j`, `k` cells away along the three axes, each from `-REACH` to `REACH`.
    #[inline(always)]
    pub fn at(&self, i: i32, j: i32, k: i32) -> S {
        let reach = REACH as i32;
        debug_assert!([i, j, k].iter().all(|d| (-reach..=reach).contains(d)));
        let n = Self::N as i32;
        let cell = (self.cell as i32 + i + n * (j + n * k)) as usize;
        let stride = Self::N * Self::N * Self::N;
        S::read(&mut |_, c| self.block[c * stride + cell], 0, 0)
    }
}

/// CUDA counterpart of [`Stencil`].
#[allow(
    non_upper_case_globals,
    reason = "the companion of a structure has its name"
)]
#[doc(hidden)]
pub const Stencil: &Item = &Item {
    module: module_path!(),
    name: "Stencil",
    file: file!(),
    line: line!(),
    kind: Kind::Struct,
    generics: &[
        Generic::Real("R"),
        Generic::Real("S"),
        Generic::Const("REACH"),
    ],
    proto: &[],
    body: &[TextPiece::Text(include_str!("stencil.cuh"))],
};

/// Describes position, orientation and time of a face.
#[device]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Face<R> {
    /// Cell on its upper side.
    pub above: Place<R>,
    /// Axis of its normal.
    pub axis: i32,
    /// Width of the adjacent cells along that axis, code length.
    pub width: R,
}

/// Gives a function the states on both sides of a face, along its normal and across it.
///
/// Use `&FaceStencil<R, S>` for states `S` of a field, `&FaceStencil<R>` for a field with one component, and `&FaceStencil<R, S, 2>` for
/// two cells on either side.
pub struct FaceStencil<'a, R, S = R, const REACH: usize = 1> {
    /// See [`Stencil`].
    block: &'a [R],
    /// Position of the cell on the upper side.
    above: usize,
    /// Offset between cells along the axis.
    step: usize,
    state: PhantomData<S>,
}

/// A face of a gathered block.
#[derive(Clone, Copy, Debug)]
pub struct BlockFace<'a, R> {
    /// The block, as in [`Stencil::new`].
    pub block: &'a [R],
    /// The cell on the upper side, which may lie one cell outside the patch.
    pub above: [usize; 3],
    /// The axis normal to the face.
    pub axis: usize,
}

impl<'a, R: Copy, S: CellState<R>, const REACH: usize> FaceStencil<'a, R, S, REACH> {
    /// Creates the stencil of a face.
    #[inline(always)]
    pub fn new(face: BlockFace<'a, R>) -> Self {
        let n = 8 + 2 * REACH;
        let [i, j, k] = face.above.map(|index| index + REACH);
        Self {
            block: face.block,
            above: i + n * (j + n * k),
            step: n.pow(face.axis as u32),
            state: PhantomData,
        }
    }

    /// Returns the state in cell `n` along the axis, from `-REACH` to `REACH - 1`: -1 is below the face, 0 above it.
    #[inline(always)]
    pub fn at(&self, n: i32) -> S {
        let reach = REACH as i32;
        debug_assert!((-reach..reach).contains(&n));
        self.state_at(n * self.step as i32)
    }

    /// Returns the state in the cell that is `i` cells along the next axis and `j` cells along the last axis from cell `n` of
    /// [`FaceStencil::at`], each from `-REACH` to `REACH`. The axes follow the normal in the order x, y, z, x, y.
    #[inline(always)]
    pub fn around(&self, n: i32, i: i32, j: i32) -> S {
        let reach = REACH as i32;
        debug_assert!((-reach..reach).contains(&n));
        debug_assert!([i, j].iter().all(|d| (-reach..=reach).contains(d)));
        let next = self.step_after(self.step);
        let last = self.step_after(next);
        self.state_at(n * self.step as i32 + i * next as i32 + j * last as i32)
    }

    /// Returns the offset between cells along the axis after the one with offset `step`.
    #[inline(always)]
    fn step_after(&self, step: usize) -> usize {
        let n = 8 + 2 * REACH;
        if step == n * n { 1 } else { n * step }
    }

    /// Returns the state in the cell `offset` positions after the one on the upper side.
    #[inline(always)]
    fn state_at(&self, offset: i32) -> S {
        let cell = (self.above as i32 + offset) as usize;
        let stride = (8 + 2 * REACH).pow(3);
        S::read(&mut |_, c| self.block[c * stride + cell], 0, 0)
    }
}

/// CUDA counterpart of [`FaceStencil`].
#[allow(
    non_upper_case_globals,
    reason = "the companion of a structure has its name"
)]
#[doc(hidden)]
pub const FaceStencil: &Item = &Item {
    name: "FaceStencil",
    line: line!(),
    body: &[TextPiece::Text(include_str!("face_stencil.cuh"))],
    ..*Stencil
};

/// A function of a face, as a type. It returns the flux density through the face, positive along the axis.
///
/// ```text
/// fn f<R: Real>(beside: &FaceStencil<R, S<R>>, face: &Face<R>, p: &P<R>) -> T      // `face` and `p` are optional
/// ```
///
/// `T` holds the leading components of the field. Numbers may replace `p`. [`#[device]`](crate::device) implements this trait as it
/// implements [`CellFn`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a `#[device]` function of a face",
    label = "not a function of a face",
    note = "expected `#[device] fn f<R: Real>(beside: &FaceStencil<R, S<R>>, face: &Face<R>, p: &P<R>) -> T`; `face` and `p` are optional",
    note = "in place of `p: &P<R>`, a `#[device]` structure, up to 8 numbers `R` may stand; the only generic parameter is `R`: for functions \
            by type write one `#[device] fn` for each choice"
)]
pub trait FaceFn: 'static {
    /// States that the function reads.
    type State<R: Real>: CellState<R>;
    /// Parameters in double precision; numbers form an array.
    type Parameters: Precise;
    /// Return type.
    type Result<R: Real>;
    /// CUDA C++ text.
    const ITEM: &'static Item;
    /// First paragraph of its documentation, in one line.
    const DOC: &'static str;
    /// Number of cells on either side of the face that the function reads.
    const REACH: usize;
    /// Calls the function with the states beside a face.
    fn call<R: Real>(
        beside: BlockFace<'_, R>,
        face: &Face<R>,
        p: &<Self::Parameters as Precise>::In<R>,
    ) -> Self::Result<R>;
}

/// Provides the arguments of a cell function.
pub trait CellInputs<R> {
    /// Returns a component of the state of a field in the cell.
    fn value(&self, field: usize, component: usize) -> R;
    /// Returns the gathered block of the first field and the cell, the arguments of [`Stencil::new`].
    fn around(&self) -> (&[R], usize);
    /// Returns the place of the cell.
    fn place(&self) -> Place<R>;
}

/// A function of one cell, as a type:
///
/// ```text
/// fn f<R: Real>(state: S<R>, at: &Place<R>, p: &P<R>) -> T      // `at` and `p` are optional
/// fn f<R: Real>(state: S<R>, at: &Place<R>, p1: R, …) -> T      // numbers instead of a structure
/// fn f<R: Real>(around: &Stencil<R, S<R>>, other: O<R>, at: &Place<R>, p: &P<R>) -> T
/// fn f<R: Real>(at: &Place<R>, p: &P<R>) -> T                   // of the place only
/// ```
///
/// `S` is a structure of numbers (the leading components of a field), or a tuple of two to four of them, one per field. A function may
/// instead read the [stencil](Stencil) of the first field, followed by the state `O` of the next field in the cell or a tuple of states. A
/// map returns a state, a reduction a number, a criterion a `bool`.
///
/// [`#[device]`](crate::device) implements the trait for the companion type `f` of every such function. A skeleton receives the function as
/// `pool.update::<f>(…)` and runs it on the CPU ([`call`](CellFn::call)) or on a GPU ([`ITEM`](CellFn::ITEM)).
///
/// ```compile_fail,E0277
/// # use nestar_device::{CellFn, Real, device};
/// #[device]
/// fn cool<R: Real>(u: [R; 5], rate: f64) -> [R; 5] {
///     u
/// }
///
/// fn launched<F: CellFn>() {}
/// launched::<cool>(); // `rate` is not an `R`
/// ```
///
/// ```compile_fail,E0277
/// # use nestar_device::{Stencil, CellFn, Real, device};
/// #[device]
/// fn difference<R: Real>(u: &Stencil<R>, v: &Stencil<R>) -> R {
///     u.at(0, 0, 0) - v.at(0, 0, 0)
/// }
///
/// fn launched<F: CellFn>() {}
/// launched::<difference>(); // only one field may have a stencil
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a `#[device]` function of a cell",
    label = "not a function of a cell",
    note = "expected `#[device] fn f<R: Real>(u: S<R>, at: &Place<R>, p: &P<R>) -> T` in this order, or `u: &Stencil<R, S<R>>`; `at` and `p` are optional",
    note = "the states of several fields form one tuple, `u: (S<R>, Q<R>)`; after `&Stencil<R, S<R>>` the other states follow separately, `q: Q<R>`",
    note = "`p: &P<R>` is a `#[device]` structure; up to 8 numbers of type `R` may replace it, but not `f64`, integers or `bool`",
    note = "the only generic parameter is `R`; instead of functions selected by a type, write one `#[device] fn` for each choice"
)]
pub trait CellFn: 'static {
    /// States that the function reads, field by field.
    type State<R: Real>: CellState<R>;
    /// Parameters in double precision; numbers form an array.
    type Parameters: Precise;
    /// Return type.
    type Result<R: Real>;
    /// CUDA C++ text.
    const ITEM: &'static Item;
    /// First paragraph of its documentation, in one line.
    const DOC: &'static str;
    /// Reach of the stencil of the first field, in cells.
    const REACH: usize;
    /// Calls the function.
    fn call<R: Real>(
        cell: &impl CellInputs<R>,
        p: &<Self::Parameters as Precise>::In<R>,
    ) -> Self::Result<R>;
}
