//! Selects particles on a device.

use super::super::selection::{NumberRange, SelectedParticle, decode_words};
use super::lists::{DeviceParticles, ListId};
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::Topology;
use nestar_kernels::particles::device::SelectParameters;

/// Particles for which the first launch has room.
const ROOM: usize = 1 << 12;

impl DeviceParticles {
    /// Returns the particles of a list of a level whose number lies in a range, in any order.
    ///
    /// # Errors
    /// The device fails or its memory does not suffice.
    pub fn select(
        &mut self,
        topology: &Topology,
        tables: Option<&DeviceTopology>,
        at: ListId,
        range: NumberRange,
    ) -> Result<Vec<SelectedParticle>, DeviceError> {
        let Some(tables) = tables.filter(|_| self.holds(at.level, at.list)) else {
            return Ok(Vec::new());
        };
        let kernels = self.kernels.clone();
        let from = self.list(topology, super::tables(tables), at.level, at.list)?;
        let width = self.numbers() as usize + 2;
        let mut room = ROOM.min(from.particles.max(1));
        loop {
            let mut memory = kernels.memory();
            let out = memory.packed_sums.provide(&kernels.device, room * width)?;
            kernels.device.fill_zero(&kernels.words, 0..1)?;
            let args = SelectParameters {
                from: from.list,
                out: out.address().into(),
                count: kernels.words.address().into(),
                room: room as i64,
                column: range.column as i32,
                above: range.above,
                upto: range.upto,
            };
            kernels.work(&kernels.select, &from, self.columns.number, &args)?;
            let mut count = [0u64];
            kernels.device.download(&kernels.words, 0, &mut count)?;
            let count = count[0] as usize;
            if count > room {
                room = count;
                continue;
            }
            let mut words = vec![0u64; count * width];
            if count > 0 {
                kernels.device.download(out, 0, &mut words)?;
            }
            let masses = self.columns.masses;
            let each = words.chunks_exact(width);
            let decode = |words: &[u64]| decode_words(topology, at.level, masses, words);
            return Ok(each.map(decode).collect());
        }
    }
}
