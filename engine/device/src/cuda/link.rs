//! Links between GPUs by NCCL on a separate stream, with peer-to-peer mailboxes for short segments.
//!
//! Calls that wait for other ranks (joining, the first exchange with a peer, leaving) run in a separate thread. So this
//! rank can time out. Later exchanges only queue work.

use super::driver::{Event, Gpu, Stream};
use super::mailbox::{AbortFlag, PeerMailbox};
use super::nccl::{Nccl, NcclComm, StreamHandle, library};
use super::stream::{self, EventKind};
use super::{Context, lock, slabs};
use crate::counters::AtomicKernelCounters;
use crate::{DeviceError, LinkId, LinkTimes, LinkTransport, Segment};
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Timeout for all ranks to join and for data to arrive.
const JOIN_TIMEOUT: Duration = Duration::from_secs(60);
/// Size of the test data, bytes.
const TEST_BYTES: usize = 64 << 10;
/// Timeout of the first exchange with a peer.
const FIRST_EXCHANGE_TIMEOUT: Duration = Duration::from_secs(600);
/// Timeout of the end of a link.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Link of one GPU to the GPUs of other ranks.
pub(super) struct NcclLink {
    nccl: &'static Nccl,
    rank: usize,
    stream: Stream,
    /// Event after the work that an exchange follows.
    ready: Event,
    stopped: AtomicBool,
    /// Abort flag for kernels.
    abort_flag: AbortFlag,
    profiled: AtomicBool,
    /// Times of exchanges, and times that the main stream waited for them.
    seconds: Arc<AtomicKernelCounters>,
    exposed: Arc<AtomicKernelCounters>,
    state: Mutex<LinkState>,
    // Dropped last: all fields above need the context.
    context: Arc<Context>,
}

/// An unfinished exchange.
struct QueuedExchange {
    /// Event after the exchange.
    done: Event,
    /// Events before and after the exchange, if it is timed.
    times: Option<[Event; 2]>,
}

#[derive(Default)]
struct LinkState {
    /// `None` after an abort.
    communicator: Option<NcclComm>,
    mailbox: Option<PeerMailbox>,
    /// Connections in use: the peer and the direction (`true`: outgoing).
    connections: BTreeSet<(usize, bool)>,
    in_flight: VecDeque<QueuedExchange>,
    spare: Vec<Event>,
}

impl NcclLink {
    fn new(context: &Arc<Context>, nccl: &'static Nccl, rank: usize) -> Result<Self, DeviceError> {
        context.gpu.bind()?;
        let abort_flag = AbortFlag::new()?;
        let ready = stream::event(EventKind::Order)?;
        let stream = stream::open_urgent().inspect_err(|_| stream::drop_event(ready))?;
        Ok(Self {
            nccl,
            rank,
            stream,
            ready,
            stopped: AtomicBool::new(false),
            abort_flag,
            profiled: AtomicBool::new(false),
            seconds: Arc::default(),
            exposed: Arc::default(),
            state: Mutex::default(),
            context: context.clone(),
        })
    }

    /// Queues an exchange on the main stream if all segments fit into mailboxes; returns `true` if it did.
    fn exchange_by_mailbox(
        &self,
        sends: &[Segment],
        receives: &[Segment],
    ) -> Result<bool, DeviceError> {
        self.context.gpu.bind()?;
        let mut state = lock(&self.state);
        self.usable(&state)?;
        let carries =
            |mailbox: &&mut PeerMailbox| mailbox.carries(sends) && mailbox.carries(receives);
        let Some(mailbox) = state.mailbox.as_mut().filter(carries) else {
            return Ok(false);
        };
        let (context, main) = (&self.context, self.context.stream);
        let mark = || context.record_time_on(main);
        let profiled = self.profiled.load(Ordering::Relaxed);
        let before = if profiled {
            Some([mark()?, mark()?])
        } else {
            None
        };
        if let Err(why) = mailbox.exchange(main, [sends, receives], &self.abort_flag) {
            self.give_up(&mut state);
            return Err(why);
        }
        if let Some([start, begun]) = before {
            context.time(begun, mark()?, self.seconds.clone())?;
            context.time(start, mark()?, self.exposed.clone())?;
        }
        Ok(true)
    }

