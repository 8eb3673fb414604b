//! Functions that map one cell, as types.
use crate::{Item, Real};

/// A cell-wise map `fn f<R: Real>(state: S<R>, p1: R, …, pn: R) -> S<R>` (n from 0 to 8), as a type.
///
/// [`#[device]`](crate::device) implements it for the companion type `f` of every such function, so that a launcher can
/// be handed the function as `launcher.map_cells::<f>(…)` and run it on the CPU ([`call`](MapFn::call)) or on a GPU
/// ([`ITEM`](MapFn::ITEM)). The scalar parameters come as a slice, in the order of the signature.
pub trait MapFn: 'static {
    /// Type of the first parameter and of the result.
    type State<R: Real>;
    /// Number of scalar parameters after the state.
    const PARAMETERS: usize;
    /// The CUDA C++ text.
    const ITEM: &'static Item;
    /// Calls the function with the first `PARAMETERS` values of `p`. Panics if `p` is shorter.
    fn call<R: Real>(state: Self::State<R>, p: &[R]) -> Self::State<R>;
}
