//! Functions of a cell that may fail there, or want to be called again.

use nestar_device::{CellState, device};

/// What such a function gives; written with the type of its state, `Outcome::<S<R>> { state: v, status: DONE }`.
#[device]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome<S> {
    /// The new state; not taken where the function has failed.
    pub state: S,
    /// [`DONE`], [`UNFINISHED`] or [`FAILED`].
    pub status: i32,
}

/// The cell needs no more.
#[device]
pub const DONE: i32 = 0;
/// The cell is to be called again with the state given.
#[device]
pub const UNFINISHED: i32 = 1;
/// The cell has no sound state.
#[device]
pub const FAILED: i32 = 2;

/// Every [`Outcome`] of a state.
pub trait Attempted<R> {
    /// The state.
    type State: CellState<R>;
    /// The outcome.
    fn outcome(self) -> Outcome<Self::State>;
}

impl<R, S: CellState<R>> Attempted<R> for Outcome<S> {
    type State = S;
    fn outcome(self) -> Self {
        self
    }
}

/// Cells of a level by the position of their row among the level's, times 512, plus the cell; what a round of calls leaves.
#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C)]
pub struct Round {
    /// `u32::MAX` less the first cell that has failed; 0: none has.
    pub failed: u32,
    /// Cells that are unfinished.
    pub unfinished: u32,
}
