//! Tests of links between emulated devices, and between GPUs if there are any. Ranks are threads with a device each.

mod gpus;
mod mailbox;
mod watchdog;

use super::*;
use crate::ThreadRank;
use nestar_engine_device::{Buffer, Segment};

/// Runs `work` on `size` ranks with a device each; returns the results by rank. Returns `None` and prints the reason
/// without devices.
fn on_ranks<T: Send>(
    kind: DeviceKind,
    size: usize,
    work: impl Fn(&Ranks, &Device) -> T + Sync,
) -> Option<Vec<T>> {
    if let Err(why) = Device::open(kind) {
        println!("skipped: {why}");
        return None;
    }
    let results = std::thread::scope(|scope| {
        let work = &work;
        let start = |(rank, threads)| {
            scope.spawn(move || {
                let device = Device::open_numbered(kind, rank).unwrap();
                work(&Ranks::new(threads), &device)
            })
        };
        let ranks = ThreadRank::connect(size).into_iter().enumerate();
        let started: Vec<_> = ranks.map(start).collect();
        let join = |thread: std::thread::ScopedJoinHandle<T>| thread.join().unwrap();
        started.into_iter().map(join).collect()
    });
    Some(results)
}

/// Returns the lengths of the segments between two ranks in a round; some are zero, most are odd.
fn lengths(from: usize, to: usize, round: usize) -> Vec<usize> {
    let length = |n: usize| (from * 7 + to * 3 + n * 5 + round * 11) % 23 * (1 + 100 * (round % 3));
    (0..(from + 2 * to + round) % 4).map(length).collect()
}

fn content(from: usize, to: usize, round: usize, length: usize) -> Vec<u8> {
    let byte = |n: usize| (from * 101 + to * 59 + round * 17 + n * 7 + length) as u8;
    (0..length).map(byte).collect()
}

/// Memory, segments and expected data of one rank in a round.
struct Round {
    outgoing: Buffer<u8>,
    incoming: Buffer<u8>,
    sends: Vec<Segment>,
    receives: Vec<Segment>,
    sent: Vec<u8>,
    expected: Vec<u8>,
}

impl Round {
    fn new(device: &Device, rank: usize, size: usize, round: usize) -> Self {
        let others = || (0..size).filter(move |peer| *peer != rank);
        let segments = |memory: &Buffer<u8>, lengths: &dyn Fn(usize) -> Vec<usize>| {
            let mut start = 0;
            let mut segments = Vec::new();
            for peer in others() {
                for length in lengths(peer) {
                    segments.push(Segment::of(peer, memory, start..start + length).unwrap());
                    start += length;
                }
            }
            segments
        };
        let bytes = |ways: &dyn Fn(usize) -> (usize, usize)| -> Vec<u8> {
            let all = others().map(ways);
            let one = |(from, to)| {
                let parts = lengths(from, to, round).into_iter();
                parts.flat_map(move |length| content(from, to, round, length))
            };
            all.flat_map(one).collect()
        };
        let (sent, expected) = (bytes(&|peer| (rank, peer)), bytes(&|peer| (peer, rank)));
        let outgoing = device.buffer(sent.len()).unwrap();
        let incoming = device.buffer(expected.len()).unwrap();
        Self {
            sends: segments(&outgoing, &|peer| lengths(rank, peer, round)),
            receives: segments(&incoming, &|peer| lengths(peer, rank, round)),
            outgoing,
            incoming,
            sent,
            expected,
        }
    }

    fn start(&self, device: &Device, link: &DeviceLink) {
        device.upload(&self.outgoing, 0, &self.sent).unwrap();
        link.start(&self.sends, &self.receives).unwrap();
    }

    fn found(&self, device: &Device) -> Vec<u8> {
        let mut found = vec![0; self.expected.len()];
        device.download(&self.incoming, 0, &mut found).unwrap();
        found
    }
}

