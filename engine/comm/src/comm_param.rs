//! The communicator as a system parameter.

use super::device_link::{self, DeviceMessage};
use super::halo::{ExchangeKind, HaloRequest, LevelSplit, Transport};
use super::migration::{self, PatchMessage};
use super::{Connection, ExchangePlans, Halos, Ranks, RanksError};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_engine_data::store::{Store, mark_refreshed, stale_banks};
use nestar_engine_data::{InitialEstimate, MigrationBatch, ParticleEntityIndex, ParticleSet};
use nestar_engine_device::{DeviceError, Segment};
use nestar_engine_mesh::Topology;
use std::ops::Deref;
use std::sync::Arc;

/// System parameter that gives access to the other ranks of the level at hand.
///
/// Systems use it to communicate in the middle of their work. All ranks make the same calls in the same order; on one
/// rank they do nothing.
#[derive(SystemParam)]
pub struct Comm<'w> {
    ranks: Res<'w, Ranks>,
    plans: Res<'w, ExchangePlans>,
    halos: ResMut<'w, Halos>,
    connection: Option<Res<'w, Connection>>,
    entities: Res<'w, ParticleEntityIndex>,
    estimate: Option<Res<'w, InitialEstimate>>,
}

impl Deref for Comm<'_> {
    type Target = Ranks;
    fn deref(&self) -> &Ranks {
        &self.ranks
    }
}

