//! Lists the rows that this rank exchanges with others.

use super::communicator::{Communicator, Message, Messages, RanksError};

/// Rows that are exchanged with one peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerRows {
    /// Rank of the peer.
    pub peer: usize,
    /// Rows in the order that both sides know.
    pub rows: Vec<u32>,
}

/// Rows that this rank sends and receives in messages of known layout.
///
/// In forward direction data moves from owners to halo patches, in reverse direction from halo patches to owners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangePlan {
    /// Own rows that peers need, by peer.
    pub sends: Vec<PeerRows>,
    /// Halo rows whose values come from peers, by peer.
    pub receives: Vec<PeerRows>,
}

impl ExchangePlan {
    /// Adds `row` to the rows sent to `peer`.
    pub fn send(&mut self, peer: usize, row: u32) {
        add(&mut self.sends, peer, row);
    }

    /// Adds `row` to the rows received from `peer`.
    pub fn receive(&mut self, peer: usize, row: u32) {
        add(&mut self.receives, peer, row);
    }

    /// Returns `true` if nothing is sent or received.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sends.is_empty() && self.receives.is_empty()
    }

    /// Returns the number of rows sent.
    #[must_use]
    pub fn sent(&self) -> usize {
        self.sends.iter().map(|peer| peer.rows.len()).sum()
    }

    /// Returns the number of rows received.
    #[must_use]
    pub fn received(&self) -> usize {
        self.receives.iter().map(|peer| peer.rows.len()).sum()
    }

    /// Builds the messages of one exchange: `pack` fills those for sent rows; received rows have `bytes` bytes each.
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

    /// Sends one value of type `T` per row from owners to halo patches.
    ///
    /// `get` reads the value of an own row, `put` stores that of a halo row.
    ///
    /// # Errors
    /// Another rank or the transport has failed.
    pub fn forward<T: bytemuck::Pod>(
        &self,
        communicator: &dyn Communicator,
        get: impl Fn(u32) -> T,
        mut put: impl FnMut(u32, T),
    ) -> Result<(), RanksError> {
        if self.is_empty() {
            return Ok(());
        }
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

    /// Returns the plan of the opposite direction: from halo patches to owners.
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
