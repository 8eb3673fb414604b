//! Conserved totals on the device, in the order of [`crate::field::totals`].

use super::parameters::TotalsParameters;
use super::{DevicePool, DeviceTopology, shape};
use crate::device::DeviceError;
use crate::field::totals::pairwise;
use nestar_kernels::CELLS;

/// Most halvings that are left to the host.
const DEPTH: u32 = 10;

impl DevicePool {
    /// Sums of the cells of `level`'s leaf patches, `[patch][component]`, 0 for others; `bank` is the level's present one.
    pub(in crate::field) fn patch_sums(
        &self,
        tables: &DeviceTopology,
        level: usize,
        bank: usize,
    ) -> Result<Vec<f64>, DeviceError> {
        let count = tables.count(level);
        let mut values = vec![0.0; count * self.components];
        if count == 0 {
            return Ok(values);
        }
        let sums = self.device.buffer::<f64>(values.len())?;
        let parameters = TotalsParameters {
            level: self.bank(bank),
            rows: tables.rows(level),
            first_child: tables.first_child(),
            sums: sums.address(),
            nodes: 0,
            count: count as i32,
            depth: 0,
        };
        self.device
            .launch(&self.kernels.sum_patches, shape(count, 64), &parameters)?;
        self.device.download(&sums, 0, &mut values)?;
        Ok(values)
    }

    /// Per component, the sum of the cells of `level`'s leaf patches; `bank` is the level's present one.
    pub(in crate::field) fn level_sums(
        &self,
        tables: &DeviceTopology,
        level: usize,
        bank: usize,
    ) -> Result<Vec<f64>, DeviceError> {
        let count = tables.count(level);
        if count == 0 {
            return Ok(vec![0.0; self.components]);
        }
        // every node holds a patch at least, so that the halvings down to the nodes are those of the whole recursion
        let depth = count.ilog2().min(DEPTH);
        let nodes = 1usize << depth;
        let sums = self.device.buffer::<f64>(count * self.components)?;
        let of_nodes = self.device.buffer::<f64>(nodes * self.components)?;
        let parameters = TotalsParameters {
            level: self.bank(bank),
            rows: tables.rows(level),
            first_child: tables.first_child(),
            sums: sums.address(),
            nodes: of_nodes.address(),
            count: count as i32,
            depth: depth as i32,
        };
        self.kernels
            .sum_patches
            .works_on(count * CELLS, count * self.row_bytes());
        self.device
            .launch(&self.kernels.sum_patches, shape(count, 64), &parameters)?;
        self.device
            .launch(&self.kernels.sum_nodes, shape(nodes, 32), &parameters)?;
        let mut values = vec![0.0; nodes * self.components];
        self.device.download(&of_nodes, 0, &mut values)?;
        let sum = |c| pairwise(&values, c, self.components, 0, nodes);
        Ok((0..self.components).map(sum).collect())
    }
}
