//! Collective decisions about patches that do not fit into memory.

use super::demand::{
    RegridDemand, consumers, field_bytes, needed, particle_bytes, pending_particle_bytes,
    rows_per_rank, total_rows,
};
use super::machine::{available, host_limit, limit};
use super::{FIELDS, LimitSource, MemoryGuard, MemoryLimit, Shortage};
use crate::Settings;
use crate::config::OutOfMemory;
use bevy_ecs::prelude::*;
use nestar_engine_comm::{Ranks, RanksError, Reduction};
use nestar_engine_mesh::{Changes, Topology};

/// Result of the memory check: `None` without changes, a shortage that forbids them, or the permitted
/// changes.
pub type MemoryDecision = Option<Result<Changes, Shortage>>;

/// Limits the changes of `level`'s patches to the available memory, as `run.out_of_memory` demands.
/// Collective: each rank passes the changes of its own patches in Hilbert order, and all take the same
/// decision. `None`: no rank changes anything.
///
/// `run.memory_limit` counts every patch once and admits the first patches along the Hilbert curve, so the
/// number of ranks has no effect. Limits of machines and devices are predicted per rank.
///
/// # Errors
/// Another rank has failed, or the transport has.
pub fn limit_to_memory(
    world: &mut World,
    level: usize,
    mut changes: Changes,
) -> Result<MemoryDecision, RanksError> {
    let ranks = world.resource::<Ranks>().clone();
    let mut counts = [changes.refine.len() as u64, changes.coarsen.len() as u64];
    ranks.communicator().reduce(Reduction::Sum, &mut counts)?;
    let [refined, coarsened] = counts;
    if refined + coarsened == 0 {
        return Ok(None);
    }
    let (own, shortage) = count_fitting(world, level, refined, coarsened);
    let (most, shortage) = agree_on_fit(&ranks, own, shortage, refined)?;
    let Some(shortage) = shortage else {
        return Ok(Some(Ok(changes)));
    };
    if world.resource::<Settings>().run.out_of_memory == OutOfMemory::Stop {
        return Ok(Some(Err(shortage)));
    }
    let before = patches_before(&ranks, changes.refine.len())?;
    let rest = most.saturating_sub(before) as usize;
    changes.refine.truncate(rest);
    let mut guard = world.resource_mut::<MemoryGuard>();
    guard.capped += refined - most;
    guard.first_cap.get_or_insert(shortage);
    Ok((most + coarsened > 0).then_some(Ok(changes)))
}

/// Returns how many of `refined` octets fit on this rank, and the shortage that excludes the others.
fn count_fitting(
    world: &World,
    level: usize,
    refined: u64,
    coarsened: u64,
) -> (u64, Option<Shortage>) {
    let topology = world.resource::<Topology>();
    let shortage = |needed, memory: MemoryLimit, rank| Shortage {
        consumers: match memory.source {
            LimitSource::Limit => consumers(world),
            _ => FIELDS.into(),
        },
        needed,
        particles: match memory.source {
            LimitSource::Limit => particle_bytes(world, 1, 1),
            _ => 0,
        },
        limit: memory,
        level: level + 1,
        patches: 8 * refined,
        rank,
        resumable: false,
    };
    let mut result = (refined, None);
    let whole = |octets| needed(world, total_rows(topology, octets, coarsened));
    if let Some(memory) = limit(world) {
        // a hierarchy that does not grow always fits
        let fits = |octets| octets <= coarsened || whole(octets) <= memory.bytes;
        let most = largest(refined, fits);
        if most < refined {
            result = (most, Some(shortage(whole(refined), memory, None)));
        }
    }
    let demand = RegridDemand::new(world, level, coarsened);
    let stored = topology.capacity();
    // existing rows need no memory: the machine is asked only if more are needed
    if demand.rows(result.0) > stored
        && let Some(memory) = available(world)
    {
        let fits = |octets| demand.rows(octets) <= stored || demand.bytes(octets) <= memory.bytes;
        let most = largest(result.0, fits);
        if most < result.0 {
            let rank = world.resource::<Ranks>().rank_for_messages();
            result = (most, Some(shortage(demand.bytes(refined), memory, rank)));
        }
    }
    result
}

