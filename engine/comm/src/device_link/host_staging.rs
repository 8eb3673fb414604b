//! Link through staging buffers of the hosts.
//!
//! Segments are copied to the host piece by piece, sent between hosts and copied to the device, all beside the work of
//! the devices. Emulated devices always use it.

use crate::{Message, MessageBuffer, Messages, PendingExchange, Ranks, RanksError};
use nestar_engine_device::parallel::lock;
use nestar_engine_device::{
    CopyQueue, Device, DeviceError, Download, LinkTransport, Segment, StagingBuffer,
};
use std::collections::VecDeque;
use std::sync::Mutex;

/// Largest piece of a segment, bytes. While one piece is sent between hosts, others are copied from and to devices.
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
    /// Outgoing pieces that are being copied to the host, with their destination ranks.
    outgoing: Vec<(usize, Download)>,
    /// Destinations of incoming pieces on the device.
    incoming: Vec<Segment>,
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

    /// Sends pieces as their copies from the device complete, and copies arriving pieces to the device.
    fn transfer(
        &self,
        StagedExchange { outgoing, incoming }: StagedExchange,
    ) -> Result<(), DeviceError> {
        // Post all receives first, so that arriving messages need no intermediate buffer.
        let room = |piece: &Segment| {
            let pending = self.receive(piece.peer, self.up.buffer(piece.bytes)?)?;
            Ok((piece.address, pending))
        };
        let receives = incoming.iter().map(room);
        let mut receives = receives.collect::<Result<VecDeque<_>, DeviceError>>()?;
        let any = !receives.is_empty();
        let mut sends = Vec::new();
        for (peer, piece) in outgoing {
            sends.push(self.send(peer, piece.wait()?)?);
            while let Some((_, first)) = receives.front_mut()
                && first.is_done()?
                && let Some((address, pending)) = receives.pop_front()
            {
                self.copy_to_device(address, pending)?;
            }
        }
        for (address, pending) in receives {
            self.copy_to_device(address, pending)?;
        }
        for piece in sends {
            piece.finish()?;
        }
        match any {
            true => self.up.precede(),
            false => Ok(()),
        }
    }

    /// Waits for a piece and starts copying it to the device.
    fn copy_to_device(
        &self,
        address: u64,
        pending: Box<dyn PendingExchange>,
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

/// Splits non-empty segments into pieces of about equal length.
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
        let outgoing = pieces(sends).map(fetch);
        let exchange = StagedExchange {
            outgoing: outgoing.collect::<Result<_, DeviceError>>()?,
            incoming: pieces(receives).collect(),
        };
        lock(&self.in_flight).push_back(exchange);
        Ok(())
    }

    fn finish(&self) -> Result<(), DeviceError> {
        let oldest = lock(&self.in_flight).pop_front();
        oldest.map_or(Ok(()), |exchange| self.transfer(exchange))
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
