//! Direct links, on machines with several GPUs.

use super::on_ranks;
use crate::device::{Buffer, Device, DeviceKind, DeviceLink, Segment};
use crate::ranks::link::connect;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// As many different GPUs as there are, up to four; 0, and a printed reason, if they cannot be linked.
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
fn gpus_are_linked_directly_where_there_are_several() {
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

/// Memory of a rank: for each rank what goes there, then what comes from there.
struct AllToAll {
    rank: usize,
    size: usize,
    memory: Buffer<u8>,
}

/// From what goes in one part up to what NCCL carries.
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

    /// What goes (0) or comes (1).
    fn segments(&self, half: usize, length: usize) -> Vec<Segment> {
        let first = |peer: usize| (half * self.size + peer) * ROOM;
        let elements = |peer| first(peer)..first(peer) + length;
        let segment = |peer| Segment::of(peer, &self.memory, elements(peer)).unwrap();
        self.peers().map(segment).collect()
    }

    /// Times of an exchange, and of queueing it.
    fn exchange(
        &self,
        device: &Device,
        link: &DeviceLink,
        length: usize,
        at_once: bool,
    ) -> [Duration; 2] {
        let (sends, receives) = (self.segments(0, length), self.segments(1, length));
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
fn exchanges_of_all_with_all_arrive_whatever_their_size() {
    for size in 2..=linkable_gpus() {
        on_ranks(DeviceKind::Cuda, size, |ranks, device| {
            let (rank, link) = (ranks.rank(), connect(ranks, device).unwrap());
            let all = AllToAll::new(device, rank, size);
            for (length, at_once) in LENGTHS.iter().flat_map(|&n| [(n, false), (n, true)]) {
                let half = size * ROOM;
                device.fill_zero(&all.memory, half..2 * half).unwrap();
                let [each, queued] = all.exchange(device, &link, length, at_once);
                println!(
                    "{size} GPUs, rank {rank}, {length} bytes, at once {at_once}: {each:?}, {queued:?} to queue"
                );
                let mut found = vec![0; half];
                device.download(&all.memory, half, &mut found).unwrap();
                for peer in all.peers() {
                    let is = |n| found[peer * ROOM + n] == AllToAll::value(peer, rank, n);
                    assert!((0..length).all(is), "from {peer}");
                }
            }
        });
    }
}

#[test]
fn a_gpu_does_not_wait_for_a_rank_that_has_failed() {
    if linkable_gpus() < 2 {
        return;
    }
    for bytes in [100, 1 << 20] {
        fail(bytes);
    }
}

/// The second rank fails while the first one waits for so many bytes.
fn fail(bytes: usize) {
    on_ranks(DeviceKind::Cuda, 2, |ranks, device| {
        let link = connect(ranks, device).unwrap();
        assert!(link.is_direct(), "{:?}", link.note());
        let communicator = ranks.communicator();
        communicator.barrier().unwrap();
        if ranks.rank() == 1 {
            // the other GPU waits by then
            std::thread::sleep(Duration::from_millis(300));
            return communicator.abort("no more");
        }
        let memory = device.buffer::<u8>(bytes).unwrap();
        let segment = Segment::of(1, &memory, 0..bytes).unwrap();
        let start = Instant::now();
        link.start(&[], &[segment]).unwrap();
        link.finish().unwrap();
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
