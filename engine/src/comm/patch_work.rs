//! Measures the work of patches: costs that plugins have measured, and particles.

use super::RanksError;
use super::communicator::Message;
use super::patch_components::exchange;
use crate::data::{ParticleKinds, ParticleSet, ParticleSetRef};
use crate::mesh::patch_component::PatchComponents;
use crate::mesh::topology::octet::Octet;
use crate::mesh::{CELLS, Changes, Cost, Topology};
use bevy_ecs::prelude::*;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Work of the patches of this rank.
pub(crate) struct PatchWork<'a> {
    world: &'a World,
    topology: &'a Topology,
    /// Is `true` if patches may have a [`Cost`].
    measured: bool,
    /// Kinds of particles with a work.
    kinds: Vec<&'a dyn ParticleSet>,
}

impl<'a> PatchWork<'a> {
    /// Returns the work of the patches in `world`, or `None` if all patches are equal.
    pub fn of(world: &'a World) -> Option<Self> {
        let kinds = world.resource::<ParticleKinds>().all();
        let kinds = kinds.iter().map(|kind: &ParticleSetRef| kind.of(world));
        let weights = Self {
            world,
            topology: world.resource::<Topology>(),
            measured: world.resource::<PatchComponents>().has::<Cost>(),
            kinds: kinds.filter(|items| items.weight() > 0.0).collect(),
        };
        (weights.measured || !weights.kinds.is_empty()).then_some(weights)
    }

    /// Returns the measured cost of a patch, if any.
    fn measured(&self, row: u32) -> Option<u64> {
        let entity = self.measured.then(|| self.topology.entity(row))?;
        Some(self.world.get::<Cost>(entity)?.work())
    }

    /// Returns the work of the particles in a patch.
    fn items(&self, row: u32) -> u64 {
        let kinds = self.kinds.iter();
        let work = kinds.map(|items| work_of_particles(items.weight(), items.count(row) as u64));
        work.sum()
    }

    /// Returns the work of own patches of a level, in Hilbert order.
    pub fn level(&self, level: usize) -> Vec<u64> {
        let rows = self.topology.rows(level).par_iter().with_min_len(1024);
        let work = |&row: &u32| self.measured(row).unwrap_or(Cost::ONE) + self.items(row);
        rows.map(work).collect()
    }

    /// Returns the octets finer than `level` whose work differs from the default, by ascending key of the parent.
    /// Collective.
    ///
    /// `before` are the own octets so far; `changes` are those of own patches of `level`.
    ///
    /// # Errors
    /// Another rank or the transport has failed.
    pub fn octets(
        &self,
        level: usize,
        before: &[Octet],
        changes: &Changes,
    ) -> Result<Vec<(u64, u64)>, RanksError> {
        let topology = self.topology;
        let mut messages: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        for octet in before {
            let rows = || octet.rows(octet.owned);
            let items: u64 = rows().map(|row| self.items(row)).sum();
            let measured: Vec<Option<u64>> = rows().map(|row| self.measured(row)).collect();
            if items > 0 || measured.iter().any(Option::is_some) {
                let measured = measured.iter().map(|work| work.unwrap_or(Cost::ONE));
                let work = measured.sum::<u64>() + items;
                let peer = topology.partition().owner(level, octet.key);
                let message = messages.entry(peer).or_default();
                message.extend([octet.key, work].into_iter().flat_map(u64::to_le_bytes));
            }
        }
        let received = exchange(self.world, messages)?;
        let words = |message: &Message| bytemuck::pod_collect_to_vec::<u8, u64>(&message.bytes);
        let words: Vec<u64> = received.iter().flat_map(words).collect();
        let told = words.as_chunks().0.iter().map(|&[key, work]| (key, work));
        // New children inherit the measured cost of their parent, and get its particles.
        let new = changes.refine.iter().map(|&row| {
            let measured = self.measured(row).unwrap_or(Cost::ONE);
            (topology.key(row), 8 * measured + self.items(row))
        });
        let mut all: Vec<(u64, u64)> = told.chain(new).collect();
        all.sort_unstable();
        Ok(all)
    }
}

/// Returns the work of `count` particles, each of which equals the work of `weight` cells.
pub(crate) fn work_of_particles(weight: f64, count: u64) -> u64 {
    (weight * count as f64 * (Cost::ONE / CELLS as u64) as f64).round() as u64
}
