//! One pass over the patches that counts what every rank has, sends and receives.

use super::{Flow, Forecast, Load, Traffic};
use crate::mesh::topology::offset;
use crate::mesh::{Cuts, Topology};
use crate::ranks::halos::layers::{cells, facing, join};
use nestar_kernels::PATCH;
use nestar_kernels::mesh::{SELF, face_direction};

/// Faces of fine patches that meet one face of a coarse patch.
const FINE_FACES: u64 = 4;

/// Which of a rank's exchanges is counted.
type Select = fn(&mut Load) -> &mut Traffic;

/// Counts for all ranks at once.
pub(super) struct Counter<'a> {
    topology: &'a Topology,
    ranks: usize,
    levels: usize,
    /// Per row: the rank that owns the patch.
    owner: Vec<u32>,
    /// Layers of cells that a neighbour reads, for its own sake and for that of its children.
    depths: [u32; 2],
    loads: Vec<Load>,
    /// Pairs (sender, receiver) of the exchange being counted, sender in the upper half.
    pairs: Vec<u64>,
    /// All pairs of ranks that talk, both ways round.
    peers: Vec<u64>,
}

impl<'a> Counter<'a> {
    /// A counter for `topology` cut by `cuts`.
    pub fn new(topology: &'a Topology, cuts: &Cuts, layers: u32) -> Self {
        let levels = topology.finest() + 1;
        let mut owner = vec![0; topology.capacity()];
        for level in 0..levels {
            for octet in octets(topology, level) {
                let first = cuts.owner(level, topology.key(octet[0])) as u32;
                for &row in octet {
                    // only the root grid is cut inside octets
                    let own = if level == 0 {
                        cuts.owner(0, topology.key(row)) as u32
                    } else {
                        first
                    };
                    owner[row as usize] = own;
                }
            }
        }
        Self {
            topology,
            ranks: cuts.ranks(),
            levels,
            owner,
            // two fine cells are a coarse one, and slopes need one more
            depths: [layers, layers.div_ceil(2) + 1],
            loads: vec![Load::default(); cuts.ranks() * levels],
            pairs: Vec::new(),
            peers: Vec::new(),
        }
    }

    /// Counts.
    pub fn count(mut self) -> Forecast {
        for level in 0..self.levels {
            for &row in self.topology.rows(level) {
                self.load(self.owner(row), level).patches += 1;
            }
            self.count_copies(level);
            self.count_averages(level);
            self.count_fluxes(level);
        }
        self.peers.sort_unstable();
        self.peers.dedup();
        let mut neighbours = vec![0; self.ranks];
        for pair in &self.peers {
            neighbours[(pair >> 32) as usize] += 1;
        }
        Forecast {
            ranks: self.ranks,
            levels: self.levels,
            neighbours,
            loads: self.loads,
        }
    }

    fn owner(&self, row: u32) -> u32 {
        self.owner[row as usize]
    }

    /// The rank that owns the children of `row`.
    fn children_of(&self, row: u32) -> Option<u32> {
        self.topology
            .first_child(row)
            .map(|child| self.owner(child))
    }

    fn load(&mut self, rank: u32, level: usize) -> &mut Load {
        &mut self.loads[rank as usize * self.levels + level]
    }

    fn count_copies(&mut self, level: usize) {
        let topology = self.topology;
        let (mut wanted, mut holders) = (Vec::new(), Vec::new());
        for octet in octets(topology, level) {
            holders.clear();
            for &row in octet {
                holders.push(self.owner(row));
                self.wanted(row, &mut wanted);
                for by_rank in wanted.chunk_by(|a, b| a.0 == b.0) {
                    let to = by_rank[0].0;
                    let flow = (1, self.needed(by_rank));
                    self.send(level, |load| &mut load.halo, [self.owner(row), to], flow);
                    holders.push(to);
                }
            }
            self.beyond_faces(octet[0], &mut holders);
            holders.sort_unstable();
            holders.dedup();
            for &rank in &holders {
                self.load(rank, level).held += 8;
            }
        }
        self.settle(level, |load| &mut load.halo);
    }

