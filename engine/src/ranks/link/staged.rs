//! The way through the hosts: segments are copied to page-locked memory beside the device's work, travel between the hosts from
//! there, and are copied to the device beside its work again, piece by piece. An emulated device has no other.

use crate::device::{Berth, Carrier, Device, DeviceError, HostWay, Segment};
use crate::ranks::{Memory, Message, Messages, Pending, Ranks, RanksError};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A link through the hosts.
pub(super) struct Staged {
    ranks: Ranks,
    host: HostWay,
    under_way: Mutex<VecDeque<Berth>>,
}

impl Staged {
    pub(super) fn new(ranks: &Ranks, device: &Device) -> Result<Self, DeviceError> {
        Ok(Self {
            ranks: ranks.clone(),
            host: HostWay::new(device)?,
            under_way: Mutex::default(),
        })
    }

    fn under_way(&self) -> MutexGuard<'_, VecDeque<Berth>> {
        // a thread that panicked has left whole exchanges behind
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the pieces of an exchange as they come from the device, and brings to the device what arrives meanwhile and
    /// behind.
    fn carry(&self, berth: &mut Berth) -> Result<(), DeviceError> {
        // first the room, so that nothing that arrives has to be stored elsewhere
        let room = berth.room().map(|room| self.start(&[], &[room]));
        let mut receives = room.collect::<Result<VecDeque<_>, _>>()?;
        let mut sends = Vec::new();
        let mut arrived = 0;
        while let Some(piece) = berth.fetched()? {
            sends.push(self.start(&[piece], &[])?);
            while let Some(first) = receives.front_mut()
                && first.is_done()?
            {
                receives.pop_front();
                self.host.deliver(berth, arrived)?;
                arrived += 1;
            }
        }
        for piece in receives {
            piece.finish()?;
            self.host.deliver(berth, arrived)?;
            arrived += 1;
        }
        for piece in sends {
            piece.finish()?;
        }
        Ok(())
    }

    fn start(
        &self,
        sends: &[Segment],
        receives: &[Segment],
    ) -> Result<Box<dyn Pending>, RanksError> {
        let messages = |segments: &[Segment]| {
            let message = |segment: &Segment| Message {
                peer: segment.peer,
                // SAFETY: memory of an exchange, which is kept and left alone until all has left and arrived, and if that fails for good
                bytes: unsafe { Memory::borrowed(*segment) },
            };
            segments.iter().map(message).collect()
        };
        self.ranks.communicator().start(Messages {
            sends: messages(sends),
            receives: messages(receives),
        })
    }
}

impl Carrier for Staged {
    fn describe(&self) -> String {
        "through the hosts".into()
    }

    fn start(&self, sends: &[Segment], receives: &[Segment]) -> Result<(), DeviceError> {
        let berth = self.host.fetch(sends, receives)?;
        self.under_way().push_back(berth);
        Ok(())
    }

    fn finish(&self) -> Result<(), DeviceError> {
        let oldest = self.under_way().pop_front();
        let Some(mut berth) = oldest else {
            return Ok(());
        };
        match self.carry(&mut berth) {
            Ok(()) => self.host.conclude(berth),
            Err(why) => {
                berth.abandon();
                Err(why)
            }
        }
    }

    fn is_done(&self) -> Result<bool, DeviceError> {
        Ok(self.under_way().is_empty())
    }

    fn check(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn stop(&self) {
        self.under_way().clear();
    }
}
