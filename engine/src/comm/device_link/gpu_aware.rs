//! Link through a communicator that accesses device memory itself (GPU-aware MPI).

use crate::comm::{Message, MessageBuffer, Messages, PendingExchange, Ranks};
use crate::device::parallel::lock;
use crate::device::{Device, DeviceError, LinkTransport, Segment};
use std::collections::VecDeque;
use std::sync::Mutex;

/// A link through the communicator.
pub(super) struct GpuAwareLink {
    ranks: Ranks,
    device: Device,
    in_flight: Mutex<VecDeque<Box<dyn PendingExchange>>>,
}

impl GpuAwareLink {
    pub(super) fn new(ranks: &Ranks, device: &Device) -> Self {
        Self {
            ranks: ranks.clone(),
            device: device.clone(),
            in_flight: Mutex::default(),
        }
    }
}

impl LinkTransport for GpuAwareLink {
    fn describe(&self) -> String {
        "by GPU-aware MPI".into()
    }

    fn start(&self, sends: &[Segment], receives: &[Segment]) -> Result<(), DeviceError> {
        // The communicator does not wait for work of the device.
        self.device.synchronise()?;
        let messages = |segments: &[Segment]| {
            let message = |segment: &Segment| Message {
                peer: segment.peer,
                // SAFETY: device memory that the caller of the link keeps valid and unused until the exchange is
                // finished
                bytes: unsafe { MessageBuffer::borrowed(*segment) },
            };
            segments.iter().map(message).collect()
        };
        let started = self.ranks.communicator().start(Messages {
            sends: messages(sends),
            receives: messages(receives),
        })?;
        lock(&self.in_flight).push_back(started);
        Ok(())
    }

    fn finish(&self) -> Result<(), DeviceError> {
        let oldest = lock(&self.in_flight).pop_front();
        oldest.map(PendingExchange::finish).transpose()?;
        Ok(())
    }

    fn is_done(&self) -> Result<bool, DeviceError> {
        Ok(lock(&self.in_flight).is_empty())
    }

    fn check(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn stop(&self) {
        // The communicator may still use the memory: leak the exchanges until the ranks end.
        lock(&self.in_flight).drain(..).for_each(std::mem::forget);
    }
}
