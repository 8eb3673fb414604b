//! Kernels that call a plugin's functions: compiled at their first use, with memory to work in and tables.

use super::DevicePool;
use crate::data::structures::{Placing, Structures};
use crate::device::parallel::lock;
use crate::device::{Buffer, DeviceError, Kernel, LaunchShape, ReusableBuffer};
use crate::in_precision;
use nestar_device::{Lane, Parameter};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::device::SkeletonFunction;
use std::sync::Arc;

/// Threads of a block.
const THREADS: u32 = 128;

/// Kernels that call a function: their texts and their names.
pub(super) type Skeleton = (&'static [&'static str], &'static [&'static str]);

/// Bytes of shared memory that the skeletons declare themselves, at most.
const DECLARED: usize = 1024;
/// Blocks on a multiprocessor where a block gathers into global memory.
const GATHERING: usize = 4;

impl DevicePool {
    /// Kernel `n` of a skeleton for a function, compiled at its first use.
    pub(super) fn kernel_for(
        &self,
        function: SkeletonFunction,
        (texts, names): Skeleton,
        n: usize,
    ) -> Result<Kernel, DeviceError> {
        let mut known = lock(&self.functions);
        let key = function.key();
        if let Some(kernel) = known.get(&(names[0], names[n], key.clone())) {
            return Ok(kernel.clone());
        }
        let texts = function.texts(self.gathers_in_shared(function), texts);
        let source = self.text.program(&function.items(), &texts);
        let module = self.device.compile("cells", &source)?;
        for &name in names {
            known.insert((names[0], name, key.clone()), module.kernel(name)?);
        }
        Ok(known[&(names[0], names[n], key)].clone())
    }

    /// Bytes of a block with ghost cells as the function reads it.
    fn block_bytes(&self, function: SkeletonFunction) -> usize {
        function.block_values(&self.text) * self.value_bytes()
    }

    fn gathers_in_shared(&self, function: SkeletonFunction) -> bool {
        let room = self.device.limits().shared_per_block as usize;
        self.block_bytes(function) + DECLARED <= room
    }

    /// Blocks of a launch over so many rows, and how many words each needs to gather.
    fn blocks(&self, function: SkeletonFunction, rows: usize) -> (usize, usize) {
        if self.gathers_in_shared(function) {
            return (rows, 0);
        }
        let most = GATHERING * self.device.limits().multiprocessors as usize;
        (rows.min(most), self.block_bytes(function).div_ceil(8))
    }

    /// Memory for a launch over so many rows: a word, which is 0, one for each row, then blocks.
    pub(super) fn for_rows<'a>(
        &self,
        words: &'a mut ReusableBuffer<u64>,
        function: SkeletonFunction,
        rows: usize,
    ) -> Result<&'a Buffer<u64>, DeviceError> {
        self.zeroed(words, function, [1 + rows, rows], 1)
    }

    /// Memory for a launch over so many rows: so many words, of which the first `zeros` are 0, then blocks.
    pub(super) fn zeroed<'a>(
        &self,
        words: &'a mut ReusableBuffer<u64>,
        function: SkeletonFunction,
        [first, rows]: [usize; 2],
        zeros: usize,
    ) -> Result<&'a Buffer<u64>, DeviceError> {
        let (blocks, each) = self.blocks(function, rows);
        let words = words.provide(&self.device, first + blocks * each)?;
        self.device.fill_zero(words, 0..zeros)?;
        Ok(words)
    }

    /// Launches a kernel for a function over so many rows; the tables among the parameters are taken to the device.
    pub(super) fn start<P: Parameter>(
        &self,
        kernel: &Kernel,
        function: SkeletonFunction,
        rows: usize,
        parameters: &mut P,
    ) -> Result<(), DeviceError> {
        kernel.count_work(rows * CELLS, rows * self.row_bytes());
        let (blocks, words) = self.blocks(function, rows);
        let in_shared = if words > 0 {
            0
        } else {
            self.block_bytes(function)
        };
        let shape = LaunchShape {
            shared: in_shared as u32,
            ..LaunchShape::of(blocks, THREADS)
        };
        self.placed(|place| parameters.bind(place))?;
        self.device.launch(kernel, shape, parameters)
    }

    /// What `bind` makes, which is told where the values of tables stand on the device.
    fn placed<T>(&self, bind: impl FnOnce(&mut Placing) -> T) -> Result<T, DeviceError> {
        let mut failed = None;
        let bound = bind(&mut |values| {
            self.place(values).unwrap_or_else(|error| {
                failed = Some(error);
                0
            })
        });
        failed.map_or(Ok(bound), Err)
    }

    /// Where the structures of a list stand on the device, which gets them, and their tables, at the first use.
    pub(super) fn structures(&self, list: &Structures) -> Result<u64, DeviceError> {
        if list.is_empty() {
            return Ok(0);
        }
        let bytes = self.placed(|place| list.bytes(self.precision, place))?;
        let mut there = lock(&self.structures);
        if let Some((_, buffer)) = there.iter().find(|(known, _)| *known == bytes) {
            return Ok(buffer.address());
        }
        let buffer = self.device.buffer::<u8>(bytes.len())?;
        self.device.upload(&buffer, 0, &bytes)?;
        let address = buffer.address();
        there.push((bytes, buffer));
        Ok(address)
    }

    /// Where the values of a table stand on the device, which gets them at the first use.
    fn place(&self, values: &Arc<[f64]>) -> Result<u64, DeviceError> {
        let mut placed = lock(&self.tables);
        if let Some((_, there)) = placed.iter().find(|(known, _)| Arc::ptr_eq(known, values)) {
            return Ok(there.address());
        }
        // tables that nobody has any more
        placed.retain(|(known, _)| Arc::strong_count(known) > 1);
        let there = self
            .device
            .buffer::<u8>((values.len() * self.value_bytes()).max(1))?;
        in_precision!(self.precision, R => {
            let values: Vec<R> = values.iter().map(|v| R::lit(*v)).collect();
            self.device.upload(&there, 0, bytemuck::cast_slice::<R, u8>(&values))?;
        });
        let address = there.address();
        placed.push((values.clone(), there));
        Ok(address)
    }
}
