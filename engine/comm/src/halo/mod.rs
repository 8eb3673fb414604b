//! Exchanges halo patches between ranks.
//!
//! Exchange lists are built after each change of the hierarchy, also on the device. If all ranks have a device,
//! kernels pack the values, the [`Connection`] moves them between devices, and kernels unpack them. Between regrids
//! nothing is allocated and the host does not wait. Without devices, values are sent as messages of the communicator.

mod in_flight;
pub(super) mod layers;
mod row_transfer;

use super::device_link::Connection;
use super::exchange_plan::{ExchangePlan, PeerRows};
use super::hierarchy::ExchangePlans;
use super::{Communicator, Ranks, device_link};
use crate::RanksError;
use bevy_ecs::prelude::*;
use in_flight::HaloInFlight;
pub(super) use in_flight::{ExchangeKind, HaloRequest};
use nestar_engine_data::{Correct, DevicePieces, HaloLayers, Piece, RowShape, Stores};
use nestar_engine_device::{
    ComputeDevice, Device, DeviceError, DeviceLink, LinkCounters, ReusableBuffer, Segment,
};
use nestar_engine_mesh::Topology;
use nestar_engine_mesh::topology::shared_hierarchy::{NeighbourLevel, Octet};
use nestar_kernels::PATCH;
use nestar_kernels::mesh::{COARSER, Centring};
use rayon::prelude::*;
pub(super) use row_transfer::ReceivedRows;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// Pieces of registers are boxes of cells of patches of 8^3 cells.
const REGISTERS: RowShape = RowShape {
    side: PATCH,
    centring: Centring::Cell,
};

/// Part of a list for one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PeerRange {
    pub peer: usize,
    /// Range of entries.
    pub entries: Range<usize>,
    /// Range of values per component, counted from the start of the list.
    pub values: Range<usize>,
}

/// Entries of one direction, ordered by peer.
#[derive(Default)]
struct TransferList {
    pub entries: Vec<Piece>,
    pub peers: Vec<PeerRange>,
    device_entries: ReusableBuffer<Piece>,
}

impl TransferList {
    /// Replaces all entries; `lists` is in ascending order of peers.
    ///
    /// `entry` creates an entry from a list element and the number of values before it, in stores of `shape`.
    pub fn set<'a, S: 'a>(
        &mut self,
        device: Option<&Device>,
        shape: RowShape,
        lists: impl Iterator<Item = (usize, &'a [S])>,
        entry: impl Fn(&S, u64) -> Piece,
    ) -> Result<(), DeviceError> {
        self.entries.clear();
        self.peers.clear();
        let mut values = 0;
        for (peer, list) in lists.filter(|(_, list)| !list.is_empty()) {
            let (first, start) = (self.entries.len(), values);
            for one in list {
                let made = entry(one, values as u64);
                values += made.values(shape);
                self.entries.push(made);
            }
            self.peers.push(PeerRange {
                peer,
                entries: first..self.entries.len(),
                values: start..values,
            });
        }
        device.map_or(Ok(()), |device| {
            self.device_entries.set(device, &self.entries)
        })
    }

    /// Returns the entries of a peer.
    pub fn of(&self, range: &PeerRange) -> &[Piece] {
        &self.entries[range.entries.clone()]
    }

    /// Returns the list on the device, for values packed at `memory`.
    pub fn on_device<'a>(&'a self, device: &'a Device, memory: u64) -> DevicePieces<'a> {
        DevicePieces {
            entries: &self.entries,
            device,
            list: self.device_entries.address(),
            memory,
            stride: 0,
        }
    }

    /// Returns the total number of values per component.
    pub fn values(&self) -> usize {
        self.peers.last().map_or(0, |last| last.values.end)
    }
}

/// Lists of both directions.
#[derive(Default)]
struct HaloRoute {
    pub sends: TransferList,
    pub receives: TransferList,
}

/// Routes of one level.
#[derive(Default)]
struct LevelHalo {
    /// Halo patches, for each entry of [`Halos::listed`].
    layers: Vec<HaloRoute>,
    /// Whole rows, for each entry of [`Halos::shapes`].
    averages: Vec<HaloRoute>,
    faces: HaloRoute,
    edges: HaloRoute,
    device_split: DeviceSplit,
}

/// Device memory of packed values, used by one exchange at a time.
#[derive(Default)]
struct DeviceBuffers {
    outgoing: ReusableBuffer<u8>,
    incoming: ReusableBuffer<u8>,
}

/// Exchange lists of all levels, and the exchange in flight.
#[derive(Resource, Default)]
pub struct Halos {
    levels: Vec<LevelHalo>,
    /// Halo widths with lists, ascending.
    listed: Vec<HaloLayers>,
    /// Row shapes of these widths.
    shapes: Vec<RowShape>,
    /// Device of this rank, if any.
    own_device: Option<Device>,
    /// Device of this rank if all ranks have one.
    device: Option<Device>,
    buffers: DeviceBuffers,
    in_flight: HaloInFlight,
    /// Scratch lists of sent and received segments.
    segments: [Vec<Segment>; 2],
}

/// Transport of an exchange.
pub(super) struct Transport<'a> {
    pub communicator: &'a dyn Communicator,
    pub link: Option<&'a DeviceLink>,
}

