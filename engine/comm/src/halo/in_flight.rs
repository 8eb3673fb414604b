//! Runs a halo exchange with one message per peer for all fields, levels and banks.

use super::{HaloRoute, Halos, TransferList, Transport, add_segments};
use crate::{Communicator, Message, Messages, PendingMessages, RanksError};
use nestar_engine_data::Piece;
use nestar_engine_data::store::{LevelBank, Store};
use nestar_engine_data::{HaloLayers, RowShape};
use nestar_engine_device::{Device, DeviceError, DeviceLink, LinkCounters};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Kind of data that is exchanged on a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExchangeKind {
    /// Halo layers, from owners to halo patches: the number of layers that gathers read.
    Layers(usize),
    /// Averages of children, to the owners of their parents.
    Averages,
    /// Flux registers of faces to the finer level, to the owners of the coarse patches.
    Faces,
    /// Circulation registers of fine patches, to the owners of the coarse patches.
    Edges,
}

/// Part of an exchange: one bank of one field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HaloRequest {
    /// Index of the field in the exchange.
    pub field: usize,
    pub at: LevelBank,
    pub kind: ExchangeKind,
}

/// A request in flight, with the number of bytes before it.
#[derive(Clone, Copy)]
struct HaloPart {
    request: HaloRequest,
    shape: RowShape,
    /// Bytes per value.
    width: usize,
    sent_before: usize,
    received_before: usize,
}

/// Progress of an exchange.
#[derive(Default)]
enum ExchangeState {
    /// No exchange is in flight.
    #[default]
    Idle,
    /// Messages are in flight.
    Messages(Mutex<Option<PendingMessages>>),
    /// A transfer between devices is in flight.
    Linked,
    /// Messages have arrived.
    OnHost(Messages),
    /// Data has arrived in device memory.
    OnDevice,
}

/// The exchange in flight; there is at most one.
#[derive(Default)]
pub(super) struct HaloInFlight {
    parts: Vec<HaloPart>,
    state: ExchangeState,
    pub counters: LinkCounters,
    /// Unused message buffers.
    spare: Vec<Vec<u8>>,
}

impl Halos {
    /// Starts an exchange of all `requests`. No other exchange may be in flight.
    pub(crate) fn begin(
        &mut self,
        transport: &Transport,
        requests: &[HaloRequest],
        fields: &[&dyn Store],
    ) -> Result<(), DeviceError> {
        self.send(transport, requests, fields, false)
    }

    /// Starts an exchange and waits for it as [`Halos::wait`].
    pub(crate) fn exchange(
        &mut self,
        transport: &Transport,
        requests: &[HaloRequest],
        fields: &[&dyn Store],
    ) -> Result<(), DeviceError> {
        self.send(transport, requests, fields, true)?;
        self.wait(transport.link)
    }

    fn send(
        &mut self,
        transport: &Transport,
        requests: &[HaloRequest],
        fields: &[&dyn Store],
        at_once: bool,
    ) -> Result<(), DeviceError> {
        self.in_flight.parts.clear();
        let (mut sent, mut received) = (0, 0);
        for &request in requests {
            let field = fields[request.field];
            let (shape, width) = (field.shape(), field.value_bytes());
            self.in_flight.parts.push(HaloPart {
                request,
                shape,
                width,
                sent_before: sent,
                received_before: received,
            });
            let [out, into] = self.values(request.at.level, shape, request.kind);
            sent += out * width;
            received += into * width;
        }
        if let Some(device) = self.device.clone() {
            let device = &device;
            self.reserve([sent, received])?;
            self.begin_linked(device, transport.link, at_once, fields)
        } else {
            self.begin_messages(transport, fields)
        }
    }

