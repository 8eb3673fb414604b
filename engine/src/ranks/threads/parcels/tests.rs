//! Parcels between threads.

use super::LARGE;
use crate::device::Parcel;
use crate::ranks::{Communicator, PendingParcels, RanksError, Threads};
use std::time::Duration;

/// Runs `work` on `size` ranks; what they return, by rank.
fn on_ranks<T: Send>(size: usize, work: impl Fn(&Threads) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let work = &work;
        let start = |ranks| scope.spawn(move || work(&ranks));
        let started: Vec<_> = Threads::connect(size).into_iter().map(start).collect();
        started.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

/// Lengths of the parcels of a round from one rank to another: odd, empty, and worth several threads.
fn lengths(from: usize, to: usize, round: usize) -> [usize; 3] {
    [3 + from + 2 * to + 7 * round, 0, LARGE + 5 * (from + to)]
}

/// Memory of one rank in a round, and its parcels with another.
struct Round {
    outgoing: Vec<(usize, Vec<u8>)>,
    incoming: Vec<(usize, Vec<u8>)>,
    expected: Vec<(usize, Vec<u8>)>,
}

impl Round {
    fn new(rank: usize, size: usize, round: usize) -> Self {
        let others = || (0..size).filter(move |peer| *peer != rank);
        let content = |from: usize, to: usize| {
            let byte = move |n: usize| (n * 7 + from * 101 + to * 59 + round * 17) as u8;
            let fill = move |length: usize| (0..length).map(byte).collect::<Vec<u8>>();
            lengths(from, to, round).map(fill)
        };
        let all = |from_me: bool| -> Vec<(usize, Vec<u8>)> {
            let one = |peer| {
                let (from, to) = if from_me { (rank, peer) } else { (peer, rank) };
                content(from, to).map(|bytes| (peer, bytes))
            };
            others().flat_map(one).collect()
        };
        let expected = all(false);
        let room = expected.iter();
        Self {
            outgoing: all(true),
            incoming: room.map(|(peer, b)| (*peer, vec![0; b.len()])).collect(),
            expected,
        }
    }

    fn start(&mut self, ranks: &Threads) -> Box<dyn PendingParcels> {
        let sends = self.outgoing.iter_mut().map(parcel).collect::<Vec<_>>();
        let receives = self.incoming.iter_mut().map(parcel).collect::<Vec<_>>();
        // SAFETY: the round keeps the memory, and looks at it behind the end
        unsafe { ranks.start_parcels(&sends, &receives) }.unwrap()
    }
}

fn parcel((peer, bytes): &mut (usize, Vec<u8>)) -> Parcel {
    Parcel {
        peer: *peer,
        address: bytes.as_mut_ptr().expose_provenance() as u64,
        bytes: bytes.len(),
    }
}

#[test]
fn parcels_arrive_as_they_were_sent_however_their_ends_are_ordered() {
    for size in [1, 2, 4] {
        on_ranks(size, |ranks| {
            let rank = ranks.rank();
            let mut rounds: Vec<_> = (0..4).map(|n| Round::new(rank, size, n)).collect();
            let mut pending = Vec::new();
            for (n, round) in rounds.iter_mut().enumerate() {
                pending.push((n, round.start(ranks)));
                ranks.barrier().unwrap();
            }
            // each rank ends them in an order of its own, some by asking
            pending.rotate_left(rank % 4);
            if rank % 2 == 1 {
                pending.reverse();
            }
            for (n, mut parcels) in pending {
                while n % 2 == 1 && !parcels.is_done().unwrap() {
                    std::thread::yield_now();
                }
                parcels.finish().unwrap();
                assert!(rounds[n].incoming == rounds[n].expected, "round {n}");
                // what has left may change at once
                rounds[n].outgoing.clear();
            }
            ranks.barrier().unwrap();
            assert!(ranks.shared.lock().parcels.passing.is_empty());
        });
    }
}

#[test]
fn a_rank_that_has_left_its_parcels_to_others_need_not_come_back() {
    on_ranks(2, |ranks| {
        let mut round = Round::new(ranks.rank(), 2, 0);
        let pending = round.start(ranks);
        ranks.barrier().unwrap();
        if ranks.rank() == 0 {
            pending.finish().unwrap();
            assert!(round.incoming == round.expected);
            ranks.barrier().unwrap();
            assert_eq!(ranks.shared.lock().parcels.passing.len(), 6);
        } else {
            // busy with something else until the other has all it waits for
            ranks.barrier().unwrap();
            ranks.barrier().unwrap();
            assert!(round.incoming == round.expected);
            pending.finish().unwrap();
            assert!(ranks.shared.lock().parcels.passing.is_empty());
            return;
        }
        ranks.barrier().unwrap();
    });
}

#[test]
fn parcels_of_unequal_sizes_are_refused_at_both_ends() {
    let answers = on_ranks(2, |ranks| {
        let mut memory = (1 - ranks.rank(), vec![0; 8 - ranks.rank()]);
        let parcel = [parcel(&mut memory)];
        let (sends, receives) = match ranks.rank() {
            0 => (&parcel[..], &[][..]),
            _ => (&[][..], &parcel[..]),
        };
        // SAFETY: the memory is kept until the end
        unsafe { ranks.start_parcels(sends, receives) }
            .unwrap()
            .finish()
    });
    let words = "rank 0 sends a parcel of 8 bytes where 7 are expected by rank 1";
    let refused = Err(RanksError::Transport(words.into()));
    assert_eq!(answers, [refused.clone(), refused]);
}

#[test]
fn a_rank_that_fails_ends_the_parcels_of_the_others() {
    let answers = on_ranks(3, |ranks| {
        if ranks.rank() == 1 {
            std::thread::sleep(Duration::from_millis(20));
            ranks.abort("no more");
            return None;
        }
        let mut memory = (1, vec![0; 8]);
        let parcel = [parcel(&mut memory)];
        // SAFETY: the memory is kept until the end
        let mut pending = unsafe { ranks.start_parcels(&[], &parcel) }.unwrap();
        assert!(ranks.rank() == 2 || !pending.is_done().unwrap_or(false));
        pending.finish().err()
    });
    let stopped = Some(RanksError::Stopped {
        rank: 1,
        message: "no more".into(),
    });
    assert_eq!(answers, [stopped.clone(), None, stopped]);
}
