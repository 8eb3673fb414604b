//! Exchanges device sums between ranks.

use super::letters::{self, OF_PARENT, OWN};
use super::on_device::{DeviceSums, THREADS};
use super::receivers::DestinationRanks;
use nestar_engine::Error;
use nestar_engine::comm::{Comm, DeviceMessage, PatchMessage, RanksError};
use nestar_engine::device::{DeviceError, LaunchShape};
use nestar_engine::mesh::Topology;
use nestar_kernels::CELLS;
use nestar_kernels::particles::device::{MergeSumsParameters, PackSumsParameters};

/// Longest record of a slot, in words.
const RECORD: usize = letters::BITS + CELLS;

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
        let parameters = PackSumsParameters {
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
        kernels.device.launch(
            &kernels.pack_sums,
            LaunchShape::of(slots, THREADS),
            &parameters,
        )?;
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
    pub(super) fn letters(self) -> Result<Vec<PatchMessage>, DeviceError> {
        let (packed, mut letters) = (self.pack(0)?, Vec::new());
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
            letters.extend(records.into_iter().map(|[x, y, z, what, place]| {
                let words = &all[place as u32 as usize..];
                letters::from_words([x, y, z], what as u8, &words[..letters::word_count(words)])
            }));
        }
        Ok(letters)
    }

    /// Exchanges sums with the devices of other ranks. Collective.
    pub(super) fn exchange(
        self,
        (topology, level): (&Topology, usize),
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
        let parameters = MergeSumsParameters {
            words: received.address().into(),
            records: memory.starts.address().into(),
            sums: self.addresses[0].into(),
            wide: self.addresses[1].into(),
            count: slot_table.count() as i64,
        };
        let shape = LaunchShape::of(records.len(), THREADS);
        Ok(kernels
            .device
            .launch(&kernels.merge_sums, shape, &parameters)?)
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
