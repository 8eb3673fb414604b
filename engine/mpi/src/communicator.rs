//! The connection of a rank to all others, by MPI.

use crate::backoff::Backoff;
use crate::job_status::JobStatus;
use crate::mpi::{MpiComm, Operation, Transfer, abort, finalise, reaches_gpus, start};
use crate::placement;
use nestar_engine::comm::{
    Communicator, Message, MessageBuffer, Messages, PendingExchange, Placement, RanksError,
    Reduction,
};
use nestar_engine::device::DeviceKind;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// Tag of messages of known lengths.
const KNOWN: i32 = 1;
/// Tags of messages that nobody expects; two, so that those of the next exchange are told from those of this one.
const UNEXPECTED: i32 = 2;
/// How long a rank that failed waits for the others to end as well, before it ends them.
const GRACE: Duration = Duration::from_secs(1);

/// All ranks of an MPI job, as seen by one of them.
#[derive(Clone)]
pub struct Mpi(Arc<MpiState>);

struct MpiState {
    rank: usize,
    size: usize,
    placement: Placement,
    /// What a run sends.
    run: MpiComm,
    /// How ranks end: apart from what a run may leave unfinished.
    end: MpiComm,
    /// Exchanges so far.
    exchanges: AtomicI32,
}

impl Mpi {
    /// Starts MPI. Messages above `largest` bytes go in pieces.
    ///
    /// # Errors
    /// The library cannot be used.
    pub fn start(largest: usize) -> Result<Self, String> {
        let world = start(largest)?;
        let mut state = MpiState {
            rank: world.rank(),
            size: world.size(),
            placement: Placement::default(),
            run: world.duplicate(),
            end: world.duplicate(),
            exchanges: AtomicI32::new(0),
        };
        let host = world.host();
        let cores = host.gather(
            placement::cores().to_vec(),
            &vec![placement::BYTES; host.size()],
        );
        let cores = wait_for(cores, Backoff::new(true)).all;
        state.placement = placement::placement(host.rank(), host.size(), &cores);
        Ok(Self(Arc::new(state)))
    }

    /// What became of all ranks, once they are here; `Unresponsive` where this rank has failed and others do not come for a while.
    pub fn agree_on_end(&self, failed: bool) -> JobStatus {
        let state = &*self.0;
        let none = state.size as u64;
        let own = if failed { state.rank as u64 } else { none };
        let mut all = state
            .end
            .reduce(vec![own, u64::from(failed)], Operation::Min);
        // where several ranks fail by themselves, the first most likely speaks for all
        let late = Duration::from_millis(20) * state.rank.min(50) as u32;
        let (start, mut backoff) = (Instant::now(), self.backoff());
        while !all.is_done() {
            if failed && start.elapsed() > GRACE + late {
                return JobStatus::Unresponsive;
            }
            backoff.wait();
        }
        match all.take().combined[..] {
            [first, all] if first < none => JobStatus::Failed {
                rank: first as usize,
                all: all != 0,
            },
            _ => JobStatus::Done,
        }
    }

    /// Ends MPI. No call may follow; the thread that started it calls this.
    pub fn end(&self) {
        finalise();
    }

    /// Ends all ranks with an exit status, by force.
    pub fn end_all(&self, status: u8) -> ! {
        abort(status)
    }

    /// A rank that shares its core with others leaves it at once.
    fn backoff(&self) -> Backoff {
        let Placement { local_size, .. } = self.0.placement;
        Backoff::new(local_size > Placement::process_cores())
    }

    /// What every rank gave, where it is too much for one call of MPI.
    fn gather_by_messages(
        &self,
        bytes: &[u8],
        lengths: &[usize],
    ) -> Result<Vec<Vec<u8>>, RanksError> {
        let mut halo = Messages::default();
        let others = (0..self.0.size).filter(|peer| *peer != self.0.rank);
        for peer in others {
            let (own, room) = (bytes.to_vec(), vec![0; lengths[peer]]);
            halo.sends.push(Message { peer, bytes: own });
            halo.receives.push(Message { peer, bytes: room });
        }
        let communicator: &dyn Communicator = self;
        let halo = communicator.start_messages(halo)?.finish()?;
        let mut all: Vec<Vec<u8>> = halo.receives.into_iter().map(|m| m.bytes).collect();
        all.insert(self.0.rank, bytes.to_vec());
        Ok(all)
    }

