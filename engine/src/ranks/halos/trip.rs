//! Rows under way: started before those who need them begin, settled field by field.

use super::lane::{Lane, Route};
use super::{Halos, LevelHalo, add_segments, connection, packed};
use crate::device::{DeviceError, DeviceLink, LinkCounters};
use crate::field::pieces::{Delivery, Packed, Piece};
use crate::field::{Field, FieldOperations, Pool, travel};
use crate::ranks::{Message, Messages, PendingMessages, Ranks, RanksError};
use bevy_ecs::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Which rows of a level travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ranks) enum Kind {
    /// From owners to copies.
    Copies,
    /// The same, but only the layers that steps read.
    Layers,
    /// From owners to copies whose children the copies' ranks own.
    Parents,
    /// Averages of children, to the owners of their parents.
    Averages,
}

/// Rows of one level on a trip, with the number of values that go out and come in before them.
#[derive(Clone, Copy)]
struct Part {
    level: usize,
    kind: Kind,
    sent_before: usize,
    received_before: usize,
}

/// A field on a trip.
struct Passenger {
    field: FieldOperations,
    packed: Packed,
    settled: bool,
}

/// Where the values are.
#[derive(Default)]
enum State {
    /// Nothing is under way.
    #[default]
    Home,
    /// On their way as messages.
    Messages(Mutex<Option<PendingMessages>>),
    /// On their way from device to device.
    Linked,
    /// Here, as messages.
    Here(Messages),
    /// In the memory of the device.
    There,
}

/// An exchange of rows.
#[derive(Default)]
pub(super) struct Trip {
    parts: Vec<Part>,
    passengers: Vec<Passenger>,
    width: usize,
    state: State,
    pub counters: LinkCounters,
    /// Memory of messages that are no longer needed.
    spare: Vec<Vec<u8>>,
}

impl LevelHalo {
    /// What goes out and what comes in.
    fn lanes(&self, kind: Kind) -> [&Lane<Piece>; 2] {
        let Route { sends, receives } = match kind {
            Kind::Copies => &self.copies,
            Kind::Layers => &self.layers,
            Kind::Averages => &self.averages,
            // the way back of the averages
            Kind::Parents => return [&self.averages.receives, &self.averages.sends],
        };
        [sends, receives]
    }
}

impl Halos {
    /// Sends the present state of `fields` in rows of some levels on its way. Nothing else may be under way.
    pub(in crate::ranks) fn start(
        &mut self,
        world: &World,
        levels: &[(usize, Kind)],
        fields: &[FieldOperations],
    ) -> Result<(), RanksError> {
        if levels.is_empty() || fields.is_empty() {
            return Ok(());
        }
        let (places, width) = packed(world, fields);
        let trip = &mut self.trip;
        trip.width = width;
        trip.passengers.clear();
        let passengers = fields.iter().zip(places).map(|(field, packed)| Passenger {
            field: *field,
            packed,
            settled: false,
        });
        trip.passengers.extend(passengers);
        trip.parts.clear();
        let (mut sent_before, mut received_before) = (0, 0);
        for &(level, kind) in levels {
            trip.parts.push(Part {
                level,
                kind,
                sent_before,
                received_before,
            });
            let [out, into] = self.levels[level].lanes(kind);
            sent_before += out.values();
            received_before += into.values();
        }
        if self.device.is_some() {
            self.start_linked(world)
        } else {
            self.start_messages(world)
        }
    }

    fn start_linked(&mut self, world: &World) -> Result<(), RanksError> {
        let [sends, receives] = &mut self.segments;
        sends.clear();
        receives.clear();
        let trip = &mut self.trip;
        for part in &trip.parts {
            let [out, into] = self.levels[part.level].lanes(part.kind);
            let memory = |start: u64, before: usize| start + (before * trip.width) as u64;
            let outgoing = memory(self.harbour.outgoing(), part.sent_before);
            let incoming = memory(self.harbour.incoming(), part.received_before);
            for passenger in &trip.passengers {
                let pieces = out.on_device(outgoing, passenger.packed);
                (passenger.field.pack_pieces_there)(world, part.level, &pieces)?;
            }
            add_segments(out, outgoing, trip.width, sends);
            add_segments(into, incoming, trip.width, receives);
        }
        if let Some(link) = connection(world) {
            link.start(sends, receives)?;
        }
        trip.state = State::Linked;
        Ok(())
    }

    fn start_messages(&mut self, world: &World) -> Result<(), RanksError> {
        let trip = &mut self.trip;
        let mut spare = std::mem::take(&mut trip.spare);
        let mut sends: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        let mut receives: BTreeMap<usize, usize> = BTreeMap::new();
        for part in &trip.parts {
            let [out, into] = self.levels[part.level].lanes(part.kind);
            for stretch in &out.stretches {
                let empty = || sized(spare.pop(), 0);
                let message = sends.entry(stretch.peer).or_insert_with(empty);
                let start = message.len();
                message.resize(start + stretch.values.len() * trip.width, 0);
                let pieces = &out.entries[stretch.entries.clone()];
                for Passenger { field, packed, .. } in &trip.passengers {
                    let out = &mut message[start..];
                    (field.pack_pieces)(world, part.level, pieces, *packed, out)?;
                }
            }
            for stretch in &into.stretches {
                *receives.entry(stretch.peer).or_default() += stretch.values.len() * trip.width;
            }
        }
        let message = |(peer, bytes)| Message { peer, bytes };
        let room = |(peer, length)| message((peer, sized(spare.pop(), length)));
        let halo = Messages {
            sends: sends.into_iter().map(message).collect(),
            receives: receives.into_iter().map(room).collect(),
        };
        trip.count(&halo);
        let communicator = world.resource::<Ranks>().communicator();
        let pending = communicator.start_messages(halo)?;
        trip.state = State::Messages(Mutex::new(Some(pending)));
        Ok(())
    }