impl<'a> Transport<'a> {
    /// Creates the transport of `ranks`, over the link between devices if there is one.
    pub fn new(ranks: &'a Ranks, connection: Option<&'a Connection>) -> Self {
        Self {
            communicator: ranks.communicator(),
            link: connection.map(|link| &**link),
        }
    }

    /// Returns the transport of `world`.
    pub fn of(world: &'a World) -> Self {
        Self::new(
            world.resource::<Ranks>(),
            world.get_resource::<Connection>(),
        )
    }
}

/// Prepares exchanges between ranks, directly between devices if all ranks have one. Collective.
///
/// # Errors
/// Another rank or the device has failed.
pub(super) fn prepare(world: &mut World, levels: usize) -> Result<(), RanksError> {
    let own_device = world.get_resource::<ComputeDevice>();
    let own_device = own_device.and_then(|device| device.device.clone());
    let device = connect(world, own_device.clone())?;
    let levels = (0..levels).map(|_| LevelHalo::default()).collect();
    let registry = world.resource::<Stores>();
    let listed = registry.layers(world);
    let mut shapes: Vec<RowShape> = listed.iter().map(|layers| layers.shape).collect();
    shapes.sort_unstable();
    shapes.dedup();
    world.insert_resource(Halos {
        levels,
        listed,
        shapes,
        own_device,
        device,
        ..Halos::default()
    });
    Ok(())
}

/// Links the devices if there are several ranks and all have one; inserts the [`Connection`] and returns `device` in
/// that case.
fn connect(world: &mut World, device: Option<Device>) -> Result<Option<Device>, RanksError> {
    let ranks = world.resource::<Ranks>().clone();
    if ranks.any(device.is_none())? || ranks.is_single() {
        return Ok(None);
    }
    if let Some(device) = &device {
        let connection = device_link::connect(&ranks, device)?;
        world.insert_resource(connection);
    }
    Ok(device)
}

/// Rebuilds the lists of `levels` after a change of the hierarchy. Collective.
///
/// # Errors
/// The device has failed or its memory does not suffice; another rank has failed.
pub(super) fn update_lists(
    world: &mut World,
    levels: RangeInclusive<usize>,
) -> Result<(), RanksError> {
    world.resource_scope(|world, mut halos: Mut<Halos>| {
        halos.list(world, levels)?;
        Ok(halos.reserve_for_levels(world)?)
    })
}

impl Halos {
    /// Returns own rows of `level`, split into interior and boundary; empty if the level has no exchange.
    #[must_use]
    pub fn split(&self, level: usize) -> Arc<LevelSplit> {
        let halo = self.levels.get(level);
        halo.map_or_else(Arc::default, |halo| halo.device_split.split.clone())
    }

    /// Returns the traffic so far. Patches that moved to other ranks as messages are not counted.
    #[must_use]
    pub fn counters(&self, connection: Option<&Connection>) -> LinkCounters {
        connection.map_or(self.in_flight.counters, |connection| connection.counters())
    }

