//! Compares estimates with the parts that ranks build, and with cases counted by hand.

use super::{
    DataSizes, ExtraTraffic, LevelLoad, LevelTraffic, MachineModel, PartitionEstimate, RootStep,
    TreeOutline,
};
use crate::exchange_plan::PeerRows;
use crate::hierarchy::{ExchangePlans, propose_level, rebuild, root};
use crate::tests::{Index, MAX_LEVEL, chance, change_on_one_rank, domain, root_of_one_rank};
use crate::{Communicator as _, ThreadRank};
use nestar_engine_mesh::topology::shared_hierarchy::Octet;
use nestar_engine_mesh::{Changes, Domain, Topology};
use nestar_kernels::mesh::COARSER;
use std::collections::BTreeSet;

/// Creates a clumpy hierarchy that is properly nested.
fn hierarchy(domain: Domain, seed: i32) -> Topology {
    let (mut topology, mut plans) = root_of_one_rank(domain, MAX_LEVEL);
    for level in 0..MAX_LEVEL {
        let refined = |&row: &u32| {
            let [x, y, z] = topology.index(row);
            let nested = !topology.neighbours(row).contains(&COARSER);
            nested && chance(&[seed, level as i32, x / 2, y / 2, z / 2]) <= 60
        };
        let rows = topology.rows(level).iter().copied();
        let changes = Changes {
            refine: rows.filter(refined).collect(),
            coarsen: Vec::new(),
        };
        change_on_one_rank(&mut topology, &mut plans, level, &changes);
    }
    assert!(topology.count(MAX_LEVEL) > 0, "the finest level is in use");
    topology
}

/// Builds one rank's part of `whole` as in a run.
fn build(whole: &Topology, ranks: &ThreadRank) -> (Topology, ExchangePlans) {
    let mut topology = Topology::new(whole.domain, MAX_LEVEL);
    let mut plans = ExchangePlans::default();
    root(&mut topology, ranks, &mut plans).unwrap();
    for level in 0..MAX_LEVEL {
        let refined = whole.rows(level).iter().filter(|&&row| !whole.is_leaf(row));
        let refined: BTreeSet<Index> = refined.map(|&row| whole.index(row)).collect();
        let rows = topology.rows(level).iter().copied();
        let changes = Changes {
            refine: rows
                .filter(|&row| refined.contains(&topology.index(row)))
                .collect(),
            coarsen: Vec::new(),
        };
        let proposal = propose_level(&mut topology, ranks, level, &changes, &[], 0.0).unwrap();
        rebuild(&mut topology, ranks, &mut plans, level + 1, &proposal, &[]).unwrap();
    }
    (topology, plans)
}

/// Returns the numbers of messages and rows of one side of a plan.
fn flow(rows: &[PeerRows]) -> (u64, u64) {
    let items = rows.iter().map(|peer| peer.rows.len() as u64).sum();
    (rows.len() as u64, items)
}

fn compare(estimate: &PartitionEstimate, topology: &Topology, plans: &ExchangePlans) {
    let rank = topology.rank();
    let mut peers = BTreeSet::new();
    for level in 0..=MAX_LEVEL {
        let load = estimate.load(rank, level);
        assert_eq!(load.patches, topology.rows(level).len() as u64);
        assert_eq!(load.halo_patches(), topology.copies(level).len() as u64);
        assert_eq!(load.stored_rows, 8 * topology.octets(level).len() as u64);
        let (copies, averages) = (&plans.halo[level], &plans.averages[level]);
        let faces = &plans.faces[level];
        let count = |lists: &[(usize, Vec<_>)]| {
            let faces = lists.iter().map(|(_, faces)| faces.len() as u64).sum();
            (lists.len() as u64, faces)
        };
        for (traffic, [sent, received]) in [
            (&load.halo, [flow(&copies.sends), flow(&copies.receives)]),
            (
                &load.averages,
                [flow(&averages.sends), flow(&averages.receives)],
            ),
            (&load.fluxes, [count(&faces.sends), count(&faces.receives)]),
        ] {
            assert_eq!((traffic.sent.messages, traffic.sent.items), sent);
            assert_eq!(
                (traffic.received.messages, traffic.received.items),
                received
            );
        }
        for plan in [copies, averages] {
            let all = plan.sends.iter().chain(&plan.receives);
            peers.extend(all.map(|peer| peer.peer));
        }
    }
    // Fluxes come from ranks whose patches are in the halo anyway.
    assert_eq!(estimate.neighbours[rank] as usize, peers.len());
}

