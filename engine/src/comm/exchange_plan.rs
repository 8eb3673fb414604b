//! Which rows travel between this rank and the others.

use super::communicator::{Communicator, Message, Messages, RanksError};

/// Rows of this rank that one other rank sends or receives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerRows {
    /// The other rank.
    pub peer: usize,
    /// The rows, in the order that both sides know.
    pub rows: Vec<u32>,
}

/// Rows that this rank sends and receives, in messages of which both sides know the content. Forward they go from owners to
/// copies, backward from copies to owners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangePlan {
    /// Rows whose values others need, by peer.
    pub sends: Vec<PeerRows>,
    /// Rows whose values come from others, by peer.
    pub receives: Vec<PeerRows>,
}

impl ExchangePlan {
    /// Adds `row` to what goes to `peer`.
    pub fn send(&mut self, peer: usize, row: u32) {
        add(&mut self.sends, peer, row);
    }

    /// Adds `row` to what comes from `peer`.
    pub fn receive(&mut self, peer: usize, row: u32) {
        add(&mut self.receives, peer, row);
    }

    /// Rows that go out.
    #[must_use]
    pub fn sent(&self) -> usize {
        self.sends.iter().map(|peer| peer.rows.len()).sum()
    }

    /// Rows that come in.
    #[must_use]
    pub fn received(&self) -> usize {
        self.receives.iter().map(|peer| peer.rows.len()).sum()
    }

    /// The messages of one exchange: what `pack` gives for the rows that go out, and room for `bytes` bytes of every row
    /// that comes in.
    pub fn messages<E>(
        &self,
        bytes: usize,
        mut pack: impl FnMut(&[u32], &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Messages, E> {
        let mut halo = Messages::default();
        for PeerRows { peer, rows } in &self.sends {
            let mut message = Message {
                peer: *peer,
                bytes: Vec::with_capacity(rows.len() * bytes),
            };
            pack(rows, &mut message.bytes)?;
            halo.sends.push(message);
        }
        halo.receives
            .extend(self.receives.iter().map(|from| Message {
                peer: from.peer,
                bytes: vec![0; from.rows.len() * bytes],
            }));
        Ok(halo)
    }

    /// Sends a value of `T` for each row forward: `get` reads that of an owned row, `put` takes that of a copy.
    ///
    /// # Errors
    /// Another rank has failed, or the transport has.
    pub fn forward<T: bytemuck::Pod>(
        &self,
        communicator: &dyn Communicator,
        get: impl Fn(u32) -> T,
        mut put: impl FnMut(u32, T),
    ) -> Result<(), RanksError> {
        let pack = |rows: &[u32], out: &mut Vec<u8>| {
            for &row in rows {
                out.extend_from_slice(bytemuck::bytes_of(&get(row)));
            }
            Ok::<(), RanksError>(())
        };
        let halo = self.messages(size_of::<T>(), pack)?;
        let halo = communicator.start_messages(halo)?.finish()?;
        for (PeerRows { rows, .. }, message) in self.receives.iter().zip(&halo.receives) {
            for (&row, value) in rows.iter().zip(message.bytes.chunks_exact(size_of::<T>())) {
                put(row, bytemuck::pod_read_unaligned(value));
            }
        }
        Ok(())
    }

    /// The plan of the way back: from copies to owners.
    #[must_use]
    pub fn reversed(&self) -> Self {
        Self {
            sends: self.receives.clone(),
            receives: self.sends.clone(),
        }
    }
}

fn add(lists: &mut Vec<PeerRows>, peer: usize, row: u32) {
    let at = match lists.binary_search_by_key(&peer, |list| list.peer) {
        Ok(at) => at,
        Err(at) => {
            let rows = Vec::new();
            lists.insert(at, PeerRows { peer, rows });
            at
        }
    };
    lists[at].rows.push(row);
}
