//! The other ranks, as a system's parameter.

use super::halos::Split;
use super::{Connection, Halos, Ranks, RanksError, Shares};
use crate::device::DeviceError;
use crate::field::{Field, Pool};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use std::sync::Arc;

/// The ranks that share the level at hand, for systems that need them in the middle of their work. All ranks make the same
/// calls in the same order; on one rank they do nothing.
#[derive(SystemParam)]
pub struct OtherRanks<'w> {
    ranks: Res<'w, Ranks>,
    shares: Res<'w, Shares>,
    halos: ResMut<'w, Halos>,
    connection: Option<Res<'w, Connection>>,
}

impl OtherRanks<'_> {
    /// Whether there are none.
    #[must_use]
    pub fn are_none(&self) -> bool {
        self.ranks.are_alone()
    }

    /// Whether `value` holds on any rank.
    ///
    /// # Errors
    /// Another rank has failed, or the transport has.
    pub fn any(&self, value: bool) -> Result<bool, RanksError> {
        self.ranks.any(value)
    }

    /// The sum of `value` over the ranks.
    ///
    /// # Errors
    /// As [`OtherRanks::any`].
    pub fn sum(&self, value: u64) -> Result<u64, RanksError> {
        self.ranks.sum(value)
    }

    /// The message of the first rank that has one.
    ///
    /// # Errors
    /// As [`OtherRanks::any`].
    pub fn first_message(&self, own: Option<String>) -> Result<Option<String>, RanksError> {
        if self.are_none() {
            return Ok(own);
        }
        let own = own.unwrap_or_default();
        let all = self.ranks.communicator().all_gather(own.as_bytes())?;
        let first = all.iter().find(|message| !message.is_empty());
        Ok(first.map(|message| String::from_utf8_lossy(message).into_owned()))
    }

    /// What the step of `level` may begin with while the copies of field `F` are under way, and what is left for the time
    /// after [`OtherRanks::settle`]; none where nothing is under way, or too little can be done meanwhile.
    #[must_use]
    pub fn split<F: Field>(&self, level: usize) -> Option<Arc<Split>> {
        let level = self.under_way::<F>().next().map(|_| level);
        let split = level.map(|level| self.halos.split(level));
        split.filter(|split| split.is_worth_it())
    }

    /// Levels of which copies of field `F` are under way: until [`OtherRanks::settle`] they hold any values.
    pub fn under_way<F: Field>(&self) -> impl Iterator<Item = usize> {
        self.halos.under_way(F::NAME)
    }

    /// Sets the copies of `pool`, if they are under way: the device waits for what comes from other devices, the host for
    /// messages. The system that steps a field of [`FieldRegistry::settle_in_step`](crate::field::FieldRegistry::settle_in_step)
    /// calls this before it reads copies, on all ranks.
    ///
    /// # Errors
    /// Another rank has failed, or the transport or the device has.
    pub fn settle<F: Field>(&mut self, pool: &mut Pool<F>) -> Result<(), DeviceError> {
        let link = self.connection.as_ref().map(|connection| &***connection);
        self.halos.settle(pool, link)
    }

    /// Rows of `level` that other ranks keep copies of.
    pub fn sent(&self, level: usize) -> impl Iterator<Item = u32> {
        let plan = self
            .shares
            .copies
            .get(level)
            .map(|plan| plan.sends.as_slice());
        plan.unwrap_or_default()
            .iter()
            .flat_map(|peer| peer.rows.iter().copied())
    }

    /// Sends a value of each patch of `level` to the ranks that keep copies of it: `get` reads that of an own row, `put` takes
    /// that of a copy.
    ///
    /// # Errors
    /// As [`OtherRanks::any`].
    pub fn forward<T: bytemuck::Pod>(
        &self,
        level: usize,
        get: impl Fn(u32) -> T,
        put: impl FnMut(u32, T),
    ) -> Result<(), RanksError> {
        match self.shares.copies.get(level) {
            Some(plan) => plan.forward(self.ranks.communicator(), get, put),
            None => Ok(()),
        }
    }
}
