//! Tests of direct links on machines with several GPUs.

use super::on_ranks;
use crate::device_link::connect;
use nestar_engine_device::{Buffer, Device, DeviceKind, DeviceLink, Segment};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Returns the number of different GPUs, up to four; 0 if they cannot be linked, with the reason printed.
fn linkable_gpus() -> usize {
    let mut known = BTreeMap::new();
    for number in 0..4 {
        match Device::open_numbered(DeviceKind::Cuda, number).and_then(|device| {
            device.link_library()?;
            Ok(device.identity())
        }) {
            Ok(identity) => known.entry(identity).or_insert(number),
            Err(why) => {
                println!("skipped: {why}");
                return 0;
            }
        };
    }
    if known.len() < 2 {
        println!("skipped: there is one GPU, two are needed");
        return 0;
    }
    known.len()
}

#[test]
fn several_gpus_are_linked_directly() {
    for size in 2..=linkable_gpus() {
        on_ranks(DeviceKind::Cuda, size, |ranks, device| {
            let link = connect(ranks, device).unwrap();
            assert!(link.is_direct(), "{:?}", link.note());
            let (rank, length) = (ranks.rank(), (64 << 20) / 8 + 1);
            let (next, before) = ((rank + 1) % size, (rank + size - 1) % size);
            let (out, back) = (
                device.buffer(length).unwrap(),
                device.buffer(length).unwrap(),
            );
            let values = |rank: usize| -> Vec<u64> {
                (0..length as u64).map(|n| n * 7 + rank as u64).collect()
            };
            device.upload(&out, 0, &values(rank)).unwrap();
            let sends = [Segment::of(next, &out, 0..length).unwrap()];
            let receives = [Segment::of(before, &back, 0..length).unwrap()];
            let (mut start, times) = (Instant::now(), 20);
            for time in 0..=times {
                if time == 1 {
                    device.synchronise().unwrap();
                    start = Instant::now();
                }
                link.start(&sends, &receives).unwrap();
                link.finish().unwrap();
            }
            let queued = start.elapsed();
            device.synchronise().unwrap();
            let rate = (8 * length * times) as f64 / start.elapsed().as_secs_f64() * 1e-9;
            println!(
                "{size} GPUs, rank {rank}: {rate:.1} GB/s each way, {queued:?} to queue, {link:?}",
                link = *link
            );
            let mut found = vec![0; length];
            device.download(&back, 0, &mut found).unwrap();
            assert!(found == values(before), "rank {rank}");
        });
    }
}

/// Memory of a rank: for each rank, the data to send and then the data to receive.
struct AllToAll {
    rank: usize,
    size: usize,
    memory: Buffer<u8>,
}

/// From a fraction of one part up to lengths that NCCL carries.
const LENGTHS: [usize; 7] = [
    32,
    1 << 10,
    16 << 10,
    100 << 10,
    500 << 10,
    2 << 20,
    3 << 20,
];
const ROOM: usize = LENGTHS[6];

impl AllToAll {
    fn new(device: &Device, rank: usize, size: usize) -> Self {
        let memory = device.buffer(2 * size * ROOM).unwrap();
        let value = |n| Self::value(rank, n / ROOM, n % ROOM);
        let values: Vec<u8> = (0..size * ROOM).map(value).collect();
        device.upload(&memory, 0, &values).unwrap();
        Self { rank, size, memory }
    }

    fn value(from: usize, to: usize, n: usize) -> u8 {
        (from * 31 + to * 7 + n * 3) as u8
    }

    fn peers(&self) -> impl Iterator<Item = usize> {
        let rank = self.rank;
        (0..self.size).filter(move |peer| *peer != rank)
    }

    /// Segments to send (0) or receive (1); `length` returns the length for a sender and a receiver.
    fn segments(&self, half: usize, length: impl Fn(usize, usize) -> usize) -> Vec<Segment> {
        let first = |peer: usize| (half * self.size + peer) * ROOM;
        let length = |peer: usize| match half {
            0 => length(self.rank, peer),
            _ => length(peer, self.rank),
        };
        let elements = |peer| first(peer)..first(peer) + length(peer);
        let segment = |peer| Segment::of(peer, &self.memory, elements(peer)).unwrap();
        self.peers().map(segment).collect()
    }

    fn forget(&self, device: &Device) {
        let half = self.size * ROOM;
        device.fill_zero(&self.memory, half..2 * half).unwrap();
    }

    /// Checks the received data.
    fn check(&self, device: &Device, length: impl Fn(usize, usize) -> usize) {
        let half = self.size * ROOM;
        let mut found = vec![0; half];
        device.download(&self.memory, half, &mut found).unwrap();
        for peer in self.peers() {
            let is = |n| found[peer * ROOM + n] == Self::value(peer, self.rank, n);
            assert!((0..length(peer, self.rank)).all(is), "from {peer}");
        }
    }

