//! Decides which patches are refined, and enforces proper nesting across ranks.

use super::Ranks;
use super::hierarchy::ExchangePlans;
use crate::RanksError;
use bevy_ecs::prelude::*;
use nestar_engine_mesh::{
    Changes, Level, PatchRow, Pinned, RefineRequests, RefinementFlags, Topology,
};

/// Decides which own patches of `level` are refined and which lose their children.
///
/// # Errors
/// Another rank or the transport has failed.
pub fn decide(world: &mut World, level: usize) -> Result<Changes, RanksError> {
    let (staying, closed) = pins(world, level);
    world.resource_scope(|world, mut requests: Mut<RefineRequests>| {
        requests.pin(staying, closed);
        let topology = world.resource::<Topology>();
        let ranks = world.resource::<Ranks>().communicator();
        let plans = world.resource::<ExchangePlans>();
        let mut received = Vec::with_capacity(plans.halo[level].received());
        let sectors = |row| requests.sectors(row);
        plans.halo[level].forward(ranks, sectors, |row, sectors| received.push((row, sectors)))?;
        for (row, sectors) in received {
            requests.set_flags(row, RefinementFlags::of_sectors(sectors));
        }
        requests.prepare(topology, level);
        let back = plans.halo[level].reversed();
        let marks = |row: u32| u8::from(requests.is_required(row));
        back.forward(ranks, marks, |row, mark| {
            requests.require_if(row, mark != 0)
        })?;
        let changes = requests.choose(topology, level);
        if let Some(below) = level.checked_sub(1) {
            let back = plans.halo[below].reversed();
            let marks = |row: u32| u8::from(requests.is_requested(row));
            back.forward(ranks, marks, |row, mark| {
                requests.request_if(row, mark != 0)
            })?;
        }
        Ok(changes)
    })
}

/// Returns own finer patches that must stay, and own patches of `level` that must not be refined.
fn pins(world: &mut World, level: usize) -> (Vec<u32>, Vec<u32>) {
    let (mut staying, mut closed) = (Vec::new(), Vec::new());
    let mut patches = world.query::<(&Level, &PatchRow, &Pinned)>();
    for (at, row, pin) in patches.iter(world) {
        let at = usize::from(at.0);
        if at == level + 1 && pin.stays {
            staying.push(row.0);
        }
        if at == level
            && pin
                .finest
                .is_some_and(|finest| usize::from(finest) <= level)
        {
            closed.push(row.0);
        }
    }
    (staying, closed)
}
