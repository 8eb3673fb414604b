//! Splits the patches of a level into interior patches, which read no halo, and boundary patches.

use nestar_engine_device::{Device, DeviceError, ReusableBuffer};
use nestar_engine_mesh::Topology;
use nestar_engine_mesh::topology::octet::{NeighbourLevel, Octet};
use nestar_kernels::mesh::COARSER;
use rayon::prelude::*;
use std::sync::Arc;

/// Rows of a level and their list on the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowList {
    /// Rows in Hilbert order.
    pub rows: Vec<u32>,
    /// Address of the list on the device; 0 without a device.
    pub device_list: u64,
}

/// Own rows of a level in two parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LevelSplit {
    /// Rows whose ghost cells depend on own patches only.
    pub interior: RowList,
    /// All other rows.
    pub boundary: RowList,
}

impl LevelSplit {
    /// Returns `true` if enough patches are interior to overlap their update with communication.
    #[must_use]
    pub fn is_worth_overlapping(&self) -> bool {
        self.interior.rows.len() > self.boundary.rows.len()
    }
}

/// The split of a level with its lists on the device.
#[derive(Default)]
pub(super) struct DeviceSplit {
    pub split: Arc<LevelSplit>,
    interior: ReusableBuffer<u32>,
    boundary: ReusableBuffer<u32>,
}

impl DeviceSplit {
    /// Removes all rows from the split.
    pub fn clear(&mut self) {
        self.split = Arc::default();
    }

    /// Updates the split after a change of the hierarchy.
    pub fn update(
        &mut self,
        topology: &Topology,
        level: usize,
        device: Option<&Device>,
    ) -> Result<(), DeviceError> {
        let reading_halo = reading_halo(topology, level);
        let needs = |row: &u32| reading_halo[*row as usize / 8] >> (row % 8) & 1 == 1;
        let (boundary, interior): (Vec<u32>, Vec<u32>) =
            topology.rows(level).iter().partition(|&row| needs(row));
        if let Some(device) = device {
            self.interior.set(device, &interior)?;
            self.boundary.set(device, &boundary)?;
        }
        let listed = |rows, device_list| RowList { rows, device_list };
        self.split = Arc::new(LevelSplit {
            interior: listed(interior, self.interior.address()),
            boundary: listed(boundary, self.boundary.address()),
        });
        Ok(())
    }
}

/// Returns, by octet (row
/// 8), the mask of own patches that read halo patches.
fn reading_halo(topology: &Topology, level: usize) -> Vec<u8> {
    let near = |octet: &&Octet| {
        octet.is_near(NeighbourLevel::Same) || octet.is_near(NeighbourLevel::Coarser)
    };
    let octets = topology.octets(level).par_iter().with_min_len(64);
    let owned = octets.filter(|octet| octet.owned != 0).filter(near);
    let marked = owned.map(|octet| {
        let needs = octet
            .rows(octet.owned)
            .filter(|&row| reads_halo(topology, row));
        (octet.first, needs.map(|row| 1 << (row % 8)).sum::<u8>())
    });
    let mut reading_halo = vec![0; topology.capacity() / 8];
    for (first, marks) in marked.collect::<Vec<_>>() {
        reading_halo[first as usize / 8] = marks;
    }
    reading_halo
}

/// Returns `true` if ghost cells of an own patch depend on halo patches.
fn reads_halo(topology: &Topology, row: u32) -> bool {
    let touches = |row: u32| {
        let around = topology.neighbours(row).iter();
        let mut rows = around.filter_map(|&row| u32::try_from(row).ok());
        rows.any(|row| !topology.is_owned(row))
    };
    if touches(row) {
        return true;
    }
    // The parent may be a halo patch itself; it is among its own 27 neighbours.
    let interpolates = topology.neighbours(row).contains(&COARSER);
    let parent = topology.parent(row).filter(|_| interpolates);
    parent.is_some_and(touches)
}
