//! Forecasts against what ranks really build, and against cases that can be counted by hand.

use super::{Forecast, LevelTraffic, Load, Machine, Sizes, cuts, outline, refine};
use crate::mesh::{Changes, Domain, Topology};
use crate::ranks::build::{Shares, propose, rebuild, root};
use crate::ranks::plan::PeerRows;
use crate::ranks::{Communicator as _, Threads};
use nestar_kernels::mesh::{COARSER, face_direction};
use std::collections::BTreeSet;

const MAX_LEVEL: usize = 3;

type Index = [i32; 3];

fn domain(root: Index, periodic: [bool; 3]) -> Domain {
    Domain {
        root,
        left_edge: [0.0; 3],
        right_edge: [1.0; 3],
        periodic,
    }
}

/// A number that looks random, from 0 to 99.
fn chance(words: [i32; 5]) -> u64 {
    let mix = |state: u64, &word: &i32| {
        let state = (state ^ word as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state ^ state >> 29
    };
    words.iter().fold(0x9e37_79b9_7f4a_7c15, mix) % 100
}

/// A clumpy hierarchy that is properly nested.
fn hierarchy(domain: Domain, seed: i32) -> Topology {
    let mut topology = outline(domain, MAX_LEVEL);
    for level in 0..MAX_LEVEL {
        let leaf = |&row: &u32| {
            let [x, y, z] = topology.index(row);
            let nested = !topology.neighbours(row).contains(&COARSER);
            !nested || chance([seed, level as i32, x / 2, y / 2, z / 2]) > 60
        };
        let leaf: Vec<bool> = topology.rows(level).iter().map(leaf).collect();
        refine(&mut topology, level, &leaf).unwrap();
    }
    assert!(topology.count(MAX_LEVEL) > 0, "the finest level is in use");
    topology
}

/// One rank's part of `whole`, built as in a run.
fn build(whole: &Topology, ranks: &Threads) -> (Topology, Shares) {
    let mut topology = Topology::new(whole.domain, MAX_LEVEL);
    let mut shares = Shares::default();
    root(&mut topology, ranks, &mut shares).unwrap();
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
        let proposal = propose(&mut topology, ranks, level, &changes, 0.0).unwrap();
        rebuild(&mut topology, ranks, &mut shares, level, &proposal, &[]).unwrap();
    }
    (topology, shares)
}

/// Messages and items of a plan's side.
fn flow(rows: &[PeerRows]) -> (u64, u64) {
    (
        rows.len() as u64,
        rows.iter().map(|peer| peer.rows.len() as u64).sum(),
    )
}

/// Messages with fluxes, and faces in them, that a rank receives for its leaf patches of `level`.
fn fluxes(topology: &Topology, level: usize) -> (u64, u64) {
    let (mut peers, mut faces) = (BTreeSet::new(), 0);
    for &row in topology
        .rows(level)
        .iter()
        .filter(|&&row| topology.is_leaf(row))
    {
        for face in 0..6 {
            let next = topology.neighbours(row)[face_direction(face)];
            let first = u32::try_from(next)
                .ok()
                .and_then(|next| topology.first_child(next));
            if let Some(first) = first.filter(|&first| !topology.is_owned(first)) {
                peers.insert(topology.owner(first));
                faces += 4;
            }
        }
    }
    (peers.len() as u64, faces)
}

fn compare(forecast: &Forecast, topology: &Topology, shares: &Shares) {
    let rank = topology.rank();
    let mut peers = BTreeSet::new();
    for level in 0..=MAX_LEVEL {
        let load = forecast.load(rank, level);
        assert_eq!(load.patches, topology.rows(level).len() as u64);
        assert_eq!(load.copies(), topology.copies(level).len() as u64);
        assert_eq!(load.held, 8 * topology.octets(level).len() as u64);
        let (copies, averages) = (&shares.copies[level], &shares.averages[level]);
        for (traffic, plan) in [(&load.halo, copies), (&load.averages, averages)] {
            assert_eq!(
                (traffic.sent.messages, traffic.sent.items),
                flow(&plan.sends)
            );
            assert_eq!(
                (traffic.received.messages, traffic.received.items),
                flow(&plan.receives)
            );
            peers.extend(
                plan.sends
                    .iter()
                    .chain(&plan.receives)
                    .map(|peer| peer.peer),
            );
        }
        let received = (load.fluxes.received.messages, load.fluxes.received.items);
        assert_eq!(received, fluxes(topology, level));
    }
    // fluxes come from ranks whose patches are copied anyway
    assert_eq!(forecast.neighbours[rank] as usize, peers.len());
}