    /// Queues an exchange on the separate stream after all work so far; `timeout` applies to new peers.
    fn queue_beside(
        &self,
        sends: &[Segment],
        receives: &[Segment],
        timeout: Duration,
    ) -> Result<(), DeviceError> {
        self.context.gpu.bind()?;
        let mut state = lock(&self.state);
        let state = &mut *state;
        let communicator = self.usable(state)?;
        stream::record(self.ready, self.context.stream)?;
        stream::order_after(self.stream, self.ready)?;
        let spare = state.spare.pop();
        let done = spare.map_or_else(|| stream::event(EventKind::Order), Ok)?;
        let profiled = self.profiled.load(Ordering::Relaxed);
        let start = profiled.then(|| self.context.record_time_on(self.stream));
        let queued = start.transpose().and_then(|start| {
            self.queue(state, communicator, sends, receives, timeout)?;
            let end = start
                .map(|_| self.context.record_time_on(self.stream))
                .transpose()?;
            stream::record(done, self.stream)?;
            Ok(start.zip(end).map(|(start, end)| [start, end]))
        });
        let times = queued.as_ref().ok().copied().flatten();
        state.in_flight.push_back(QueuedExchange { done, times });
        queued.map(|_| ()).inspect_err(|_| self.give_up(state))
    }

    /// Queues segments by mailbox or NCCL; NCCL runs in a separate thread if it waits for new peers.
    fn queue(
        &self,
        state: &mut LinkState,
        communicator: NcclComm,
        sends: &[Segment],
        receives: &[Segment],
        timeout: Duration,
    ) -> Result<(), DeviceError> {
        let [sends, receives] = match &mut state.mailbox {
            Some(mailbox) => mailbox.exchange(self.stream, [sends, receives], &self.abort_flag)?,
            None => [sends.to_vec(), receives.to_vec()],
        };
        if sends.is_empty() && receives.is_empty() {
            return Ok(());
        }
        let (nccl, queue) = (self.nccl, StreamHandle(self.stream.0.cast()));
        let connections = |segments: &[Segment], out| -> Vec<(usize, bool)> {
            let full = segments.iter().filter(|segment| segment.bytes > 0);
            full.map(|segment| (segment.peer, out)).collect()
        };
        let connections = [connections(&sends, true), connections(&receives, false)].concat();
        if connections
            .iter()
            .all(|connection| state.connections.contains(connection))
        {
            return nccl.exchange(communicator, queue, &sends, &receives);
        }
        let call = move || nccl.exchange(communicator, queue, &sends, &receives);
        let queued = with_timeout(self.context.gpu, timeout, &self.stopped, call);
        state.connections.extend(connections);
        queued.unwrap_or_else(|| {
            // The waiting thread keeps the communicator.
            state.communicator = None;
            let why = "another rank does not respond";
            Err(DeviceError::failed("the link between the GPUs", why))
        })
    }

    fn usable(&self, state: &LinkState) -> Result<NcclComm, DeviceError> {
        let stopped = self.stopped.load(Ordering::SeqCst);
        let communicator = state.communicator.filter(|_| !stopped);
        communicator.ok_or_else(|| {
            DeviceError::failed(
                "the link between the GPUs",
                "it was aborted after a failure",
            )
        })
    }

    /// Aborts all pending exchanges.
    fn give_up(&self, state: &mut LinkState) {
        self.stopped.store(true, Ordering::SeqCst);
        self.abort_flag.set();
        if let Some(communicator) = state.communicator.take() {
            let nccl = self.nccl;
            self.leave(move || nccl.abandon(communicator));
        }
    }

    /// Calls a function that ends NCCL's part of the link.
    fn leave(&self, call: impl FnOnce() + Send + 'static) {
        let never = AtomicBool::new(false);
        let call = || {
            call();
            Ok(())
        };
        // Errors cannot be reported here.
        let _ = with_timeout(self.context.gpu, SHUTDOWN_TIMEOUT, &never, call);
    }

    /// Waits briefly for all queued work; returns `true` if it has ended.
    fn wait_until_idle(&self) -> bool {
        let until = Instant::now() + SHUTDOWN_TIMEOUT;
        loop {
            match self.is_done() {
                Ok(false) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                answer => return answer == Ok(true),
            }
        }
    }
}

impl NcclLink {
    /// Joins the other ranks and tests the transfer.
    pub(super) fn join(
        context: &Arc<Context>,
        mailbox: Option<PeerMailbox>,
        id: &[u8; LinkId::BYTES],
        rank: usize,
        size: usize,
    ) -> Result<Self, DeviceError> {
        let (nccl, until) = (library()?, Instant::now() + JOIN_TIMEOUT);
        let link = Self::new(context, nccl, rank)?;
        lock(&link.state).mailbox = mailbox;
        let id = *id;
        let join = move || nccl.join(id, rank, size);
        let joined =
            with_timeout(context.gpu, JOIN_TIMEOUT, &link.stopped, join).unwrap_or_else(|| {
                let seconds = JOIN_TIMEOUT.as_secs();
                let why = format!("not all ranks joined within {seconds} seconds");
                Err(DeviceError::failed("NCCL cannot connect the GPUs", why))
            });
        lock(&link.state).communicator = Some(joined?);
        let tried = match size {
            1 => Ok(()),
            _ => link.try_ring(rank, size, until),
        };
        // Other ranks may have given up waiting; nothing here must wait for them.
        tried.inspect_err(|_| link.stop())?;
        Ok(link)
    }

