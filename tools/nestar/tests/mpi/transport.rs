//! Tests of the communicator: messages arrive unchanged. Their contents are functions of call, sender and receiver, so each
//! rank can compute the expected messages.

use crate::{Case, Launcher, role};
use nestar::engine::comm::{Communicator, Message, MessageBuffer, Messages, Reduction};
use nestar::engine::device::DeviceKind;

/// Number of rounds of calls.
const ROUNDS: u64 = 60;
/// Maximum length of a part, so that most messages are split.
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

/// Sends and receives all messages of one rank.
pub fn talk(ranks: &dyn Communicator) {
    assert!(ranks.rank() < ranks.size());
    let placement = ranks.placement();
    assert_eq!(
        (placement.local_rank, placement.local_size),
        (ranks.rank(), ranks.size()),
        "one host"
    );
    for round in 0..ROUNDS {
        reductions(ranks, round);
        gathers(ranks, round);
        exchanges(ranks, round);
        halos(ranks, round);
        questions(ranks, round);
        broadcasts(ranks, round);
    }
    short_messages(ranks);
    ranks.barrier().unwrap();
}

/// Returns a hash of the numbers.
fn mixed(numbers: [u64; 4]) -> u64 {
    numbers.iter().fold(0x9e37_79b9_7f4a_7c15, |state, number| {
        let state = (state ^ number).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state ^ (state >> 29)
    })
}

/// Returns the message of a call, sender and receiver; a third of the messages are empty.
fn content(call: u64, round: u64, from: usize, to: usize) -> Vec<u8> {
    let seed = mixed([call, round, from as u64, to as u64]);
    let length = match seed % 3 {
        0 => 0,
        // also multiples of the maximum length
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
    // optional calls
    received.retain(|m| !m.bytes.is_empty());
    let all = (0..ranks.size()).map(|peer| message(peer, me, peer));
    let expected: Vec<_> = all.filter(|m| !m.bytes.is_empty()).collect();
    assert_eq!(received, expected);
}

/// Two overlapping sets of messages with other calls in between, completed in either order.
fn halos(ranks: &dyn Communicator, round: u64) {
    let me = ranks.rank();
    let others: Vec<usize> = (0..ranks.size()).filter(|&peer| peer != me).collect();
    let halo = |call: u64| {
        let message = |peer: usize, bytes: Vec<u8>| Message { peer, bytes };
        let send = |&peer: &usize| message(peer, content(call, round, me, peer));
        let receive = |&peer: &usize| message(peer, vec![0; content(call, round, peer, me).len()]);
        ranks.start_messages(Messages {
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

/// Two messages between all ranks with other exchanges in between, some completed by polling.
fn questions(ranks: &dyn Communicator, round: u64) {
    // a single rank has no peers and no MPI
    assert_eq!(ranks.reaches(DeviceKind::Emulated), ranks.size() > 1);
    let me = ranks.rank();
    let others = (0..ranks.size()).filter(|&peer| peer != me);
    let calls: Vec<(u64, usize)> = others.flat_map(|peer| [(7, peer), (8, peer)]).collect();
    let content = |&(call, peer): &(u64, usize), from: usize| {
        let to = me + peer - from;
        content(call, round, from, to)
    };
    let message = |peer: usize, bytes: Vec<u8>| Message {
        peer,
        bytes: MessageBuffer::from(bytes),
    };
    let send = |call: &(u64, usize)| message(call.1, content(call, me));
    let receive = |call: &(u64, usize)| message(call.1, vec![0; content(call, call.1).len()]);
    let messages = Messages {
        sends: calls.iter().map(send).collect(),
        receives: calls.iter().map(receive).collect(),
    };
    let mut pending = ranks.start(messages).unwrap();
    halos(ranks, round);
    while round.is_multiple_of(3) && !pending.is_done().unwrap() {
        std::thread::yield_now();
    }
    let messages = pending.finish().unwrap();
    for (call, message) in calls.iter().zip(messages.receives) {
        assert_eq!(message.bytes.into_bytes(), content(call, call.1));
    }
}

/// A message from each rank to the next, which expects a longer one.
fn short_messages(ranks: &dyn Communicator) {
    let (me, size) = (ranks.rank(), ranks.size());
    if size == 1 {
        return;
    }
    let (next, before) = ((me + 1) % size, (me + size - 1) % size);
    let message = |peer, length| Message {
        peer,
        bytes: vec![0; length],
    };
    let pending = ranks.start_messages(Messages {
        sends: vec![message(next, 3)],
        receives: vec![message(before, 5)],
    });
    let why = pending.unwrap().finish().unwrap_err().to_string();
    let words = format!("rank {before} sends a message of 3 bytes, but 5 bytes are expected");
    assert!(why.contains(&words), "{why}");
}

fn broadcasts(ranks: &dyn Communicator, round: u64) {
    for root in 0..ranks.size() {
        let mut bytes = content(6, round, ranks.rank(), 0);
        ranks.broadcast(root, &mut bytes).unwrap();
        assert_eq!(bytes, content(6, round, root, 0));
    }
}
