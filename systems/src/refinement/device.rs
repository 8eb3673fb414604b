//! Flagging on a device: one kernel finds the sectors of all patches of a level, of which each sends one number.

use super::columns::BLOCK;
use super::compiled::Compiled;
use super::text::{CriteriaText, FAULT};
use crate::fields::{Gas, GasModel};
use nestar_device::Address;
use nestar_engine::device::{Buffer, Device, DeviceError, Kernel, Shape};
use nestar_engine::field::device::{DevicePool, DeviceTopology, DeviceView};
use nestar_engine::mesh::{LevelClock, Topology};
use nestar_engine::step::View;
use nestar_kernels::CELLS;
use nestar_kernels::criteria::device::{CELL, FLAGS, FlagLevel, FlagParameters, SECTORS, THREADS};
use nestar_kernels::mesh::fault_place;

/// Words of a fault, see `launch::leave_fault`.
const FAULT_WORDS: usize = 9;
/// Blocks of a multiprocessor where their values are in global memory.
const BLOCKS_IN_GLOBAL: u32 = 2;

/// The compiled criteria with the memory that they need.
pub(super) struct DeviceCriteria {
    device: Device,
    kernel: Kernel,
    /// Bytes of shared memory of a block.
    shared: u32,
    /// Most blocks, and their values, where those do not fit into shared memory.
    scratch: Option<(u32, Buffer<u64>)>,
    /// A fault, then the sectors of each patch of the level.
    found: Buffer<u32>,
    /// The same on the host.
    words: Vec<u32>,
}

impl DeviceCriteria {
    /// Compiles the criteria `list`.
    ///
    /// # Errors
    /// The device's compiler refuses; memory does not suffice.
    pub fn new(
        list: &[Compiled],
        model: &GasModel,
        pool: &DevicePool,
        topology: &Topology,
    ) -> Result<Self, DeviceError> {
        let device = pool.device().clone();
        let text = CriteriaText::new(list, model.gamma);
        let bytes = block_bytes(&text, pool, topology);
        let limits = device.limits();
        // the flags of a block take a little more
        let in_shared = bytes + 1024 <= limits.shared_per_block as usize;
        let source = pool.program(&text.items, &[CELL, SECTORS, &text.text(in_shared), FLAGS]);
        let kernel = device.compile("criteria", &source)?.kernel("flag")?;
        let scratch = if in_shared {
            None
        } else {
            let blocks = limits.multiprocessors * BLOCKS_IN_GLOBAL;
            let words = (bytes * blocks as usize).div_ceil(size_of::<u64>());
            Some((blocks, device.buffer(words)?))
        };
        Ok(Self {
            kernel,
            shared: if in_shared { bytes as u32 } else { 0 },
            scratch,
            found: device.buffer(FAULT_WORDS)?,
            words: Vec::new(),
            device,
        })
    }

    /// The sectors of each patch of the level, in the order of its rows, or the message of a fault in the user's formulas.
    ///
    /// # Errors
    /// The device fails.
    pub fn sectors(
        &mut self,
        list: &[Compiled],
        buffer: usize,
        clock: &LevelClock,
        topology: &Topology,
        tables: &DeviceTopology,
        gas: &View<Gas>,
    ) -> Result<(&[u32], Option<String>), DeviceError> {
        let count = topology.rows(clock.level).len();
        if self.found.len() < FAULT_WORDS + count {
            let length = (FAULT_WORDS + count).next_power_of_two();
            self.found = self.device.buffer(length)?;
        }
        self.device.fill_zero(&self.found, 0..FAULT_WORDS)?;
        let view = gas.on_device();
        self.kernel.works_on(count * CELLS, 0);
        self.launch(view, level(clock, buffer), tables.rows(clock.level), count)?;
        self.words.resize(FAULT_WORDS + count, 0);
        self.device.download(&self.found, 0, &mut self.words)?;
        let (fault, sectors) = self.words.split_at(FAULT_WORDS);
        let fault = fault.first_chunk();
        let fault = fault.and_then(|fault| explain(fault, list, gas.device()));
        Ok((sectors, fault))
    }

    fn launch(
        &self,
        view: DeviceView,
        level: FlagLevel,
        rows: u64,
        count: usize,
    ) -> Result<(), DeviceError> {
        let (blocks, scratch) = match &self.scratch {
            Some((most, scratch)) => ((*most).min(count as u32), scratch.address().into()),
            None => (count as u32, Address::NONE),
        };
        // faults of rules and of criteria come down with the sectors
        let found = self.found.address();
        let fault = Address::from(found);
        let parameters = FlagParameters {
            view: DeviceView { fault, ..view },
            level,
            rows: rows.into(),
            sectors: (found + (FAULT_WORDS * size_of::<u32>()) as u64).into(),
            fault,
            scratch,
            count: count as i32,
        };
        let shape = Shape {
            blocks,
            threads: THREADS,
            shared: self.shared,
        };
        self.device.launch(&self.kernel, shape, &parameters)
    }

    #[cfg(test)]
    pub(super) fn in_global_memory(&self) -> bool {
        self.scratch.is_some()
    }

    /// The sectors found last.
    #[cfg(test)]
    pub(super) fn found(&self) -> &[u32] {
        &self.words[FAULT_WORDS..]
    }
}

/// Bytes of a block's values: the fields, and while they are gathered at a wall the state.
fn block_bytes(text: &CriteriaText, pool: &DevicePool, topology: &Topology) -> usize {
    let bounded = topology.domain.periodic.contains(&false);
    let values = match text.fields {
        0 => 0,
        fields if bounded => fields.max(pool.components()),
        fields => fields,
    };
    values * BLOCK * pool.precision().bytes()
}

fn level(clock: &LevelClock, buffer: usize) -> FlagLevel {
    let widths = clock.cell_width;
    FlagLevel {
        widths,
        smallest: widths.iter().copied().fold(f64::INFINITY, f64::min),
        widest: widths.iter().copied().fold(0.0, f64::max),
        number: clock.level as i32,
        buffer: buffer as i32,
    }
}

/// The message of a fault: of a criterion's formula or of a rule beyond a face.
fn explain(fault: &[u32; FAULT_WORDS], list: &[Compiled], pool: &DevicePool) -> Option<String> {
    let Some(n) = fault[0].checked_sub(FAULT) else {
        return pool.explain(fault);
    };
    let field = list.get(n as usize)?.field.as_ref()?;
    let (place, time) = fault_place(fault);
    Some(field.not_a_number(place, time))
}