    /// Tests the transfer by mailboxes: some systems offer peer-to-peer access but lose the data. Collective.
    fn try_mailbox(&self, size: usize) -> Result<(), DeviceError> {
        let tried = self.try_ring(self.rank, size, Instant::now() + JOIN_TIMEOUT);
        tried.map_err(|why| {
            self.stop();
            let doing = "GPUs cannot write to each other's memory (set NESTAR_NEAR=0)";
            DeviceError::failed(doing, why)
        })
    }

    /// Sends test data to the next rank and compares the data of the previous one.
    fn try_ring(&self, rank: usize, size: usize, until: Instant) -> Result<(), DeviceError> {
        let (next, before) = ((rank + 1) % size, (rank + size - 1) % size);
        let content = |rank: usize| -> Vec<u8> {
            let byte = |n: usize| (n * 31 + (n >> 8) + rank * 17) as u8;
            (0..TEST_BYTES).map(byte).collect()
        };
        let memory = slabs::allocate(2 * TEST_BYTES)?;
        let memory = memory.ok_or_else(|| self.context.out_of_memory(2 * TEST_BYTES))?;
        let result = self.ring(next, before, memory, &content(rank), until);
        // Memory of a transfer that does not end is leaked.
        if self.is_done() != Ok(false) {
            slabs::free(memory);
        }
        if result? != content(before) {
            let why = format!("data from rank {before} arrives changed");
            return Err(DeviceError::failed("the link between the GPUs", why));
        }
        Ok(())
    }

