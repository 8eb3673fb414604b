//! Encodes sparse patch sums and exchanges them between levels, ranks and devices.
//!
//! A message holds 512 bits that mark the non-zero cells, the sums of these cells, and a byte with the kind of
//! the sums.

use super::device::{DeviceSums, THREADS};
use super::slot_table::DestinationRanks;
use nestar_engine::Error;
use nestar_engine::comm::{Comm, DeviceMessage, PatchMessage, RanksError};
use nestar_engine::device::{DeviceError, LaunchShape};
use nestar_engine::mesh::Topology;
use nestar_kernels::CELLS;
use nestar_kernels::particles::device::{MergeSumsParameters, PackSumsParameters};
use std::collections::BTreeMap;

/// Kind of sums: those of the patch itself.
pub const OWN: u8 = 0;
/// Kind of sums: those of the parent, whose first child is the patch.
pub const OF_PARENT: u8 = 1;
/// Words of the bit mask.
pub const BITS: usize = CELLS / 64;

/// Encodes the sums of a patch.
pub fn encode(index: [i32; 3], what: u8, cells: &[u64]) -> PatchMessage {
    let (mut bits, mut sums) = ([0u64; BITS], Vec::with_capacity(CELLS));
    for (cell, &sum) in cells.iter().enumerate().filter(|(_, sum)| **sum > 0) {
        bits[cell / 64] |= 1 << (cell % 64);
        sums.push(sum);
    }
    from_words(index, what, &[&bits[..], &sums].concat())
}

/// Builds a message from a bit mask and sums.
fn from_words(index: [i32; 3], what: u8, words: &[u64]) -> PatchMessage {
    let mut bytes = Vec::with_capacity(8 * words.len() + 1);
    bytes.extend_from_slice(bytemuck::cast_slice(words));
    bytes.push(what);
    (index, bytes)
}

/// Decodes a message: the kind, then bit mask and sums.
pub fn decode(bytes: &[u8]) -> (u8, Vec<u64>) {
    let (what, words) = bytes.split_last().unwrap_or((&OWN, &[]));
    (*what, bytemuck::pod_collect_to_vec(words))
}

/// Returns the number of words of a message that begins with these words.
fn word_count(words: &[u64]) -> usize {
    let bits = words.iter().take(BITS);
    BITS + bits.map(|bits| bits.count_ones() as usize).sum::<usize>()
}

/// Adds decoded sums to the cells of a patch.
pub fn add(words: &[u64], cells: &mut [u64]) {
    let (bits, sums) = words.split_at(BITS.min(words.len()));
    let is_set = |cell: &usize| {
        bits.get(cell / 64)
            .is_some_and(|b| b >> (cell % 64) & 1 == 1)
    };
    let set = (0..CELLS).filter(is_set);
    set.zip(sums)
        .for_each(|(cell, sum)| cells[cell] = cells[cell].wrapping_add(*sum));
}

/// Merges messages with the same patch and kind. Sums are merged before they are distributed to children, so
/// that rounding does not depend on their origin.
pub fn merge(messages: Vec<PatchMessage>) -> Vec<PatchMessage> {
    let mut all: BTreeMap<([i32; 3], u8), Vec<u64>> = BTreeMap::new();
    for (index, bytes) in messages {
        let (what, words) = decode(&bytes);
        let cells = all.entry((index, what)).or_insert_with(|| vec![0; CELLS]);
        add(&words, cells);
    }
    let all = all.into_iter();
    all.map(|((index, what), cells)| encode(index, what, &cells))
        .collect()
}

/// Longest record of a slot, in words.
const RECORD: usize = BITS + CELLS;

/// Records of sums for one rank.
pub struct RankSums {
    rank: usize,
    /// First word.
    first: usize,
    words: usize,
    records: Vec<SumHeader>,
}

/// Describes a record: patch index, kind, first word within the message.
type SumHeader = [i32; 5];

