//! Communication between ranks: transports, ownership of patches, and halo patches of other ranks.
//!
//! Every rank runs the same driver and takes the same decisions at the same places (single program, multiple data).
//! Collective calls are made by all ranks in the same order. On one rank every call returns at once.

mod comm_param;
pub mod communicator;
pub mod device_link;
pub mod estimate;
pub mod exchange;
pub mod exchange_plan;
pub mod halo;
pub mod hierarchy;
mod migration;
pub mod particle_entities;
mod partition;
pub mod regrid;
pub mod shared_values;
pub mod threads;
mod totals;

#[cfg(test)]
mod tests;

pub use comm_param::Comm;
pub use communicator::{
    Communicator, Message, MessageBuffer, Messages, PendingExchange, PendingMessages, Placement,
    RanksError, Reduction, SingleRank,
};
pub use device_link::{Connection, DeviceMessage};
pub use exchange_plan::ExchangePlan;
pub use halo::Halos;
pub use hierarchy::ExchangePlans;
pub use migration::Displaced;
pub use migration::PatchMessage;
pub use threads::ThreadRank;
pub use totals::{ColumnInputs, DiagnosticColumns, Reduce, cells_repaired_between_levels, totals};

use bevy_ecs::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Handle to all ranks of the simulation, as seen from one of them.
#[derive(Resource, Clone)]
pub struct Ranks(Arc<dyn Communicator>);

impl Default for Ranks {
    fn default() -> Self {
        Self(Arc::new(SingleRank))
    }
}

impl Ranks {
    /// Creates the handle from a communicator.
    #[must_use]
    pub fn new(communicator: impl Communicator) -> Self {
        Self(Arc::new(communicator))
    }

    /// Returns the communicator.
    #[must_use]
    pub fn communicator(&self) -> &dyn Communicator {
        &*self.0
    }

    /// Returns the number of this rank, from 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.0.rank()
    }

    /// Returns the number of ranks.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// Returns `true` if there is only one rank.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.size() == 1
    }

    /// Returns the number of this rank for messages; `None` if there is only one rank.
    #[must_use]
    pub fn rank_for_messages(&self) -> Option<usize> {
        (!self.is_single()).then(|| self.rank())
    }

    /// Returns `true` if `value` is true on any rank. Collective.
    ///
    /// # Errors
    /// Another rank or the transport has failed.
    pub fn any(&self, value: bool) -> Result<bool, RanksError> {
        Ok(self.max(u64::from(value))? != 0)
    }

    /// Returns the error message of the lowest rank that has one; the result is the same on all ranks.
    ///
    /// # Errors
    /// Another rank or the transport has failed.
    pub fn first_error(&self, own: Option<String>) -> Result<Option<String>, RanksError> {
        let own = own.unwrap_or_default();
        let all = self.communicator().all_gather(own.as_bytes())?;
        let first = all.iter().find(|message| !message.is_empty());
        Ok(first.map(|message| String::from_utf8_lossy(message).into_owned()))
    }

    /// Returns the values of all ranks, in rank order, on every rank. Collective.
    ///
    /// # Errors
    /// As [`Ranks::any`].
    pub fn gather<T: bytemuck::Pod>(&self, own: &[T]) -> Result<Vec<T>, RanksError> {
        let all = self.0.all_gather(bytemuck::cast_slice(own))?;
        let values = all
            .iter()
            .flat_map(|bytes| bytemuck::pod_collect_to_vec::<u8, T>(bytes));
        Ok(values.collect())
    }

    /// Gathers the bytes of all other ranks on rank 0, in rank order; other ranks receive nothing. Collective.
    ///
    /// # Errors
    /// As [`Ranks::any`].
    pub fn gather_on_first(
        &self,
        own: impl FnOnce() -> Vec<u8>,
    ) -> Result<Vec<Message>, RanksError> {
        let (peer, tells) = (0, self.rank() > 0);
        let message = tells.then(|| Message { peer, bytes: own() });
        self.0.exchange(message.into_iter().collect())
    }

    /// Sends bytes to ranks that do not expect them; returns the received messages in rank order. Collective.
    ///
    /// # Errors
    /// As [`Ranks::any`].
    pub(crate) fn exchange_bytes(
        &self,
        by_rank: BTreeMap<usize, Vec<u8>>,
    ) -> Result<Vec<Message>, RanksError> {
        let messages = by_rank.into_iter();
        let messages = messages.map(|(peer, bytes)| Message { peer, bytes });
        self.0.exchange(messages.collect())
    }

    /// Returns the sum of `value` over all ranks. Collective.
    ///
    /// # Errors
    /// As [`Ranks::any`].
    pub fn sum(&self, value: u64) -> Result<u64, RanksError> {
        self.reduce(Reduction::Sum, value)
    }

    /// Returns the largest `value` of all ranks. Collective.
    ///
    /// # Errors
    /// As [`Ranks::any`].
    pub fn max(&self, value: u64) -> Result<u64, RanksError> {
        self.reduce(Reduction::Max, value)
    }

    fn reduce(&self, reduction: Reduction, mut value: u64) -> Result<u64, RanksError> {
        self.0.reduce(reduction, std::slice::from_mut(&mut value))?;
        Ok(value)
    }
}