    /// Exchanges segments along a ring of ranks, with memory for two of them; returns the received data.
    fn ring(
        &self,
        next: usize,
        before: usize,
        memory: u64,
        content: &[u8],
        until: Instant,
    ) -> Result<Vec<u8>, DeviceError> {
        let main = self.context.stream;
        let segment = |peer, address| Segment {
            peer,
            address,
            bytes: TEST_BYTES,
        };
        let arrival = memory + TEST_BYTES as u64;
        stream::copy_up(main, memory, content)?;
        self.context.zero(arrival, TEST_BYTES)?;
        let left = || until.saturating_duration_since(Instant::now());
        self.queue_beside(
            &[segment(next, memory)],
            &[segment(before, arrival)],
            left(),
        )?;
        while !self.is_done()? {
            if left().is_zero() {
                let why = format!("no data arrives from rank {before}");
                return Err(DeviceError::failed("the link between the GPUs", why));
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        self.finish()?;
        let mut found = vec![0; TEST_BYTES];
        stream::copy_down(main, arrival, &mut found)?;
        stream::wait(main)?;
        Ok(found)
    }
}

impl LinkTransport for NcclLink {
    fn describe(&self) -> String {
        let short = match lock(&self.state)
            .mailbox
            .as_ref()
            .map_or(0, PeerMailbox::count)
        {
            0 => "",
            _ => ", short messages by peer-to-peer mailboxes",
        };
        format!("{} from GPU to GPU{short}", self.nccl.name())
    }

    fn export_mailbox(&self) -> Vec<u8> {
        let state = lock(&self.state);
        state
            .mailbox
            .as_ref()
            .map_or_else(Vec::new, PeerMailbox::export_mailbox)
    }

    fn import_mailboxes(&self, offers: &[Vec<u8>]) -> Result<Vec<bool>, DeviceError> {
        match &mut lock(&self.state).mailbox {
            Some(mailbox) => mailbox.import_mailboxes(self.rank, offers),
            None => Ok(vec![false; offers.len()]),
        }
    }

    fn keep_peers(&self, reached: &[bool]) -> Result<(), DeviceError> {
        if let Some(mailbox) = &mut lock(&self.state).mailbox {
            mailbox.keep_peers(reached);
        }
        self.try_mailbox(reached.len())
    }

    fn start(&self, sends: &[Segment], receives: &[Segment]) -> Result<(), DeviceError> {
        self.queue_beside(sends, receives, FIRST_EXCHANGE_TIMEOUT)
    }

    fn exchange(&self, sends: &[Segment], receives: &[Segment]) -> Result<(), DeviceError> {
        let done_by_mailbox = self.exchange_by_mailbox(sends, receives)?;
        if !done_by_mailbox {
            self.start(sends, receives)?;
            self.finish()?;
        }
        Ok(())
    }

    fn finish(&self) -> Result<(), DeviceError> {
        self.context.gpu.bind()?;
        let mut state = lock(&self.state);
        self.usable(&state)?;
        let Some(QueuedExchange { done, times }) = state.in_flight.pop_front() else {
            return Ok(());
        };
        let (context, main) = (&self.context, self.context.stream);
        let before = times.map(|_| context.record_time_on(main)).transpose()?;
        stream::order_after(main, done)?;
        // The stream already waits for the present record of the event.
        state.spare.push(done);
        if let (Some([start, end]), Some(before)) = (times, before) {
            let behind = context.record_time_on(main)?;
            context.time(start, end, self.seconds.clone())?;
            context.time(before, behind, self.exposed.clone())?;
        }
        Ok(())
    }

    fn profile(&self, on: bool) {
        self.profiled.store(on, Ordering::Relaxed);
    }

    fn times(&self) -> LinkTimes {
        LinkTimes {
            timed: self.seconds.timed(),
            seconds: self.seconds.seconds(),
            exposed: self.exposed.seconds(),
        }
    }

    fn is_done(&self) -> Result<bool, DeviceError> {
        self.context.gpu.bind()?;
        // Mailbox exchanges run on the main stream.
        Ok(stream::is_idle(self.stream)? && stream::is_idle(self.context.stream)?)
    }

    fn check(&self) -> Result<(), DeviceError> {
        // A thread that holds the state finds failures itself.
        match self.state.try_lock() {
            Ok(state) => self.nccl.check(self.usable(&state)?),
            Err(_) => Ok(()),
        }
    }

    fn stop(&self) {
        // Ends the wait of a thread that holds the state.
        self.stopped.store(true, Ordering::SeqCst);
        self.abort_flag.set();
        self.give_up(&mut lock(&self.state));
    }
}

impl Drop for NcclLink {
    fn drop(&mut self) {
        // Errors cannot be reported here.
        let _ = self.context.gpu.bind();
        let mut state = std::mem::take(&mut *lock(&self.state));
        let healthy = !self.stopped.load(Ordering::SeqCst)
            && !std::thread::panicking()
            && state.in_flight.is_empty()
            && self.wait_until_idle();
        if !healthy {
            // Kernels stop waiting for other ranks.
            self.abort_flag.set();
        } else if let Some(mailbox) = state.mailbox.as_mut() {
            let _ = mailbox.close();
        }
        let (nccl, communicator) = (self.nccl, state.communicator.take());
        match communicator {
            Some(communicator) if healthy => self.leave(move || nccl.leave(communicator)),
            Some(communicator) => self.leave(move || nccl.abandon(communicator)),
            None => {}
        }
        if !healthy {
            // Running work uses code and memory that are freed next.
            self.wait_until_idle();
        }
        let exchanges = state.in_flight.iter();
        let events = exchanges.flat_map(|one| one.times.into_iter().flatten().chain([one.done]));
        events
            .chain(state.spare.iter().copied())
            .chain([self.ready])
            .for_each(stream::drop_event);
        stream::close(self.stream);
    }
}

/// Calls a function that may wait for other ranks, in a separate thread.
///
/// Returns `None` after `limit`, or when `stopped` is set; the call then continues unobserved.
fn with_timeout<T: Send + 'static>(
    gpu: Gpu,
    limit: Duration,
    stopped: &AtomicBool,
    call: impl FnOnce() -> Result<T, DeviceError> + Send + 'static,
) -> Option<Result<T, DeviceError>> {
    let until = Instant::now() + limit;
    let (sender, receiver) = channel();
    let work = move || {
        let answer = gpu.bind().and_then(|()| call());
        // The caller may have stopped waiting.
        let _ = sender.send(answer);
    };
    let started = std::thread::Builder::new().name("link".into()).spawn(work);
    if let Err(why) = started {
        return Some(Err(DeviceError::failed("cannot start a thread", why)));
    }
    loop {
        match receiver.recv_timeout(Duration::from_millis(10)) {
            Ok(answer) => return Some(answer),
            Err(RecvTimeoutError::Disconnected) => {
                let why = "the call ended without a result";
                return Some(Err(DeviceError::failed("the link between the GPUs", why)));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if stopped.load(Ordering::SeqCst) || Instant::now() > until {
            return None;
        }
    }
}