impl DeviceSums<'_> {
    /// Packs the sums for other ranks, by rank; coarse sums from slot `first` on.
    fn pack(self, first: usize) -> Result<Vec<RankSums>, DeviceError> {
        let DestinationRanks { ranks, firsts, .. } = &self.slot_table.receivers;
        let report = self.run_pack_kernel(first)?;
        let (totals, listed) = report.split_at(ranks.len().min(report.len()));
        let of_rank = |(n, &total): (usize, &u64)| {
            let start = firsts[n] as usize;
            let listed = &listed[start..][..total as u32 as usize];
            RankSums {
                rank: ranks[n],
                first: start * RECORD,
                words: (total >> 32) as usize,
                records: listed
                    .iter()
                    .map(|&word| self.record(word, first))
                    .collect(),
            }
        };
        let all = totals.iter().enumerate().filter(|(_, total)| **total > 0);
        Ok(all.map(of_rank).collect())
    }

    /// Runs the packing kernel and returns what it reports.
    fn run_pack_kernel(self, first: usize) -> Result<Vec<u64>, DeviceError> {
        let (kernels, slot_table) = (self.kernels, self.slot_table);
        let (receivers, others) = (&slot_table.receivers, slot_table.others.len());
        let slots = others + slot_table.octets.len() - first;
        if slots == 0 {
            return Ok(Vec::new());
        }
        let ranks = receivers.ranks.len();
        let room = match first {
            0 => receivers.firsts[ranks] as usize,
            _ => receivers.foreign,
        };
        let mut report = vec![0; ranks + room];
        let mut memory = kernels.memory();
        let out = memory
            .packed_sums
            .provide(&kernels.device, room * RECORD)?
            .address();
        let on_device = memory.report.provide(&kernels.device, report.len())?;
        kernels.device.fill_zero(on_device, 0..ranks)?;
        let of_slot = |address: u64, slot: usize, bytes: usize| address + (slot * bytes) as u64;
        let [numbers, wide_numbers, firsts] = receivers.addresses();
        let args = PackSumsParameters {
            sums: of_slot(self.addresses[0], slot_table.own, 8 * CELLS).into(),
            wide: of_slot(self.addresses[1], first, 8 * CELLS).into(),
            count: others as i64,
            receivers: numbers.into(),
            wide_receivers: of_slot(wide_numbers, first, 4).into(),
            firsts: firsts.into(),
            ranks: ranks as i32,
            out: out.into(),
            report: on_device.address().into(),
        };
        kernels
            .device
            .launch(&kernels.pack_sums, LaunchShape::of(slots, THREADS), &args)?;
        kernels.device.download(on_device, 0, &mut report)?;
        Ok(report)
    }

    /// Decodes the report on a record.
    fn record(self, word: u64, first: usize) -> SumHeader {
        let (slot_table, slot) = (self.slot_table, word as u32 as usize);
        let ([x, y, z], what) = match slot.checked_sub(slot_table.others.len()) {
            None => (slot_table.others[slot], OWN),
            Some(family) => (slot_table.octets[first + family], OF_PARENT),
        };
        [x, y, z, what.into(), (word >> 32) as i32]
    }

    /// Returns all packed sums as messages, including those for own patches.
    pub(super) fn messages(self) -> Result<Vec<PatchMessage>, DeviceError> {
        let (packed, mut messages) = (self.pack(0)?, Vec::new());
        let memory = self.kernels.memory();
        for RankSums {
            first,
            words,
            records,
            ..
        } in packed
        {
            let mut all = vec![0; words];
            if let Some(out) = memory.packed_sums.buffer() {
                self.kernels.device.download(out, first, &mut all)?;
            }
            messages.extend(records.into_iter().map(|[x, y, z, what, place]| {
                let words = &all[place as u32 as usize..];
                from_words([x, y, z], what as u8, &words[..word_count(words)])
            }));
        }
        Ok(messages)
    }

    /// Exchanges sums with the devices of other ranks. Collective.
    pub(super) fn exchange(
        self,
        topology: &Topology,
        level: usize,
        others: &Comm,
    ) -> Result<(), Error> {
        let (kernels, slot_table) = (self.kernels, self.slot_table);
        let packed = self.pack(slot_table.own_octets)?;
        let memory = &mut *kernels.memory();
        let message = |packed: &RankSums| DeviceMessage {
            peer: packed.rank,
            header: bytemuck::cast_slice(&packed.records).to_vec(),
            address: memory.packed_sums.address() + 8 * packed.first as u64,
            bytes: 8 * packed.words,
        };
        let sends: Vec<DeviceMessage> = packed.iter().map(message).collect();
        let received = &mut memory.received_sums;
        let messages = others.exchange_device_messages(&sends, |bytes| {
            let room = received.provide(&kernels.device, bytes.div_ceil(8))?;
            Ok(room.address())
        })?;
        let mut records: Vec<[u64; 2]> = Vec::new();
        for message in messages {
            let first = (message.address - received.address()) / 8;
            for record in bytemuck::pod_collect_to_vec::<u8, SumHeader>(&message.header) {
                let slot = self.slot_of(topology, level, record)?;
                records.push([first + u64::from(record[4] as u32), slot]);
            }
        }
        if records.is_empty() {
            return Ok(());
        }
        memory.starts.set(&kernels.device, records.as_flattened())?;
        let args = MergeSumsParameters {
            words: received.address().into(),
            records: memory.starts.address().into(),
            sums: self.addresses[0].into(),
            wide: self.addresses[1].into(),
            count: slot_table.count() as i64,
        };
        let shape = LaunchShape::of(records.len(), THREADS);
        Ok(kernels.device.launch(&kernels.merge_sums, shape, &args)?)
    }

    /// Returns the slot of a received record; slots of coarse sums follow the others.
    fn slot_of(
        self,
        topology: &Topology,
        level: usize,
        [x, y, z, what, _]: SumHeader,
    ) -> Result<u64, RanksError> {
        let slot_table = self.slot_table;
        let row = topology
            .find(level, [x, y, z])
            .filter(|&row| topology.is_owned(row));
        let slot = row.and_then(|row| match what as u8 {
            OF_PARENT => topology
                .parent(row)
                .map(|parent| slot_table.count() as i32 + slot_table.slots[parent as usize]),
            _ => Some(slot_table.slots[row as usize]),
        });
        let why = || {
            format!(
                "received sums for the missing patch {:?} of level {level}",
                [x, y, z]
            )
        };
        slot.map(|slot| slot as u64)
            .ok_or_else(|| RanksError::Transport(why()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_hold_the_sums_of_cells() {
        let mut cells = vec![0; CELLS];
        for cell in [0, 63, 64, 200, 511] {
            cells[cell] = 7 + cell as u64;
        }
        let (index, bytes) = encode([1, 2, 3], OF_PARENT, &cells);
        let (what, words) = decode(&bytes);
        assert_eq!((index, what), ([1, 2, 3], OF_PARENT));
        assert_eq!((words.len(), word_count(&words)), (BITS + 5, BITS + 5));
        let mut twice = vec![0; CELLS];
        add(&words, &mut twice);
        assert_eq!(twice, cells);
        add(&words, &mut twice);
        let both = [1, 1, 2].map(|x| encode([x, 0, 0], OWN, &cells)).to_vec();
        let joined = merge(both);
        assert_eq!(joined.len(), 2);
        let mut sums = vec![0; CELLS];
        add(&decode(&joined[0].1).1, &mut sums);
        assert_eq!(sums, twice);
    }
}
