//! Tests of exchanges between threads.

use super::LARGE;
use crate::{
    Communicator, Message, MessageBuffer, Messages, PendingExchange, RanksError, ThreadRank,
};
use std::time::Duration;

/// Runs `work` on `size` ranks; returns the results by rank.
fn on_ranks<T: Send>(size: usize, work: impl Fn(&ThreadRank) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let work = &work;
        let start = |ranks| scope.spawn(move || work(&ranks));
        let started: Vec<_> = ThreadRank::connect(size).into_iter().map(start).collect();
        started.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

/// Returns the lengths of messages between two ranks in a round: odd, zero, and large enough for several threads.
fn lengths(from: usize, to: usize, round: usize) -> [usize; 3] {
    [3 + from + 2 * to + 7 * round, 0, LARGE + 5 * (from + to)]
}

/// Messages, receive buffers and expected data of one rank in a round.
struct Round {
    messages: Messages,
    expected: Vec<Message>,
}

impl Round {
    fn new(rank: usize, size: usize, round: usize) -> Self {
        let content = |from: usize, to: usize| {
            let byte = move |n: usize| (n * 7 + from * 101 + to * 59 + round * 17) as u8;
            let fill = move |length: usize| (0..length).map(byte).collect::<Vec<u8>>();
            lengths(from, to, round).map(fill)
        };
        let all = |from_me: bool| -> Vec<Message> {
            let one = |peer| {
                let (from, to) = if from_me { (rank, peer) } else { (peer, rank) };
                content(from, to).map(|bytes| Message { peer, bytes })
            };
            let others = (0..size).filter(|peer| *peer != rank);
            others.flat_map(one).collect()
        };
        let expected = all(false);
        let room = |Message { peer, bytes }: &Message| room(*peer, bytes.len());
        let messages = Messages {
            sends: all(true),
            receives: expected.iter().map(room).collect(),
        };
        Self { messages, expected }
    }

    fn start(&self, ranks: &ThreadRank) -> Box<dyn PendingExchange> {
        start(ranks, self.messages.clone())
    }

    fn check(&self, pending: Box<dyn PendingExchange>) {
        let messages = pending.finish().unwrap().map(MessageBuffer::into_bytes);
        assert!(messages.receives == self.expected);
        assert!(messages.sends == self.messages.sends);
    }
}

fn room(peer: usize, length: usize) -> Message {
    let bytes = vec![0; length];
    Message { peer, bytes }
}

fn start(ranks: &ThreadRank, messages: Messages) -> Box<dyn PendingExchange> {
    ranks.start(messages.map(MessageBuffer::from)).unwrap()
}

#[test]
fn messages_arrive_unchanged_in_any_order_of_their_ends() {
    for size in [1, 2, 4] {
        on_ranks(size, |ranks| {
            let rank = ranks.rank();
            let rounds: Vec<_> = (0..4).map(|n| Round::new(rank, size, n)).collect();
            let mut pending = Vec::new();
            for (n, round) in rounds.iter().enumerate() {
                pending.push((n, round.start(ranks)));
                ranks.barrier().unwrap();
            }
            // Each rank finishes its exchanges in another order, some of them by polling.
            pending.rotate_left(rank % 4);
            if rank % 2 == 1 {
                pending.reverse();
            }
            for (n, mut messages) in pending {
                while n % 2 == 1 && !messages.is_done().unwrap() {
                    std::thread::yield_now();
                }
                rounds[n].check(messages);
            }
            ranks.barrier().unwrap();
            assert!(ranks.shared.lock().in_flight.transfers.is_empty());
        });
    }
}

#[test]
fn a_rank_may_drop_its_messages_once_others_have_copied_them() {
    on_ranks(2, |ranks| {
        let round = Round::new(ranks.rank(), 2, 0);
        let pending = round.start(ranks);
        let transfers = || ranks.shared.lock().in_flight.transfers.len();
        ranks.barrier().unwrap();
        if ranks.rank() == 0 {
            round.check(pending);
            ranks.barrier().unwrap();
            assert_eq!(transfers(), 6);
            ranks.barrier().unwrap();
        } else {
            // Busy with other work until the other rank has received everything.
            ranks.barrier().unwrap();
            ranks.barrier().unwrap();
            round.check(pending);
            assert_eq!(transfers(), 0);
        }
    });
}

#[test]
fn messages_of_unequal_sizes_are_refused_at_both_ends() {
    let answers = on_ranks(2, |ranks| {
        let mut messages = Messages::default();
        match ranks.rank() {
            0 => messages.sends.push(room(1, 8)),
            _ => messages.receives.push(room(0, 7)),
        }
        start(ranks, messages).finish().err()
    });
    let words = "rank 0 sends a message of 8 bytes, but rank 1 expects 7 bytes";
    let refused = Some(RanksError::Transport(words.into()));
    assert_eq!(answers, [refused.clone(), refused]);
}

#[test]
fn a_rank_that_fails_ends_the_exchanges_of_the_others() {
    let answers = on_ranks(3, |ranks| {
        if ranks.rank() == 1 {
            std::thread::sleep(Duration::from_millis(20));
            ranks.abort("no more");
            return None;
        }
        let mut messages = Messages::default();
        messages.receives.push(room(1, 8));
        let mut pending = start(ranks, messages);
        assert!(ranks.rank() == 2 || !pending.is_done().unwrap_or(false));
        pending.finish().err()
    });
    let stopped = Some(RanksError::Stopped {
        rank: 1,
        message: "no more".into(),
    });
    assert_eq!(answers, [stopped.clone(), None, stopped]);
}
