//! Copies of other ranks' patches on their way: what travels is listed when the hierarchy changes, on the device as well, and
//! used until it changes again.
//!
//! Where all ranks have a device, values are packed by kernels, go over the [`Connection`] from device to device and are
//! unpacked by kernels: between changes of the hierarchy nothing is allocated or listed anew, and the host does not wait.
//! Otherwise they go as messages of the ranks.

mod faces;
mod lane;
pub(super) mod layers;
mod moving;
mod split;
mod trip;

pub use split::{Rows, Split};

use super::Ranks;
use super::build::Shares;
use super::link::{self, Connection};
use super::plan::{PeerRows, Plan};
use crate::device::{Buffer, ComputeDevice, Device, DeviceError, LinkCounters, Segment};
use crate::field::pieces::{Packed, Piece};
use crate::field::{FieldOperations, FieldRegistry};
use crate::mesh::Topology;
use crate::mesh::faces::Face;
use crate::ranks::RanksError;
use bevy_ecs::prelude::*;
use lane::{Cargo, Lane, Route};
pub(super) use moving::Arrived;
use split::Splitting;
use std::ops::RangeInclusive;
use std::sync::Arc;
pub(super) use trip::Kind;
use trip::Trip;

/// What travels between this rank and the others for one level.
#[derive(Default)]
struct LevelHalo {
    copies: Route<Piece>,
    layers: Route<Piece>,
    averages: Route<Piece>,
    faces: Route<Face>,
    splitting: Splitting,
    /// Whether only the layers of the copies are up to date.
    partial: bool,
}

/// Memory of the device that segments leave from and arrive in; one exchange uses it at a time.
#[derive(Default)]
struct Harbour {
    outgoing: Option<Buffer<u8>>,
    incoming: Option<Buffer<u8>>,
}

/// What travels between this rank and the others, level by level, and what is under way.
#[derive(Resource, Default)]
pub struct Halos {
    levels: Vec<LevelHalo>,
    /// This rank's, if it has one.
    own_device: Option<Device>,
    /// The same, where all ranks have one.
    device: Option<Device>,
    harbour: Harbour,
    trip: Trip,
    /// Working space: what goes out and comes in.
    segments: [Vec<Segment>; 2],
}

/// Prepares exchanges between the ranks: from device to device where all ranks have one. All ranks call this.
///
/// # Errors
/// Another rank has failed; the device fails.
pub(super) fn prepare(world: &mut World, levels: usize) -> Result<(), RanksError> {
    let own_device = world.get_resource::<ComputeDevice>();
    let own_device = own_device.and_then(|device| device.device.clone());
    let device = connect(world, own_device.clone())?;
    let levels = (0..levels).map(|_| LevelHalo::default()).collect();
    world.insert_resource(Halos {
        levels,
        own_device,
        device,
        ..Halos::default()
    });
    Ok(())
}

/// Links the devices of the ranks where all have one; this rank's `device` then, and the link as [`Connection`] in the world.
fn connect(world: &mut World, device: Option<Device>) -> Result<Option<Device>, RanksError> {
    let ranks = world.resource::<Ranks>().clone();
    if ranks.any(device.is_none())? {
        return Ok(None);
    }
    if let Some(device) = &device {
        let connection = link::connect(&ranks, device)?;
        world.insert_resource(connection);
    }
    Ok(device)
}

/// Lists what travels for `levels` anew, after a change of the hierarchy.
///
/// All ranks call this.
///
/// # Errors
/// The device's memory does not suffice, or it fails; another rank has failed.
pub(super) fn follow(world: &mut World, levels: RangeInclusive<usize>) -> Result<(), RanksError> {
    let fields = world.resource::<FieldRegistry>().operations();
    let (_, width) = packed(world, &fields);
    let ghosts = fields
        .iter()
        .filter_map(|field| field.settles_in_step)
        .max();
    world.resource_scope(|world, mut halos: Mut<Halos>| {
        halos.list(world, levels, ghosts)?;
        Ok(halos.make_room_for_levels(width)?)
    })
}

/// Where each field stands in packed memory, and the bytes of a cell in all of them.
fn packed(world: &World, fields: &[FieldOperations]) -> (Vec<Packed>, usize) {
    let bytes = |field: &FieldOperations| (field.cell_bytes)(world);
    let width = fields.iter().map(bytes).sum();
    let mut before = 0;
    let places = fields.iter().map(|field| {
        let first = before;
        before += bytes(field);
        Packed { width, first }
    });
    (places.collect(), width)
}

impl Halos {
    /// The own rows of `level` in two parts.
    #[must_use]
    pub fn split(&self, level: usize) -> Arc<Split> {
        let halo = self.levels.get(level);
        halo.map_or_else(Arc::default, |halo| halo.splitting.split.clone())
    }

