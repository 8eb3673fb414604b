//! Messages in flight between ranks of one process.
//!
//! Both ends register their memory; the rank that polls first copies the data. So a rank waits for no more than the
//! start of the other one.

#[cfg(test)]
mod tests;

use super::Shared;
use crate::communicator::{MessageBuffer, Messages, PendingExchange, RanksError};
use nestar_engine_mesh::parallel;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

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
pub(super) struct MessagesInFlight {
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
    pub(super) fn start(
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
pub(super) struct ThreadExchange {
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