    fn wait<M>(&self, transfer: Transfer<M>) -> M {
        wait_for(transfer, self.backoff())
    }
}

fn wait_for<M>(mut transfer: Transfer<M>, mut backoff: Backoff) -> M {
    while !transfer.is_done() {
        backoff.wait();
    }
    transfer.take()
}

impl Communicator for Mpi {
    fn rank(&self) -> usize {
        self.0.rank
    }

    fn size(&self) -> usize {
        self.0.size
    }

    fn placement(&self) -> Placement {
        self.0.placement
    }

    fn reduce(&self, reduction: Reduction, values: &mut [u64]) -> Result<(), RanksError> {
        let operation = match reduction {
            Reduction::Min => Operation::Min,
            Reduction::Max => Operation::Max,
            Reduction::Sum => Operation::Sum,
            Reduction::Or => Operation::Or,
        };
        let result = self.wait(self.0.run.reduce(values.to_vec(), operation));
        values.copy_from_slice(&result.combined);
        Ok(())
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, RanksError> {
        let MpiState { run, size, .. } = *self.0;
        let length = (bytes.len() as u64).to_le_bytes().to_vec();
        let lengths = self.wait(run.gather(length, &vec![8; size])).all;
        let lengths: Vec<usize> = lengths.chunks_exact(8).map(number).collect();
        if lengths.iter().sum::<usize>() > run.largest() {
            return self.gather_by_messages(bytes, &lengths);
        }
        let all = self.wait(run.gather(bytes.to_vec(), &lengths)).all;
        let mut rest = all.as_slice();
        let part = |&length: &usize| rest.split_off(..length).unwrap_or_default().to_vec();
        Ok(lengths.iter().map(part).collect())
    }

    fn exchange(&self, sends: Vec<Message>) -> Result<Vec<Message>, RanksError> {
        Ok(SparseExchange::start(&self.0, sends).finish(self.backoff()))
    }

    fn reaches(&self, kind: DeviceKind) -> bool {
        match kind {
            DeviceKind::Cuda => reaches_gpus(),
            // its memory is the host's
            DeviceKind::Emulated => true,
        }
    }

    fn start(
        &self,
        messages: Messages<MessageBuffer>,
    ) -> Result<Box<dyn PendingExchange>, RanksError> {
        let run = self.0.run;
        let receive = |m: Message<MessageBuffer>| {
            let expected = m.bytes.len();
            (m.peer, expected, run.receive(m.bytes, m.peer, KNOWN))
        };
        // first the room, so that nothing that arrives has to be stored elsewhere
        let receives = messages.receives.into_iter().map(receive).collect();
        let send = |m: Message<MessageBuffer>| (m.peer, run.send(m.bytes, m.peer, KNOWN));
        Ok(Box::new(MpiExchange {
            receives,
            sends: messages.sends.into_iter().map(send).collect(),
            backoff: self.backoff(),
        }))
    }

    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), RanksError> {
        let run = self.0.run;
        let length = (bytes.len() as u64).to_le_bytes().to_vec();
        let length = number(&self.wait(run.broadcast(length, root)));
        let mut given = std::mem::take(bytes);
        given.resize(length, 0);
        let pieces = given.chunks(run.largest());
        let pieces = pieces.map(|piece| self.wait(run.broadcast(piece.to_vec(), root)));
        *bytes = pieces.flatten().collect();
        Ok(())
    }

    fn barrier(&self) -> Result<(), RanksError> {
        self.wait(self.0.run.barrier());
        Ok(())
    }

