//! Joins GPUs to a link and tests the transfer.

use super::super::mailbox::PeerMailbox;
use super::super::nccl::library;
use super::super::{Context, lock, slabs, stream};
use super::{NcclLink, with_timeout};
use crate::device::{DeviceError, LinkId, LinkTransport, Segment};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Timeout for all ranks to join and for data to arrive.
const JOINING: Duration = Duration::from_secs(60);
/// Size of the test data, bytes.
const TRIAL: usize = 64 << 10;

impl NcclLink {
    /// Joins the other ranks and tests the transfer.
    pub(in crate::device::cuda) fn join(
        context: &Arc<Context>,
        mailbox: Option<PeerMailbox>,
        (id, rank, size): (&[u8; LinkId::BYTES], usize, usize),
    ) -> Result<Self, DeviceError> {
        let (nccl, until) = (library()?, Instant::now() + JOINING);
        let link = Self::new(context, nccl, rank)?;
        lock(&link.state).mailbox = mailbox;
        let id = *id;
        let join = move || nccl.join(id, rank, size);
        let joined = with_timeout(context.gpu, JOINING, &link.stopped, join).unwrap_or_else(|| {
            let seconds = JOINING.as_secs();
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
    pub(super) fn try_mailbox(&self, size: usize) -> Result<(), DeviceError> {
        let tried = self.try_ring(self.rank, size, Instant::now() + JOINING);
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
            (0..TRIAL).map(byte).collect()
        };
        let memory = slabs::allocate(2 * TRIAL)?;
        let memory = memory.ok_or_else(|| self.context.out_of_memory(2 * TRIAL))?;
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
            bytes: TRIAL,
        };
        let arrival = memory + TRIAL as u64;
        stream::copy_up(main, memory, content)?;
        self.context.zero(arrival, TRIAL)?;
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
        let mut found = vec![0; TRIAL];
        stream::copy_down(main, arrival, &mut found)?;
        stream::wait(main)?;
        Ok(found)
    }
}
