//! Runs ranks as threads of one process, for several devices of one host and for tests.
//!
//! Both ends of a message register their memory; the rank that polls first copies the data. So a rank waits for no more
//! than the start of the other one.

use super::communicator::{
    Communicator, Message, MessageBuffer, Messages, PendingExchange, Placement, RanksError,
    Reduction,
};
use nestar_engine_mesh::parallel;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Communicator of one of several ranks in this process.
pub struct ThreadRank {
    rank: usize,
    shared: Arc<Shared>,
}

/// Number of polls before a waiting rank sleeps.
///
/// Ranks synchronise several times in a level step, and waking up takes longer than the typical delay of a rank.
const SPINS: u32 = 100;
/// Number of pause instructions between two polls.
const PAUSES_PER_SPIN: u32 = 30;

/// State shared by all ranks.
struct Shared {
    size: usize,
    /// Polls before a sleep; 0 if cores are too few for a polling rank.
    spins: u32,
    state: Mutex<SharedState>,
    changed: Condvar,
}

/// Input of one rank to a collective call.
type Contribution = Vec<Message>;

#[derive(Default)]
struct SharedState {
    /// Inputs to the collective call in progress, by rank.
    given: Vec<Option<Arc<Contribution>>>,
    /// Number of the collective call that the next arriving rank takes part in.
    round: u64,
    /// Inputs of all ranks to the latest complete call.
    result: Vec<Arc<Contribution>>,
    /// Number of ranks that have not taken the result yet.
    waiting: usize,
    in_flight: MessagesInFlight,
    failed: Option<(usize, String)>,
}

