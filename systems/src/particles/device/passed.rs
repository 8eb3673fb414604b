//! What comes from other ranks' devices in a step.

use super::incoming::{Incoming, Piece};
use super::leaving::Announced;
use super::lists::OnDevice;
use super::step::{Counted, Step};
use nestar_engine::device::DeviceError;
use nestar_engine::field::Parcel;
use nestar_engine::ranks::OtherRanks;

impl OnDevice {
    /// Sends messages, and takes in what comes; as parcels what comes to patches that kernels do not deal to.
    pub(super) fn pass(
        &self,
        step: &Step,
        (counted, incoming): (&Counted, &mut Incoming),
        others: &OtherRanks,
    ) -> Result<Vec<Parcel>, DeviceError> {
        let (kernels, width) = (&*self.kernels, self.record_bytes());
        let memory = &mut *kernels.memory();
        let (passed, device) = (&mut memory.passed, &kernels.device);
        let come = others.pass(&counted.messages, |bytes| {
            passed.provide(device, bytes).map(|room| room.address())
        })?;
        let (lists, mut parcels) = (step.lists(), Vec::new());
        for message in come {
            let mut next = (message.address - passed.address()) as usize;
            let announced: Vec<Announced> = bytemuck::pod_collect_to_vec(&message.header);
            for [level, x, y, z, list, count] in announced {
                let (level, index, list) = (level as usize, [x, y, z], list as usize);
                let (first, count) = (next, count as usize);
                next += count * width;
                let row = step.topology.find(level, index);
                let row = row.filter(|&row| step.topology.is_leaf(row));
                let stack = lists.iter().position(|&at| at == (level, list));
                if let Some((row, stack)) = row.zip(stack) {
                    let piece = Piece {
                        row,
                        list,
                        stack: stack as u32,
                        first,
                        count,
                    };
                    incoming.passed.extend(piece.parts(width));
                    continue;
                }
                let mut records = vec![0; count * width];
                if let Some(passed) = passed.buffer() {
                    device.download(passed, first, &mut records)?;
                }
                parcels.push(Parcel {
                    level,
                    index,
                    records,
                });
            }
        }
        Ok(parcels)
    }
}