    fn abort(&self, message: &str) {
        let MpiState { rank, size, .. } = *self.0;
        // there is nobody to tell if that fails
        let _ = writeln!(std::io::stderr(), "error: rank {rank} of {size}: {message}");
        self.end_all(1)
    }
}

/// A number as it is sent.
fn number(bytes: &[u8]) -> usize {
    let bytes = bytes.try_into().unwrap_or_default();
    u64::from_le_bytes(bytes) as usize
}

/// Messages of known lengths under way, with their peers; those that come with what is expected.
struct MpiExchange {
    receives: Vec<(usize, usize, Transfer<MessageBuffer>)>,
    sends: Vec<(usize, Transfer<MessageBuffer>)>,
    backoff: Backoff,
}

impl PendingExchange for MpiExchange {
    fn is_done(&mut self) -> Result<bool, RanksError> {
        for (peer, expected, transfer) in &mut self.receives {
            if !transfer.is_done() {
                return Ok(false);
            }
            let sent = transfer.received();
            // one that is too long ends the program: MPI has no room for it
            if sent != *expected {
                return Err(RanksError::Transport(format!(
                    "rank {peer} sends a message of {sent} bytes where {expected} are expected"
                )));
            }
        }
        Ok(self
            .sends
            .iter_mut()
            .all(|(_, transfer)| transfer.is_done()))
    }

    fn finish(mut self: Box<Self>) -> Result<Messages<MessageBuffer>, RanksError> {
        while !self.is_done()? {
            self.backoff.wait();
        }
        let message = |(peer, transfer): (usize, Transfer<MessageBuffer>)| Message {
            peer,
            bytes: transfer.take(),
        };
        let receives = self.receives.into_iter();
        let receives = receives.map(|(peer, _, transfer)| message((peer, transfer)));
        Ok(Messages {
            receives: receives.collect(),
            sends: self.sends.into_iter().map(message).collect(),
        })
    }
}

/// Messages to ranks that do not expect them, without a word to all others: a send ends when its receiver has found the
/// message, a rank whose sends have ended joins a barrier, and when that ends there is nothing left to be found (Hoefler,
/// Siebert & Lumsdaine 2010, doi:10.1145/1693453.1693476, algorithm 2).
struct SparseExchange {
    run: MpiComm,
    tag: i32,
    sends: Vec<Transfer<Vec<u8>>>,
    /// Pieces in the order of their sending, by peer.
    found: BTreeMap<usize, Vec<Transfer<Vec<u8>>>>,
}

impl SparseExchange {
    fn start(state: &MpiState, sends: Vec<Message>) -> Self {
        let (run, number) = (state.run, state.exchanges.fetch_add(1, Ordering::Relaxed));
        let tag = UNEXPECTED + (number & 1);
        let sends = sends.into_iter().filter(|m| !m.bytes.is_empty());
        let send = |m: Message| run.send_synchronous(m.bytes, m.peer, tag);
        Self {
            run,
            tag,
            sends: sends.map(send).collect(),
            found: BTreeMap::new(),
        }
    }

    fn finish(mut self, mut backoff: Backoff) -> Vec<Message> {
        let mut barrier: Option<Transfer<()>> = None;
        loop {
            if let Some((peer, piece)) = self.run.probe_message(self.tag) {
                self.found.entry(peer).or_default().push(piece);
                continue;
            }
            let ended = match &mut barrier {
                Some(barrier) => barrier.is_done(),
                None if self.sends.iter_mut().all(Transfer::is_done) => {
                    barrier = Some(self.run.barrier());
                    false
                }
                None => false,
            };
            if ended {
                break;
            }
            backoff.wait();
        }
        let whole = |(peer, pieces): (usize, Vec<Transfer<Vec<u8>>>)| {
            let mut pieces = pieces.into_iter().map(|piece| wait_for(piece, backoff));
            let mut bytes = pieces.next().unwrap_or_default();
            pieces.for_each(|piece| bytes.extend(piece));
            Message { peer, bytes }
        };
        self.found.into_iter().map(whole).collect()
    }
}
