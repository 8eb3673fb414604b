//! Sub-cycling: cell functions that may fail or ask to be called again.

use nestar_device::{CellState, Real, device};

/// Result of a function that may fail or ask to be called again. Write the type of the state explicitly: `Outcome::<S<R>> { state: v,
/// status: DONE }`.
#[device]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome<S> {
    /// The new state; ignored if the status is [`RETRY`] or [`FAILED`].
    pub state: S,
    /// [`DONE`], [`CONTINUE`], [`RETRY`] or [`FAILED`].
    pub status: i32,
}

/// Result of a function that carries values from one call to the next or sums values over cells.
///
/// `S` is the state, `C` what is carried, `T` what is summed: each a number, an array or a structure of numbers (`[R; 0]` for none). Write
/// the types explicitly: `Subcycle::<S<R>, C<R>, [R; 2]> { state: v, carried, sums: [lost, gained], status: DONE, work: 1 }`.
#[device]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Subcycle<S, C, T> {
    /// The new state; ignored if the status is [`RETRY`] or [`FAILED`].
    pub state: S,
    /// Last argument state of the next call in this cell; zeros in the first call. Ignored if the function is done or has failed.
    pub carried: C,
    /// Values per volume to be summed over leaf cells. Used if the function is done; they must be finite.
    pub sums: T,
    /// [`DONE`], [`CONTINUE`], [`RETRY`] or [`FAILED`].
    pub status: i32,
    /// Work of the call, for example its number of sub-steps; 0 or more. Used to balance ranks.
    pub work: i32,
}

/// The cell is finished.
#[device]
pub const DONE: i32 = 0;
/// The cell must be called again, starting from the returned state.
#[device]
pub const CONTINUE: i32 = 1;
/// The cell has no physical state.
#[device]
pub const FAILED: i32 = 2;
/// The cell must be called again; its state is unchanged until then.
#[device]
pub const RETRY: i32 = 3;

/// Bytes of a patch's sums that fit into a block's shared memory; more are kept in global memory.
#[device]
pub const SHARED_SUM_BYTES: i32 = 24576;

/// Implemented by every [`Outcome`] of a state and every [`Subcycle`].
pub trait SubcycleResult<R> {
    /// Type of the state.
    type State: CellState<R>;
    /// Type of what is carried from one call to the next.
    type Carried: CellState<R>;
    /// Type of what is summed.
    type Sums: CellState<R>;
    /// `true` if the work of calls is counted.
    const COUNTS_WORK: bool;
    /// Converts into the general form.
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

/// Result of a round of calls. Cells are numbered by the position of their row in the launch, times 512, plus the cell.
#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C)]
pub struct SubcycleRound {
    /// `u32::MAX` minus the first failed cell; 0 for none.
    pub failed: u32,
    /// Number of unfinished cells; in the last round `u32::MAX` minus the first of them, or 0.
    pub unfinished: u32,
}
