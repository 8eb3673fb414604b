//! Parcels between ranks of one process. Both ends tell where the content lies and where it goes; whichever rank looks first
//! copies it, so that no rank waits for more than the other's start.

#[cfg(test)]
mod tests;

use super::Shared;
use crate::device::Parcel;
use crate::ranks::{PendingParcels, RanksError};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

/// Copies from this size on are worth several threads of a rank: one core moves less than the memory does.
const LARGE: usize = 1 << 20;
/// Least share of a thread.
const SHARE: usize = 256 << 10;

/// What is counted apart, so that calls of the one kind may come between those of the other anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// Messages of halos.
    Messages,
    /// Parcels in memory that a call's maker keeps.
    Parcels,
}

/// Sender and receiver on a lane.
type Pair = (Lane, usize, usize);

/// A parcel: its ends, and its number among theirs.
type Name = (Pair, u64);

/// An end of a parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Sender,
    Receiver,
}

/// Memory of the host.
#[derive(Clone, Copy)]
struct Place {
    address: u64,
    bytes: usize,
}

/// What became of a parcel.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    /// An end is unknown, or nobody has looked since both are known.
    #[default]
    Waiting,
    /// A rank copies it.
    Copying,
    /// It has arrived.
    Done,
    /// Its ends do not agree about its size.
    Refused { sent: usize, expected: usize },
}

/// A parcel that one rank or both know of.
#[derive(Default)]
struct Passing {
    /// The sender's and the receiver's end.
    ends: [Option<Place>; 2],
    stage: Stage,
}

impl Passing {
    /// Whether a rank that waits for the parcel can go on.
    fn is_ready(&self) -> bool {
        match self.stage {
            Stage::Waiting => self.ends.iter().all(Option::is_some),
            Stage::Copying => false,
            Stage::Done | Stage::Refused { .. } => true,
        }
    }
}

/// All parcels between ranks.
#[derive(Default)]
pub(super) struct Parcels {
    passing: BTreeMap<Name, Passing>,
    /// Parcels told of so far, by sender and receiver: by the one and by the other.
    numbers: BTreeMap<Pair, [u64; 2]>,
}

impl Parcels {
    /// Notes an end of the next parcel between two ranks.
    fn add(&mut self, pair: Pair, side: Side, parcel: &Parcel) -> Name {
        let numbers = self.numbers.entry(pair).or_default();
        let number = &mut numbers[side as usize];
        *number += 1;
        let name = (pair, *number);
        let passing = self.passing.entry(name).or_default();
        let &Parcel { address, bytes, .. } = parcel;
        passing.ends[side as usize] = Some(Place { address, bytes });
        if let [Some(from), Some(to)] = passing.ends
            && from.bytes != to.bytes
        {
            passing.stage = Stage::Refused {
                sent: from.bytes,
                expected: to.bytes,
            };
        }
        name
    }

    fn is_ready(&self, name: &Name) -> bool {
        self.passing.get(name).is_some_and(Passing::is_ready)
    }

    /// Forgets one end of a parcel, and all of it with the other.
    fn leave(&mut self, name: &Name, side: Side) {
        if let Some(passing) = self.passing.get_mut(name) {
            passing.ends[side as usize] = None;
            if passing.ends.iter().all(Option::is_none) {
                self.passing.remove(name);
            }
        }
    }
}

impl Shared {
    /// Goes on with a parcel; whether it has arrived.
    fn advance(&self, name: &Name, side: Side) -> Result<bool, RanksError> {
        let mut state = self.lock();
        let Some(passing) = state.parcels.passing.get_mut(name) else {
            return Ok(true);
        };
        if !passing.is_ready() {
            return state.failure().map_or(Ok(false), Err);
        }
        if let Stage::Refused { sent, expected } = passing.stage {
            let ((_, sender, receiver), _) = name;
            return Err(RanksError::Transport(format!(
                "rank {sender} sends a parcel of {sent} bytes where {expected} are expected by rank {receiver}"
            )));
        }
        if let (Stage::Waiting, [Some(from), Some(to)]) = (passing.stage, passing.ends) {
            passing.stage = Stage::Copying;
            drop(state);
            // SAFETY: both ends keep their memory and leave it alone until the parcel is done, and nobody else copies it
            unsafe { copy(from, to) };
            state = self.lock();
            if let Some(passing) = state.parcels.passing.get_mut(name) {
                passing.stage = Stage::Done;
            }
            self.changed.notify_all();
        }
        state.parcels.leave(name, side);
        Ok(true)
    }

    /// Gives up one end of a parcel, whose memory nobody touches from then on.
    fn withdraw(&self, name: &Name, side: Side) {
        let mut state = self.lock();
        let copying = |passing: &Passing| passing.stage == Stage::Copying;
        while state.parcels.passing.get(name).is_some_and(copying) {
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state.parcels.leave(name, side);
    }

    /// Starts parcels of `rank`.
    pub(super) fn start_parcels(
        self: &Arc<Self>,
        lane: Lane,
        rank: usize,
        sends: &[Parcel],
        receives: &[Parcel],
    ) -> ParcelsUnderWay {
        let mut state = self.lock();
        let mut waiting = Vec::with_capacity(sends.len() + receives.len());
        for parcel in receives {
            let side = Side::Receiver;
            waiting.push((
                state.parcels.add((lane, parcel.peer, rank), side, parcel),
                side,
            ));
        }
        for parcel in sends {
            let side = Side::Sender;
            waiting.push((
                state.parcels.add((lane, rank, parcel.peer), side, parcel),
                side,
            ));
        }
        self.changed.notify_all();
        drop(state);
        ParcelsUnderWay {
            shared: self.clone(),
            waiting,
        }
    }
}

/// Copies a parcel.
///
/// # Safety
/// Both places are memory of the host that nobody changes, and nobody else uses `to`; they have one size.
unsafe fn copy(from: Place, to: Place) {
    let (source, target) = (from.address as usize, to.address as usize);
    if from.bytes == 0 {
        return;
    }
    // SAFETY: the caller's promise
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
    let shares = from.par_chunks(share).zip(to.par_chunks_mut(share));
    shares.for_each(|(from, to)| to.copy_from_slice(from));
}

/// Parcels of one rank under way. Dropped, they leave their memory alone.
pub(super) struct ParcelsUnderWay {
    shared: Arc<Shared>,
    /// Those that are not known to have arrived.
    waiting: Vec<(Name, Side)>,
}

impl PendingParcels for ParcelsUnderWay {
    fn is_done(&mut self) -> Result<bool, RanksError> {
        let mut failure = Ok(());
        let shared = &self.shared;
        self.waiting
            .retain(|(name, side)| match shared.advance(name, *side) {
                Ok(done) => !done,
                Err(why) => {
                    failure = Err(why);
                    true
                }
            });
        failure.map(|()| self.waiting.is_empty())
    }

    fn finish(mut self: Box<Self>) -> Result<(), RanksError> {
        while !self.is_done()? {
            let waiting = &self.waiting;
            let any = |parcels: &Parcels| waiting.iter().any(|(name, _)| parcels.is_ready(name));
            drop(self.shared.wait(|state| any(&state.parcels))?);
        }
        Ok(())
    }
}

impl Drop for ParcelsUnderWay {
    fn drop(&mut self) {
        for (name, side) in &self.waiting {
            self.shared.withdraw(name, *side);
        }
    }
}
