//! The communicator: what arrives is what was sent. Every rank can tell what all others send, as contents are functions of
//! the call, the sender and the receiver.

use crate::{Case, Launcher, role};
use nestar::engine::device::{DeviceKind, Parcel};
use nestar::engine::ranks::{Communicator, Halo, Message, Reduction};

/// Rounds of calls.
const ROUNDS: u64 = 60;
/// Message lengths that make most messages go in pieces.
pub const SHORT: usize = 100;

/// The case with such messages.
pub const DIVIDED: &str = "divided";

/// The tests.
pub fn cases() -> Vec<Case> {
    let case = |ranks: usize, messages: &'static str| {
        let name = format!("transport::{messages}_messages_between_{ranks}_ranks");
        Case::new(name, move |launcher: &Launcher| {
            role::play(launcher, ranks, "talk", messages);
        })
    };
    let ranks = [1, 2, 3, 4].into_iter();
    ranks
        .flat_map(|n| [case(n, "whole"), case(n, DIVIDED)])
        .collect()
}

/// What one rank says and hears.
pub fn talk(ranks: &dyn Communicator) {
    assert!(ranks.rank() < ranks.size());
    let seat = ranks.seat();
    assert_eq!(
        (seat.local, seat.locals),
        (ranks.rank(), ranks.size()),
        "one host"
    );
    for round in 0..ROUNDS {
        reductions(ranks, round);
        gathers(ranks, round);
        exchanges(ranks, round);
        halos(ranks, round);
        parcels(ranks, round);
        broadcasts(ranks, round);
    }
    short_parcels(ranks);
    ranks.barrier().unwrap();
}

/// A number that follows from others.
fn mixed(numbers: [u64; 4]) -> u64 {
    numbers.iter().fold(0x9e37_79b9_7f4a_7c15, |state, number| {
        let state = (state ^ number).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state ^ (state >> 29)
    })
}

/// A message that follows from its call, its sender and its receiver: a third are empty.
fn content(call: u64, round: u64, from: usize, to: usize) -> Vec<u8> {
    let seed = mixed([call, round, from as u64, to as u64]);
    let length = match seed % 3 {
        0 => 0,
        // whole multiples of the shorter messages as well
        1 => SHORT * (seed % 7) as usize,
        _ => (seed >> 8) as usize % 5000,
    };
    (0..length as u64)
        .map(|n| mixed([seed, n, 0, 0]) as u8)
        .collect()
}

fn reductions(ranks: &dyn Communicator, round: u64) {
    let value = |rank: usize| mixed([1, round, rank as u64, 0]);
    for operation in [
        Reduction::Min,
        Reduction::Max,
        Reduction::Sum,
        Reduction::Or,
    ] {
        let mut values = [value(ranks.rank()), round];
        ranks.reduce(operation, &mut values).unwrap();
        let all = (0..ranks.size()).map(|rank| [value(rank), round]);
        let combined = all.reduce(|a, b| [0, 1].map(|n| operation.combine(a[n], b[n])));
        assert_eq!(Some(values), combined, "{operation:?}");
    }
}

fn gathers(ranks: &dyn Communicator, round: u64) {
    let all = ranks
        .all_gather(&content(2, round, ranks.rank(), 0))
        .unwrap();
    let expected: Vec<_> = (0..ranks.size())
        .map(|rank| content(2, round, rank, 0))
        .collect();
    assert_eq!(all, expected);
}

fn exchanges(ranks: &dyn Communicator, round: u64) {
    let me = ranks.rank();
    let message = |from: usize, to: usize, peer: usize| Message {
        peer,
        bytes: content(3, round, from, to),
    };
    let sends = (0..ranks.size())
        .map(|peer| message(me, peer, peer))
        .collect();
    let mut received = ranks.exchange(sends).unwrap();
    // these may be left out
    received.retain(|m| !m.bytes.is_empty());
    let all = (0..ranks.size()).map(|peer| message(peer, me, peer));
    let expected: Vec<_> = all.filter(|m| !m.bytes.is_empty()).collect();
    assert_eq!(received, expected);
}