/// Runs some exchanges one by one, then several at once; returns a description of the link.
fn exchange(ranks: &Ranks, device: &Device) -> String {
    let link = connect(ranks, device).unwrap();
    let (rank, size) = (ranks.rank(), ranks.size());
    let rounds: Vec<_> = (0..6).map(|n| Round::new(device, rank, size, n)).collect();
    for round in &rounds[..3] {
        round.start(device, &link);
        link.finish().unwrap();
        // Sent data may change after the exchange.
        device
            .fill_zero(&round.outgoing, 0..round.sent.len())
            .unwrap();
        assert_eq!(round.found(device), round.expected);
    }
    for round in &rounds[3..] {
        round.start(device, &link);
    }
    for round in &rounds[3..] {
        ranks.communicator().barrier().unwrap();
        link.finish().unwrap();
        assert_eq!(round.found(device), round.expected);
    }
    assert!(link.is_done().unwrap());
    let sum = |bytes: fn(&Round) -> &Vec<u8>| -> u64 {
        rounds.iter().map(|round| bytes(round).len() as u64).sum()
    };
    let counters = link.counters();
    assert_eq!(counters.exchanges, 6);
    assert_eq!(counters.bytes_sent, sum(|round| &round.sent));
    assert_eq!(counters.bytes_received, sum(|round| &round.expected));
    let note = link
        .note()
        .map_or_else(String::new, |note| format!(" ({note})"));
    format!("{}{note}", link.describe())
}

#[test]
fn segments_of_odd_sizes_arrive_in_order_on_any_number_of_ranks() {
    for kind in [DeviceKind::Emulated, DeviceKind::Cuda] {
        for size in [1, 2, 3, 4] {
            for way in on_ranks(kind, size, exchange).unwrap_or_default() {
                println!("{kind:?}, {size} ranks: {way}");
                assert!(kind == DeviceKind::Cuda || way == "through the hosts");
            }
        }
    }
}

#[test]
fn exchanges_send_the_results_of_earlier_work() {
    for kind in [DeviceKind::Emulated, DeviceKind::Cuda] {
        on_ranks(kind, 2, |ranks, device| {
            let link = connect(ranks, device).unwrap();
            let (peer, length) = (1 - ranks.rank(), (1 << 20) + 3);
            let memory = device.buffer::<u32>(2 * length).unwrap();
            let values: Vec<u32> = (0..length as u32).map(|n| n + peer as u32).collect();
            for _ in 0..5 {
                device.upload(&memory, 0, &values).unwrap();
                let sends = [Segment::of(peer, &memory, 0..length).unwrap()];
                let receives = [Segment::of(peer, &memory, length..2 * length).unwrap()];
                link.start(&sends, &receives).unwrap();
                link.finish().unwrap();
                device.copy(&memory, length, &memory, 0, length).unwrap();
                device.fill_zero(&memory, length..2 * length).unwrap();
            }
            let mut found = vec![0; length];
            device.download(&memory, 0, &mut found).unwrap();
            let own = ranks.rank() as u32;
            assert!(
                found
                    .iter()
                    .enumerate()
                    .all(|(n, value)| *value == n as u32 + own)
            );
        });
    }
}

#[test]
fn invalid_segments_are_refused() {
    on_ranks(DeviceKind::Emulated, 2, |ranks, device| {
        let link = connect(ranks, device).unwrap();
        let peer = 1 - ranks.rank();
        let memory = device.buffer::<u8>(8).unwrap();
        let mut grown = device.growable::<u8>(64).unwrap();
        grown.grow(64).unwrap();
        let refused = |sends: &[Segment], words: &str| {
            let why = link.start(sends, &[]).unwrap_err().to_string();
            assert!(why.contains(words), "{why}");
        };
        let segment = |peer, address| Segment {
            peer,
            address,
            bytes: 4,
        };
        refused(
            &[segment(ranks.rank(), memory.address())],
            "cannot exchange",
        );
        refused(&[segment(2, memory.address())], "cannot exchange");
        refused(&[segment(peer, grown.address() + 60)], "not grow");
        assert!(Segment::of(peer, &memory, 5..9).is_err());
        link.start(&[], &[]).unwrap();
        let why = link.exchange(&[], &[]).unwrap_err().to_string();
        assert!(why.contains("in flight"), "{why}");
        link.finish().unwrap();
        let why = link.finish().unwrap_err().to_string();
        assert!(why.contains("no exchange"), "{why}");
    });
}