    /// Returns the route of a level: registers, whole rows, or halo layers.
    ///
    /// For layers it is the list with at least the requested number.
    fn route(&self, level: usize, shape: RowShape, kind: ExchangeKind) -> &HaloRoute {
        let halo = &self.levels[level];
        match kind {
            ExchangeKind::Faces => &halo.faces,
            ExchangeKind::Edges => &halo.edges,
            ExchangeKind::Averages => {
                let mut shapes = self.shapes.iter();
                &halo.averages[shapes.position(|s| *s == shape).expect("a field's")]
            }
            ExchangeKind::Layers(depth) => {
                let mut listed = self.listed.iter();
                let fits = |layers: &HaloLayers| layers.shape == shape && layers.depth >= depth;
                &halo.layers[listed.position(fits).expect("halo widths are registered")]
            }
        }
    }

    /// Returns the number of values sent and received, as counted by pieces.
    pub(super) fn values(&self, level: usize, shape: RowShape, kind: ExchangeKind) -> [usize; 2] {
        let route = self.route(level, shape, kind);
        [route.sends.values(), route.receives.values()]
    }

    fn begin_linked(
        &mut self,
        device: &Device,
        link: Option<&DeviceLink>,
        at_once: bool,
        fields: &[&dyn Store],
    ) -> Result<(), DeviceError> {
        let [mut sends, mut receives] = std::mem::take(&mut self.segments);
        sends.clear();
        receives.clear();
        let addresses = self.buffers.addresses();
        for part in &self.in_flight.parts {
            let HaloRequest { field, at, kind } = part.request;
            let [outgoing, incoming] = part.memory(addresses);
            let route = self.route(at.level, part.shape, kind);
            fields[field].pack_on_device(at, &route.sends.on_device(device, outgoing))?;
            add_segments(&route.sends, outgoing, part.width, &mut sends);
            add_segments(&route.receives, incoming, part.width, &mut receives);
        }
        self.in_flight.state = ExchangeState::OnDevice;
        match link {
            Some(link) if at_once => link.exchange(&sends, &receives)?,
            Some(link) => {
                link.start(&sends, &receives)?;
                self.in_flight.state = ExchangeState::Linked;
            }
            None => {}
        }
        self.segments = [sends, receives];
        Ok(())
    }

    fn begin_messages(
        &mut self,
        transport: &Transport,
        fields: &[&dyn Store],
    ) -> Result<(), DeviceError> {
        let mut spare = std::mem::take(&mut self.in_flight.spare);
        let mut sends: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        let mut receives: BTreeMap<usize, usize> = BTreeMap::new();
        for part in &self.in_flight.parts {
            let HaloRequest { field, at, kind } = part.request;
            let route = self.route(at.level, part.shape, kind);
            for range in &route.sends.peers {
                let empty = || sized(spare.pop(), 0);
                let message = sends.entry(range.peer).or_insert_with(empty);
                let start = message.len();
                message.resize(start + range.values.len() * part.width, 0);
                fields[field].pack(at, route.sends.of(range), &mut message[start..])?;
            }
            for range in &route.receives.peers {
                *receives.entry(range.peer).or_default() += range.values.len() * part.width;
            }
        }
        let message = |(peer, bytes)| Message { peer, bytes };
        let room = |(peer, length)| message((peer, sized(spare.pop(), length)));
        let messages = Messages {
            sends: sends.into_iter().map(message).collect(),
            receives: receives.into_iter().map(room).collect(),
        };
        self.in_flight.start(transport.communicator, messages)?;
        Ok(())
    }

    /// Waits for the exchange in flight: the host for messages, the device for data from the link.
    pub(crate) fn wait(&mut self, link: Option<&DeviceLink>) -> Result<(), DeviceError> {
        self.in_flight.wait(link)
    }

    /// Returns `true` if an exchange is in flight.
    pub(crate) fn is_busy(&self) -> bool {
        !matches!(self.in_flight.state, ExchangeState::Idle)
    }

