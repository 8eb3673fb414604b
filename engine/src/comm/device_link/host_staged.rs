//! The way through the hosts: segments are copied to staging buffers beside the device's work, travel between the hosts from
//! there, and are copied to the device beside its work again, piece by piece. An emulated device has no other.

use crate::comm::{Message, MessageBuffer, Messages, PendingExchange, Ranks, RanksError};
use crate::device::parallel::lock;
use crate::device::{
    CopyQueue, Device, DeviceError, Download, LinkTransport, Segment, StagingBuffer,
};
use std::collections::VecDeque;
use std::sync::Mutex;

/// Largest piece of a segment, bytes: while one is on its way between the hosts, others are on theirs to and from the devices.
const PIECE_BYTES: usize = 4 << 20;

/// A link through the hosts.
pub(super) struct HostStagedLink {
    ranks: Ranks,
    down: CopyQueue,
    up: CopyQueue,
    in_flight: Mutex<VecDeque<StagedExchange>>,
}

/// An exchange that is not finished.
struct StagedExchange {
    /// What leaves, on its way to the host, by the rank that it goes to.
    leaving: Vec<(usize, Download)>,
    /// Where on the device the pieces go that arrive.
    arriving: Vec<Segment>,
}

impl HostStagedLink {
    pub(super) fn new(ranks: &Ranks, device: &Device) -> Result<Self, DeviceError> {
        Ok(Self {
            ranks: ranks.clone(),
            down: device.copy_queue()?,
            up: device.copy_queue()?,
            in_flight: Mutex::default(),
        })
    }

    /// Sends the pieces of an exchange as they come from the device, and brings to the device what arrives meanwhile and
    /// after that.
    fn carry(
        &self,
        StagedExchange { leaving, arriving }: StagedExchange,
    ) -> Result<(), DeviceError> {
        // first the room, so that nothing that arrives has to be stored elsewhere
        let room = |piece: &Segment| {
            let pending = self.receive(piece.peer, self.up.buffer(piece.bytes)?)?;
            Ok((piece.address, pending))
        };
        let receives = arriving.iter().map(room);
        let mut receives = receives.collect::<Result<VecDeque<_>, DeviceError>>()?;
        let any = !receives.is_empty();
        let mut sends = Vec::new();
        for (peer, piece) in leaving {
            sends.push(self.send(peer, piece.wait()?)?);
            while let Some((_, first)) = receives.front_mut()
                && first.is_done()?
                && let Some(piece) = receives.pop_front()
            {
                self.deliver(piece)?;
            }
        }
        for piece in receives {
            self.deliver(piece)?;
        }
        for piece in sends {
            piece.finish()?;
        }
        match any {
            true => self.up.precede(),
            false => Ok(()),
        }
    }

    /// Waits for a piece and starts to bring it to the device.
    fn deliver(
        &self,
        (address, pending): (u64, Box<dyn PendingExchange>),
    ) -> Result<(), DeviceError> {
        for message in pending.finish()?.receives {
            if let Some(buffer) = message.bytes.into_staging() {
                self.up.upload(buffer, address)?;
            }
        }
        Ok(())
    }

    fn send(
        &self,
        peer: usize,
        piece: StagingBuffer,
    ) -> Result<Box<dyn PendingExchange>, RanksError> {
        let bytes = MessageBuffer::from(piece);
        self.ranks.communicator().start(Messages {
            sends: vec![Message { peer, bytes }],
            receives: Vec::new(),
        })
    }

    fn receive(
        &self,
        peer: usize,
        room: StagingBuffer,
    ) -> Result<Box<dyn PendingExchange>, RanksError> {
        let bytes = MessageBuffer::from(room);
        self.ranks.communicator().start(Messages {
            sends: Vec::new(),
            receives: vec![Message { peer, bytes }],
        })
    }
}

/// Segments with content, cut to equal pieces.
fn pieces(segments: &[Segment]) -> impl Iterator<Item = Segment> {
    let full = segments.iter().filter(|segment| segment.bytes > 0);
    full.flat_map(|segment| {
        let most = segment.bytes.div_ceil(segment.bytes.div_ceil(PIECE_BYTES));
        let starts = (0..segment.bytes).step_by(most);
        starts.map(move |start| Segment {
            peer: segment.peer,
            address: segment.address + start as u64,
            bytes: most.min(segment.bytes - start),
        })
    })
}

impl LinkTransport for HostStagedLink {
    fn describe(&self) -> String {
        "through the hosts".into()
    }

    fn start(&self, sends: &[Segment], receives: &[Segment]) -> Result<(), DeviceError> {
        if !receives.is_empty() {
            self.up.follow()?;
        }
        if !sends.is_empty() {
            self.down.follow()?;
        }
        let fetch = |piece: Segment| {
            let download = self.down.download(piece.address, piece.bytes)?;
            Ok((piece.peer, download))
        };
        let leaving = pieces(sends).map(fetch);
        let exchange = StagedExchange {
            leaving: leaving.collect::<Result<_, DeviceError>>()?,
            arriving: pieces(receives).collect(),
        };
        lock(&self.in_flight).push_back(exchange);
        Ok(())
    }

    fn finish(&self) -> Result<(), DeviceError> {
        let oldest = lock(&self.in_flight).pop_front();
        oldest.map_or(Ok(()), |exchange| self.carry(exchange))
    }

    fn is_done(&self) -> Result<bool, DeviceError> {
        Ok(lock(&self.in_flight).is_empty())
    }

    fn check(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn stop(&self) {
        lock(&self.in_flight).clear();
    }
}
