//! The way by a transport of the ranks that reads and writes the memory of devices itself (CUDA-aware MPI).

use crate::device::parallel::lock;
use crate::device::{Carrier, Device, DeviceError, Segment};
use crate::ranks::{Memory, Message, Messages, Pending, Ranks};
use std::collections::VecDeque;
use std::sync::Mutex;

/// A link by the ranks' transport.
pub(super) struct Aware {
    ranks: Ranks,
    device: Device,
    under_way: Mutex<VecDeque<Box<dyn Pending>>>,
}

impl Aware {
    pub(super) fn new(ranks: &Ranks, device: &Device) -> Self {
        Self {
            ranks: ranks.clone(),
            device: device.clone(),
            under_way: Mutex::default(),
        }
    }
}

impl Carrier for Aware {
    fn describe(&self) -> String {
        "by the ranks' messages from device to device".into()
    }

    fn start(&self, sends: &[Segment], receives: &[Segment]) -> Result<(), DeviceError> {
        // the transport knows nothing of the device's work: what is sent must be there
        self.device.synchronise()?;
        let messages = |segments: &[Segment]| {
            let message = |segment: &Segment| Message {
                peer: segment.peer,
                // SAFETY: memory of the device, which the caller of the link keeps and leaves alone until the exchange is finished
                bytes: unsafe { Memory::borrowed(*segment) },
            };
            segments.iter().map(message).collect()
        };
        let started = self.ranks.communicator().start(Messages {
            sends: messages(sends),
            receives: messages(receives),
        })?;
        lock(&self.under_way).push_back(started);
        Ok(())
    }

    fn finish(&self) -> Result<(), DeviceError> {
        let oldest = lock(&self.under_way).pop_front();
        oldest.map(Pending::finish).transpose()?;
        Ok(())
    }

    fn is_done(&self) -> Result<bool, DeviceError> {
        Ok(lock(&self.under_way).is_empty())
    }

    fn check(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn stop(&self) {
        // the transport may still use the memory: what is under way stays until the ranks end
        lock(&self.under_way).drain(..).for_each(std::mem::forget);
    }
}
