//! Operators of the engine on a device: prolongation, restriction, flux correction, sums over patches.

use super::topology::DeviceTopology;
use super::{DevicePool, DeviceView};
use crate::reduce::pairwise;
use nestar_device::Number;
use nestar_engine_device::parallel::lock;
use nestar_engine_device::{DeviceError, LaunchShape};
use nestar_engine_mesh::{LevelClock, Topology};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::Centring;
use nestar_kernels::mesh::parameters::{
    MAX_SUM_NODES, ProlongParameters, RepairedCells, RestrictParameters, ShareParameters,
    TotalsParameters,
};
use std::ops::Range;

impl DevicePool {
    /// Adapts storage and registers to a regrid of `level`.
    pub(crate) fn on_regrid(
        &mut self,
        tables: &DeviceTopology,
        topology: &Topology,
        level: usize,
    ) -> Result<(), DeviceError> {
        self.grow(tables.capacity())?;
        match &mut self.registers {
            Some(registers) => registers.on_regrid(tables, topology, level),
            None => Ok(()),
        }
    }

    /// Fills new rows by prolongation. `view` gathers on their level, whose present bank is `bank`.
    /// For values on faces, `marks` flags the new rows.
    pub(crate) fn prolong(
        &mut self,
        tables: &DeviceTopology,
        view: DeviceView,
        bank: usize,
        marks: &[u8],
    ) -> Result<(), DeviceError> {
        if self.text.shape.centring == Centring::Face {
            self.fresh = self.device.buffer(marks.len())?;
            self.device.upload(&self.fresh, 0, marks)?;
        }
        let parameters = ProlongParameters {
            view,
            rows_of_level: self.bank(bank).into(),
            rows: tables.new_rows().into(),
            stale: self.stale().into(),
            fresh: self.fresh.address().into(),
        };
        let rows = tables.new_count();
        let shape = LaunchShape::of(rows, 64);
        // a fine row is computed from an eighth of a coarse one
        self.kernels
            .prolong
            .count_work(rows * CELLS, rows * self.row_bytes() * 9 / 8);
        self.device
            .launch(&self.kernels.prolong, shape, &parameters)
    }

    /// Replaces covered cells of `level` by averages of the finer level; `banks` are the present ones of both levels.
    /// Returns `true` if there are any.
    pub(crate) fn restrict(
        &self,
        tables: &DeviceTopology,
        level: usize,
        banks: [usize; 2],
    ) -> Result<bool, DeviceError> {
        let octets = tables.count(level + 1) / 8;
        if octets == 0 {
            return Ok(false);
        }
        *lock(&self.known_repaired) = None;
        let parameters = RestrictParameters::<Number> {
            coarse: self.bank(banks[0]).into(),
            fine: self.bank(banks[1]).into(),
            rows: (tables.rows(level + 1)).into(),
            parent: tables.parent().into(),
            stale: self.stale().into(),
            repaired: self.repaired.address().into(),
        };
        self.kernels
            .restrict
            .count_work(octets * CELLS, 9 * octets * self.row_bytes());
        self.device.launch(
            &self.kernels.restrict,
            LaunchShape::of(octets, 128),
            &parameters,
        )?;
        Ok(true)
    }

    /// Makes values shared by patches of `level` equal; `bank` is its present one.
    pub(crate) fn share(
        &self,
        tables: &DeviceTopology,
        level: usize,
        bank: usize,
    ) -> Result<(), DeviceError> {
        let parameters = ShareParameters::<Number> {
            level: self.bank(bank).into(),
            rows: tables.rows(level).into(),
            neighbours: tables.neighbours().into(),
            first_child: tables.first_child().into(),
            stale: self.stale().into(),
        };
        let shape = LaunchShape::of(tables.count(level), 64);
        self.device.launch(&self.kernels.share, shape, &parameters)
    }

    /// Replaces coarse fluxes or circulations by fine ones at coarse-fine borders; `bank` is the present one of the level.
    /// Returns `true` if there are any.
    pub(crate) fn correct(
        &self,
        tables: &DeviceTopology,
        clock: &LevelClock,
        bank: usize,
    ) -> Result<bool, DeviceError> {
        let (bank, stale) = (self.bank(bank).into(), self.stale().into());
        match &self.registers {
            Some(registers) => {
                *lock(&self.known_repaired) = None;
                registers.correct(tables, bank, stale, self.repaired.address().into(), clock)
            }
            None => Ok(false),
        }
    }

    /// Accepts a step of `level` of length `dt`.
    pub(crate) fn commit(&mut self, level: usize, dt: f64) -> Result<(), DeviceError> {
        match &mut self.registers {
            Some(registers) => registers.commit(level, dt),
            None => Ok(()),
        }
    }

    /// Returns the number of cells repaired since the start.
    pub(crate) fn repaired(&self) -> Result<RepairedCells, DeviceError> {
        let mut known = lock(&self.known_repaired);
        if let Some(known) = *known {
            return Ok(known);
        }
        let mut repaired = [RepairedCells::default()];
        self.device.download(&self.repaired, 0, &mut repaired)?;
        *known = Some(repaired[0]);
        Ok(repaired[0])
    }
}

/// Largest number of bisections of a level that the host sums.
const DEPTH: u32 = 10;

/// A node of the bisection tree of a level: first patch, end, number of bisections summed by the host, first part.
type SumNode = [i32; 4];

impl DevicePool {
    /// Sums the leaf cells in ranges of the patches of `level`, `[node][component]`; `bank` is its present one.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// If there are more nodes than a bisection tree has.
    pub(crate) fn node_sums(
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
        let (nodes, parts) = bisect(nodes, count);
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

/// Returns the nodes, bisected down to parts of similar size, and the number of parts.
/// Every part has at least one patch, so that the bisections are those of the full recursion.
fn bisect(nodes: &[Range<usize>], count: usize) -> (Vec<SumNode>, usize) {
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