    fn list(&mut self, world: &World, levels: RangeInclusive<usize>) -> Result<(), RanksError> {
        let (topology, plans) = (
            world.resource::<Topology>(),
            world.resource::<ExchangePlans>(),
        );
        let device = self.device.as_ref();
        let levels = *levels.start()..self.levels.len().min(levels.end() + 1);
        let reads = layers::HaloReads::new(topology, levels.clone());
        for level in levels.clone() {
            let halo = &mut self.levels[level];
            halo.averages
                .resize_with(self.shapes.len(), HaloRoute::default);
            for (averages, shape) in halo.averages.iter_mut().zip(&self.shapes) {
                list_rows(
                    averages,
                    *shape,
                    &plans.averages[level],
                    device,
                    |row, before| Piece::whole(row, before, *shape),
                )?;
            }
            list_rows(
                &mut halo.edges,
                REGISTERS,
                &plans.edges[level],
                device,
                Piece::circulations,
            )?;
            let (plan, faces) = (&plans.faces[level], &mut halo.faces);
            for (list, faces) in [
                (&mut faces.sends, &plan.sends),
                (&mut faces.receives, &plan.receives),
            ] {
                let faces = faces.iter().map(|(peer, faces)| (*peer, &faces[..]));
                list.set(device, REGISTERS, faces, |&(row, face), before| {
                    Piece::register(row, face, before)
                })?;
            }
            let device = self.own_device.as_ref();
            match plans.has_halo(level) {
                true => halo.device_split.update(topology, level, device)?,
                false => halo.device_split.clear(),
            }
            reads.record(topology, level);
        }
        let halo_plans = &plans.halo[levels.clone()];
        let requests = layers::exchange_sides(halo_plans, &reads, world.resource::<Ranks>())?;
        for (halo, requests) in self.levels[levels].iter_mut().zip(requests) {
            halo.layers
                .resize_with(self.listed.len(), HaloRoute::default);
            for (route, layers) in halo.layers.iter_mut().zip(&self.listed) {
                layers::list(route, layers, &requests, device)?;
            }
        }
        Ok(())
    }

    /// Reserves buffers for the usual exchanges of all fields: layers of two levels, or averages and registers of one.
    fn reserve_for_levels(&mut self, world: &World) -> Result<(), DeviceError> {
        if self.device.is_none() {
            return Ok(());
        }
        let fields = world.resource::<Stores>().all();
        let bytes = |level, kind| {
            let mut sum = [0; 2];
            for operations in &fields {
                let field = operations.of(world);
                let kind = match kind {
                    ExchangeKind::Layers(_) => ExchangeKind::Layers(operations.depth),
                    ExchangeKind::Faces if field.spec().correct == Correct::Circulations => {
                        ExchangeKind::Edges
                    }
                    other => other,
                };
                let values = self.values(level, field.shape(), kind);
                for (sum, values) in sum.iter_mut().zip(values) {
                    *sum += values * field.value_bytes();
                }
            }
            sum
        };
        let (mut most, mut below) = ([0; 2], [0; 2]);
        for level in 0..self.levels.len() {
            let layers = bytes(level, ExchangeKind::Layers(0));
            let (averages, registers) = (
                bytes(level, ExchangeKind::Averages),
                bytes(level, ExchangeKind::Faces),
            );
            for side in 0..2 {
                let both = layers[side] + std::mem::replace(&mut below[side], layers[side]);
                most[side] = most[side].max(both).max(averages[side] + registers[side]);
            }
        }
        self.reserve(most)
    }

    /// Reserves buffers for the given numbers of bytes sent and received. No exchange may be in flight.
    fn reserve(&mut self, bytes: [usize; 2]) -> Result<(), DeviceError> {
        let Some(device) = &self.device else {
            return Ok(());
        };
        let DeviceBuffers { outgoing, incoming } = &mut self.buffers;
        for (memory, bytes) in [outgoing, incoming].into_iter().zip(bytes) {
            memory.provide(device, bytes)?;
        }
        Ok(())
    }
}

impl DeviceBuffers {
    /// Returns the addresses of the outgoing and the incoming buffer.
    fn addresses(&self) -> [u64; 2] {
        [&self.outgoing, &self.incoming].map(ReusableBuffer::address)
    }
}

