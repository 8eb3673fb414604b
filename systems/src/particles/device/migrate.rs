//! Moves particles between patches, ranks and devices: packs outgoing ones, exchanges them, and inserts arrivals.

use super::kernels::ListLaunch;
use super::lists::{ArrivalSegment, Arrivals, DeviceParticles, ListId, RowSpan, pieces};
use super::predict::{CountedStep, DeviceStep, SourceList};
use nestar_device::Address;
use nestar_engine::comm::{Comm, DeviceMessage};
use nestar_engine::data::MigrationBatch;
use nestar_engine::device::{DeviceError, LaunchShape};
use nestar_engine::mesh::{Topology, offset};
use nestar_kernels::mesh::OUTSIDE;
use nestar_kernels::particles::device::{
    DriftParameters, PageArray, ParticleList, SEND, UnpackParameters,
};
use std::ops::Range;

impl DeviceParticles {
    /// Scatters particles to their patches after [`DeviceParticles::step`] and inserts arrivals. Returns
    /// arrivals for patches outside the lists of the step, by row.
    ///
    /// # Errors
    /// As there.
    pub(in crate::particles) fn insert(
        &mut self,
        step: &DeviceStep,
        counted: CountedStep,
        mut arrivals: Arrivals,
    ) -> Result<Vec<(u32, Vec<u8>)>, DeviceError> {
        let CountedStep {
            mut counts,
            sources,
            ..
        } = counted;
        let rest = arrivals.assign_lists(step.topology, &step.lists());
        if sources.is_empty() && arrivals.is_empty() {
            return Ok(rest);
        }
        let mut ends = counts.clone();
        arrivals.count(&mut counts, step.rows());
        let mut new = Vec::new();
        for at in step.lists() {
            let counts = &mut counts[at.list * step.rows()..][..step.rows()];
            new.push(self.reserve(step.topology, at, counts)?);
        }
        let mut page_arrays = [PageArray::default(); 4];
        for ((page_array, at), new) in page_arrays.iter_mut().zip(step.lists()).zip(&new) {
            *page_array = self.page_array_of(at, new);
        }
        self.scatter(step, &new, &counts, page_arrays, &sources)?;
        ends.iter_mut()
            .zip(&counts)
            .for_each(|(n, first)| *n += first);
        self.unpack(step, &arrivals, &ends, page_arrays)?;
        for (at, new) in step.lists().into_iter().zip(new) {
            self.commit(step.topology, at, new)?;
        }
        Ok(rest)
    }

    /// Inserts arrivals after the scattered particles of each row; `ends` gives the first free position of
    /// each row.
    fn unpack(
        &self,
        step: &DeviceStep,
        arrivals: &Arrivals,
        ends: &[u32],
        to: [PageArray; 4],
    ) -> Result<(), DeviceError> {
        if arrivals.is_empty() {
            return Ok(());
        }
        let (kernels, memory) = (&*self.kernels, &mut *self.kernels.memory());
        memory.cursors.set(&kernels.device, ends)?;
        memory.records.set(&kernels.device, &arrivals.records)?;
        let received = (memory.received.address(), &arrivals.received);
        for (records, pieces) in [(memory.records.address(), &arrivals.pieces), received] {
            if pieces.is_empty() {
                continue;
            }
            let words = |p: &ArrivalSegment| [p.row, p.list as u32, p.page_array, p.count as u32];
            let words: Vec<[u32; 4]> = pieces.iter().map(words).collect();
            let firsts: Vec<u64> = pieces.iter().map(|piece| piece.first as u64).collect();
            memory.starts.set(&kernels.device, &firsts)?;
            memory.pieces.set(&kernels.device, words.as_flattened())?;
            let args = UnpackParameters {
                records: records.into(),
                firsts: memory.starts.address().into(),
                pieces: memory.pieces.address().into(),
                to,
                cursors: memory.cursors.address().into(),
                rows: step.topology.capacity() as i64,
                numbers: self.numbers(),
            };
            let shape = LaunchShape::of(words.len(), 128);
            kernels.device.launch(&kernels.unpack, shape, &args)?;
        }
        Ok(())
    }
}

