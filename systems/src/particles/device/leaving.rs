//! What leaves the patches of a device's rank in a step, as parcels.

use super::kernels::Listed;
use super::lists::{OnDevice, Stretch, pieces};
use super::step::{Source, Step};
use nestar_device::Address;
use nestar_engine::device::{DeviceError, Shape};
use nestar_engine::field::Parcel;
use nestar_engine::mesh::{Topology, offset};
use nestar_kernels::mesh::OUTSIDE;
use nestar_kernels::particles::device::{List, Move, Stack};

/// Where leavers stand in their stack.
struct Leavers {
    /// Those that go to held patches of other ranks: row, list, place. The lists follow each other.
    homes: Vec<(u32, usize, Stretch)>,
    /// Those before are on the first list.
    second: usize,
    /// Those before go to held patches.
    tagged: usize,
    all: usize,
}

impl Leavers {
    /// Takes the counts of what leaves out of those of all rows, `[list][rows + 1]`; where each of them begins is put into `starts`.
    fn of(step: &Step, counts: &mut [u32], starts: &mut [u32]) -> Self {
        let (topology, rows) = (step.topology, step.rows());
        let (mut homes, mut all, mut second) = (Vec::new(), 0, 0);
        for list in 0..2 {
            second = if list == 0 { 0 } else { all };
            let counts = &mut counts[list * rows..][..rows - 1];
            let counts = counts.iter_mut().enumerate().filter(|(_, n)| **n > 0);
            for (row, count) in counts.filter(|(row, _)| !topology.is_owned(*row as u32)) {
                let stretch = Stretch {
                    first: all,
                    count: std::mem::take(count),
                };
                starts[list * rows + row] = all;
                all += stretch.count;
                homes.push((row as u32, list, stretch));
            }
        }
        starts[rows - 1] = all;
        let elsewhere = std::mem::take(&mut counts[rows - 1]);
        Self {
            homes,
            second: second as usize,
            tagged: all as usize,
            all: (all + elsewhere) as usize,
        }
    }
}

impl OnDevice {
    /// Takes what goes to patches that this rank's kernels do not deal to out of the counts, and its particles as parcels.
    pub(super) fn take_out(
        &mut self,
        step: &Step,
        counts: &mut [u32],
        sources: &[Source],
    ) -> Result<Vec<Parcel>, DeviceError> {
        let mut starts = vec![0; counts.len()];
        let leavers = Leavers::of(step, counts, &mut starts);
        if leavers.all == 0 {
            return Ok(Vec::new());
        }
        self.find_border(step);
        let (words, room) = self.kernels.columns(self.columns, leavers.all)?;
        let out = Stack {
            words: words.address().into(),
            room: room as i64,
        };
        let tags = self.deal_leavers(step, (&leavers, &starts), (sources, out))?;
        let mut parcels = self.to_homes(step.topology, &leavers, out)?;
        parcels.extend(self.to_places(step.topology, (&leavers, &tags), out)?);
        self.kernels.give_back(words);
        Ok(parcels)
    }

    /// Finds the patches beside which there is more than own leaves.
    fn find_border(&mut self, step: &Step) {
        let topology = step.topology;
        let (revision, border) = &mut self.border;
        if *revision == step.revision && border.len() == topology.capacity() {
            return;
        }
        *revision = step.revision;
        border.clear();
        border.resize(topology.capacity(), false);
        let is_inner = |&code: &i32| match u32::try_from(code) {
            Ok(beside) => topology.is_owned(beside) && topology.is_leaf(beside),
            Err(_) => code == OUTSIDE,
        };
        let rows = (0..=topology.finest()).flat_map(|level| topology.rows(level));
        for &row in rows {
            border[row as usize] = !topology.neighbours(row).iter().all(is_inner);
        }
    }

