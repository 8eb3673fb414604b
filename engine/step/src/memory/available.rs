//! Available memory and the ranks that share it.

use super::demand::{TABLES, needed, total_rows};
use super::{LimitSource, MemoryLimit, machine};
use crate::Settings;
use bevy_ecs::prelude::*;
use nestar_engine_comm::{Ranks, RanksError};
use nestar_engine_data::Stores;
use nestar_engine_data::device::DeviceTopology;
use nestar_engine_device::{ComputeDevice, Device};
use nestar_engine_mesh::Topology;

/// Reciprocal of the fraction of memory reserved for other uses, such as snapshots in transit.
const RESERVE: u64 = 16;

/// Number of ranks that share the memory of this rank's device or host, including this rank.
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySharers(pub u64);

impl Default for MemorySharers {
    fn default() -> Self {
        Self(1)
    }
}

impl MemorySharers {
    /// Counts the ranks that share the memory of `device`, or of the host without a device. Collective.
    ///
    /// # Errors
    /// Another rank has failed, or the transport has.
    pub fn find(ranks: &Ranks, device: Option<&Device>) -> Result<Self, RanksError> {
        let own = device.and_then(Device::identity);
        let words = own.map_or_else(Vec::new, |identity| identity.to_vec());
        let all = ranks.communicator().all_gather(&words)?;
        let sharers = match own {
            // an emulated device uses host memory
            None => ranks.communicator().placement().local_size,
            Some(_) => all.iter().filter(|other| **other == words).count(),
        };
        Ok(Self(sharers.max(1) as u64))
    }
}

/// Returns the limit set by `run.memory_limit`.
pub(super) fn limit(world: &World) -> Option<MemoryLimit> {
    let limit = world.resource::<Settings>().run.memory_limit;
    (limit > 0).then_some(MemoryLimit {
        bytes: limit << 20,
        source: LimitSource::Limit,
    })
}

/// Returns the memory available to the fields and tables of this rank, including what they use already;
/// `None` if unknown.
pub(super) fn available(world: &World) -> Option<MemoryLimit> {
    let (free, source) = match &world.resource::<ComputeDevice>().device {
        // if a device reports no memory, its allocations decide
        Some(device) => (device.memory().ok().map(|m| m.free), LimitSource::Device),
        None => (machine::free(), LimitSource::Machine),
    };
    let all = free? / world.resource::<MemorySharers>().0 + used_bytes(world);
    Some(MemoryLimit {
        bytes: all - all / RESERVE,
        source,
    })
}

/// Returns the host memory available to this rank if the fields are on a device; `None` without a device or
/// if unknown.
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

/// Returns the bytes that fields, registers and tables of this rank use.
fn used_bytes(world: &World) -> u64 {
    let fields = world.resource::<Stores>().all();
    let banks: usize = fields.iter().map(|field| field.of(world).bytes()).sum();
    let more = match world.get_resource::<DeviceTopology>() {
        // device fields include their registers
        Some(tables) => tables.bytes() as u64,
        None => {
            let registers: usize = fields.iter().map(|f| f.of(world).register_bytes()).sum();
            registers as u64 + world.resource::<Topology>().capacity() as u64 * TABLES
        }
    };
    banks as u64 + more
}

/// Returns the bytes that the fields and tables of the present patches leave free.
#[must_use]
pub fn headroom(world: &World) -> u64 {
    let topology = world.resource::<Topology>();
    let rows = total_rows(topology, 0, 0);
    let ranks = world.resource::<Ranks>().size() as u64;
    let limit = limit(world).map(|room| room.bytes.saturating_sub(needed(world, rows)) / ranks);
    let found = available(world).map(|room| room.bytes.saturating_sub(used_bytes(world)));
    limit.into_iter().chain(found).min().unwrap_or(u64::MAX)
}
