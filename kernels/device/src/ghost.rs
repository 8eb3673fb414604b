//! Input of boundary functions: states inside the domain next to a ghost cell.
use crate::{CellState, Generic, Item, Kind, Real, TextPiece};
use std::marker::PhantomData;

/// Largest number of inner cells that a boundary function may read; equal to the largest number of ghost layers.
pub const MAX_INNER_CELLS: usize = 4;

/// Describes a ghost cell outside a face of the domain. Boundary functions take it by value instead of a cell's state.
///
/// Use `Ghost<R, S>` for states `S` of a field, `Ghost<R>` for a field with one component, and `Ghost<R, S, 1>` to read only the nearest
/// inner cell.
///
/// Where several faces meet, the function is called for one face at a time. Along the other axes it sees the nearest cells of the domain,
/// or the mirror image at reflecting faces.
#[derive(Clone, Copy, Debug)]
pub struct Ghost<R, S = R, const INNER: usize = MAX_INNER_CELLS> {
    inner: [S; INNER],
    /// Axis of the face normal: 0, 1 or 2.
    pub axis: usize,
    /// 0 outside the lower face, 1 outside the upper one.
    pub side: usize,
    /// Number of cells between this one and the face, from 0: [`at(layer)`](Ghost::at) is its mirror image.
    pub layer: i32,
    real: PhantomData<R>,
}

impl<R, S: Copy, const INNER: usize> Ghost<R, S, INNER> {
    /// Returns the state of inner cell `n` along the normal, from 0 next to the face to `INNER - 1`. Its centre is `layer + 1 + n` widths
    /// from that of the ghost cell.
    #[inline(always)]
    pub fn at(&self, n: i32) -> S {
        self.inner[n as usize]
    }
}

/// Tells how many inner cells a [`Ghost`] holds.
pub trait InnerCells {
    /// Number of inner cells.
    const CELLS: usize;
    /// Number of values of each.
    const NUMBERS: usize;
}

impl<R, S: CellState<R>, const INNER: usize> InnerCells for Ghost<R, S, INNER> {
    const CELLS: usize = INNER;
    const NUMBERS: usize = S::COUNT;
}

/// The values of the inner cells, then axis, side and layer.
impl<R: Real, S: CellState<R>, const INNER: usize> CellState<R> for Ghost<R, S, INNER> {
    const COMPONENTS: [usize; 4] = [INNER * S::COUNT + 3, 0, 0, 0];
    #[inline(always)]
    fn read(get: &mut impl FnMut(usize, usize) -> R, field: usize, first: usize) -> Self {
        let inner = std::array::from_fn(|n| S::read(get, field, first + n * S::COUNT));
        let mut face = |n| get(field, first + INNER * S::COUNT + n).to_i32();
        Self {
            inner,
            axis: face(0) as usize,
            side: face(1) as usize,
            layer: face(2),
            real: PhantomData,
        }
    }
    #[inline(always)]
    fn write(&self, set: &mut impl FnMut(usize, usize, R), field: usize, first: usize) {
        for (n, state) in self.inner.iter().enumerate() {
            state.write(set, field, first + n * S::COUNT);
        }
        let face = [self.axis as i32, self.side as i32, self.layer];
        for (n, number) in face.into_iter().enumerate() {
            set(field, first + INNER * S::COUNT + n, R::from_i32(number));
        }
    }
}

/// CUDA counterpart of [`Ghost`].
#[allow(
    non_upper_case_globals,
    reason = "the companion of a structure has its name"
)]
#[doc(hidden)]
pub const Ghost: &Item = &Item {
    module: module_path!(),
    name: "Ghost",
    file: file!(),
    line: line!(),
    kind: Kind::Struct,
    generics: &[
        Generic::Real("R"),
        Generic::Real("S"),
        Generic::Const("INNER"),
    ],
    proto: &[],
    body: &[TextPiece::Text(include_str!("ghost.cuh"))],
};