    /// Unpacks received data after [`Halos::wait`]; `with` passes the field of an index to the closure.
    pub(crate) fn unpack(
        &mut self,
        mut with: impl FnMut(usize, &mut UnpackInto) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let state = std::mem::take(&mut self.in_flight.state);
        let mut read: BTreeMap<usize, usize> = BTreeMap::new();
        let addresses = self.buffers.addresses();
        for part in &self.in_flight.parts {
            let HaloRequest { field, at, kind } = part.request;
            let owned = kind == ExchangeKind::Averages;
            let list = &self.route(at.level, part.shape, kind).receives;
            if let ExchangeState::OnHost(messages) = &state {
                with(field, &mut |field| {
                    set_from(list, messages, &mut read, part.width, |entries, bytes| {
                        field.unpack(at, entries, bytes, owned)
                    })
                })?;
            } else {
                let [_, incoming] = part.memory(addresses);
                let Some(device) = &self.device else {
                    continue;
                };
                let list = list.on_device(device, incoming);
                with(field, &mut |field| field.unpack_on_device(at, &list, owned))?;
            }
        }
        if let ExchangeState::OnHost(messages) = state {
            self.in_flight.keep(messages);
        }
        Ok(())
    }
}

/// Unpacks data into a field.
pub(crate) type UnpackInto<'a> = dyn FnMut(&mut dyn Store) -> Result<(), DeviceError> + 'a;

/// Passes the entries and bytes of each peer to `set`; `read` counts the bytes consumed of each message.
fn set_from(
    list: &TransferList,
    messages: &Messages,
    read: &mut BTreeMap<usize, usize>,
    width: usize,
    mut set: impl FnMut(&[Piece], &[u8]) -> Result<(), DeviceError>,
) -> Result<(), DeviceError> {
    for range in &list.peers {
        let peer = range.peer;
        let found = messages.receives.binary_search_by_key(&peer, |m| m.peer);
        let message = found.map_or(&[][..], |n| &messages.receives[n].bytes);
        let next = read.entry(peer).or_default();
        let start = *next;
        *next += range.values.len() * width;
        set(list.of(range), &message[start..*next])?;
    }
    Ok(())
}

impl HaloPart {
    /// Returns the addresses of its sent and received values.
    fn memory(&self, [outgoing, incoming]: [u64; 2]) -> [u64; 2] {
        [
            outgoing + self.sent_before as u64,
            incoming + self.received_before as u64,
        ]
    }
}

impl HaloInFlight {
    /// Counts messages and starts them.
    fn start(
        &mut self,
        communicator: &dyn Communicator,
        messages: Messages,
    ) -> Result<(), RanksError> {
        let bytes = |list: &[Message]| -> u64 { list.iter().map(|m| m.bytes.len() as u64).sum() };
        self.counters.exchanges += 1;
        self.counters.bytes_sent += bytes(&messages.sends);
        self.counters.bytes_received += bytes(&messages.receives);
        let pending = communicator.start_messages(messages)?;
        self.state = ExchangeState::Messages(Mutex::new(Some(pending)));
        Ok(())
    }

    /// Stores message buffers for reuse.
    fn keep(&mut self, messages: Messages) {
        self.spare.clear();
        let all = messages.sends.into_iter().chain(messages.receives);
        self.spare.extend(all.map(|message| message.bytes));
    }

    fn wait(&mut self, link: Option<&DeviceLink>) -> Result<(), DeviceError> {
        match &mut self.state {
            ExchangeState::Messages(pending) => {
                let pending = pending.get_mut().unwrap_or_else(PoisonError::into_inner);
                if let Some(pending) = pending.take() {
                    let start = Instant::now();
                    let messages = pending.finish();
                    self.counters.waited += start.elapsed().as_secs_f64();
                    self.state = ExchangeState::OnHost(messages?);
                }
            }
            ExchangeState::Linked => {
                if let Some(link) = link {
                    link.finish()?;
                }
                self.state = ExchangeState::OnDevice;
            }
            ExchangeState::Idle | ExchangeState::OnHost(_) | ExchangeState::OnDevice => {}
        }
        Ok(())
    }
}

/// Resizes a reused buffer; its content is unspecified.
fn sized(memory: Option<Vec<u8>>, length: usize) -> Vec<u8> {
    let mut bytes = memory.unwrap_or_default();
    bytes.resize(length, 0);
    bytes
}
