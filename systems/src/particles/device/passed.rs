//! Exchanges particles between devices of ranks.

use super::incoming::{ArrivalSegment, Arrivals};
use super::leaving::MessageHeader;
use super::lists::DeviceParticles;
use super::step::{CountedStep, DeviceStep};
use nestar_engine::comm::Comm;
use nestar_engine::data::MigrationBatch;
use nestar_engine::device::DeviceError;

impl DeviceParticles {
    /// Sends messages and takes in those of other ranks. Returns particles for patches that are not on the
    /// device as host batches.
    pub(super) fn exchange(
        &self,
        step: &DeviceStep,
        (counted, arrivals): (&CountedStep, &mut Arrivals),
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
                let page_array = lists.iter().position(|&at| at == (level, list));
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
