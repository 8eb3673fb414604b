//! The other ranks, as a system's parameter.

use super::device_messages::{self, DeviceMessage};
use super::halo::{ExchangeKind, HaloRequest, LevelSplit, Transport};
use super::migration::{self, PatchMessage};
use super::{Connection, ExchangePlans, Halos, Ranks, RanksError};
use crate::data::store::{Store, mark_refreshed, stale_banks};
use crate::data::{InitialEstimate, MigrationBatch, ParticleEntityIndex, ParticleSet};
use crate::device::{DeviceError, Segment};
use crate::mesh::Topology;
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use std::sync::Arc;

/// The ranks that share the level at hand, for systems that need them in the middle of their work. All ranks make the same
/// calls in the same order; on one rank they do nothing.
#[derive(SystemParam)]
pub struct Comm<'w> {
    ranks: Res<'w, Ranks>,
    shares: Res<'w, ExchangePlans>,
    halos: ResMut<'w, Halos>,
    connection: Option<Res<'w, Connection>>,
    entities: Res<'w, ParticleEntityIndex>,
    estimate: Option<Res<'w, InitialEstimate>>,
}

impl Comm<'_> {
    /// Whether there are none.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.ranks.is_single()
    }

    /// These ranks and this one.
    #[must_use]
    pub fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// How many ranks there are, this one included.
    #[must_use]
    pub fn size(&self) -> usize {
        self.ranks.size()
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
    /// As [`Comm::any`].
    pub fn sum(&self, value: u64) -> Result<u64, RanksError> {
        self.ranks.sum(value)
    }

    /// The largest `value` of the ranks.
    ///
    /// # Errors
    /// As [`Comm::any`].
    pub fn max(&self, value: u64) -> Result<u64, RanksError> {
        self.ranks.max(value)
    }

    /// The message of the first rank that has one.
    ///
    /// # Errors
    /// As [`Comm::any`].
    pub fn first_error(&self, own: Option<String>) -> Result<Option<String>, RanksError> {
        if self.is_single() {
            return Ok(own);
        }
        let own = own.unwrap_or_default();
        let all = self.ranks.communicator().all_gather(own.as_bytes())?;
        let first = all.iter().find(|message| !message.is_empty());
        Ok(first.map(|message| String::from_utf8_lossy(message).into_owned()))
    }

    /// Takes the records of `parcels` to the leaves that contain them, on any level, here or there; also on one rank. A parcel may name any
    /// patch within the domain, whether it is there or not. While a run's beginning is only looked at, items go nowhere.
    ///
    /// # Errors
    /// A parcel names a place outside the domain, or cut records; another rank has failed, the transport has, or the device or the memory
    /// of `items`.
    pub fn migrate(
        &mut self,
        topology: &Topology,
        items: &mut dyn ParticleSet,
        parcels: Vec<MigrationBatch>,
    ) -> Result<(), RanksError> {
        match self.estimate {
            Some(_) => Ok(()),
            None => migration::migrate(topology, (&self.ranks, &self.entities), items, parcels),
        }
    }

    /// Takes bytes to the owners of patches of `level`, each by the patch's index; what has come for own patches, by row, in no
    /// particular order. Also on one rank; nothing goes anywhere while a run's beginning is only looked at.
    ///
    /// # Errors
    /// A patch is not there; another rank has failed, or the transport has.
    pub fn send_to_patches(
        &self,
        topology: &Topology,
        level: usize,
        letters: Vec<PatchMessage>,
    ) -> Result<Vec<(u32, Vec<u8>)>, RanksError> {
        match self.estimate {
            Some(_) => Ok(Vec::new()),
            None => migration::send_to_patches(topology, &self.ranks, level, letters),
        }
    }

    /// Whether items that go to another rank have to go by [`Comm::migrate`], since entities may follow them.
    #[must_use]
    pub fn tracks_entities(&self, items: &dyn ParticleSet) -> bool {
        self.entities.may_migrate(items)
    }

    /// Sends messages from device to device, at most one to a peer, and receives what the devices of others send, in the order of their
    /// ranks: `room` gives the address for so many bytes, which the link can reach. What the device is given from now on finds them there.
    /// All ranks call this, also with nothing to send; nothing goes anywhere while a run's beginning is only looked at.
    ///
    /// # Errors
    /// Another rank has failed, or the transport or a device has.
    pub fn exchange_device_messages(
        &self,
        sends: &[DeviceMessage],
        room: impl FnOnce(usize) -> Result<u64, DeviceError>,
    ) -> Result<Vec<DeviceMessage>, DeviceError> {
        if self.is_single() || self.estimate.is_some() {
            return Ok(Vec::new());
        }
        let link = self.connection.as_ref().map(|connection| &***connection);
        device_messages::exchange(&self.ranks, link, sends, room)
    }

    /// Sends segments of the device and receives those of others, whose lengths both sides know. What the device is given from now on finds
    /// them there. All ranks call this; nothing goes anywhere while a run's beginning is only looked at.
    ///
    /// # Errors
    /// Another rank has failed, or the transport or a device has.
    pub fn exchange_segments(
        &self,
        sends: &[Segment],
        receives: &[Segment],
    ) -> Result<(), DeviceError> {
        match &self.connection {
            Some(link) if self.estimate.is_none() => link.exchange(sends, receives),
            _ => Ok(()),
        }
    }

    /// Sends `depth` layers of the copies on their way that a gather on `level` reads, those that are out of date. Until
    /// [`Comm::finish_halo`] copies hold any values; what the step may begin with meanwhile, if that is worth while.
    ///
    /// # Errors
    /// Another rank has failed, or the transport or the device has.
    pub fn start_halo(
        &mut self,
        store: &dyn Store,
        level: usize,
        depth: usize,
    ) -> Result<Option<Arc<LevelSplit>>, DeviceError> {
        let begun = self.send_stale(store, (level, depth), Halos::begin)?;
        let split = begun.then(|| self.halos.split(level));
        Ok(split.filter(|split| split.is_worth_overlapping()))
    }

    /// Gives what is out of date to an exchange; whether there is something.
    fn send_stale(
        &mut self,
        store: &dyn Store,
        (level, depth): (usize, usize),
        exchange: impl FnOnce(
            &mut Halos,
            &Transport,
            &[HaloRequest],
            &[&dyn Store],
        ) -> Result<(), DeviceError>,
    ) -> Result<bool, DeviceError> {
        if self.is_single() {
            return Ok(false);
        }
        let kind = ExchangeKind::Layers(depth);
        let stale = stale_banks(store, level, depth);
        let requests: Vec<HaloRequest> =
            stale.map(|at| HaloRequest { field: 0, at, kind }).collect();
        if !requests.is_empty() {
            let transport = Transport {
                communicator: self.ranks.communicator(),
                link: self.connection.as_ref().map(|connection| &***connection),
            };
            exchange(&mut self.halos, &transport, &requests, &[store])?;
        }
        Ok(!requests.is_empty())
    }

    /// Ends what [`Comm::start_halo`] with the same arguments began: copies are up to date. The device waits for what comes
    /// from other devices, the host for messages.
    ///
    /// # Errors
    /// As [`Comm::start_halo`].
    pub fn finish_halo(
        &mut self,
        store: &mut dyn Store,
        level: usize,
        depth: usize,
    ) -> Result<(), DeviceError> {
        if self.halos.is_busy() {
            let link = self.connection.as_ref().map(|connection| &***connection);
            self.halos.wait(link)?;
            self.halos.unpack(|_, set| set(store))?;
        }
        mark_refreshed(store, level, depth);
        Ok(())
    }

    /// Brings `depth` layers of the copies of a store up to date that a gather on `level` reads, if they are not: no more than it
    /// was registered with.
    ///
    /// # Errors
    /// As [`Comm::start_halo`].
    pub fn refresh_halo(
        &mut self,
        store: &mut dyn Store,
        level: usize,
        depth: usize,
    ) -> Result<(), DeviceError> {
        self.send_stale(store, (level, depth), Halos::exchange)?;
        self.finish_halo(store, level, depth)
    }

    /// Sends what copies of covered patches of `level` have taken from their children to the owners of the patches. Copies are out of
    /// date from now on.
    ///
    /// # Errors
    /// As [`Comm::start_halo`].
    pub fn send_averages(
        &mut self,
        store: &mut dyn Store,
        level: usize,
    ) -> Result<(), DeviceError> {
        if self.is_single() {
            return Ok(());
        }
        let at = store.present_bank(level);
        let kind = ExchangeKind::Averages;
        let transport = Transport {
            communicator: self.ranks.communicator(),
            link: self.connection.as_ref().map(|connection| &***connection),
        };
        self.halos
            .exchange(&transport, &[HaloRequest { field: 0, at, kind }], &[store])?;
        self.halos.unpack(|_, set| set(store))?;
        store.set_valid_layers(at, 0);
        Ok(())
    }

    /// Rows of `level` that other ranks keep copies of.
    pub fn sent_rows(&self, level: usize) -> impl Iterator<Item = u32> {
        let plan = self
            .shares
            .halo
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
    /// As [`Comm::any`].
    pub fn update_halo_values<T: bytemuck::Pod>(
        &self,
        level: usize,
        get: impl Fn(u32) -> T,
        put: impl FnMut(u32, T),
    ) -> Result<(), RanksError> {
        match self.shares.halo.get(level) {
            Some(plan) => plan.forward(self.ranks.communicator(), get, put),
            None => Ok(()),
        }
    }
}