/// Finds the largest number up to `most` that fits, by bisection. All numbers below a fitting one must fit.
fn largest(most: u64, fits: impl Fn(u64) -> bool) -> u64 {
    if fits(most) {
        return most;
    }
    let (mut low, mut high) = (0, most);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match fits(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// Returns the number of octets that fit on all ranks, and the shortage of the first rank that limits it.
fn agree_on_fit(
    ranks: &Ranks,
    own: u64,
    shortage: Option<Shortage>,
    wanted: u64,
) -> Result<(u64, Option<Shortage>), RanksError> {
    let mut most = [own];
    ranks.communicator().reduce(Reduction::Min, &mut most)?;
    let [most] = most;
    if most == wanted {
        return Ok((most, None));
    }
    let shortage = shortage.filter(|_| own == most);
    Ok((most, first(ranks, shortage)?))
}

/// Returns the shortage of the first rank that has one. Collective.
fn first(ranks: &Ranks, own: Option<Shortage>) -> Result<Option<Shortage>, RanksError> {
    let communicator = ranks.communicator();
    let mut reporter = [own.as_ref().map_or(u64::MAX, |_| ranks.rank() as u64)];
    communicator.reduce(Reduction::Min, &mut reporter)?;
    let [reporter] = reporter;
    if reporter == u64::MAX {
        return Ok(own);
    }
    let mut message = serde_json::to_vec(&own).unwrap_or_default();
    communicator.broadcast(reporter as usize, &mut message)?;
    let broken =
        |e| RanksError::Transport(format!("a message about missing memory is damaged: {e}"));
    serde_json::from_slice(&message).map_err(broken)
}

/// Returns the number of patches that lower ranks want to refine.
fn patches_before(ranks: &Ranks, own: usize) -> Result<u64, RanksError> {
    let all = ranks
        .communicator()
        .all_gather(&(own as u64).to_le_bytes())?;
    let numbers = all[..ranks.rank()].iter().filter_map(|bytes| {
        let word = bytes.as_slice().try_into().ok()?;
        Some(u64::from_le_bytes(word))
    });
    Ok(numbers.sum())
}

/// Returns the shortage if a hierarchy of `rows` rows down to `level` does not fit. Collective.
///
/// # Errors
/// Another rank has failed, or the transport has.
pub fn shortage(world: &World, rows: usize, level: usize) -> Result<Option<Shortage>, RanksError> {
    let ranks = world.resource::<Ranks>();
    let rank = ranks.rank_for_messages();
    let part = rows_per_rank(rows, ranks.size());
    let particles = pending_particle_bytes(world, part, ranks.size());
    let domain = world.resource::<Topology>().domain;
    let lacks = |(needed, particles), memory: Option<MemoryLimit>, rank| {
        let memory = memory.filter(|memory| memory.bytes < needed)?;
        Some(Shortage {
            consumers: consumers(world),
            needed,
            particles,
            limit: memory,
            level,
            patches: match level {
                0 => domain.root.iter().map(|&n| n as u64).product(),
                _ => rows as u64,
            },
            rank,
            resumable: false,
        })
    };
    let beside = host_limit(world);
    let with = beside.map_or(particles, |_| 0);
    let together = (field_bytes(world, part).saturating_add(with), with);
    let whole = (needed(world, rows), particle_bytes(world, rows, 1));
    let own = lacks(whole, limit(world), None)
        .or_else(|| lacks(together, available(world), rank))
        .or_else(|| lacks((particles, particles), beside, rank));
    first(ranks, own)
}

#[cfg(test)]
mod tests {
    use super::largest;

    #[test]
    fn the_largest_that_fits_is_found() {
        for limit in 0..9 {
            assert_eq!(largest(8, |n| n <= limit), limit.min(8));
        }
        assert_eq!(largest(5, |_| false), 0);
        assert_eq!(largest(0, |_| false), 0);
    }
}
