//! Communicator of the ranks of an MPI job.

use crate::JobStatus;
use crate::mpi::{MpiComm, Transfer, abort, finalise, reaches_gpus, start};
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
use std::{hint, thread};

/// Tag of messages whose lengths the receiver knows.
const KNOWN: i32 = 1;
/// Tags of unexpected messages: this one and the next, alternating between exchanges to tell them apart.
const UNEXPECTED: i32 = 2;
/// How long a failed rank waits for the others to end before it ends them.
const GRACE: Duration = Duration::from_secs(1);

/// The communicator of an MPI job.
#[derive(Clone)]
pub struct Mpi(Arc<MpiState>);

struct MpiState {
    rank: usize,
    size: usize,
    placement: Placement,
    /// Communicator for messages of the run.
    run: MpiComm,
    /// Communicator for the end of the job, separate from unfinished messages of the run.
    end: MpiComm,
    /// Number of sparse exchanges so far.
    exchanges: AtomicI32,
}

impl Mpi {
    /// Starts MPI. Messages longer than `largest` bytes are split.
    ///
    /// # Errors
    /// The MPI library cannot be used.
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

    /// Waits for all ranks at the end and returns the status of the job.
    ///
    /// Returns `Unresponsive` if this rank has failed and others do not arrive for a while.
    pub fn agree_on_end(&self, failed: bool) -> JobStatus {
        let state = &*self.0;
        let none = state.size as u64;
        let own = if failed { state.rank as u64 } else { none };
        let mut all = state
            .end
            .reduce(vec![own, u64::from(failed)], Reduction::Min);
        // If several ranks fail by themselves, the lowest one most likely reports the cause.
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

    /// Finalises MPI. It must be called by the thread that started MPI; no call may follow.
    pub fn end(&self) {
        finalise();
    }

    /// Returns the waiting strategy; ranks that share cores yield at once.
    fn backoff(&self) -> Backoff {
        let Placement { local_size, .. } = self.0.placement;
        Backoff::new(local_size > Placement::process_cores())
    }

    /// Gathers bytes that are too many for one MPI call.
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
        let result = self.wait(self.0.run.reduce(values.to_vec(), reduction));
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
            // Its memory is host memory.
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
        // Post all receives first, so that arriving messages need no intermediate buffer.
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
        // Errors cannot be reported here.
        let _ = writeln!(std::io::stderr(), "error: rank {rank} of {size}: {message}");
        self.end_all(1)
    }

    fn end_all(&self, status: u8) -> ! {
        abort(status)
    }
}

/// Decodes a length.
fn number(bytes: &[u8]) -> usize {
    let bytes = bytes.try_into().unwrap_or_default();
    u64::from_le_bytes(bytes) as usize
}

/// Messages of known lengths in flight, with peers; receives also have the expected length.
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
            // MPI ends the program if a message is too long for its buffer.
            if sent != *expected {
                return Err(RanksError::Transport(format!(
                    "rank {peer} sends a message of {sent} bytes, but {expected} bytes are expected"
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

/// Sparse data exchange: messages to receivers that do not expect them, without global communication of counts.
///
/// A synchronous send ends when the receiver has found the message. A rank whose sends have ended joins a non-blocking
/// barrier. When the barrier ends, no message is left (NBX algorithm; Hoefler, Siebert & Lumsdaine 2010,
/// doi:10.1145/1693453.1693476, algorithm 2).
struct SparseExchange {
    run: MpiComm,
    tag: i32,
    sends: Vec<Transfer<Vec<u8>>>,
    /// Received pieces by peer, in the order of sending.
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

/// Number of polls before the core is yielded.
const EAGER: u32 = 2000;
/// Time after which a waiting rank sleeps between polls, because the other ranks are busy computing.
const SOON: Duration = Duration::from_millis(10);
/// Duration of a sleep.
const NAP: Duration = Duration::from_micros(20);

/// State of one wait: it polls first, then yields the core, then sleeps.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    eager: u32,
    since: Option<Instant>,
}

impl Backoff {
    /// Starts a wait. If ranks share cores (`crowded`), the core is yielded at once.
    pub fn new(crowded: bool) -> Self {
        Self {
            eager: if crowded { 0 } else { EAGER },
            since: None,
        }
    }

    /// Pauses between two polls.
    pub fn wait(&mut self) {
        if self.eager > 0 {
            self.eager -= 1;
            return hint::spin_loop();
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() < SOON {
            thread::yield_now();
        } else {
            thread::sleep(NAP);
        }
    }
}
