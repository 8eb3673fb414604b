//! One simulation over many ranks: how ranks talk, who owns which patch, and the copies that a rank keeps of others' patches.
//!
//! Every rank runs the same driver and takes the same decisions at the same places (single program, multiple data): a
//! collective call is met by all ranks in the same order. With one rank every call is trivial and nothing is allocated.

pub mod alone;
mod balance;
pub mod build;
mod carried;
mod columns;
pub mod communicator;
pub mod exchange;
pub mod forecast;
pub mod halos;
pub(crate) mod individuals;
mod items;
mod leaving;
mod lifted;
pub mod link;
pub mod nesting;
mod others;
pub mod owners;
mod parcels;
mod passing;
pub mod plan;
mod reach;
pub(crate) mod regrid;
pub mod seat;
pub mod threads;
mod totals;
pub(crate) mod weights;

#[cfg(test)]
mod tests;

pub use alone::Alone;
pub use build::Shares;
pub use columns::{Columns, Reduce};
pub use communicator::{
    Communicator, Memory, Message, Messages, Pending, PendingMessages, RanksError, Reduction,
};
pub use halos::Halos;
pub use items::Letter;
pub(crate) use lifted::Lifted;
pub use link::Connection;
pub use others::OtherRanks;
pub use passing::DeviceMessage;
pub use plan::Plan;
pub use seat::Seat;
pub use threads::Threads;
pub use totals::{mended_between_levels, totals};

use bevy_ecs::prelude::*;
use std::sync::Arc;

/// The ranks that share this simulation, as seen by one of them.
#[derive(Resource, Clone)]
pub struct Ranks(Arc<dyn Communicator>);

impl Default for Ranks {
    fn default() -> Self {
        Self(Arc::new(Alone))
    }
}

impl Ranks {
    /// The ranks that `communicator` connects.
    #[must_use]
    pub fn new(communicator: impl Communicator) -> Self {
        Self(Arc::new(communicator))
    }

    /// What connects them.
    #[must_use]
    pub fn communicator(&self) -> &dyn Communicator {
        &*self.0
    }

    /// This rank, from 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.0.rank()
    }

    /// Number of ranks.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// Whether there is no other rank.
    #[must_use]
    pub fn are_alone(&self) -> bool {
        self.size() == 1
    }

    /// Whether `value` holds on any rank.
    ///
    /// # Errors
    /// Another rank has failed, or the transport has.
    pub fn any(&self, value: bool) -> Result<bool, RanksError> {
        let mut values = [u64::from(value)];
        self.0.reduce(Reduction::Max, &mut values)?;
        Ok(values[0] != 0)
    }

    /// What the other ranks give, in their order, on the first; nothing on the others. All ranks call this.
    ///
    /// # Errors
    /// As [`Ranks::any`].
    pub fn tell_first(&self, own: impl FnOnce() -> Vec<u8>) -> Result<Vec<Message>, RanksError> {
        if self.are_alone() {
            return Ok(Vec::new());
        }
        let (peer, tells) = (0, self.rank() > 0);
        let message = tells.then(|| Message { peer, bytes: own() });
        self.0.exchange(message.into_iter().collect())
    }

    /// The sum of `value` over the ranks.
    ///
    /// # Errors
    /// As [`Ranks::any`].
    pub fn sum(&self, value: u64) -> Result<u64, RanksError> {
        let mut values = [value];
        self.0.reduce(Reduction::Sum, &mut values)?;
        Ok(values[0])
    }

    /// The largest `value` of the ranks.
    ///
    /// # Errors
    /// As [`Ranks::any`].
    pub fn max(&self, value: u64) -> Result<u64, RanksError> {
        let mut values = [value];
        self.0.reduce(Reduction::Max, &mut values)?;
        Ok(values[0])
    }
}