/// Particles that go to a stored patch of another rank.
struct OutgoingByRank {
    /// Destination rank.
    peer: usize,
    /// Destination list.
    list: usize,
    row: u32,
    place: RowSpan,
}

/// Outgoing particles and their order in the outgoing page array.
struct DeviceOutgoing {
    /// Particles for stored patches of other ranks, ordered by rank and list.
    by_rank: Vec<OutgoingByRank>,
    /// Number of particles for stored patches; the others follow.
    tagged: usize,
    all: usize,
}

impl DeviceOutgoing {
    /// Moves the counts of outgoing particles out of `counts`, `[list][rows + 1]`, and writes their exclusive
    /// scan to `starts`.
    fn of(step: &DeviceStep, counts: &mut [u32], starts: &mut [u32]) -> Self {
        let (topology, rows) = (step.topology, step.rows());
        let mut by_rank = Vec::new();
        for (list, counts) in counts.chunks_exact_mut(rows).enumerate() {
            let counts = counts[..rows - 1].iter_mut().enumerate();
            let counts = counts.filter(|(row, n)| **n > 0 && !topology.is_owned(*row as u32));
            by_rank.extend(counts.map(|(row, count)| OutgoingByRank {
                peer: topology.owner(row as u32),
                list,
                row: row as u32,
                place: RowSpan {
                    first: 0,
                    count: std::mem::take(count),
                },
            }));
        }
        by_rank.sort_unstable_by_key(|by_rank| (by_rank.peer, by_rank.list, by_rank.row));
        let mut all = 0;
        for OutgoingByRank {
            list, row, place, ..
        } in &mut by_rank
        {
            (place.first, starts[*list * rows + *row as usize]) = (all, all);
            all += place.count;
        }
        starts[rows - 1] = all;
        let elsewhere = std::mem::take(&mut counts[rows - 1]);
        Self {
            by_rank,
            tagged: all as usize,
            all: (all + elsewhere) as usize,
        }
    }

    /// Groups the particles by rank and list.
    fn groups(&self) -> impl Iterator<Item = &[OutgoingByRank]> {
        let is_same = |a: &OutgoingByRank, b: &OutgoingByRank| (a.peer, a.list) == (b.peer, b.list);
        self.by_rank.chunk_by(is_same)
    }
}

/// Returns the contiguous range of particles of a group.
fn range(by_rank: &[OutgoingByRank]) -> Range<usize> {
    let end = |by_rank: &OutgoingByRank| (by_rank.place.first + by_rank.place.count) as usize;
    let first = by_rank
        .first()
        .map_or(0, |first| first.place.first as usize);
    first..by_rank.last().map_or(first, end)
}

/// Announces the particles for a patch: level, index, list, count.
pub(super) type MessageHeader = [i32; 6];

impl DeviceParticles {
    /// Packs particles that leave this rank's device lists and removes them from the counts. Returns host
    /// batches and device messages.
    pub(super) fn extract_outgoing(
        &mut self,
        step: &DeviceStep,
        counts: &mut [u32],
        sources: &[SourceList],
    ) -> Result<(Vec<MigrationBatch>, Vec<DeviceMessage>), DeviceError> {
        let mut starts = vec![0; counts.len()];
        let outgoing = DeviceOutgoing::of(step, counts, &mut starts);
        if outgoing.all == 0 {
            return Ok(Default::default());
        }
        self.find_border(step);
        let page_array = self.pages(&mut self.kernels.memory().outgoing, outgoing.all)?;
        let tags = self.scatter_outgoing(step, &outgoing, &starts, sources, page_array)?;
        let (mut parcels, messages) = match step.follow {
            true => (
                self.parcels(step.topology, &outgoing, page_array)?,
                Vec::new(),
            ),
            false => (
                Vec::new(),
                self.messages(step.topology, &outgoing, page_array)?,
            ),
        };
        parcels.extend(self.batches_elsewhere(step.topology, &outgoing, &tags, page_array)?);
        Ok((parcels, messages))
    }