    /// What has travelled so far, but for the patches that went to another rank for good where they went as messages.
    #[must_use]
    pub fn counters(&self, connection: Option<&Connection>) -> LinkCounters {
        connection.map_or(self.trip.counters, |connection| connection.counters())
    }

    /// Whether only the layers of the copies of `level` are up to date that steps read; says what is so from now on.
    pub(super) fn replace_partial(&mut self, level: usize, partial: bool) -> bool {
        std::mem::replace(&mut self.levels[level].partial, partial)
    }

    fn list(
        &mut self,
        world: &World,
        levels: RangeInclusive<usize>,
        ghosts: Option<usize>,
    ) -> Result<(), RanksError> {
        let (topology, shares) = (world.resource::<Topology>(), world.resource::<Shares>());
        let device = self.device.as_ref();
        for (level, halo) in self.levels.iter_mut().enumerate() {
            if !levels.contains(&level) {
                continue;
            }
            list_rows(&mut halo.copies, &shares.copies[level], device)?;
            list_rows(&mut halo.averages, &shares.averages[level], device)?;
            let (plan, faces) = (&shares.faces[level], &mut halo.faces);
            for (lane, lists) in [
                (&mut faces.sends, &plan.sends),
                (&mut faces.receives, &plan.receives),
            ] {
                let lists = lists.iter().map(|(peer, list)| (*peer, &list[..]));
                lane.set(device, lists, |face: &Face, _| *face)?;
            }
            if let Some(ghosts) = ghosts {
                let (layers, copies) = (&mut halo.layers, &halo.copies);
                let read = layers::read(topology, level, ghosts);
                let ranks = world.resource::<Ranks>();
                layers::list(layers, copies, &read, device, ranks)?;
            }
            halo.splitting
                .follow(topology, level, self.own_device.as_ref())?;
        }
        Ok(())
    }

    /// Makes room for any exchange of any level, of `width` bytes a cell in all fields.
    fn make_room_for_levels(&mut self, width: usize) -> Result<(), DeviceError> {
        let most = |values: fn(&LevelHalo) -> [usize; 3]| {
            let mut below = 0;
            // the copies of a level and of the one below may travel together
            let together = self.levels.iter().map(|halo| {
                let [copies, averages, faces] = values(halo);
                let both = copies + std::mem::replace(&mut below, copies);
                both.max(averages).max(faces)
            });
            together.max().unwrap_or(0)
        };
        let sends = most(|halo| {
            [
                halo.copies.sends.values(),
                halo.averaged(),
                halo.faces.sends.values(),
            ]
        });
        let receives = most(|halo| {
            [
                halo.copies.receives.values(),
                halo.averaged(),
                halo.faces.receives.values(),
            ]
        });
        self.make_room([sends * width, receives * width])
    }

    /// Makes room for so many bytes that go out and come in. Nothing may be under way.
    fn make_room(&mut self, bytes: [usize; 2]) -> Result<(), DeviceError> {
        let Some(device) = &self.device else {
            return Ok(());
        };
        let Harbour { outgoing, incoming } = &mut self.harbour;
        for (memory, bytes) in [outgoing, incoming].into_iter().zip(bytes) {
            if memory.as_ref().map_or(0, Buffer::len) < bytes {
                // the old one goes first, to make room
                *memory = None;
                *memory = Some(device.buffer(bytes + bytes / 8)?);
            }
        }
        Ok(())
    }
}

impl LevelHalo {
    /// The most that goes one way of averages, which are sent both ways.
    fn averaged(&self) -> usize {
        let Route { sends, receives } = &self.averages;
        sends.values().max(receives.values())
    }
}

impl Harbour {
    /// Address of what goes out.
    fn outgoing(&self) -> u64 {
        self.outgoing.as_ref().map_or(0, Buffer::address)
    }

    /// Address of what comes in.
    fn incoming(&self) -> u64 {
        self.incoming.as_ref().map_or(0, Buffer::address)
    }
}

fn list_rows(
    route: &mut Route<Piece>,
    plan: &Plan,
    device: Option<&Device>,
) -> Result<(), DeviceError> {
    for (lane, peers) in [
        (&mut route.sends, &plan.sends),
        (&mut route.receives, &plan.receives),
    ] {
        let lists = peers
            .iter()
            .map(|PeerRows { peer, rows }| (*peer, &rows[..]));
        lane.set(device, lists, |row: &u32, before| {
            Piece::whole(*row, before)
        })?;
    }
    Ok(())
}

/// Adds the segments of a lane in `memory`, of `width` bytes a cell in all fields.
fn add_segments<T: Cargo>(lane: &Lane<T>, memory: u64, width: usize, segments: &mut Vec<Segment>) {
    segments.extend(lane.stretches.iter().map(|stretch| Segment {
        peer: stretch.peer,
        address: memory + (stretch.values.start * width) as u64,
        bytes: stretch.values.len() * width,
    }));
}

/// The link of the devices.
fn connection(world: &World) -> Option<&Connection> {
    world.get_resource::<Connection>()
}
