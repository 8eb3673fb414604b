//! Which particles are on a device.

use super::lists::{Held, OnDevice, Stretch};
use nestar_engine::device::DeviceError;

impl OnDevice {
    /// The identities of the particles of a patch.
    ///
    /// # Errors
    /// The device fails.
    pub fn identities_of(&self, row: u32) -> Result<Vec<u64>, DeviceError> {
        let home = &self.homes[row as usize];
        let mut all = Vec::new();
        for (list, stretch) in home.lists.iter().enumerate() {
            all.extend(self.identities_in(&self.held[home.level][list], *stretch)?);
        }
        Ok(all)
    }

    /// The identities of all particles, each with its row.
    ///
    /// # Errors
    /// The device fails.
    pub fn identities(&self) -> Result<Vec<(u64, u32)>, DeviceError> {
        let mut all = Vec::new();
        for (level, list) in (0..self.held.len()).flat_map(|level| [(level, 0), (level, 1)]) {
            let held = &self.held[level][list];
            let count = held.used as u32;
            let identities = self.identities_in(held, Stretch { first: 0, count })?;
            let of_level = self.homes.iter().enumerate();
            for (row, home) in of_level.filter(|(_, home)| home.level == level) {
                let Stretch { first, count } = home.lists[list];
                let own = identities[first as usize..][..count as usize].iter();
                all.extend(own.map(|&id| (id, row as u32)));
            }
        }
        Ok(all)
    }

    /// They are the first of the columns.
    fn identities_in(&self, held: &Held, stretch: Stretch) -> Result<Vec<u64>, DeviceError> {
        let mut identities = vec![0; stretch.count as usize];
        if let Some(words) = held.words.as_ref().filter(|_| stretch.count > 0) {
            let (device, first) = (&self.kernels.device, stretch.first as usize);
            device.download(words, first, &mut identities)?;
        }
        Ok(identities)
    }
}