impl ThreadRank {
    /// Creates `size` connected ranks, one for each thread.
    #[must_use]
    pub fn connect(size: usize) -> Vec<Self> {
        let state = SharedState {
            given: (0..size).map(|_| None).collect(),
            ..SharedState::default()
        };
        let spacious = Placement::process_cores() >= 2 * size;
        let shared = Arc::new(Shared {
            size,
            spins: if spacious { SPINS } else { 0 },
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let rank = |rank| Self {
            rank,
            shared: shared.clone(),
        };
        (0..size).map(rank).collect()
    }

    /// Adds the input of this rank and waits for those of all ranks.
    fn rendezvous(&self, given: Contribution) -> Result<Vec<Arc<Contribution>>, RanksError> {
        let shared = &*self.shared;
        // A rank may arrive while others still leave the previous call.
        let mut state = shared.wait(|state| state.waiting == 0)?;
        let round = state.round;
        state.given[self.rank] = Some(Arc::new(given));
        if state.given.iter().all(Option::is_some) {
            state.result = state.given.iter_mut().filter_map(Option::take).collect();
            state.waiting = shared.size;
            state.round += 1;
            shared.changed.notify_all();
        }
        drop(state);
        let mut state = shared.wait(|state| state.round > round)?;
        let result = state.result.clone();
        state.waiting -= 1;
        if state.waiting == 0 {
            state.result.clear();
            shared.changed.notify_all();
        }
        Ok(result)
    }

    fn gather(&self, bytes: &[u8]) -> Result<Vec<Arc<Contribution>>, RanksError> {
        let bytes = bytes.to_vec();
        let peer = self.rank;
        self.rendezvous(vec![Message { peer, bytes }])
    }
}

impl SharedState {
    /// Returns the first failure.
    fn failure(&self) -> Option<RanksError> {
        let (rank, message) = self.failed.as_ref()?;
        Some(RanksError::Stopped {
            rank: *rank,
            message: message.clone(),
        })
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, SharedState> {
        // A rank that panicked while it held the lock left plain values.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `ready` returns `true` or a rank has failed.
    fn wait(
        &self,
        ready: impl Fn(&mut SharedState) -> bool,
    ) -> Result<MutexGuard<'_, SharedState>, RanksError> {
        let mut spins = self.spins;
        let mut state = self.lock();
        loop {
            if ready(&mut state) {
                return Ok(state);
            }
            if let Some(failure) = state.failure() {
                return Err(failure);
            }
            if spins > 0 {
                spins -= 1;
                drop(state);
                (0..PAUSES_PER_SPIN).for_each(|_| std::hint::spin_loop());
                state = self.lock();
            } else {
                let woken = self.changed.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl Communicator for ThreadRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.size
    }

    fn reduce(&self, reduction: Reduction, values: &mut [u64]) -> Result<(), RanksError> {
        let all = self.gather(bytemuck::cast_slice(values))?;
        for (n, one) in all.iter().enumerate() {
            let given: Vec<u64> = bytemuck::pod_collect_to_vec(&one[0].bytes);
            if given.len() != values.len() {
                return Err(RanksError::Transport(format!(
                    "rank {n} reduces {} values, rank {} {}",
                    given.len(),
                    self.rank,
                    values.len()
                )));
            }
            for (value, given) in values.iter_mut().zip(given) {
                *value = match n {
                    0 => given,
                    _ => reduction.combine(*value, given),
                };
            }
        }
        Ok(())
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, RanksError> {
        let all = self.gather(bytes)?;
        Ok(all.iter().map(|p| p[0].bytes.clone()).collect())
    }

    fn exchange(&self, sends: Vec<Message>) -> Result<Vec<Message>, RanksError> {
        let all = self.rendezvous(sends)?;
        let to_me = |(peer, given): (usize, &Arc<Contribution>)| {
            let mine = given.iter().find(|message| message.peer == self.rank)?;
            let bytes = mine.bytes.clone();
            (!bytes.is_empty()).then_some(Message { peer, bytes })
        };
        Ok(all.iter().enumerate().filter_map(to_me).collect())
    }

    fn start(
        &self,
        messages: Messages<MessageBuffer>,
    ) -> Result<Box<dyn PendingExchange>, RanksError> {
        Ok(Box::new(self.shared.start(self.rank, messages)))
    }

    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), RanksError> {
        let given: &[u8] = if self.rank == root { bytes } else { &[] };
        let all = self.gather(given)?;
        bytes.clone_from(&all[root][0].bytes);
        Ok(())
    }

    fn barrier(&self) -> Result<(), RanksError> {
        self.gather(&[]).map(|_| ())
    }

    fn abort(&self, message: &str) {
        let failure = (self.rank, message.to_string());
        self.shared.lock().failed.get_or_insert(failure);
        self.shared.changed.notify_all();
    }

    fn failure(&self) -> Option<RanksError> {
        self.shared.lock().failure()
    }
}

/// Smallest message that several threads copy, bytes; one core does not saturate the memory bandwidth.
const LARGE: usize = 1 << 20;
/// Smallest part that a thread copies, bytes.
const SHARE: usize = 256 << 10;

/// Sender and receiver.
type RankPair = (usize, usize);

/// Identifies a message: its ends and its sequence number between them.
type MessageId = (RankPair, u64);

/// One end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Sender,
    Receiver,
}

/// A span of host memory.
#[derive(Clone, Copy)]
struct HostSpan {
    address: usize,
    bytes: usize,
}

/// Progress of a message.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    /// One end is not registered yet, or the copy has not started.
    #[default]
    Waiting,
    /// A rank is copying the data.
    Copying,
    /// The data has arrived.
    Done,
    /// Sender and receiver disagree about the length.
    Refused { sent: usize, expected: usize },
}

/// A message that at least one end has registered.
#[derive(Default)]
struct ThreadTransfer {
    /// Memory of the sender and of the receiver.
    ends: [Option<HostSpan>; 2],
    stage: Stage,
}

impl ThreadTransfer {
    /// Returns `true` if a rank that waits for the message can make progress.
    fn is_ready(&self) -> bool {
        match self.stage {
            Stage::Waiting => self.ends.iter().all(Option::is_some),
            Stage::Copying => false,
            Stage::Done | Stage::Refused { .. } => true,
        }
    }
}

/// All messages in flight between ranks.
#[derive(Default)]
struct MessagesInFlight {
    transfers: BTreeMap<MessageId, ThreadTransfer>,
    /// Number of registered messages by pair of ranks: by the sender and by the receiver.
    numbers: BTreeMap<RankPair, [u64; 2]>,
}

impl MessagesInFlight {
    /// Registers one end of the next message between two ranks.
    fn add(&mut self, pair: RankPair, side: Side, memory: &mut MessageBuffer) -> MessageId {
        let numbers = self.numbers.entry(pair).or_default();
        let number = &mut numbers[side as usize];
        *number += 1;
        let id = (pair, *number);
        let transfer = self.transfers.entry(id).or_default();
        let (address, bytes) = (memory.address().expose_provenance(), memory.len());
        transfer.ends[side as usize] = Some(HostSpan { address, bytes });
        if let [Some(from), Some(to)] = transfer.ends
            && from.bytes != to.bytes
        {
            transfer.stage = Stage::Refused {
                sent: from.bytes,
                expected: to.bytes,
            };
        }
        id
    }

    fn is_ready(&self, id: &MessageId) -> bool {
        self.transfers.get(id).is_some_and(ThreadTransfer::is_ready)
    }

    /// Removes one end of a message, and the message when both ends are gone.
    fn remove_end(&mut self, id: &MessageId, side: Side) {
        if let Some(transfer) = self.transfers.get_mut(id) {
            transfer.ends[side as usize] = None;
            if transfer.ends.iter().all(Option::is_none) {
                self.transfers.remove(id);
            }
        }
    }
}

impl Shared {
    /// Makes progress with a message; returns `true` if it has arrived.
    fn advance(&self, id: &MessageId, side: Side) -> Result<bool, RanksError> {
        let mut state = self.lock();
        let Some(transfer) = state.in_flight.transfers.get_mut(id) else {
            return Ok(true);
        };
        if !transfer.is_ready() {
            return state.failure().map_or(Ok(false), Err);
        }
        if let Stage::Refused { sent, expected } = transfer.stage {
            let ((sender, receiver), _) = id;
            return Err(RanksError::Transport(format!(
                "rank {sender} sends a message of {sent} bytes, but rank {receiver} expects {expected} bytes"
            )));
        }
        if let (Stage::Waiting, [Some(from), Some(to)]) = (transfer.stage, transfer.ends) {
            transfer.stage = Stage::Copying;
            drop(state);
            // SAFETY: both ends keep their memory valid and unused until the message is done; only this rank copies
            unsafe { copy(from, to) };
            state = self.lock();
            if let Some(transfer) = state.in_flight.transfers.get_mut(id) {
                transfer.stage = Stage::Done;
            }
            self.changed.notify_all();
        }
        state.in_flight.remove_end(id, side);
        Ok(true)
    }

    /// Withdraws one end of a message; its memory is not accessed afterwards.
    fn withdraw(&self, id: &MessageId, side: Side) {
        let mut state = self.lock();
        let copying = |transfer: &ThreadTransfer| transfer.stage == Stage::Copying;
        while state.in_flight.transfers.get(id).is_some_and(copying) {
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state.in_flight.remove_end(id, side);
    }

    /// Starts messages of `rank`.
    fn start(
        self: &Arc<Self>,
        rank: usize,
        mut messages: Messages<MessageBuffer>,
    ) -> ThreadExchange {
        let Messages { sends, receives } = &mut messages;
        let mut state = self.lock();
        let mut waiting = Vec::with_capacity(sends.len() + receives.len());
        for message in receives {
            let pair = (message.peer, rank);
            let id = state
                .in_flight
                .add(pair, Side::Receiver, &mut message.bytes);
            waiting.push((id, Side::Receiver));
        }
        for message in sends {
            let pair = (rank, message.peer);
            let id = state.in_flight.add(pair, Side::Sender, &mut message.bytes);
            waiting.push((id, Side::Sender));
        }
        self.changed.notify_all();
        drop(state);
        ThreadExchange {
            shared: self.clone(),
            waiting,
            messages,
        }
    }
}

/// Copies a message.
///
/// # Safety
/// Both spans are valid host memory of equal length. Nobody writes `from` or uses `to` meanwhile.
unsafe fn copy(from: HostSpan, to: HostSpan) {
    let (source, target) = (from.address, to.address);
    if from.bytes == 0 {
        return;
    }
    // SAFETY: guaranteed by the caller
    let (from, to): (&[u8], &mut [u8]) = unsafe {
        (
            std::slice::from_raw_parts(std::ptr::with_exposed_provenance(source), from.bytes),
            std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut(target), to.bytes),
        )
    };
    if from.len() < LARGE {
        return to.copy_from_slice(from);
    }
    let share = from.len().div_ceil(rayon::current_num_threads()).max(SHARE);
    parallel::for_each_chunk(to, share, 1, |n, to| {
        to.copy_from_slice(&from[n * share..][..to.len()]);
    });
}

/// An exchange of one rank in flight. Dropping it withdraws its messages.
struct ThreadExchange {
    shared: Arc<Shared>,
    /// Messages that have not arrived yet.
    waiting: Vec<(MessageId, Side)>,
    messages: Messages<MessageBuffer>,
}

impl PendingExchange for ThreadExchange {
    fn is_done(&mut self) -> Result<bool, RanksError> {
        let mut failure = Ok(());
        let shared = &self.shared;
        self.waiting
            .retain(|(id, side)| match shared.advance(id, *side) {
                Ok(done) => !done,
                Err(why) => {
                    failure = Err(why);
                    true
                }
            });
        failure.map(|()| self.waiting.is_empty())
    }

    fn finish(mut self: Box<Self>) -> Result<Messages<MessageBuffer>, RanksError> {
        while !self.is_done()? {
            let waiting = &self.waiting;
            let any = |known: &MessagesInFlight| waiting.iter().any(|(id, _)| known.is_ready(id));
            drop(self.shared.wait(|state| any(&state.in_flight))?);
        }
        Ok(std::mem::take(&mut self.messages))
    }
}

impl Drop for ThreadExchange {
    fn drop(&mut self) {
        for (id, side) in &self.waiting {
            self.shared.withdraw(id, *side);
        }
    }
}

#[cfg(test)]
mod in_flight_tests;

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `work` on `size` ranks; returns the results by rank.
    fn on_ranks<T: Send>(size: usize, work: impl Fn(&ThreadRank) -> T + Sync) -> Vec<T> {
        let ranks = ThreadRank::connect(size);
        std::thread::scope(|scope| {
            let work = &work;
            let started: Vec<_> = ranks.iter().map(|r| scope.spawn(move || work(r))).collect();
            started.into_iter().map(|t| t.join().unwrap()).collect()
        })
    }

    #[test]
    fn repeated_reductions_and_gathers_return_the_right_values() {
        let results = on_ranks(5, |ranks| {
            let mut results = Vec::new();
            for round in 0..100u64 {
                let mut values = [ranks.rank() as u64 + round, 7];
                ranks.reduce(Reduction::Sum, &mut values).unwrap();
                let own = vec![round as u8; ranks.rank()];
                let all = ranks.all_gather(&own).unwrap();
                let lengths: Vec<usize> = all.iter().map(Vec::len).collect();
                results.push((values, lengths));
            }
            results
        });
        for result in results {
            for (round, (values, lengths)) in result.into_iter().enumerate() {
                assert_eq!(values, [10 + 5 * round as u64, 35]);
                assert_eq!(lengths, [0, 1, 2, 3, 4]);
            }
        }
    }

    #[test]
    fn messages_reach_their_receivers() {
        let results = on_ranks(4, |ranks| {
            let me = ranks.rank();
            // To itself and all higher ranks.
            let send = |peer| Message {
                peer,
                bytes: vec![me as u8, peer as u8],
            };
            ranks.exchange((me..4).map(send).collect()).unwrap()
        });
        for (me, received) in results.into_iter().enumerate() {
            let expected = |peer| Message {
                peer,
                bytes: vec![peer as u8, me as u8],
            };
            assert_eq!(received, (0..=me).map(expected).collect::<Vec<_>>());
        }
    }

    #[test]
    fn exchanges_may_end_in_any_order() {
        on_ranks(3, |ranks| {
            let communicator: &dyn Communicator = ranks;
            let others: Vec<usize> = (0..3).filter(|&r| r != ranks.rank()).collect();
            let halo = |n: u8| Messages {
                sends: others
                    .iter()
                    .map(|&peer| Message {
                        peer,
                        bytes: vec![n; 3],
                    })
                    .collect(),
                receives: others
                    .iter()
                    .map(|&peer| Message {
                        peer,
                        bytes: vec![0; 3],
                    })
                    .collect(),
            };
            let start = |n| communicator.start_messages(halo(n));
            let (first, second) = (start(1), start(2));
            for (pending, n) in [(second, 2), (first, 1)] {
                ranks.barrier().unwrap();
                let halo = pending.unwrap().finish().unwrap();
                assert!(halo.receives.iter().all(|m| m.bytes == [n; 3]));
            }
        });
    }

    #[test]
    fn a_failure_stops_all_ranks() {
        let results = on_ranks(3, |ranks| {
            if ranks.rank() == 1 {
                ranks.abort("no more");
                return None;
            }
            ranks.barrier().err()
        });
        let expected = RanksError::Stopped {
            rank: 1,
            message: "no more".into(),
        };
        assert_eq!(results, [Some(expected.clone()), None, Some(expected)]);
    }
}