fn check(domain: Domain, size: usize, seed: i32) {
    let whole = hierarchy(domain, seed);
    let outline = TreeOutline::of(&whole);
    let estimate = PartitionEstimate::new(&outline, size, 3);
    std::thread::scope(|scope| {
        for ranks in ThreadRank::connect(size) {
            let (whole, outline, estimate) = (&whole, &outline, &estimate);
            scope.spawn(move || {
                let (topology, plans) = build(whole, &ranks);
                let same =
                    topology.partition().starts(MAX_LEVEL) == outline.cuts(size).starts(MAX_LEVEL);
                if !same {
                    ranks.abort("the cuts differ");
                }
                assert!(same);
                compare(estimate, &topology, &plans);
            });
        }
    });
    let sum = |of: fn(&LevelLoad) -> u64| -> u64 {
        (0..size).flat_map(|rank| estimate.rank(rank)).map(of).sum()
    };
    assert_eq!(sum(|load| load.patches), whole.patches() as u64);
    let (cells, rows) = (
        sum(|load| load.halo.sent.cells),
        sum(LevelLoad::halo_patches),
    );
    assert!(cells < 512 * rows || size == 1);
}

#[test]
fn counts_equal_those_of_the_exchange_plans() {
    for (size, seed) in [(1, 1), (2, 1), (3, 2), (7, 3), (16, 4)] {
        check(domain([4, 4, 4], [true; 3]), size, seed);
    }
    check(domain([5, 3, 4], [false, true, false]), 5, 1);
    check(domain([6, 2, 3], [false; 3]), 3, 1);
}

/// A part equals, octet by octet and patch by patch, that of a rank in a run.
#[test]
fn estimated_parts_equal_those_of_ranks() {
    let (size, whole) = (4, hierarchy(domain([4, 4, 4], [true; 3]), 2));
    let outline = TreeOutline::of(&whole);
    let cuts = std::sync::Arc::new(outline.cuts(size));
    std::thread::scope(|scope| {
        for ranks in ThreadRank::connect(size) {
            let (whole, outline, cuts) = (&whole, &outline, &cuts);
            scope.spawn(move || {
                let (built, _) = build(whole, &ranks);
                let (part, _) = outline.part(cuts, ranks.rank());
                let seen = |topology: &Topology, octet: &Octet| {
                    let copied = octet.rows(octet.owned | octet.copied);
                    let leaves = copied.map(|row| topology.is_leaf(row)).collect::<Vec<_>>();
                    (octet.key, octet.owned, octet.copied, leaves)
                };
                for level in 0..=MAX_LEVEL {
                    let [built, part] = [&built, &part].map(|topology| {
                        let octets = topology.octets(level).iter();
                        octets
                            .map(|octet| seen(topology, octet))
                            .collect::<Vec<_>>()
                    });
                    assert!(built == part, "level {level}");
                }
            });
        }
    });
}

const SIZES: DataSizes = DataSizes {
    cell: 5 * 4,
    face: 2 * 16 * 5 * 4,
    number: 4,
};

#[test]
fn two_patches_side_by_side() {
    let outline = TreeOutline::new(domain([2, 1, 1], [false; 3]));
    let estimate = PartitionEstimate::new(&outline, 2, 3);
    for rank in 0..2 {
        let load = estimate.load(rank, 0);
        assert_eq!(
            (load.patches, load.halo_patches(), load.stored_rows),
            (1, 1, 8)
        );
        assert_eq!(load.halo.received.cells, 3 * 64);
        assert_eq!(
            (estimate.neighbours[rank], estimate.stored_rows(rank)),
            (1, 8)
        );
        let [sent, received] = estimate.traffic(rank, 0, &SIZES);
        assert_eq!(sent, received);
        assert_eq!((sent.messages, sent.bytes), (1, 3 * 64 * 20));
    }
    let machine = MachineModel {
        rate: 512.0,
        latency: 0.25,
        bandwidth: 3840.0,
        step: 0.0,
        exchange: 0.0,
        host: f64::INFINITY,
        regrid: 0.0,
    };
    let times = estimate.times(&SIZES, &machine);
    // Three reductions of one stage, the update, one message.
    assert_eq!((times.ideal, times.balanced), (1.0, 1.0));
    assert_eq!((times.overlapped, times.waiting), (2.0, 3.0));
    assert_eq!(times.efficiency(times.overlapped), 0.5);
}

#[test]
fn one_rank_sends_nothing_and_more_ranks_than_patches_are_idle() {
    let topology = hierarchy(domain([4, 4, 4], [true; 3]), 1);
    let outline = TreeOutline::of(&topology);
    let alone = PartitionEstimate::new(&outline, 1, 3);
    for level in 0..alone.levels {
        assert_eq!(alone.load(0, level).patches, topology.count(level) as u64);
        assert_eq!(outline.patches(level), topology.count(level));
        let nothing = [LevelTraffic::default(); 2];
        assert_eq!(alone.traffic(0, level, &SIZES), nothing);
    }
    let many = PartitionEstimate::new(&outline, 5000, 3);
    let owners = (0..5000).filter(|&rank| many.load(rank, 0).patches > 0);
    assert_eq!(owners.count(), 64);
    assert!((0..5000).any(|rank| many.weight(rank) == 0));
}