/// Two sets of messages under way, with other calls in between, that end in either order.
fn halos(ranks: &dyn Communicator, round: u64) {
    let me = ranks.rank();
    let others: Vec<usize> = (0..ranks.size()).filter(|&peer| peer != me).collect();
    let halo = |call: u64| {
        let message = |peer: usize, bytes: Vec<u8>| Message { peer, bytes };
        let send = |&peer: &usize| message(peer, content(call, round, me, peer));
        let receive = |&peer: &usize| message(peer, vec![0; content(call, round, peer, me).len()]);
        ranks.start(Halo {
            sends: others.iter().map(send).collect(),
            receives: others.iter().map(receive).collect(),
        })
    };
    let mut under_way = vec![(4, halo(4).unwrap()), (5, halo(5).unwrap())];
    reductions(ranks, round);
    exchanges(ranks, round);
    if round.is_multiple_of(2) {
        under_way.reverse();
    }
    for (call, pending) in under_way {
        let halo = pending.finish().unwrap();
        for message in &halo.receives {
            assert_eq!(message.bytes, content(call, round, message.peer, me));
        }
        for message in &halo.sends {
            assert_eq!(message.bytes, content(call, round, me, message.peer));
        }
    }
}

/// Two parcels from each to each, in memory as that of an emulated device, with other calls in between.
fn parcels(ranks: &dyn Communicator, round: u64) {
    // one rank has nobody to send to, and no MPI
    assert_eq!(ranks.reaches(DeviceKind::Emulated), ranks.size() > 1);
    if ranks.size() == 1 {
        return;
    }
    let me = ranks.rank();
    let others = (0..ranks.size()).filter(|&peer| peer != me);
    let calls: Vec<(u64, usize)> = others.flat_map(|peer| [(7, peer), (8, peer)]).collect();
    let content = |(call, peer): (u64, usize), from: usize| {
        let to = me + peer - from;
        content(call, round, from, to)
    };
    let leaving: Vec<Vec<u8>> = calls.iter().map(|&call| content(call, me)).collect();
    let expected: Vec<Vec<u8>> = calls.iter().map(|&call| content(call, call.1)).collect();
    let mut room: Vec<Vec<u8>> = expected.iter().map(|bytes| vec![0; bytes.len()]).collect();
    let parcel = |(&(_, peer), (pointer, bytes)): (&(u64, usize), (*const u8, usize))| Parcel {
        peer,
        address: pointer.expose_provenance() as u64,
        bytes,
    };
    let sends = leaving.iter().map(|bytes| (bytes.as_ptr(), bytes.len()));
    let sends: Vec<Parcel> = calls.iter().zip(sends).map(parcel).collect();
    let receives = room.iter_mut();
    let receives = receives.map(|bytes| (bytes.as_mut_ptr().cast_const(), bytes.len()));
    let receives: Vec<Parcel> = calls.iter().zip(receives).map(parcel).collect();
    // SAFETY: the vectors stay as they are until the parcels have left and arrived
    let mut pending = unsafe { ranks.start_parcels(&sends, &receives) }.unwrap();
    halos(ranks, round);
    while round.is_multiple_of(3) && !pending.is_done().unwrap() {
        std::thread::yield_now();
    }
    pending.finish().unwrap();
    assert_eq!(room, expected);
}

/// A parcel from each to the next, which expects a longer one.
fn short_parcels(ranks: &dyn Communicator) {
    let (me, size) = (ranks.rank(), ranks.size());
    if size == 1 {
        return;
    }
    let (next, before) = ((me + 1) % size, (me + size - 1) % size);
    // kept for good: after a failure MPI may still use them
    let memory = Box::leak(Box::new([0u8; 8])).as_mut_ptr();
    let parcel = |peer, start: usize, bytes| Parcel {
        peer,
        address: memory.wrapping_add(start).expose_provenance() as u64,
        bytes,
    };
    let (sends, receives) = ([parcel(next, 0, 3)], [parcel(before, 3, 5)]);
    // SAFETY: as above
    let pending = unsafe { ranks.start_parcels(&sends, &receives) }.unwrap();
    let why = pending.finish().unwrap_err().to_string();
    let words = format!("rank {before} sends a parcel of 3 bytes where 5 are expected");
    assert!(why.contains(&words), "{why}");
}

fn broadcasts(ranks: &dyn Communicator, round: u64) {
    for root in 0..ranks.size() {
        let mut bytes = content(6, round, ranks.rank(), 0);
        ranks.broadcast(root, &mut bytes).unwrap();
        assert_eq!(bytes, content(6, round, root, 0));
    }
}
