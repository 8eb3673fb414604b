//! Encodes batches of particles as messages.

use super::communicator::Message;
use super::{Ranks, RanksError};
use crate::data::{MigrationBatch, ParticleEntityIndex, ParticleSet};
use std::collections::BTreeMap;

/// Exchanges encoded batches by rank and returns the received ones.
///
/// The first byte of a message tells whether entities may be attached to its particles.
pub(super) fn exchange(
    (ranks, entities): (&Ranks, &ParticleEntityIndex),
    items: &dyn ParticleSet,
    leaving: BTreeMap<usize, Vec<u8>>,
) -> Result<Vec<MigrationBatch>, RanksError> {
    let message = |(peer, bytes)| Message { peer, bytes };
    let messages = leaving.into_iter().map(message).collect();
    let mut all = Vec::new();
    for message in ranks.communicator().exchange(messages)? {
        let why = || format!("a message with particles `{}` is truncated", items.name());
        let cut = || RanksError::Transport(why());
        let (follow, bytes) = message.bytes.split_first().ok_or_else(cut)?;
        let come = decode(bytes).ok_or_else(cut)?;
        if *follow > 0 {
            let each = come.iter();
            each.for_each(|parcel| entities.note(items, &parcel.records, 1));
        }
        all.extend(come);
    }
    Ok(all)
}

/// Appends a batch as bytes: level (u32), index (3 i32), length of the records (u64), records.
pub(super) fn encode(parcel: &MigrationBatch, bytes: &mut Vec<u8>) {
    bytes.extend((parcel.level as u32).to_le_bytes());
    bytes.extend(parcel.index.iter().flat_map(|i| i.to_le_bytes()));
    bytes.extend((parcel.records.len() as u64).to_le_bytes());
    bytes.extend(&parcel.records);
}

/// Decodes consecutive batches written by [`encode`].
pub(super) fn decode(mut bytes: &[u8]) -> Option<Vec<MigrationBatch>> {
    let mut parcels = Vec::new();
    while !bytes.is_empty() {
        let level = u32::from_le_bytes(*bytes.split_off(..4)?.first_chunk()?);
        let mut index = [0; 3];
        for i in &mut index {
            *i = i32::from_le_bytes(*bytes.split_off(..4)?.first_chunk()?);
        }
        let length = u64::from_le_bytes(*bytes.split_off(..8)?.first_chunk()?);
        parcels.push(MigrationBatch {
            level: level as usize,
            index,
            records: bytes.split_off(..usize::try_from(length).ok()?)?.to_vec(),
        });
    }
    Some(parcels)
}

#[cfg(test)]
mod tests {
    use super::{MigrationBatch, decode, encode};

    #[test]
    fn parcels_travel_as_bytes() {
        let parcel = |level, index, length| MigrationBatch {
            level,
            index,
            records: vec![7; length],
        };
        let parcels = vec![parcel(0, [0; 3], 300), parcel(12, [-1, i32::MAX, 5], 1)];
        let mut bytes = Vec::new();
        parcels.iter().for_each(|parcel| encode(parcel, &mut bytes));
        assert_eq!(decode(&bytes), Some(parcels));
        for length in [1, 19, 21, bytes.len() - 1] {
            assert_eq!(decode(&bytes[..length]), None, "{length}");
        }
    }
}