#[test]
fn segments_of_unequal_sizes_are_an_error_that_names_the_sender() {
    on_ranks(DeviceKind::Emulated, 2, |ranks, device| {
        let link = connect(ranks, device).unwrap();
        let peer = 1 - ranks.rank();
        let memory = device.buffer::<u8>(8).unwrap();
        let segments = |lengths: [usize; 2]| {
            let first = Segment::of(peer, &memory, 0..lengths[0]).unwrap();
            let second = Segment::of(peer, &memory, 0..lengths[1]).unwrap();
            [first, second]
        };
        link.start(&segments([3, 1]), &segments([1, 3])).unwrap();
        let why = link.finish().unwrap_err().to_string();
        assert!(
            why.contains(&format!("rank {peer} sends a message of 3 bytes")),
            "{why}"
        );
    });
}

#[test]
fn a_rank_that_fails_ends_the_exchanges_of_the_others() {
    on_ranks(DeviceKind::Emulated, 3, |ranks, device| {
        let link = connect(ranks, device).unwrap();
        if ranks.rank() == 1 {
            return ranks.communicator().abort("no more");
        }
        let memory = device.buffer::<u8>(8).unwrap();
        let segment = Segment::of(1, &memory, 0..8).unwrap();
        link.start(&[], &[segment]).unwrap();
        let stopped = RanksError::Stopped {
            rank: 1,
            message: "no more".into(),
        };
        assert_eq!(link.finish(), Err(stopped.into()));
    });
}

#[test]
fn ranks_agree_on_the_reason_against_a_direct_link() {
    let ready = |identity, library: Result<&str, &str>| Readiness {
        identity: [identity; IDENTITY],
        library: library.map(String::from).map_err(String::from),
    };
    let answer = |all: &[Readiness]| {
        let passed: Vec<_> = all
            .iter()
            .map(|one| Readiness::read(&one.to_bytes()))
            .collect();
        assert_eq!(passed, all);
        check_readiness(&passed).err().unwrap_or_default()
    };
    let (new, old) = (Ok("NCCL 2.28.3"), Ok("NCCL 2.27.5"));
    assert_eq!(answer(&[ready(1, new), ready(2, new), ready(3, new)]), "");
    let shared = [ready(1, new), ready(2, new), ready(1, new)];
    assert_eq!(answer(&shared), "ranks 0 and 2 share a GPU");
    let missing = [ready(1, new), ready(2, Err("it is not there"))];
    assert_eq!(answer(&missing), "rank 1: it is not there");
    let unequal = [ready(1, new), ready(2, old)];
    assert_eq!(
        answer(&unequal),
        "rank 0 has NCCL 2.28.3, rank 1 has NCCL 2.27.5"
    );
}

#[test]
fn the_first_failure_is_reported() {
    let answer = |seconds, why| encode_join_result(Duration::from_secs(seconds), why);
    let answers = [
        answer(60, Some("nobody comes")),
        answer(1, None),
        answer(2, Some("no memory")),
    ];
    assert_eq!(first_failure(&answers).unwrap(), "rank 2: no memory");
    assert_eq!(first_failure(&[answer(1, None), answer(2, None)]), None);
}

#[test]
fn the_environment_may_forbid_direct_links() {
    let Ok(device) = Device::open(DeviceKind::Emulated) else {
        return println!("skipped: there is no C++ compiler");
    };
    let library = |choice| Readiness::of(&device, choice).library.unwrap_err();
    assert_eq!(library(Some("0")), "NESTAR_NCCL=0");
    assert!(library(None).contains("emulated"));
}
