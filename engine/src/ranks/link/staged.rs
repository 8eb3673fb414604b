//! The way through the hosts: parcels are copied to page-locked memory beside the device's work, travel as messages of the
//! ranks, and are copied to the device. An emulated device has no other.

use crate::device::{Carrier, Device, DeviceError, Fetched, HostWay, Parcel};
use crate::ranks::{Halo, Message, Ranks, RanksError};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a length within a message.
const LENGTH: usize = size_of::<u64>();

/// A link through the hosts.
pub(super) struct Staged {
    ranks: Ranks,
    host: HostWay,
    under_way: Mutex<VecDeque<Exchange>>,
}

/// An exchange that was started.
struct Exchange {
    sends: Fetched,
    receives: Vec<Parcel>,
}

impl Staged {
    pub(super) fn new(ranks: &Ranks, device: &Device) -> Result<Self, DeviceError> {
        Ok(Self {
            ranks: ranks.clone(),
            host: HostWay::new(device)?,
            under_way: Mutex::default(),
        })
    }

    fn under_way(&self) -> MutexGuard<'_, VecDeque<Exchange>> {
        // a thread that panicked has left whole exchanges behind
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends messages and receives others of known lengths, by peer.
    fn send(
        &self,
        sends: Messages,
        receives: &BTreeMap<usize, usize>,
    ) -> Result<Messages, RanksError> {
        let message = |(peer, bytes)| Message { peer, bytes };
        let room = |(&peer, &length): (&usize, &usize)| message((peer, vec![0; length]));
        let halo = Halo {
            sends: sends.into_iter().map(message).collect(),
            receives: receives.iter().map(room).collect(),
        };
        let halo = self.ranks.communicator().start(halo)?.finish()?;
        let content = |message: Message| (message.peer, message.bytes);
        Ok(halo.receives.into_iter().map(content).collect())
    }
}

/// Contents by peer: each parcel as its length and its bytes, one behind the other.
type Messages = BTreeMap<usize, Vec<u8>>;

impl Carrier for Staged {
    fn describe(&self) -> String {
        "through the hosts".into()
    }

    fn start(&self, sends: &[Parcel], receives: &[Parcel]) -> Result<(), DeviceError> {
        let full = |parcels: &[Parcel]| -> Vec<Parcel> {
            let full = parcels.iter().filter(|parcel| parcel.bytes > 0);
            full.copied().collect()
        };
        let exchange = Exchange {
            sends: self.host.fetch(&full(sends))?,
            receives: full(receives),
        };
        self.under_way().push_back(exchange);
        Ok(())
    }

    fn finish(&self) -> Result<(), DeviceError> {
        let Some(exchange) = self.under_way().pop_front() else {
            return Ok(());
        };
        let mut sends = Messages::new();
        self.host.unload(exchange.sends, |parcel, content| {
            let message = sends.entry(parcel.peer).or_default();
            message.extend((parcel.bytes as u64).to_le_bytes());
            message.extend(content);
        })?;
        let mut lengths = BTreeMap::new();
        for parcel in &exchange.receives {
            *lengths.entry(parcel.peer).or_default() += LENGTH + parcel.bytes;
        }
        let received = self.send(sends, &lengths)?;
        let mut rests: BTreeMap<usize, &[u8]> = BTreeMap::new();
        rests.extend(received.iter().map(|(peer, bytes)| (*peer, &bytes[..])));
        for parcel in &exchange.receives {
            let rest = rests.entry(parcel.peer).or_default();
            self.host.deliver(parcel, take(rest, parcel)?)?;
        }
        Ok(())
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

/// Takes the content for a parcel from the front of what its peer has sent.
fn take<'a>(rest: &mut &'a [u8], parcel: &Parcel) -> Result<&'a [u8], RanksError> {
    let (length, behind) = rest.split_first_chunk().unwrap_or((&[0; LENGTH], &[]));
    let length = u64::from_le_bytes(*length);
    if length != parcel.bytes as u64 || behind.len() < parcel.bytes {
        return Err(RanksError::Transport(format!(
            "rank {} sends a parcel of {length} bytes where {} are expected",
            parcel.peer, parcel.bytes
        )));
    }
    let (content, behind) = behind.split_at(parcel.bytes);
    *rest = behind;
    Ok(content)
}