    /// Finds the patches with neighbours other than own leaves.
    fn find_border(&mut self, step: &DeviceStep) {
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

    /// Scatters outgoing particles to their page array. Returns the tags of those without a stored
    /// destination patch.
    fn scatter_outgoing(
        &self,
        step: &DeviceStep,
        outgoing: &DeviceOutgoing,
        starts: &[u32],
        sources: &[SourceList],
        out: PageArray,
    ) -> Result<Vec<u64>, DeviceError> {
        let kernels = &*self.kernels;
        let memory = &mut *kernels.memory();
        memory.cursors.set(&kernels.device, starts)?;
        let mut tags = vec![0; outgoing.all - outgoing.tagged];
        let tagged = memory.tags.provide(&kernels.device, tags.len().max(1))?;
        for (source, chunks_buffer) in sources.iter().zip(&mut memory.borders) {
            let ListId { level, list } = source.at;
            let rows = step.topology.rows(level).iter();
            let rows = rows.filter(|&&row| self.border.1[row as usize]);
            let spans = rows.map(|&row| (row, self.patches[row as usize].lists[list]));
            let chunks: Vec<u32> = spans.flat_map(|(row, span)| pieces(row, span)).collect();
            if chunks.is_empty() {
                continue;
            }
            chunks_buffer.set(&kernels.device, &chunks)?;
            let on = source
                .launch
                .of_pieces(chunks_buffer.address().into(), &chunks);
            let args = DriftParameters {
                from: on.list,
                to: [out; 4],
                cursors: memory.cursors.address().into(),
                tags: tagged.address().into(),
                tagged: outgoing.tagged as i64,
                what: SEND,
                ..source.args
            };
            let bytes = 9 * self.columns.number;
            kernels.work(&kernels.scatter, &on, bytes, &args)?;
        }
        kernels.device.download(tagged, 0, &mut tags)?;
        Ok(tags)
    }

    /// Packs particles for stored patches into host batches, one per list and patch.
    fn parcels(
        &self,
        topology: &Topology,
        outgoing: &DeviceOutgoing,
        from: PageArray,
    ) -> Result<Vec<MigrationBatch>, DeviceError> {
        let (width, mut parcels) = (self.record_bytes(), Vec::new());
        for group in outgoing.groups() {
            let records = self.packed(from, range(group), group[0].list)?;
            let mut rest = &records[..];
            for OutgoingByRank { row, place, .. } in group {
                let records = rest.split_off(..place.count as usize * width);
                parcels.extend(topology.level(*row).map(|level| MigrationBatch {
                    level,
                    index: topology.index(*row),
                    records: records.unwrap_or_default().to_vec(),
                }));
            }
        }
        Ok(parcels)
    }

    /// Packs particles for stored patches into one message per rank, valid until the next step.
    fn messages(
        &self,
        topology: &Topology,
        outgoing: &DeviceOutgoing,
        from: PageArray,
    ) -> Result<Vec<DeviceMessage>, DeviceError> {
        let (kernels, width) = (&*self.kernels, self.record_bytes());
        let mut memory = kernels.memory();
        let room = outgoing.tagged * width + 8 * outgoing.by_rank.len();
        let out = memory.sent.provide(&kernels.device, room.max(1))?;
        let (mut messages, mut next) = (Vec::<DeviceMessage>::new(), out.address());
        for group in outgoing.groups() {
            let peer = group[0].peer;
            if messages.last().is_none_or(|last| last.peer != peer) {
                next = next.next_multiple_of(8);
                messages.push(DeviceMessage {
                    peer,
                    header: Vec::new(),
                    address: next,
                    bytes: 0,
                });
            }
            self.pack(from, range(group), group[0].list, self.numbers(), next)?;
            let bytes = range(group).len() * width;
            next += bytes as u64;
            if let Some(message) = messages.last_mut() {
                message.bytes += bytes;
                let headers = group
                    .iter()
                    .map(|by_rank| message_header(topology, by_rank));
                let headers: Vec<MessageHeader> = headers.collect();
                message
                    .header
                    .extend(bytemuck::cast_slice::<_, u8>(&headers));
            }
        }
        Ok(messages)
    }

    /// Packs particles without a stored destination patch, grouped by origin and direction.
    fn batches_elsewhere(
        &self,
        topology: &Topology,
        outgoing: &DeviceOutgoing,
        tags: &[u64],
        out: PageArray,
    ) -> Result<Vec<MigrationBatch>, DeviceError> {
        let mut records = self.packed(out, outgoing.tagged..outgoing.all, 0)?;
        let (mut parcels, mut rest) = (Vec::new(), &mut records[..]);
        for group in tags.chunk_by(|a, b| a == b) {
            let width = self.record_bytes();
            let (own, others) = rest.split_at_mut(group.len() * width);
            let (row, d) = ((group[0] / 64) as u32, (group[0] % 32) as usize);
            for record in own.chunks_exact_mut(width) {
                record[width - 1] = u8::from(group[0] & 32 != 0);
            }
            if let Some(level) = topology.level(row)
                && let Some(index) = topology.place_beside(level, topology.index(row), offset(d))
            {
                let records = own.to_vec();
                parcels.push(MigrationBatch {
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

/// Returns the message header of the particles for a patch.
fn message_header(
    topology: &Topology,
    OutgoingByRank {
        list, row, place, ..
    }: &OutgoingByRank,
) -> MessageHeader {
    let level = topology.level(*row).unwrap_or_default() as i32;
    let [x, y, z] = topology.index(*row);
    [level, x, y, z, *list as i32, place.count as i32]
}

impl ListLaunch {
    /// Replaces the chunks of a launch.
    fn of_pieces(self, address: Address<u32>, pieces: &[u32]) -> Self {
        let counts = pieces.iter().skip(2).step_by(3);
        Self {
            list: ParticleList {
                chunks: address,
                ..self.list
            },
            shape: LaunchShape {
                blocks: (pieces.len() / 3) as u32,
                ..self.shape
            },
            particles: counts.map(|&count| count as usize).sum(),
        }
    }
}

impl DeviceParticles {
    /// Sends messages and takes in those of other ranks. Returns particles for patches that are not on the
    /// device as host batches.
    pub(in crate::particles) fn exchange(
        &self,
        step: &DeviceStep,
        counted: &CountedStep,
        arrivals: &mut Arrivals,
        others: &Comm,
    ) -> Result<Vec<MigrationBatch>, DeviceError> {
        let (kernels, width) = (&*self.kernels, self.record_bytes());
        let memory = &mut *kernels.memory();
        let (received, device) = (&mut memory.received, &kernels.device);
        let messages = others.exchange_device_messages(&counted.messages, |bytes| {
            received.provide(device, bytes).map(|room| room.address())
        })?;
        let (lists, mut parcels) = (step.lists(), Vec::new());
        for message in messages {
            let mut next = (message.address - received.address()) as usize;
            let headers: Vec<MessageHeader> = bytemuck::pod_collect_to_vec(&message.header);
            for [level, x, y, z, list, count] in headers {
                let (level, index, list) = (level as usize, [x, y, z], list as usize);
                let (first, count) = (next, count as usize);
                next += count * width;
                let row = step.topology.find(level, index);
                let row = row.filter(|&row| step.topology.is_leaf(row));
                let page_array = lists.iter().position(|&at| at == ListId { level, list });
                if let Some((row, page_array)) = row.zip(page_array) {
                    let piece = ArrivalSegment {
                        row,
                        list,
                        page_array: page_array as u32,
                        first,
                        count,
                    };
                    arrivals.received.extend(piece.parts(width));
                    continue;
                }
                let mut records = vec![0; count * width];
                if let Some(received) = received.buffer() {
                    device.download(received, first, &mut records)?;
                }
                parcels.push(MigrationBatch {
                    level,
                    index,
                    records,
                });
            }
        }
        Ok(parcels)
    }
}
