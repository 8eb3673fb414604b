//! How much memory there is, and who shares it.

use super::demand::{TABLES, needed, whole_rows};
use super::{LimitSource, MemoryLimit, machine};
use crate::comm::{Ranks, RanksError};
use crate::data::Stores;
use crate::data::device::DeviceTopology;
use crate::device::{ComputeDevice, Device};
use crate::mesh::Topology;
use crate::step::Settings;
use bevy_ecs::prelude::*;

/// The share of the memory found that is left to all else, such as snapshots on their way: one part in so many.
const RESERVE: u64 = 16;

/// Ranks that take their memory from the same place as this one, itself included: from a GPU, or from a host.
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySharers(pub u64);

impl Default for MemorySharers {
    fn default() -> Self {
        Self(1)
    }
}

impl MemorySharers {
    /// Finds who shares the memory of `device`, or of the host where there is none. All ranks call this.
    ///
    /// # Errors
    /// Another rank has failed, or the transport has.
    pub fn find(ranks: &Ranks, device: Option<&Device>) -> Result<Self, RanksError> {
        if ranks.is_single() {
            return Ok(Self(1));
        }
        let own = device.and_then(Device::identity);
        let words = own.map_or_else(Vec::new, |identity| identity.to_vec());
        let all = ranks.communicator().all_gather(&words)?;
        let sharers = match own {
            // an emulated device lives in the host's memory
            None => ranks.communicator().placement().local_size,
            Some(_) => all.iter().filter(|other| **other == words).count(),
        };
        Ok(Self(sharers.max(1) as u64))
    }
}

/// What `run.memory_limit` says.
pub(super) fn limit(world: &World) -> Option<MemoryLimit> {
    let limit = world.resource::<Settings>().run.memory_limit;
    (limit > 0).then_some(MemoryLimit {
        bytes: limit << 20,
        source: LimitSource::Limit,
    })
}

/// Memory that the fields and tables of this rank may take, what they take already included; `None` where nobody says.
pub(super) fn available(world: &World) -> Option<MemoryLimit> {
    let (free, source) = match &world.resource::<ComputeDevice>().device {
        // a device that does not tell is asked again when the memory is taken
        Some(device) => (device.memory().ok().map(|m| m.free), LimitSource::Device),
        None => (machine::free(), LimitSource::Machine),
    };
    let all = free? / world.resource::<MemorySharers>().0 + taken(world);
    Some(MemoryLimit {
        bytes: all - all / RESERVE,
        source,
    })
}

/// Memory of the host that is left to this rank where the fields live on a device; `None` where they do not, or where nobody says.
pub(super) fn host_limit(world: &World) -> Option<MemoryLimit> {
    world.resource::<ComputeDevice>().device.as_ref()?;
    let locals = world
        .resource::<Ranks>()
        .communicator()
        .placement()
        .local_size;
    let all = machine::free()? / locals.max(1) as u64;
    Some(MemoryLimit {
        bytes: all - all / RESERVE,
        source: LimitSource::Machine,
    })
}

/// Bytes that fields, registers and tables of this rank take where the fields live.
fn taken(world: &World) -> u64 {
    let fields = world.resource::<Stores>().all();
    let banks: usize = fields.iter().map(|field| field.of(world).bytes()).sum();
    let more = match world.get_resource::<DeviceTopology>() {
        // what a device has for a field includes its registers
        Some(tables) => tables.bytes() as u64,
        None => {
            let registers: usize = fields.iter().map(|f| f.of(world).register_bytes()).sum();
            registers as u64 + world.resource::<Topology>().capacity() as u64 * TABLES
        }
    };
    banks as u64 + more
}

/// Bytes that the fields and tables of the present patches leave of the room they may take.
#[must_use]
pub fn headroom(world: &World) -> u64 {
    let topology = world.resource::<Topology>();
    let rows = match topology.is_shared() {
        true => whole_rows(topology, 0, 0),
        false => topology.capacity(),
    };
    let ranks = world.resource::<Ranks>().size() as u64;
    let limit = limit(world).map(|room| room.bytes.saturating_sub(needed(world, rows)) / ranks);
    let found = available(world).map(|room| room.bytes.saturating_sub(taken(world)));
    limit.into_iter().chain(found).min().unwrap_or(u64::MAX)
}
