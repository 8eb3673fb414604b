//! Tests of root grids that are not cubes and of repartitioned root grids.

use super::super::ThreadRank;
use super::super::hierarchy::propose_root;
use super::{Part, Patches, chance, compare, domain, history};

impl Part {
    /// Repartitions the root grid by work that depends on `seed`; returns `true` if patches have moved.
    fn share_root(&mut self, seed: i32, all: &Patches) -> bool {
        let rows = self.topology.rows(0).iter();
        let work = rows.map(|&row| {
            let [x, y, z] = self.topology.index(row);
            1 + chance(&[seed, x, y, z]).pow(2) * u64::from(x < 2)
        });
        let work: Vec<u64> = work.collect();
        let proposal = propose_root(&mut self.topology, &self.ranks, &work, 1.0).unwrap();
        if let Some(proposal) = &proposal {
            self.rebuild(0, proposal, all);
        }
        proposal.is_some()
    }
}

#[test]
fn odd_root_grids_with_walls_are_partitioned() {
    for (size, seed) in [(2, 4), (5, 5)] {
        compare(domain([5, 3, 4], [false, true, false]), size, 1.05, seed);
    }
    compare(domain([6, 1, 3], [false; 3]), 3, 1.0, 9);
}

#[test]
fn the_root_grid_is_repartitioned_below_any_levels() {
    for (root, periodic, size) in [([4, 4, 4], [true; 3], 3), ([5, 3, 4], [false; 3], 5)] {
        let domain = domain(root, periodic);
        let steps = history(domain, 2);
        std::thread::scope(|scope| {
            for ranks in ThreadRank::connect(size) {
                let steps = &steps;
                scope.spawn(move || {
                    let (mut part, mut moves) = (Part::new(domain, ranks, 1.05), 0);
                    for (step, seed) in steps.iter().zip(0..) {
                        part.apply(step);
                        moves += usize::from(part.share_root(seed, &step.after));
                        part.check(&step.after);
                    }
                    assert!(moves > 3, "{moves} of {}", steps.len());
                });
            }
        });
    }
}
