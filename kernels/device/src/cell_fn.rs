//! Functions of one cell, as types.
use crate::{Item, Precise, Real, device};

/// Where a cell is, and when.
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
}

/// A function of one cell, as a type:
///
/// ```text
/// fn f<R: Real>(state: S<R>, at: &Place<R>, p: &P<R>) -> T      // each of `at` and `p` may be left out
/// fn f<R: Real>(state: S<R>, at: &Place<R>, p1: R, …) -> T      // numbers instead of a structure
/// ```
///
/// `S` is a structure of numbers (the leading components of a field), or a tuple of two to four of them, one a field. A map
/// gives a state or a tuple of states, a reduction a number, a mark a `bool`. [`#[device]`](crate::device) implements the
/// trait for the companion type `f` of every such function, so that a skeleton can be handed the function as
/// `pool.map_cells::<f>(…)` and run it on the CPU ([`call`](CellFn::call)) or on a GPU ([`ITEM`](CellFn::ITEM)).
pub trait CellFn: 'static {
    /// The state that the function reads.
    type State<R: Real>: CellState<R>;
    /// Its parameters in double precision; numbers are an array.
    type Parameters: Precise;
    /// Its result.
    type Result<R: Real>;
    /// The CUDA C++ text.
    const ITEM: &'static Item;
    /// Calls the function.
    fn call<R: Real>(
        state: Self::State<R>,
        at: &Place<R>,
        p: &<Self::Parameters as Precise>::In<R>,
    ) -> Self::Result<R>;
}

/// A state made of numbers alone, in the order of a field's components; or a tuple of such states of several fields.
///
/// [`#[device]`](crate::device) implements it for structures with one type parameter.
pub trait CellState<R>: Sized {
    /// Numbers of each field.
    const COMPONENTS: [usize; 4];
    /// Numbers of the first field.
    const COUNT: usize = Self::COMPONENTS[0];
    /// Reads the state from field `field` on, and within it from component `first` on; `get` is given both.
    fn read(get: &mut impl FnMut(usize, usize) -> R, field: usize, first: usize) -> Self;
    /// Writes the state as [`CellState::read`] reads it.
    fn write(&self, set: &mut impl FnMut(usize, usize, R), field: usize, first: usize);
}

macro_rules! number {
    ($($t:ty),*) => {$(
        impl CellState<$t> for $t {
            const COMPONENTS: [usize; 4] = [1, 0, 0, 0];
            #[inline(always)]
            fn read(get: &mut impl FnMut(usize, usize) -> $t, field: usize, first: usize) -> Self {
                get(field, first)
            }
            #[inline(always)]
            fn write(&self, set: &mut impl FnMut(usize, usize, $t), field: usize, first: usize) {
                set(field, first, *self);
            }
        }
    )*};
}
number!(f32, f64);

impl<R, T: CellState<R>, const N: usize> CellState<R> for [T; N] {
    const COMPONENTS: [usize; 4] = [N * T::COUNT, 0, 0, 0];
    #[inline(always)]
    fn read(get: &mut impl FnMut(usize, usize) -> R, field: usize, first: usize) -> Self {
        std::array::from_fn(|n| T::read(get, field, first + n * T::COUNT))
    }
    #[inline(always)]
    fn write(&self, set: &mut impl FnMut(usize, usize, R), field: usize, first: usize) {
        for (n, state) in self.iter().enumerate() {
            state.write(set, field, first + n * T::COUNT);
        }
    }
}

macro_rules! tuple {
    ($counts:expr, $($t:ident $n:tt),*) => {
        impl<R, $($t: CellState<R>),*> CellState<R> for ($($t,)*) {
            const COMPONENTS: [usize; 4] = $counts;
            #[inline(always)]
            fn read(get: &mut impl FnMut(usize, usize) -> R, _: usize, _: usize) -> Self {
                ($($t::read(get, $n, 0),)*)
            }
            #[inline(always)]
            fn write(&self, set: &mut impl FnMut(usize, usize, R), _: usize, _: usize) {
                $(self.$n.write(set, $n, 0);)*
            }
        }
    };
}
tuple!([A::COUNT, B::COUNT, 0, 0], A 0, B 1);
tuple!([A::COUNT, B::COUNT, C::COUNT, 0], A 0, B 1, C 2);
tuple!([A::COUNT, B::COUNT, C::COUNT, D::COUNT], A 0, B 1, C 2, D 3);
