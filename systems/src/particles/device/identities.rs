//! Lists the identities of particles on a device.

use super::lists::DeviceParticles;
use nestar_engine::device::DeviceError;

impl DeviceParticles {
    /// Returns the identities of the particles of a patch.
    ///
    /// # Errors
    /// The device fails.
    pub fn identities_of(&self, row: u32) -> Result<Vec<u64>, DeviceError> {
        let records = self.records(&[row])?.concat();
        Ok(identities(&records, self.record_bytes()))
    }

    /// Returns the identities of all particles with their rows.
    ///
    /// # Errors
    /// The device fails.
    pub fn identities(&self) -> Result<Vec<(u64, u32)>, DeviceError> {
        let mut all = Vec::new();
        for at in (0..self.buffers.len()).flat_map(|level| [(level, 0), (level, 1)]) {
            let identities = identities(&self.records_on(at, 0)?, 8 + 1);
            self.each_on(at, |row, of_row| {
                all.extend(identities[of_row].iter().map(|&id| (id, row as u32)));
            });
        }
        Ok(all)
    }
}

/// Extracts the identities, which come first in records of `width` bytes.
fn identities(records: &[u8], width: usize) -> Vec<u64> {
    let first = records.chunks_exact(width).filter_map(<[u8]>::first_chunk);
    first.map(|id| u64::from_le_bytes(*id)).collect()
}
