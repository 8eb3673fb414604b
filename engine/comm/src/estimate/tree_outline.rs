//! Outline of a whole hierarchy: only the positions of its patches. Builds the parts that ranks would have of it.

use crate::RanksError;
use crate::exchange_plan::ExchangePlan;
use crate::hierarchy::{ExchangePlans, OctetPart, PatchOwners, Proposal, rebuild, root_part};
use crate::partition::{PLAIN_OCTET_WORK, PartitionStarts, work_of_particles};
use nestar_engine_mesh::partition::{bits_for, hilbert_index, hilbert_key};
use nestar_engine_mesh::topology::shared_hierarchy::{Octet, side};
use nestar_engine_mesh::{Cost, Domain, HilbertPartition, PATCH, RootCurve, Topology};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Number of cells of a patch along an axis.
const SIDE: i32 = PATCH as i32;

/// Particles in a patch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PatchLoad {
    pub key: u64,
    pub count: u64,
    /// Work in units of [`LevelWork`](nestar_engine_mesh::LevelWork).
    pub work: u64,
}

/// Patches of a whole hierarchy; takes 8 bytes per patch with children.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeOutline {
    pub(super) domain: Domain,
    /// By level: ascending keys of patches with children; not for the finest level.
    pub(super) parents: Vec<Vec<u64>>,
    /// By level, in ascending order of keys: loads of patches with particles; empty without particles.
    pub(super) loads: Vec<Vec<PatchLoad>>,
}

impl TreeOutline {
    /// Creates the outline of a root grid.
    #[must_use]
    pub fn new(domain: Domain) -> Self {
        Self {
            domain,
            parents: Vec::new(),
            loads: Vec::new(),
        }
    }

    /// Creates the outline of the hierarchy of `topology`.
    ///
    /// # Panics
    /// `topology` is one rank's part of a shared hierarchy.
    #[must_use]
    pub fn of(topology: &Topology) -> Self {
        assert!(
            !topology.is_shared(),
            "an outline needs the whole hierarchy"
        );
        let mut outline = Self::new(topology.domain);
        for level in 0..=topology.finest() {
            let rows = topology.rows(level).iter();
            let patches = rows.map(|&row| (topology.origin(row), topology.is_leaf(row)));
            let fits = outline.refine(&patches.collect::<Vec<_>>());
            fits.expect("patches are children of coarser patches");
        }
        outline
    }

    /// Adds the next level: the children of those patches of the finest level that are not leaves.
    ///
    /// `patches` lists the finest level in Hilbert order: the first cell of each patch and whether it is a leaf.
    ///
    /// # Errors
    /// The patches are not those of the finest level.
    pub fn refine(&mut self, patches: &[([i32; 3], bool)]) -> Result<(), String> {
        let level = self.parents.len();
        let bits = bits_for(self.domain.root, level);
        let cells = self.domain.cells(level);
        let key = |(n, (origin, leaf)): (usize, &([i32; 3], bool))| {
            let place = |a: usize| (0..cells[a]).contains(&origin[a]) && origin[a] % SIDE == 0;
            let key = hilbert_key(origin.map(|i| (i / SIDE) as u32), bits);
            let parent = |coarser: usize| self.parents[coarser].get(n / 8) == Some(&(key >> 3));
            let fits = (0..3).all(place) && level.checked_sub(1).is_none_or(parent);
            fits.then_some((key, *leaf))
        };
        let patches = patches.par_iter().enumerate().with_min_len(1024);
        let keys: Option<Vec<(u64, bool)>> = patches.map(key).collect();
        let expected = |keys: &Vec<(u64, bool)>| {
            keys.len() == self.patches(level) && keys.is_sorted_by(|a, b| a.0 < b.0)
        };
        let keys = keys.filter(expected).ok_or_else(|| {
            format!(
                "the patches of level {level} are not the children of the refined coarser patches"
            )
        })?;
        let refined = keys.iter().filter(|(_, leaf)| !leaf);
        let refined: Vec<u64> = refined.map(|(key, _)| *key).collect();
        if !refined.is_empty() {
            self.parents.push(refined);
        }
        Ok(())
    }

