//! Which patches of a level need copies of other ranks' patches in a step, and which do not.

use crate::device::{Device, DeviceError, Kept};
use crate::mesh::Topology;
use crate::mesh::topology::octet::{Near, Octet};
use nestar_kernels::mesh::COARSER;
use rayon::prelude::*;
use std::sync::Arc;

/// Rows of a level and their list on the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// The rows, in Hilbert order.
    pub rows: Vec<u32>,
    /// Address of the list on the device; 0 where there is none.
    pub there: u64,
}

/// Own rows of a level, in two parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Rows whose ghost cells come from own patches alone.
    pub interior: Rows,
    /// All others.
    pub border: Rows,
}

impl Split {
    /// Whether so much of the level needs no copies that it is worth while to begin with that.
    #[must_use]
    pub fn is_worth_it(&self) -> bool {
        self.interior.rows.len() > self.border.rows.len()
    }
}

/// A level's split with its lists on the device.
#[derive(Default)]
pub(super) struct Splitting {
    pub split: Arc<Split>,
    interior: Kept<u32>,
    border: Kept<u32>,
}

impl Splitting {
    /// Follows a change of the hierarchy.
    pub fn follow(
        &mut self,
        topology: &Topology,
        level: usize,
        device: Option<&Device>,
    ) -> Result<(), DeviceError> {
        let needy = needy(topology, level);
        let needs = |row: &u32| needy[*row as usize / 8] >> (row % 8) & 1 == 1;
        let (border, interior): (Vec<u32>, Vec<u32>) =
            topology.rows(level).iter().partition(|&row| needs(row));
        if let Some(device) = device {
            self.interior.set(device, &interior)?;
            self.border.set(device, &border)?;
        }
        let listed = |rows, there| Rows { rows, there };
        self.split = Arc::new(Split {
            interior: listed(interior, self.interior.address()),
            border: listed(border, self.border.address()),
        });
        Ok(())
    }
}

/// By octet, a patch's row over eight: which of its own patches need copies.
fn needy(topology: &Topology, level: usize) -> Vec<u8> {
    let near = |octet: &&Octet| octet.is_near(Near::Beside) || octet.is_near(Near::Beneath);
    let octets = topology.octets(level).par_iter().with_min_len(64);
    let owned = octets.filter(|octet| octet.owned != 0).filter(near);
    let marked = owned.map(|octet| {
        let needs = octet
            .rows(octet.owned)
            .filter(|&row| needs_copies(topology, row));
        (octet.first, needs.map(|row| 1 << (row % 8)).sum::<u8>())
    });
    let mut needy = vec![0; topology.capacity() / 8];
    for (first, marks) in marked.collect::<Vec<_>>() {
        needy[first as usize / 8] = marks;
    }
    needy
}

/// Whether ghost cells of an own patch are made from copies of others' patches.
fn needs_copies(topology: &Topology, row: u32) -> bool {
    let touches = |row: u32| {
        let around = topology.neighbours(row).iter();
        let mut rows = around.filter_map(|&row| u32::try_from(row).ok());
        rows.any(|row| !topology.is_owned(row))
    };
    if touches(row) {
        return true;
    }
    // the parent may itself be a copy, and is among its own 27
    let interpolates = topology.neighbours(row).contains(&COARSER);
    let parent = topology.parent(row).filter(|_| interpolates);
    parent.is_some_and(touches)
}
