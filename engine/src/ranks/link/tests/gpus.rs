//! Direct links, on machines with several GPUs.

use super::on_ranks;
use crate::device::{Device, DeviceKind, Segment};
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

/// From what goes in one part up to what NCCL carries.
#[test]
fn exchanges_of_all_with_all_arrive_whatever_their_size() {
    for size in 2..=linkable_gpus() {
        on_ranks(DeviceKind::Cuda, size, |ranks, device| {
            let link = connect(ranks, device).unwrap();
            let rank = ranks.rank();
            let lengths = [32, 1 << 10, 16 << 10, 100 << 10, 500 << 10, 600 << 10];
            let length = lengths[lengths.len() - 1];
            let memory = device.buffer::<u8>(2 * size * length).unwrap();
            let value = |from: usize, to: usize, n: usize| (from * 31 + to * 7 + n * 3) as u8;
            let own = (0..size * length).map(|n| value(rank, n / length, n % length));
            device
                .upload(&memory, 0, &own.collect::<Vec<u8>>())
                .unwrap();
            let cases = lengths
                .iter()
                .flat_map(|length| [(*length, false), (*length, true)]);
            for (length_now, at_once) in cases {
                device
                    .fill_zero(&memory, size * length..2 * size * length)
                    .unwrap();
                let segments = |half: usize| -> Vec<Segment> {
                    let others = (0..size).filter(|peer| *peer != rank);
                    let first = |peer: usize| (half * size + peer) * length;
                    let segment = |peer| {
                        let elements = first(peer)..first(peer) + length_now;
                        Segment::of(peer, &memory, elements).unwrap()
                    };
                    others.map(segment).collect()
                };
                let (sends, receives, times) = (segments(0), segments(1), 1000);
                let mut start = Instant::now();
                for time in 0..=times {
                    if time == 1 {
                        device.synchronise().unwrap();
                        start = Instant::now();
                    }
                    if at_once {
                        link.exchange(&sends, &receives).unwrap();
                        continue;
                    }
                    link.start(&sends, &receives).unwrap();
                    link.finish().unwrap();
                }
                let queued = start.elapsed();
                device.synchronise().unwrap();
                let each = start.elapsed() / times;
                println!(
                    "{size} GPUs, rank {rank}, {length_now} bytes, at once {at_once}: {each:?} each, {:?} to queue",
                    queued / times
                );
                let mut found = vec![0; size * length];
                device.download(&memory, size * length, &mut found).unwrap();
                let is_there = |peer: usize| {
                    let found = &found[peer * length..][..length_now];
                    (0..length_now).all(|n| found[n] == value(peer, rank, n))
                };
                assert!((0..size).filter(|peer| *peer != rank).all(is_there));
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
