//! Conserved totals on the device, in the order of [`crate::data::totals`].

use super::{DevicePool, DeviceTopology};
use crate::data::totals::pairwise;
use crate::device::parallel::lock;
use crate::device::{DeviceError, LaunchShape};
use nestar_device::Number;
use nestar_kernels::CELLS;
use nestar_kernels::mesh::parameters::{MAX_SUM_NODES, TotalsParameters};
use std::ops::Range;

/// Most halvings of a level that are left to the host.
const DEPTH: u32 = 10;

/// A node of the level's tree of halves, as kernels see it: its patches, the halvings that are left to the host, and where
/// their sums begin.
type SumNode = [i32; 4];

impl DevicePool {
    /// Sums of the leaf cells of stretches of `level`'s patches, `[node][component]`; `bank` is the level's present one.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// If there are more nodes than a tree of halves has.
    pub(in crate::data) fn node_sums(
        &self,
        tables: &DeviceTopology,
        level: usize,
        bank: usize,
        nodes: &[Range<usize>],
    ) -> Result<Vec<f64>, DeviceError> {
        let count = tables.count(level);
        if nodes.is_empty() {
            return Ok(Vec::new());
        }
        let (nodes, parts) = divided(nodes, count);
        let (of_patches, of_parts) = (count * self.components, parts * self.components);
        let mut sums = lock(&self.sums);
        let sums = sums.provide(&self.device, of_patches + of_parts)?;
        let mut parameters = TotalsParameters::<Number> {
            level: self.bank(bank).into(),
            rows: tables.rows(level).into(),
            first_child: tables.first_child().into(),
            sums: sums.address().into(),
            parts: (sums.address() + (of_patches * size_of::<f64>()) as u64).into(),
            count: nodes.len() as i32,
            nodes: [[0; 4]; MAX_SUM_NODES],
        };
        parameters.nodes[..nodes.len()].copy_from_slice(&nodes);
        self.kernels
            .sum_patches
            .count_work(count * CELLS, count * self.row_bytes());
        self.device.launch(
            &self.kernels.sum_patches,
            LaunchShape::of(count, 64),
            &parameters,
        )?;
        self.device.launch(
            &self.kernels.sum_parts,
            LaunchShape::of(parts, 32),
            &parameters,
        )?;
        let mut values = vec![0.0; of_parts];
        self.device.download(sums, of_patches, &mut values)?;
        let sum = |&[_, _, depth, first]: &SumNode, c| {
            let first = first as usize;
            pairwise(&values, c, self.components, first, first + (1 << depth))
        };
        let of_node = |node| (0..self.components).map(move |c| sum(node, c));
        Ok(nodes.iter().flat_map(of_node).collect())
    }
}

/// The nodes, with as many halvings as make parts of a size; and the number of all parts. Every part holds a patch at least,
/// so that the halvings down to the parts are those of the whole recursion.
fn divided(nodes: &[Range<usize>], count: usize) -> (Vec<SumNode>, usize) {
    let on_device = count.ilog2().saturating_sub(DEPTH);
    let mut parts = 0;
    let node = |node: &Range<usize>| {
        let depth = node.len().ilog2().saturating_sub(on_device);
        let first = parts;
        parts += 1 << depth;
        [node.start as i32, node.end as i32, depth as i32, first]
    };
    let nodes = nodes.iter().map(node).collect();
    (nodes, parts as usize)
}