    /// Returns the number of levels with patches.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.parents.len() + 1
    }

    /// Returns the number of patches of `level`.
    #[must_use]
    pub fn patches(&self, level: usize) -> usize {
        match level.checked_sub(1) {
            Some(coarser) => 8 * self.parents[coarser].len(),
            None => self.domain.root.iter().map(|&n| n as usize).product(),
        }
    }

    /// Returns an even partition of all levels, as made by [`crate::hierarchy::propose_level`].
    #[must_use]
    pub fn cuts(&self, ranks: usize) -> HilbertPartition {
        let mut cuts = HilbertPartition::new(self.domain.root, ranks, self.levels());
        if !self.loads.is_empty() {
            let keys = self.keys(0);
            let plain = keys.iter().map(|&key| (key, Cost::ONE));
            let loads = self.loads[0].iter().map(|load| (load.key, load.work));
            cuts.set(0, starts(plain, loads, ranks));
        }
        for (level, parents) in (1..).zip(&self.parents) {
            let plain = parents.iter().map(|key| (key << 3, PLAIN_OCTET_WORK));
            let loads = self.loads(level, 0..u64::MAX).iter();
            let loads = loads.map(|load| (load.key & !7, load.work));
            cuts.set(level, starts(plain, loads, ranks));
        }
        cuts
    }

    /// Builds the part of `rank` in the partition `cuts`.
    pub(super) fn part(
        &self,
        cuts: &Arc<HilbertPartition>,
        rank: usize,
    ) -> (Topology, ExchangePlans) {
        let mut topology = Topology::new(self.domain, self.parents.len());
        let mut plans = ExchangePlans::default();
        topology.share_among_ranks(rank, cuts.clone());
        self.build(&mut topology, &mut plans)
            .expect("requests to an outline cannot fail");
        (topology, plans)
    }

    fn build(&self, topology: &mut Topology, plans: &mut ExchangePlans) -> Result<(), RanksError> {
        root_part(topology, self, plans)?;
        for (level, parents) in self.parents.iter().enumerate() {
            let held = topology.octets(level).iter();
            let own: Vec<Octet> = held.filter(|octet| octet.owned != 0).copied().collect();
            for octet in own {
                let refined = self.refined(level, octet.key);
                topology.set_refined(octet.rows(octet.owned), refined);
            }
            let keys = topology.partition().keys(level + 1, topology.rank());
            let before = |key: u64| parents.partition_point(|&parent| parent << 3 < key);
            let own = parents[before(keys.start)..before(keys.end)].iter();
            let octets = own.map(|&key| (key, true)).collect();
            let proposal = Proposal { octets, cut: false };
            rebuild(topology, self, plans, level + 1, &proposal, &[])?;
        }
        Ok(())
    }

    /// Returns the mask (z y x) of patches with children in the octet with `key` of `level`.
    fn refined(&self, level: usize, key: u64) -> u8 {
        let parents = self.parents.get(level).map_or(&[][..], Vec::as_slice);
        let first = parents.partition_point(|parent| parent >> 3 < key);
        let bits = bits_for(self.domain.root, level);
        let these = parents[first..]
            .iter()
            .take_while(|&parent| parent >> 3 == key);
        let place = |&parent: &u64| hilbert_index(parent, bits).map(|i| i as i32);
        these.map(|parent| 1 << side(place(parent))).sum()
    }
}

/// Returns the first key of each rank's range on a level.
///
/// `plain` lists the first key and the work of each unit, `more` additional work inside units. Both are ascending.
fn starts(
    plain: impl Iterator<Item = (u64, u64)>,
    more: impl Iterator<Item = (u64, u64)>,
    ranks: usize,
) -> Vec<u64> {
    let mut more = more.peekable();
    let (keys, work): (Vec<u64>, Vec<u64>) = plain
        .map(|(key, mut work)| {
            while let Some((_, own)) = more.next_if(|(other, _)| *other <= key) {
                work += own;
            }
            (key, work)
        })
        .unzip();
    PartitionStarts::new(&keys, &work, 0, work.iter().sum(), ranks).keys
}

impl PatchOwners for TreeOutline {
    fn request_halo(
        &self,
        _: &Topology,
        level: usize,
        wanted: &[(usize, Vec<OctetPart>)],
        _: &mut ExchangePlan,
    ) -> Result<Vec<Vec<u8>>, RanksError> {
        let of_octet = |&(key, _): &OctetPart| self.refined(level, key);
        let of_owner = |(_, parts): &(usize, Vec<OctetPart>)| parts.iter().map(of_octet).collect();
        Ok(wanted.iter().map(of_owner).collect())
    }
}