    /// Measures the times of an exchange and of queueing it.
    fn exchange(
        &self,
        device: &Device,
        link: &DeviceLink,
        length: usize,
        at_once: bool,
    ) -> [Duration; 2] {
        let [sends, receives] = [0, 1].map(|half| self.segments(half, |_, _| length));
        let (times, mut start) = (1000, Instant::now());
        for time in 0..=times {
            if time == 1 {
                device.synchronise().unwrap();
                start = Instant::now();
            }
            if at_once {
                link.exchange(&sends, &receives).unwrap();
            } else {
                link.start(&sends, &receives).unwrap();
                link.finish().unwrap();
            }
        }
        let queued = start.elapsed();
        device.synchronise().unwrap();
        [start.elapsed() / times, queued / times]
    }
}

#[test]
fn all_to_all_exchanges_of_any_size_arrive() {
    for size in 2..=linkable_gpus() {
        on_ranks(DeviceKind::Cuda, size, |ranks, device| {
            let (rank, link) = (ranks.rank(), connect(ranks, device).unwrap());
            let all = AllToAll::new(device, rank, size);
            for (length, at_once) in LENGTHS.iter().flat_map(|&n| [(n, false), (n, true)]) {
                all.forget(device);
                let [each, queued] = all.exchange(device, &link, length, at_once);
                println!(
                    "{size} GPUs, rank {rank}, {length} bytes, at once {at_once}: {each:?}, {queued:?} to queue"
                );
                all.check(device, |_, _| length);
            }
        });
    }
}

#[test]
fn long_and_short_segments_arrive_in_one_exchange() {
    // NCCL to higher ranks, mailboxes to lower ranks.
    let length = |from, to| if from < to { ROOM } else { LENGTHS[3] };
    for size in 2..=linkable_gpus() {
        on_ranks(DeviceKind::Cuda, size, |ranks, device| {
            let link = connect(ranks, device).unwrap();
            let all = AllToAll::new(device, ranks.rank(), size);
            let [sends, receives] = [0, 1].map(|half| all.segments(half, length));
            for _ in 0..3 {
                all.forget(device);
                link.exchange(&sends, &receives).unwrap();
                all.check(device, length);
            }
        });
    }
}

#[test]
fn each_exchange_delivers_its_own_data() {
    // Three parts: slots are reused after 43 rounds with other content.
    let (length, rounds) = (40_000, 400);
    let content = |rank: usize| -> Vec<u8> {
        let byte = |n: usize| (n * 37 + (n >> 7) + rank * 31) as u8;
        (0..length).map(byte).collect()
    };
    for size in 2..=linkable_gpus() {
        on_ranks(DeviceKind::Cuda, size, |ranks, device| {
            let (rank, link) = (ranks.rank(), connect(ranks, device).unwrap());
            let (next, before) = ((rank + 1) % size, (rank + size - 1) % size);
            let (out, back) = (
                device.buffer(length).unwrap(),
                device.buffer(length).unwrap(),
            );
            device.upload(&out, 0, &content(rank)).unwrap();
            let sends = [Segment::of(next, &out, 0..length).unwrap()];
            let receives = [Segment::of(before, &back, 0..length).unwrap()];
            for round in 0..rounds {
                if round % 3 == 0 {
                    link.start(&sends, &receives).unwrap();
                    link.finish().unwrap();
                } else {
                    link.exchange(&sends, &receives).unwrap();
                }
                // The next round sends it without its first byte.
                device.copy(&back, 1, &out, 0, length - 1).unwrap();
            }
            let mut found = vec![0; length];
            device.download(&out, 0, &mut found).unwrap();
            let first = (rank + rounds * (size - 1)) % size;
            assert!(
                found[..length - rounds] == content(first)[rounds..],
                "rank {rank}"
            );
        });
    }
}

#[test]
fn a_gpu_does_not_wait_for_a_rank_that_has_failed() {
    if linkable_gpus() < 2 {
        return;
    }
    // By mailbox and by NCCL.
    for bytes in [100, ROOM] {
        fail(bytes, false);
        fail(bytes, true);
    }
}

/// The second rank fails while the first one waits for `bytes` bytes.
fn fail(bytes: usize, at_once: bool) {
    on_ranks(DeviceKind::Cuda, 2, |ranks, device| {
        let link = connect(ranks, device).unwrap();
        assert!(link.is_direct(), "{:?}", link.note());
        let communicator = ranks.communicator();
        communicator.barrier().unwrap();
        if ranks.rank() == 1 {
            // The other GPU is waiting by then.
            std::thread::sleep(Duration::from_millis(300));
            return communicator.abort("no more");
        }
        let memory = device.buffer::<u8>(bytes).unwrap();
        let segment = Segment::of(1, &memory, 0..bytes).unwrap();
        let start = Instant::now();
        if at_once {
            link.exchange(&[], &[segment]).unwrap();
        } else {
            link.start(&[], &[segment]).unwrap();
            link.finish().unwrap();
        }
        device.synchronise().unwrap();
        assert!(start.elapsed() > Duration::from_millis(200));
        assert!(communicator.barrier().is_err());
        assert!(link.start(&[], &[segment]).is_err());
        drop(link);
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "{:?}",
            start.elapsed()
        );
    });
}
