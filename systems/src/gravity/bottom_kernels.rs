//! The coarsest grid of the root level on a device: what [`Bottom::solve`] does, to the bit.

use super::root_fft::Bottom;
use nestar_device::{Address, Number, Parameter};
use nestar_engine::Error;
use nestar_engine::comm::{Comm, DeviceMessage};
use nestar_engine::device::{Device, DeviceError, Kernel, LaunchShape, Module, ReusableBuffer};
use nestar_kernels::multigrid::device::{
    AxisTransformParameters, CELLS_PER_BLOCK, CoarsestLevelParameters, EigenvalueParameters,
};
use std::sync::{Mutex, PoisonError};

/// Threads of a block.
const THREADS: u32 = 256;
/// Numbers of a pair: the place and the value.
const PAIR: usize = 2;

/// The kernels, and their memory.
pub(super) struct BottomKernels {
    device: Device,
    memory: Mutex<Memory>,
    gather: Kernel,
    place: Kernel,
    along: Kernel,
    divide: Kernel,
    scatter: Kernel,
}

#[derive(Default)]
struct Memory {
    /// Of own rows, and of those of other ranks.
    pairs: [ReusableBuffer<f64>; 2],
    whole: [ReusableBuffer<f64>; 2],
    /// Along each axis from cells to modes, from modes to cells, and eigenvalues.
    modes: Option<[[ReusableBuffer<f64>; 3]; 3]>,
}

impl BottomKernels {
    /// Of the compiled kernels of the solver.
    pub fn new(device: &Device, module: &Module) -> Result<Self, DeviceError> {
        Ok(Self {
            memory: Mutex::default(),
            gather: module.kernel("root_gather")?,
            place: module.kernel("root_place")?,
            along: module.kernel("root_along")?,
            divide: module.kernel("root_divide")?,
            scatter: module.kernel("root_scatter")?,
            device: device.clone(),
        })
    }

    fn launch<P: Parameter>(&self, kernel: &Kernel, items: usize, given: &P) -> Result<(), Error> {
        if items == 0 {
            return Ok(());
        }
        let shape = LaunchShape::of(items.div_ceil(CELLS_PER_BLOCK), THREADS);
        Ok(self.device.launch(kernel, shape, given)?)
    }

    /// Takes the right-hand sides of the own rows and leaves the corrections in `to`. All ranks call this.
    ///
    /// # Errors
    /// The device fails; another rank has failed, or the transport has.
    pub fn solve(
        &self,
        bottom: &Bottom,
        others: &Comm,
        rhs: CoarsestLevelParameters<Number>,
        to: Address<Number>,
    ) -> Result<(), Error> {
        let memory = &mut *self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let cells = bottom.cells();
        let all = cells.iter().product();
        for whole in &mut memory.whole {
            whole.provide(&self.device, all)?;
        }
        let whole = memory.whole.each_ref().map(ReusableBuffer::address);
        let rows = rhs.count as usize;
        let own = memory.pairs[0].provide(&self.device, PAIR * rows.max(1))?;
        let given = CoarsestLevelParameters {
            pairs: own.address().into(),
            whole: whole[0].into(),
            cells: cells.map(|n| n as i32),
            ..rhs
        };
        self.launch(&self.gather, rows, &given)?;
        self.launch(&self.place, rows, &given)?;
        self.place_others(memory, others, given)?;
        self.apply(bottom, memory)?;
        let found = CoarsestLevelParameters {
            values: to,
            ..given
        };
        self.launch(&self.scatter, rows, &found)
    }

    /// Puts the values of other ranks to their places, and tells them the own ones.
    fn place_others(
        &self,
        memory: &mut Memory,
        others: &Comm,
        own: CoarsestLevelParameters<Number>,
    ) -> Result<(), Error> {
        let ranks = others.ranks();
        let peers = (0..ranks.size()).filter(|&peer| peer != ranks.rank());
        let message = |peer| DeviceMessage {
            peer,
            header: Vec::new(),
            address: memory.pairs[0].address(),
            bytes: size_of::<[f64; PAIR]>() * own.count as usize,
        };
        let sends: Vec<DeviceMessage> = peers.map(message).collect();
        let room = &mut memory.pairs[1];
        let come = others.exchange_device_messages(&sends, |bytes| {
            let room = room.provide(&self.device, bytes.div_ceil(size_of::<f64>()))?;
            Ok(room.address())
        })?;
        // pairs fill the room without a gap
        let count: usize = come
            .iter()
            .map(|message| message.bytes / size_of::<[f64; PAIR]>())
            .sum();
        let given = CoarsestLevelParameters {
            pairs: room.address().into(),
            count: count as i32,
            ..own
        };
        self.launch(&self.place, count, &given)
    }

    /// Applies the inverse of the operator to the whole level.
    fn apply(&self, bottom: &Bottom, memory: &mut Memory) -> Result<(), Error> {
        let cells = bottom.cells();
        let all: usize = cells.iter().product();
        let modes = match &mut memory.modes {
            Some(modes) => modes,
            none => none.insert(self.upload(bottom)?),
        };
        let mut whole = memory.whole.each_ref().map(ReusableBuffer::address);
        for back in [false, true] {
            for (axis, modes) in modes.iter().enumerate() {
                let given = AxisTransformParameters {
                    from: whole[0].into(),
                    to: whole[1].into(),
                    weights: modes[usize::from(back)].address().into(),
                    cells: cells[axis] as i32,
                    stride: cells[..axis].iter().product::<usize>() as i32,
                    count: all as i32,
                };
                self.launch(&self.along, all, &given)?;
                whole.swap(0, 1);
            }
            if !back {
                let given = EigenvalueParameters {
                    values: whole[0].into(),
                    along: modes.each_ref().map(|modes| modes[2].address().into()),
                    cells: cells.map(|n| n as i32),
                    nothing: bottom.nothing(),
                };
                self.launch(&self.divide, all, &given)?;
            }
        }
        Ok(())
    }

    fn upload(&self, bottom: &Bottom) -> Result<[[ReusableBuffer<f64>; 3]; 3], DeviceError> {
        let mut all = <[[ReusableBuffer<f64>; 3]; 3]>::default();
        for (kept, modes) in all.iter_mut().zip(&bottom.along) {
            let values = [&modes.transposed, &modes.vectors, &modes.values];
            for (kept, values) in kept.iter_mut().zip(values) {
                kept.set(&self.device, values)?;
            }
        }
        Ok(all)
    }
}