fn check(domain: Domain, size: usize, seed: i32) {
    let whole = hierarchy(domain, seed);
    let forecast = Forecast::new(&whole, size, 3);
    std::thread::scope(|scope| {
        for ranks in Threads::connect(size) {
            let (whole, forecast) = (&whole, &forecast);
            scope.spawn(move || {
                let (topology, shares) = build(whole, &ranks);
                let same = *topology.cuts() == cuts(whole, size);
                if !same {
                    ranks.abort("the cuts differ");
                }
                assert!(same);
                compare(forecast, &topology, &shares);
            });
        }
    });
    let sum = |of: fn(&Load) -> u64| -> u64 {
        (0..size).flat_map(|rank| forecast.rank(rank)).map(of).sum()
    };
    assert_eq!(sum(|load| load.patches), whole.patches() as u64);
    assert_eq!(
        sum(|load| load.fluxes.sent.items),
        sum(|load| load.fluxes.received.items)
    );
    assert_eq!(
        sum(|load| load.fluxes.sent.messages),
        sum(|load| load.fluxes.received.messages)
    );
    assert!(sum(|load| load.halo.sent.cells) < 512 * sum(|load| load.halo.sent.items));
}

#[test]
fn counts_are_those_of_the_ranks_plans() {
    for (size, seed) in [(2, 1), (3, 2), (7, 3), (16, 4)] {
        check(domain([4, 4, 4], [true; 3]), size, seed);
    }
    check(domain([5, 3, 4], [false, true, false]), 5, 1);
    check(domain([6, 2, 3], [false; 3]), 3, 1);
}

const SIZES: Sizes = Sizes {
    row: 512 * 5 * 4,
    layered: 5 * 4,
    face: 2 * 16 * 5 * 4,
    held: 2 * 512 * 5 * 4 + 176,
};

#[test]
fn two_patches_side_by_side() {
    let topology = outline(domain([2, 1, 1], [false; 3]), 0);
    let forecast = Forecast::new(&topology, 2, 3);
    for rank in 0..2 {
        let load = forecast.load(rank, 0);
        assert_eq!((load.patches, load.copies(), load.held), (1, 1, 8));
        assert_eq!(load.halo.received.cells, 3 * 64);
        assert_eq!(forecast.neighbours[rank], 1);
        let [sent, received] = forecast.traffic(rank, 0, &SIZES);
        assert_eq!(sent, received);
        assert_eq!((sent.messages, sent.bytes), (1, 3 * 64 * 20));
        // a field of four bytes that does not settle in its step goes whole, by itself
        let layered = SIZES.layered - 4;
        let [mixed, _] = forecast.traffic(rank, 0, &Sizes { layered, ..SIZES });
        assert_eq!((mixed.messages, mixed.bytes), (2, 3 * 64 * 16 + 512 * 4));
        assert_eq!(forecast.memory(rank, &SIZES), 8 * SIZES.held);
    }
    let machine = Machine {
        rate: 512.0,
        latency: 0.25,
        bandwidth: 3840.0,
    };
    let times = forecast.times(&SIZES, &machine);
    // three agreements of one stage, the update, a message
    assert_eq!((times.ideal, times.balanced), (1.0, 1.0));
    assert_eq!((times.overlapped, times.waiting), (2.0, 3.0));
    assert_eq!(times.efficiency(times.overlapped), 0.5);
}

#[test]
fn one_rank_sends_nothing_and_more_ranks_than_patches_are_idle() {
    let topology = hierarchy(domain([4, 4, 4], [true; 3]), 1);
    let alone = Forecast::new(&topology, 1, 3);
    for level in 0..alone.levels {
        assert_eq!(alone.load(0, level).patches, topology.count(level) as u64);
        let nothing = [LevelTraffic::default(); 2];
        assert_eq!(alone.traffic(0, level, &SIZES), nothing);
    }
    let many = Forecast::new(&topology, 5000, 3);
    let owners = (0..5000).filter(|&rank| many.load(rank, 0).patches > 0);
    assert_eq!(owners.count(), 64);
    assert!((0..5000).any(|rank| many.weight(rank) == 0));
}

#[test]
fn flags_that_do_not_fit_are_refused() {
    let mut topology = outline(domain([2, 2, 2], [true; 3]), 0);
    assert!(
        refine(&mut topology, 0, &[true; 7])
            .unwrap_err()
            .contains("8 patches, not 7")
    );
    assert!(
        refine(&mut topology, 0, &[false; 8])
            .unwrap_err()
            .contains("finest")
    );
}