    /// Puts them into their stack; the tags of those that go to no held patch.
    fn deal_leavers(
        &self,
        step: &Step,
        (leavers, starts): (&Leavers, &[u32]),
        (sources, out): (&[Source], Stack),
    ) -> Result<Vec<u64>, DeviceError> {
        let kernels = &*self.kernels;
        let memory = &mut *kernels.memory();
        memory.cursors.set(&kernels.device, starts)?;
        let mut tags = vec![0; leavers.all - leavers.tagged];
        let tagged = memory.tags.provide(&kernels.device, tags.len().max(1))?;
        for (source, kept) in sources.iter().zip(&mut memory.borders) {
            let (level, list) = source.at;
            let rows = step.topology.rows(level).iter();
            let rows = rows.filter(|&&row| self.border.1[row as usize]);
            let stretches = rows.map(|&row| (row, self.homes[row as usize].lists[list]));
            let chunks: Vec<u32> = stretches.flat_map(pieces).collect();
            if chunks.is_empty() {
                continue;
            }
            kept.set(&kernels.device, &chunks)?;
            let on = source.listed.of_pieces(kept.address().into(), &chunks);
            let given = Move {
                from: on.list,
                to: [out; 4],
                cursors: memory.cursors.address().into(),
                tags: tagged.address().into(),
                tagged: leavers.tagged as i64,
                leaving: true,
                ..source.given
            };
            let bytes = 9 * self.columns.number;
            kernels.work(&kernels.deal, (&on, bytes), &given)?;
        }
        kernels.device.download(tagged, 0, &mut tags)?;
        Ok(tags)
    }

    /// Those that go to held patches, all of a list and patch together.
    fn to_homes(
        &self,
        topology: &Topology,
        leavers: &Leavers,
        out: Stack,
    ) -> Result<Vec<Parcel>, DeviceError> {
        let width = self.columns.bytes() + 1;
        let mut records = self.packed(out, 0..leavers.second, 0)?;
        records.extend(self.packed(out, leavers.second..leavers.tagged, 1)?);
        let parcel = |(row, _, Stretch { first, count }): &(u32, usize, Stretch)| {
            let records = &records[*first as usize * width..][..*count as usize * width];
            Some(Parcel {
                level: topology.level(*row)?,
                index: topology.index(*row),
                records: records.to_vec(),
            })
        };
        Ok(leavers.homes.iter().filter_map(parcel).collect())
    }

    /// Those that go elsewhere, which follow each other where they come from one patch and go in one direction.
    fn to_places(
        &self,
        topology: &Topology,
        (leavers, tags): (&Leavers, &[u64]),
        out: Stack,
    ) -> Result<Vec<Parcel>, DeviceError> {
        let mut records = self.packed(out, leavers.tagged..leavers.all, 0)?;
        let (mut parcels, mut rest) = (Vec::new(), &mut records[..]);
        for alike in tags.chunk_by(|a, b| a == b) {
            let width = self.columns.bytes() + 1;
            let (own, others) = rest.split_at_mut(alike.len() * width);
            let (row, d) = ((alike[0] / 64) as u32, (alike[0] % 32) as usize);
            for record in own.chunks_exact_mut(width) {
                record[width - 1] = u8::from(alike[0] & 32 != 0);
            }
            if let Some(level) = topology.level(row)
                && let Some(index) = topology.place_beside(level, topology.index(row), offset(d))
            {
                let records = own.to_vec();
                parcels.push(Parcel {
                    level,
                    index,
                    records,
                });
            }
            rest = others;
        }
        Ok(parcels)
    }
}

impl Listed {
    /// The same particles, but for those of other pieces.
    fn of_pieces(self, address: Address<u32>, pieces: &[u32]) -> Self {
        let counts = pieces.iter().skip(2).step_by(3);
        Self {
            list: List {
                chunks: address,
                ..self.list
            },
            shape: Shape {
                blocks: (pieces.len() / 3) as u32,
                ..self.shape
            },
            particles: counts.map(|&count| count as usize).sum(),
        }
    }
}