impl Comm<'_> {
    /// Returns the handle to all ranks.
    #[must_use]
    pub fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// Delivers the records of `batches` to the leaves that contain them, on any level and rank.
    ///
    /// Also moves records on a single rank. A batch may name any patch inside the domain, whether it exists or not.
    /// Nothing is moved while initial conditions are only previewed.
    ///
    /// # Errors
    /// A batch lies outside the domain or holds incomplete records; another rank, the transport, the device or the
    /// memory of `items` has failed.
    pub fn migrate(
        &mut self,
        topology: &Topology,
        items: &mut dyn ParticleSet,
        batches: Vec<MigrationBatch>,
    ) -> Result<(), RanksError> {
        match self.estimate {
            Some(_) => Ok(()),
            None => migration::migrate(topology, &self.ranks, &self.entities, items, batches),
        }
    }

    /// Sends bytes to the owners of patches of `level`, addressed by patch index.
    ///
    /// Returns the bytes received for own patches, by row, in no particular order. Also works on a single rank. Nothing
    /// is sent while initial conditions are only previewed.
    ///
    /// # Errors
    /// A patch does not exist; another rank or the transport has failed.
    pub fn send_to_patches(
        &self,
        topology: &Topology,
        level: usize,
        messages: Vec<PatchMessage>,
    ) -> Result<Vec<(u32, Vec<u8>)>, RanksError> {
        match self.estimate {
            Some(_) => Ok(Vec::new()),
            None => migration::send_to_patches(topology, &self.ranks, level, messages),
        }
    }

    /// Returns `true` if particles that change ranks must use [`Comm::migrate`], because entities may be attached to
    /// them.
    #[must_use]
    pub fn tracks_entities(&self, items: &dyn ParticleSet) -> bool {
        self.entities.may_migrate(items)
    }

    /// Records that particles have been created on this rank, so that they become entities if all particles of their kind are.
    pub fn note_created(&self, items: &dyn ParticleSet, records: &[u8]) {
        if items.are_entities() {
            self.entities.note(items, records, 1);
        }
    }

    /// Exchanges messages between devices when only the sender knows their lengths.
    ///
    /// A rank sends at most one message to each peer; received messages are ordered by rank. `room` returns the address
    /// of a receive buffer with the given number of bytes that the link can reach. Work submitted to the device later
    /// sees the received data. Collective, also with nothing to send; nothing is sent while initial conditions are only
    /// previewed.
    ///
    /// # Errors
    /// Another rank, the transport or a device has failed.
    pub fn exchange_device_messages(
        &self,
        sends: &[DeviceMessage],
        room: impl FnOnce(usize) -> Result<u64, DeviceError>,
    ) -> Result<Vec<DeviceMessage>, DeviceError> {
        if self.estimate.is_some() {
            return Ok(Vec::new());
        }
        let link = self.connection.as_deref().map(Deref::deref);
        device_link::exchange_messages(&self.ranks, link, sends, room)
    }

    /// Exchanges segments of device memory whose lengths both sides know.
    ///
    /// Work submitted to the device later sees the received data. Collective; nothing is sent while initial conditions
    /// are only previewed.
    ///
    /// # Errors
    /// Another rank, the transport or a device has failed.
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

    /// Starts the exchange of `depth` halo layers of `level` that are out of date.
    ///
    /// Halo values are undefined until [`Comm::finish_halo`]. Returns the split into interior and boundary patches if
    /// computing the interior meanwhile pays off.
    ///
    /// # Errors
    /// Another rank, the transport or the device has failed.
    pub fn start_halo(
        &mut self,
        store: &dyn Store,
        level: usize,
        depth: usize,
    ) -> Result<Option<Arc<LevelSplit>>, DeviceError> {
        let begun = self.send_stale(store, level, depth, Halos::begin)?;
        let split = begun.then(|| self.halos.split(level));
        Ok(split.filter(|split| split.is_worth_overlapping()))
    }

    /// Passes all stale banks to `exchange`; returns `true` if there were any.
    fn send_stale(
        &mut self,
        store: &dyn Store,
        level: usize,
        depth: usize,
        exchange: impl FnOnce(
            &mut Halos,
            &Transport,
            &[HaloRequest],
            &[&dyn Store],
        ) -> Result<(), DeviceError>,
    ) -> Result<bool, DeviceError> {
        if !self.plans.has_halo(level) {
            return Ok(false);
        }
        let kind = ExchangeKind::Layers(depth);
        let stale = stale_banks(store, level, depth);
        let requests: Vec<HaloRequest> =
            stale.map(|at| HaloRequest { field: 0, at, kind }).collect();
        if !requests.is_empty() {
            let transport = Transport::new(&self.ranks, self.connection.as_deref());
            exchange(&mut self.halos, &transport, &requests, &[store])?;
        }
        Ok(!requests.is_empty())
    }

    /// Completes the exchange that [`Comm::start_halo`] started with the same arguments.
    ///
    /// The device waits for data from other devices, the host for messages.
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
            let link = self.connection.as_deref().map(Deref::deref);
            self.halos.wait(link)?;
            self.halos.unpack(|_, set| set(store))?;
        }
        mark_refreshed(store, level, depth);
        Ok(())
    }

    /// Updates `depth` halo layers of a store for gathers on `level`, if they are out of date.
    ///
    /// `depth` is at most the halo width with which the store was registered.
    ///
    /// # Errors
    /// As [`Comm::start_halo`].
    pub fn refresh_halo(
        &mut self,
        store: &mut dyn Store,
        level: usize,
        depth: usize,
    ) -> Result<(), DeviceError> {
        self.send_stale(store, level, depth, Halos::exchange)?;
        self.finish_halo(store, level, depth)
    }

    /// Sends averages of children from halo patches of `level` to the owners of these patches.
    ///
    /// The halo of `level` is out of date afterwards.
    ///
    /// # Errors
    /// As [`Comm::start_halo`].
    pub fn send_averages(
        &mut self,
        store: &mut dyn Store,
        level: usize,
    ) -> Result<(), DeviceError> {
        let at = store.present_bank(level);
        if self.plans.has_averages_or_fluxes(level) {
            let kind = ExchangeKind::Averages;
            let transport = Transport::new(&self.ranks, self.connection.as_deref());
            self.halos
                .exchange(&transport, &[HaloRequest { field: 0, at, kind }], &[store])?;
            self.halos.unpack(|_, set| set(store))?;
        }
        store.set_valid_layers(at, 0);
        Ok(())
    }

    /// Returns the rows of `level` that other ranks hold as halo patches.
    pub fn sent_rows(&self, level: usize) -> impl Iterator<Item = u32> {
        let plan = self.plans.halo.get(level).map(|plan| plan.sends.as_slice());
        plan.unwrap_or_default()
            .iter()
            .flat_map(|peer| peer.rows.iter().copied())
    }

    /// Sends one value per patch of `level` from its owner to its halo patches.
    ///
    /// `get` reads the value of an own row, `put` stores that of a halo row.
    ///
    /// # Errors
    /// Another rank or the transport has failed.
    pub fn update_halo_values<T: bytemuck::Pod>(
        &self,
        level: usize,
        get: impl Fn(u32) -> T,
        put: impl FnMut(u32, T),
    ) -> Result<(), RanksError> {
        match self.plans.halo.get(level) {
            Some(plan) => plan.forward(self.ranks.communicator(), get, put),
            None => Ok(()),
        }
    }
}
