//! What lies within a face of the domain, for functions that say what stands beyond it.
use crate::{CellState, Generic, Item, Kind, Real, TextPiece};
use std::marker::PhantomData;

/// Most inner cells that a function beyond a face may read: as many as there are layers of ghost cells at most.
pub const MAX_INNER_CELLS: usize = 4;

/// A ghost cell beyond a face of the domain, which a function takes by value in place of a cell's state: `Ghost<R, S>` for states
/// `S` of a field (`Ghost<R>` where it has one component), `Ghost<R, S, 1>` to read the nearest inner cell alone.
///
/// Where several faces meet, the function is asked about one face at a time; along the axes of the others it sees the nearest cells
/// of the domain, or the mirror image where those reflect.
#[derive(Clone, Copy, Debug)]
pub struct Ghost<R, S = R, const INNER: usize = MAX_INNER_CELLS> {
    inner: [S; INNER],
    /// Axis that the face is normal to: 0, 1 or 2.
    pub axis: usize,
    /// 0 beyond the lower face, 1 beyond the upper one.
    pub side: usize,
    /// Cells between this one and the face, from 0: [`at(layer)`](Ghost::at) is its mirror image.
    pub layer: i32,
    real: PhantomData<R>,
}

impl<R, S: Copy, const INNER: usize> Ghost<R, S, INNER> {
    /// The state of the inner cell `n` along the normal, from 0 beside the face to `INNER - 1`. Its centre is `layer + 1 + n` widths
    /// from the ghost cell's.
    #[inline(always)]
    pub fn at(&self, n: i32) -> S {
        self.inner[n as usize]
    }
}

/// A [`Ghost`]: how much of inner cells it holds.
pub trait InnerCells {
    /// How many inner cells.
    const CELLS: usize;
    /// Numbers of each.
    const NUMBERS: usize;
}

impl<R, S: CellState<R>, const INNER: usize> InnerCells for Ghost<R, S, INNER> {
    const CELLS: usize = INNER;
    const NUMBERS: usize = S::COUNT;
}

/// The inner cells' numbers, then axis, side and layer.
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

/// The device's side of [`Ghost`].
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