impl TreeOutline {
    /// Adds particles of a kind; the work of each equals that of `weight` cells.
    ///
    /// `counts` holds the number of particles in each patch, by level in Hilbert order.
    ///
    /// # Errors
    /// The numbers of patches differ.
    pub fn add_counts(&mut self, weight: f64, counts: &[Vec<u32>]) -> Result<(), String> {
        for (level, counts) in counts.iter().enumerate() {
            let keys = self.keys(level);
            if keys.len() != counts.len() {
                return Err(format!("level {level} has {} patches", keys.len()));
            }
            let counts = keys
                .into_iter()
                .zip(counts.iter().map(|&count| u64::from(count)));
            self.add(level, weight, counts.filter(|(_, count)| *count > 0));
        }
        Ok(())
    }

    /// Adds `total` particles of a kind, distributed to leaves as the sample positions `places`.
    ///
    /// Without positions, all patches of the finest level get equal numbers.
    pub fn add_positions(&mut self, weight: f64, total: u64, places: Option<&[[f64; 3]]>) {
        let mut leaves: BTreeMap<(usize, u64), u64> = BTreeMap::new();
        match places {
            Some(places) => places
                .iter()
                .for_each(|place| *leaves.entry(self.leaf(*place)).or_default() += 1),
            None => {
                let finest = self.levels() - 1;
                leaves.extend(self.keys(finest).into_iter().map(|key| ((finest, key), 1)));
            }
        }
        let all = u128::from(leaves.values().sum::<u64>().max(1));
        let mut before = 0;
        // Rounded such that the sum equals the total.
        let share = |before: u64| (u128::from(total) * u128::from(before) / all) as u64;
        let mut by_level = vec![Vec::new(); self.levels()];
        for ((level, key), count) in leaves {
            by_level[level].push((key, share(before + count) - share(before)));
            before += count;
        }
        for (level, counts) in by_level.into_iter().enumerate() {
            self.add(level, weight, counts.into_iter());
        }
    }

    fn add(&mut self, level: usize, weight: f64, counts: impl Iterator<Item = (u64, u64)>) {
        let levels = self.levels();
        self.loads.resize(levels, Vec::new());
        let mut all: BTreeMap<u64, PatchLoad> =
            self.loads[level].iter().map(|l| (l.key, *l)).collect();
        for (key, count) in counts {
            let entry = all.entry(key).or_default();
            entry.key = key;
            entry.count += count;
            entry.work += work_of_particles(weight, count);
        }
        self.loads[level] = all.into_values().collect();
    }

    /// Returns the loads of patches of `level` with keys in a range.
    pub(super) fn loads(&self, level: usize, keys: Range<u64>) -> &[PatchLoad] {
        let all = self.loads.get(level).map_or(&[][..], Vec::as_slice);
        let before = |key: u64| all.partition_point(|load| load.key < key);
        &all[before(keys.start)..before(keys.end)]
    }

    /// Returns the keys of all patches of `level`, ascending.
    pub(super) fn keys(&self, level: usize) -> Vec<u64> {
        let Some(coarser) = level.checked_sub(1) else {
            let mut keys = Vec::new();
            RootCurve::of(self.domain.root).each(&(0..u64::MAX), &mut |key| keys.push(key));
            return keys;
        };
        let parents = self.parents[coarser].iter();
        parents.flat_map(|key| key << 3..(key + 1) << 3).collect()
    }

    /// Returns the level and key of the leaf that contains a position.
    fn leaf(&self, place: [f64; 3]) -> (usize, u64) {
        let key = |level: usize| {
            let width = self.domain.cell_width(level);
            let index = std::array::from_fn(|axis| {
                let along =
                    (place[axis] - self.domain.left_edge[axis]) / width[axis] / PATCH as f64;
                let last = (self.domain.root[axis] << level) - 1;
                (along.max(0.0) as i64).min(i64::from(last)) as u32
            });
            hilbert_key(index, bits_for(self.domain.root, level))
        };
        let is_leaf = |level: usize| {
            let parents = self.parents.get(level);
            parents.is_none_or(|parents| parents.binary_search(&key(level)).is_err())
        };
        let level = (0..).find(|&level| is_leaf(level)).unwrap_or_default();
        (level, key(level))
    }
}