    /// Levels of which copies of the field `name` are under way.
    pub(in crate::ranks) fn under_way(&self, name: &str) -> impl Iterator<Item = usize> {
        let waiting = |p: &Passenger| !p.settled && p.field.name == name;
        let any = self.trip.passengers.iter().any(waiting);
        let parts = self.trip.parts.iter().filter(move |_| any);
        parts.map(|part| part.level)
    }

    /// Waits for what is under way and sets the copies of `pool`, if they are among it.
    pub(in crate::ranks) fn settle<F: Field>(
        &mut self,
        pool: &mut Pool<F>,
        link: Option<&DeviceLink>,
    ) -> Result<(), DeviceError> {
        for n in 0..self.trip.passengers.len() {
            let Passenger { field, settled, .. } = &self.trip.passengers[n];
            if !settled && field.name == F::NAME {
                self.trip.finish(link)?;
                self.unload(n, |level, delivery| travel::unpack(pool, level, delivery))?;
                self.trip.passengers[n].settled = true;
            }
        }
        Ok(())
    }

    /// Waits for what is under way and sets the copies of all fields that have not settled by themselves.
    pub(in crate::ranks) fn settle_all(&mut self, world: &mut World) -> Result<(), RanksError> {
        for n in 0..self.trip.passengers.len() {
            let Passenger { field, settled, .. } = &self.trip.passengers[n];
            if !settled {
                let unpack = field.unpack_pieces;
                self.trip.finish(connection(world).map(|link| &**link))?;
                self.unload(n, |level, delivery| unpack(world, level, delivery))?;
            }
        }
        self.trip.passengers.clear();
        if let State::Here(halo) = std::mem::take(&mut self.trip.state) {
            self.trip.keep(halo);
        }
        Ok(())
    }

    /// Gives what has come for a passenger to `unpack`, level by level, as messages peer by peer.
    fn unload(
        &self,
        passenger: usize,
        mut unpack: impl FnMut(usize, &Delivery) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let trip = &self.trip;
        let packed = trip.passengers[passenger].packed;
        let mut read: BTreeMap<usize, usize> = BTreeMap::new();
        for part in &trip.parts {
            let [_, lane] = self.levels[part.level].lanes(part.kind);
            let State::Here(halo) = &trip.state else {
                let memory = self.harbour.incoming() + (part.received_before * trip.width) as u64;
                let pieces = lane.on_device(memory, packed);
                let owned = part.kind == Kind::Averages;
                unpack(part.level, &Delivery::There { pieces, owned })?;
                continue;
            };
            for stretch in &lane.stretches {
                let peer = stretch.peer;
                let found = halo.receives.binary_search_by_key(&peer, |m| m.peer);
                let message = found.map_or(&[][..], |n| &halo.receives[n].bytes);
                let next = read.entry(peer).or_default();
                let start = *next;
                *next += stretch.values.len() * trip.width;
                let delivery = Delivery::Here {
                    pieces: &lane.entries[stretch.entries.clone()],
                    packed,
                    bytes: &message[start..*next],
                };
                unpack(part.level, &delivery)?;
            }
        }
        Ok(())
    }
}

impl Trip {
    /// Counts messages that leave.
    pub fn count(&mut self, halo: &Messages) {
        let bytes =
            |messages: &[Message]| -> u64 { messages.iter().map(|m| m.bytes.len() as u64).sum() };
        self.counters.exchanges += 1;
        self.counters.bytes_sent += bytes(&halo.sends);
        self.counters.bytes_received += bytes(&halo.receives);
    }

    /// Keeps the memory of messages for later ones.
    fn keep(&mut self, halo: Messages) {
        self.spare.clear();
        let messages = halo.sends.into_iter().chain(halo.receives);
        self.spare.extend(messages.map(|message| message.bytes));
    }

    /// Waits for messages.
    pub fn wait(&mut self, pending: PendingMessages) -> Result<Messages, RanksError> {
        let start = Instant::now();
        let halo = pending.finish();
        self.counters.waited += start.elapsed().as_secs_f64();
        halo
    }

    /// Waits for what is under way: the host for messages, the device for what comes over the link.
    fn finish(&mut self, link: Option<&DeviceLink>) -> Result<(), DeviceError> {
        match &mut self.state {
            State::Messages(pending) => {
                let pending = pending.get_mut().unwrap_or_else(PoisonError::into_inner);
                if let Some(pending) = pending.take() {
                    self.state = State::Here(self.wait(pending)?);
                }
            }
            State::Linked => {
                if let Some(link) = link {
                    link.finish()?;
                }
                self.state = State::There;
            }
            State::Home | State::Here(_) | State::There => {}
        }
        Ok(())
    }
}

/// Memory of so many bytes of any content, made of what is there.
fn sized(memory: Option<Vec<u8>>, length: usize) -> Vec<u8> {
    let mut bytes = memory.unwrap_or_default();
    bytes.resize(length, 0);
    bytes
}