fn list_rows(
    route: &mut HaloRoute,
    shape: RowShape,
    plan: &ExchangePlan,
    device: Option<&Device>,
    piece: impl Fn(u32, u64) -> Piece,
) -> Result<(), DeviceError> {
    for (list, peers) in [
        (&mut route.sends, &plan.sends),
        (&mut route.receives, &plan.receives),
    ] {
        let lists = peers
            .iter()
            .map(|PeerRows { peer, rows }| (*peer, &rows[..]));
        list.set(device, shape, lists, |row: &u32, before| {
            piece(*row, before)
        })?;
    }
    Ok(())
}

/// Appends the segments that a list sends from or receives at `memory`; a value has `width` bytes.
fn add_segments(list: &TransferList, memory: u64, width: usize, segments: &mut Vec<Segment>) {
    segments.extend(list.peers.iter().map(|part| Segment {
        peer: part.peer,
        address: memory + (part.values.start * width) as u64,
        bytes: part.values.len() * width,
    }));
}

/// Rows of a level and their list on the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowList {
    /// Rows in Hilbert order.
    pub rows: Vec<u32>,
    /// Address of the list on the device; 0 without a device.
    pub device_list: u64,
}

/// Own rows of a level in two parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LevelSplit {
    /// Rows whose ghost cells depend on own patches only.
    pub interior: RowList,
    /// All other rows.
    pub boundary: RowList,
}

impl LevelSplit {
    /// Returns `true` if enough patches are interior to overlap their update with communication.
    #[must_use]
    pub fn is_worth_overlapping(&self) -> bool {
        self.interior.rows.len() > self.boundary.rows.len()
    }
}

/// The split of a level with its lists on the device.
#[derive(Default)]
struct DeviceSplit {
    pub split: Arc<LevelSplit>,
    interior: ReusableBuffer<u32>,
    boundary: ReusableBuffer<u32>,
}

impl DeviceSplit {
    /// Removes all rows from the split.
    pub fn clear(&mut self) {
        self.split = Arc::default();
    }

    /// Updates the split after a change of the hierarchy.
    pub fn update(
        &mut self,
        topology: &Topology,
        level: usize,
        device: Option<&Device>,
    ) -> Result<(), DeviceError> {
        let reading_halo = reading_halo(topology, level);
        let needs = |row: &u32| reading_halo[*row as usize / 8] >> (row % 8) & 1 == 1;
        let (boundary, interior): (Vec<u32>, Vec<u32>) =
            topology.rows(level).iter().partition(|&row| needs(row));
        if let Some(device) = device {
            self.interior.set(device, &interior)?;
            self.boundary.set(device, &boundary)?;
        }
        let listed = |rows, device_list| RowList { rows, device_list };
        self.split = Arc::new(LevelSplit {
            interior: listed(interior, self.interior.address()),
            boundary: listed(boundary, self.boundary.address()),
        });
        Ok(())
    }
}

/// Returns, by octet (row
/// 8), the mask of own patches that read halo patches.
fn reading_halo(topology: &Topology, level: usize) -> Vec<u8> {
    let near = |octet: &&Octet| {
        octet.is_near(NeighbourLevel::Same) || octet.is_near(NeighbourLevel::Coarser)
    };
    let octets = topology.octets(level).par_iter().with_min_len(64);
    let owned = octets.filter(|octet| octet.owned != 0).filter(near);
    let marked = owned.map(|octet| {
        let needs = octet
            .rows(octet.owned)
            .filter(|&row| reads_halo(topology, row));
        (octet.first, needs.map(|row| 1 << (row % 8)).sum::<u8>())
    });
    let mut reading_halo = vec![0; topology.capacity() / 8];
    for (first, marks) in marked.collect::<Vec<_>>() {
        reading_halo[first as usize / 8] = marks;
    }
    reading_halo
}

/// Returns `true` if ghost cells of an own patch depend on halo patches.
fn reads_halo(topology: &Topology, row: u32) -> bool {
    let touches = |row: u32| {
        let around = topology.neighbours(row).iter();
        let mut rows = around.filter_map(|&row| u32::try_from(row).ok());
        rows.any(|row| !topology.is_owned(row))
    };
    if touches(row) {
        return true;
    }
    // The parent may be a halo patch itself; it is among its own 27 neighbours.
    let interpolates = topology.neighbours(row).contains(&COARSER);
    let parent = topology.parent(row).filter(|_| interpolates);
    parent.is_some_and(touches)
}
