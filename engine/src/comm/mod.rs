//! One simulation over many ranks: how ranks talk, who owns which patch, and the copies that a rank keeps of others' patches.
//!
//! Every rank runs the same driver and takes the same decisions at the same places (single program, multiple data): a
//! collective call is met by all ranks in the same order. With one rank every call is trivial and nothing is allocated.

mod comm_param;
pub mod communicator;
mod departures;
pub mod device_link;
mod device_messages;
mod diagnostic_columns;
mod displaced;
pub mod estimate;
pub mod exchange;
pub mod exchange_plan;
pub mod halo;
pub mod hierarchy;
mod migration;
mod migration_batch;
mod neighbourhood;
pub mod nesting;
pub mod owners;
pub(crate) mod particle_entities;
mod partition;
mod patch_components;
pub(crate) mod patch_work;
pub mod placement;
pub(crate) mod regrid;
pub mod single_rank;
pub mod threads;
mod totals;

#[cfg(test)]
mod tests;

pub use comm_param::Comm;
pub use communicator::{
    Communicator, Message, MessageBuffer, Messages, PendingExchange, PendingMessages, RanksError,
    Reduction,
};
pub use device_link::Connection;
pub use device_messages::DeviceMessage;
pub use diagnostic_columns::{DiagnosticColumns, Reduce};
pub(crate) use displaced::Displaced;
pub use exchange_plan::ExchangePlan;
pub use halo::Halos;
pub use hierarchy::ExchangePlans;
pub use migration::PatchMessage;
pub use placement::Placement;
pub use single_rank::SingleRank;
pub use threads::ThreadRank;
pub use totals::{cells_repaired_between_levels, totals};

use bevy_ecs::prelude::*;
use std::sync::Arc;

/// The ranks that share this simulation, as seen by one of them.
#[derive(Resource, Clone)]
pub struct Ranks(Arc<dyn Communicator>);

impl Default for Ranks {
    fn default() -> Self {
        Self(Arc::new(SingleRank))
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
    pub fn is_single(&self) -> bool {
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
    pub fn gather_on_first(
        &self,
        own: impl FnOnce() -> Vec<u8>,
    ) -> Result<Vec<Message>, RanksError> {
        if self.is_single() {
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