    /// Who needs the patch of `row`, in which direction it lies from it, and whether for the sake of finer patches; by rank.
    fn wanted(&self, row: u32, wanted: &mut Vec<(u32, u8, bool)>) {
        wanted.clear();
        let own = self.owner(row);
        for (d, &next) in self.topology.neighbours(row).iter().enumerate() {
            let Ok(next) = u32::try_from(next) else {
                continue;
            };
            if d != SELF && self.owner(next) != own {
                wanted.push((self.owner(next), d as u8, false));
            }
            if let Some(rank) = self.children_of(next).filter(|&rank| rank != own) {
                wanted.push((rank, d as u8, true));
            }
        }
        wanted.sort_unstable();
    }

    /// Cells of the box that one rank gets of a patch.
    fn needed(&self, wanted: &[(u32, u8, bool)]) -> u64 {
        let read = wanted.iter().map(|&(_, d, finer)| {
            let towards = offset(d.into()).map(|step| -step);
            facing(towards, self.depths[usize::from(finer)])
        });
        read.reduce(join).map_or(0, cells)
    }

    /// Ranks that hold the octet of `row` for the registers between it and their leaf patches.
    fn beyond_faces(&self, row: u32, holders: &mut Vec<u32>) {
        let Some(parent) = self.topology.parent(row) else {
            return;
        };
        let around = self.topology.neighbours(parent);
        let beside = (0..6).filter_map(|face| u32::try_from(around[face_direction(face)]).ok());
        let leaves = beside.filter(|&next| self.topology.is_leaf(next));
        holders.extend(leaves.map(|next| self.owner(next)));
    }

    fn count_averages(&mut self, level: usize) {
        for &row in self.topology.rows(level) {
            let to = self.owner(row);
            if let Some(from) = self.children_of(row).filter(|&from| from != to) {
                let flow = (1, (PATCH * PATCH * PATCH) as u64);
                self.send(level, |load| &mut load.averages, [from, to], flow);
            }
        }
        self.settle(level, |load| &mut load.averages);
    }

    fn count_fluxes(&mut self, level: usize) {
        let topology = self.topology;
        for &row in topology.rows(level) {
            for face in (0..6).filter(|_| topology.is_leaf(row)) {
                let to = self.owner(row);
                let beyond = u32::try_from(topology.neighbours(row)[face_direction(face)]).ok();
                let from = beyond.and_then(|next| self.children_of(next));
                if let Some(from) = from.filter(|&from| from != to) {
                    self.send(level, |load| &mut load.fluxes, [from, to], (FINE_FACES, 0));
                }
            }
        }
        self.settle(level, |load| &mut load.fluxes);
    }

    /// Enters `items` with `cells` cells between two ranks.
    fn send(&mut self, level: usize, of: Select, [from, to]: [u32; 2], (items, cells): (u64, u64)) {
        let add = |flow: &mut Flow| {
            flow.items += items;
            flow.cells += cells;
        };
        add(&mut of(self.load(from, level)).sent);
        add(&mut of(self.load(to, level)).received);
        let pair = u64::from(from) << 32 | u64::from(to);
        if self.pairs.last() != Some(&pair) {
            self.pairs.push(pair);
        }
    }

    /// Ends an exchange: what goes from one rank to another is one message.
    fn settle(&mut self, level: usize, of: Select) {
        let mut pairs = std::mem::take(&mut self.pairs);
        pairs.sort_unstable();
        pairs.dedup();
        for &pair in &pairs {
            let (from, to) = ((pair >> 32) as u32, pair as u32);
            of(self.load(from, level)).sent.messages += 1;
            of(self.load(to, level)).received.messages += 1;
            self.peers.extend([pair, pair.rotate_left(32)]);
        }
        pairs.clear();
        self.pairs = pairs;
    }
}

/// The patches of `level`, those with a common half index together.
fn octets(topology: &Topology, level: usize) -> impl Iterator<Item = &[u32]> {
    let half = |row: u32| topology.index(row).map(|i| i >> 1);
    topology
        .rows(level)
        .chunk_by(move |&a, &b| half(a) == half(b))
}