#[test]
fn patches_that_do_not_fit_are_refused() {
    let fresh = || TreeOutline::new(domain([2, 1, 1], [true; 3]));
    let (left, right) = ([0, 0, 0], [8, 0, 0]);
    let mut outline = fresh();
    assert_eq!(outline.refine(&[(left, true), (right, false)]), Ok(()));
    assert_eq!((outline.levels(), outline.patches(1)), (2, 8));
    for wrong in [
        &[(left, false)][..],
        &[(right, false), (left, false)],
        &[(left, false), ([16, 0, 0], false)],
        &[(left, false), ([9, 0, 0], false)],
        &[(left, false), ([-8, 0, 0], false)],
    ] {
        let why = fresh().refine(wrong).expect_err("other patches");
        assert!(why.contains("level 0 are not the children"), "{why}");
    }
    // Children of the other patch.
    let places = [0, 8].map(|x| [0, 8].map(|y| [0, 8].map(|z| ([x, y, z], true))));
    let mut children = places.as_flattened().as_flattened().to_vec();
    let key = |origin: [i32; 3]| {
        nestar_engine_mesh::partition::hilbert_key(origin.map(|i| i as u32 / 8), 2)
    };
    children.sort_by_key(|(origin, _)| key(*origin));
    assert!(outline.refine(&children).is_err());
}

#[test]
fn particles_add_work_to_the_partition() {
    // Two levels: the first root patch has children.
    let (mut topology, mut plans) = root_of_one_rank(domain([4, 2, 2], [false; 3]), 1);
    let changes = Changes {
        refine: topology.rows(0)[..1].to_vec(),
        coarsen: Vec::new(),
    };
    change_on_one_rank(&mut topology, &mut plans, 0, &changes);
    let mut outline = TreeOutline::of(&topology);
    let plain = PartitionEstimate::new(&outline, 2, 3);
    // One half in the middle of a root leaf, one half in the lowest corner.
    outline.add_positions(512.0, 100, Some(&[[0.9, 0.9, 0.9], [0.01, 0.01, 0.01]]));
    let laden = PartitionEstimate::new(&outline, 2, 3);
    let items = |level: usize| [0, 1].map(|rank| laden.load(rank, level).items);
    assert_eq!(
        (items(0).iter().sum::<u64>(), items(1).iter().sum::<u64>()),
        (50, 50)
    );
    assert_eq!(laden.items(0) + laden.items(1), 100);
    let patches = |estimate: &PartitionEstimate| [0, 1].map(|rank| estimate.load(rank, 0).patches);
    assert_eq!((patches(&plain), patches(&laden)[0] > 8), ([8, 8], true));
    // Children of a patch stay together.
    assert_eq!(
        laden.load(1, 1).work + laden.load(0, 1).work,
        (8 + 50 * 512 / 512) * 512 * 64
    );
    let even = |total| {
        let mut outline = TreeOutline::of(&topology);
        outline.add_positions(1.0, total, None);
        PartitionEstimate::new(&outline, 2, 3)
    };
    assert_eq!(
        (0..2)
            .map(|rank| even(801).load(rank, 1).items)
            .sum::<u64>(),
        801
    );
    let mut counted = TreeOutline::of(&topology);
    assert!(counted.add_counts(1.0, &[vec![1; 16], vec![2; 8]]).is_ok());
    assert!(counted.add_counts(1.0, &[vec![1; 15]]).is_err());
    let counted = PartitionEstimate::new(&counted, 3, 3);
    assert_eq!((0..3).map(|rank| counted.items(rank)).sum::<u64>(), 32);
}

#[test]
fn fixed_costs_of_steps_exchanges_and_regrids_are_added() {
    let outline = TreeOutline::new(domain([4, 2, 2], [false; 3]));
    let root_step = RootStep {
        steps: vec![3],
        regrids: vec![2.0],
        waits: vec![ExtraTraffic {
            exchanges: 5.0,
            host_bytes: 64.0,
        }],
    };
    let machine = MachineModel {
        rate: 512.0,
        latency: 0.0,
        bandwidth: f64::INFINITY,
        step: 100.0,
        exchange: 10.0,
        host: 8.0,
        regrid: 1.0,
    };
    let times = |ranks| {
        let estimate = PartitionEstimate::new(&outline, ranks, 3).with_root_step(root_step.clone());
        estimate.times(&SIZES, &machine)
    };
    let (one, two) = (times(1), times(2));
    assert_eq!((one.ideal, one.waiting), (48.0, 48.0));
    // Four halo patches face the border between the halves.
    assert_eq!(two.overlapped, 24.0 + 300.0 + 50.0 + 8.0 + 2.0 * 4.0);
}
