//! Tests of copies through the staging ring, on all devices of this machine.

use super::{CopyQueue, MAX_UPLOADS_AHEAD, MIN_BUFFER, PIECE, buffer_bytes};
use crate::{Buffer, Device, DeviceKind};

const LENGTH: usize = 12 << 20;
const PART: usize = LENGTH / 3;

/// Opens the devices of this machine.
fn devices() -> Vec<Device> {
    let kinds = [DeviceKind::Emulated, DeviceKind::Cuda];
    let opened = kinds.map(|kind| Device::open(kind).inspect_err(|why| println!("skipped: {why}")));
    opened.into_iter().flatten().collect()
}

fn values(seed: usize) -> Vec<u8> {
    let byte = |n: usize| ((n * 7 + seed) ^ (n >> 9)) as u8;
    (0..LENGTH).map(byte).collect()
}

fn part(memory: &Buffer<u8>, n: usize) -> u64 {
    memory.address() + (n * PART) as u64
}

#[test]
fn downloads_run_after_earlier_work_and_before_later_work() {
    for device in devices() {
        let source = device.buffer::<u8>(LENGTH).unwrap();
        let queue = device.copy_queue().unwrap();
        for seed in 0..2 {
            let values = values(seed);
            device.upload(&source, 0, &values).unwrap();
            let before = (device.counters().bytes_down, device.staging_bytes());
            queue.follow().unwrap();
            let start = |n| queue.download(part(&source, n), PART).unwrap();
            for (n, one) in [0, 1, 2].map(start).into_iter().enumerate() {
                let found = one.wait().unwrap();
                assert!(found[..] == values[n * PART..][..PART], "part {n}");
            }
            let after = (device.counters().bytes_down, device.staging_bytes());
            assert_eq!(after.0 - before.0, LENGTH as u64);
            // The second time the buffers exist already.
            assert_eq!(after.1 - before.1, (1 - seed) * 3 * buffer_bytes(PART));
        }
    }
}

#[test]
fn downloads_may_be_dropped_and_wait_in_other_threads() {
    for device in devices() {
        let source = device.buffer::<u8>(LENGTH).unwrap();
        let queue = device.copy_queue().unwrap();
        let start = || queue.download(source.address(), LENGTH).unwrap();
        drop(start());
        let download = start();
        let waiting = std::thread::spawn(move || download.wait().map(|found| found.len()));
        assert_eq!(waiting.join().unwrap(), Ok(LENGTH));
        let nothing = queue.download(source.address(), 0).unwrap();
        assert!(nothing.wait().unwrap().is_empty());
    }
}

/// Sends three parts to the device.
fn send(queue: &CopyQueue, to: &Buffer<u8>, values: &[u8]) {
    for n in 0..3 {
        let mut buffer = queue.buffer(PART).unwrap();
        buffer.copy_from_slice(&values[n * PART..][..PART]);
        queue.upload(buffer, part(to, n)).unwrap();
    }
}

#[test]
fn uploads_run_before_later_work() {
    for device in devices() {
        let target = device.buffer::<u8>(LENGTH).unwrap();
        let queue = device.copy_queue().unwrap();
        let mut found = vec![0; LENGTH];
        for seed in 0..4 {
            queue.follow().unwrap();
            // Buffers that the device still reads are not reused.
            send(&queue, &target, &values(seed + 1));
            send(&queue, &target, &values(seed));
            queue.precede().unwrap();
            device.download(&target, 0, &mut found).unwrap();
            assert!(found == values(seed));
        }
        // Buffers of one round, and those of blocking copies.
        let most = 6 * buffer_bytes(PART) + (MAX_UPLOADS_AHEAD + 1) * PIECE + MIN_BUFFER;
        assert!(device.staging_bytes() <= most);
        send(&queue, &target, &values(0));
        // Copies without a waiting caller have ended when their buffers are freed.
        drop(queue);
    }
}

#[test]
fn buffers_return_to_the_ring_and_the_smallest_fit_is_reused() {
    for device in devices() {
        let queue = device.copy_queue().unwrap();
        let small = queue.buffer(1).unwrap();
        let large = queue.buffer(5 << 20).unwrap();
        let places = [small.as_ptr(), large.as_ptr()];
        let bytes = device.staging_bytes();
        assert_eq!(bytes, MIN_BUFFER + (5 << 20));
        drop((small, large));
        let found = [MIN_BUFFER, 3 << 20].map(|bytes| queue.buffer(bytes).unwrap());
        assert_eq!(found.each_ref().map(|buffer| buffer.as_ptr()), places);
        drop(found);
        // Both buffers are too small: the larger one is freed first.
        drop(queue.buffer(6 << 20).unwrap());
        assert_eq!(device.staging_bytes(), MIN_BUFFER + (6 << 20));
    }
}
