//! Which particles are on a device.

use super::lists::OnDevice;
use nestar_engine::device::DeviceError;

impl OnDevice {
    /// The identities of the particles of a patch.
    ///
    /// # Errors
    /// The device fails.
    pub fn identities_of(&self, row: u32) -> Result<Vec<u64>, DeviceError> {
        let records = self.records(&[row])?.concat();
        Ok(self.identities_in(&records))
    }

    /// The identities of all particles, each with its row.
    ///
    /// # Errors
    /// The device fails.
    pub fn identities(&self) -> Result<Vec<(u64, u32)>, DeviceError> {
        let mut all = Vec::new();
        for at in (0..self.held.len()).flat_map(|level| [(level, 0), (level, 1)]) {
            let identities = self.identities_in(&self.records_on(at)?);
            self.each_on(at, |row, of_row| {
                all.extend(identities[of_row].iter().map(|&id| (id, row as u32)));
            });
        }
        Ok(all)
    }

    /// They come first in each record.
    fn identities_in(&self, records: &[u8]) -> Vec<u64> {
        let records = records.chunks_exact(self.record_bytes());
        let first = records.filter_map(|record| record.first_chunk());
        first.map(|id| u64::from_le_bytes(*id)).collect()
    }
}
