//! Functions of a cell that may fail there, or want to be called again.

use nestar_device::{CellState, Real, device};

/// What such a function gives; written with the type of its state, `Outcome::<S<R>> { state: v, status: DONE }`.
#[device]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome<S> {
    /// The new state; not taken where the function has failed, or waits.
    pub state: S,
    /// [`DONE`], [`CONTINUE`], [`RETRY`] or [`FAILED`].
    pub status: i32,
}

/// What a function gives that hands numbers on from one call to the next, or whose numbers are summed: `S` is its state, `C` what it
/// carries and `T` what is summed, each a number, an array or a structure of numbers (`[R; 0]`: none). Written with these types,
/// `Subcycle::<S<R>, C<R>, [R; 2]> { state: v, carried, sums: [lost, gained], status: DONE, work: 1 }`.
#[device]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Subcycle<S, C, T> {
    /// The new state; not taken where the function has failed, or waits.
    pub state: S,
    /// What the next call in the cell is given as the last state; without meaning where the function is done or has failed. The
    /// first call is given zeros.
    pub carried: C,
    /// Numbers per volume that are summed over leaf cells; taken where the function is done, and finite there.
    pub sums: T,
    /// [`DONE`], [`CONTINUE`], [`RETRY`] or [`FAILED`].
    pub status: i32,
    /// The work of the call, such as its sub-steps, 0 or more: what patches weigh.
    pub work: i32,
}

/// The cell needs no more.
#[device]
pub const DONE: i32 = 0;
/// The cell is to be called again with the state given.
#[device]
pub const CONTINUE: i32 = 1;
/// The cell has no sound state.
#[device]
pub const FAILED: i32 = 2;
/// The cell is to be called again; its state stays as it is until then.
#[device]
pub const RETRY: i32 = 3;

/// Bytes of what the cells of a patch give to be summed that stand in a block's shared memory; more is kept in global memory.
#[device]
pub const SHARED_SUM_BYTES: i32 = 24576;

/// Every [`Outcome`] of a state, and every [`Subcycle`].
pub trait SubcycleResult<R> {
    /// The state.
    type State: CellState<R>;
    /// What goes from a call to the next.
    type Carried: CellState<R>;
    /// What is summed.
    type Sums: CellState<R>;
    /// Whether the work of calls is counted.
    const COUNTS_WORK: bool;
    /// All of it.
    fn into_subcycle(self) -> Subcycle<Self::State, Self::Carried, Self::Sums>;
}

impl<R: Real, S: CellState<R>> SubcycleResult<R> for Outcome<S> {
    type State = S;
    type Carried = [R; 0];
    type Sums = [R; 0];
    const COUNTS_WORK: bool = false;

    #[inline(always)]
    fn into_subcycle(self) -> Subcycle<S, [R; 0], [R; 0]> {
        let Self { state, status } = self;
        Subcycle {
            state,
            carried: [],
            sums: [],
            status,
            work: 0,
        }
    }
}

impl<R: Real, S: CellState<R>, C: CellState<R>, T: CellState<R>> SubcycleResult<R>
    for Subcycle<S, C, T>
{
    type State = S;
    type Carried = C;
    type Sums = T;
    const COUNTS_WORK: bool = true;

    #[inline(always)]
    fn into_subcycle(self) -> Self {
        self
    }
}

/// Cells of a launch by the position of their row among its rows, times 512, plus the cell; what a round of calls leaves.
#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C)]
pub struct SubcycleRound {
    /// `u32::MAX` less the first cell that has failed; 0: none has.
    pub failed: u32,
    /// Cells that are unfinished; of the last round, `u32::MAX` less the first of them, or 0.
    pub unfinished: u32,
}
