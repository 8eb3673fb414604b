//! Particle kernels and the device buffers that they share.

use super::super::deposit::SlotTable;
use super::super::pages::{PAGE, ParticleColumns};
use nestar_device::Parameter;
use nestar_engine::data::Precision;
use nestar_engine::data::device::{DevicePool, DeviceTables};
use nestar_engine::device::{
    Buffer, Device, DeviceError, Growable, Kernel, LaunchShape, ReusableBuffer,
};
use nestar_kernels::mesh::device::FieldText;
use nestar_kernels::particles::device::{PARTICLES, ParticleList, items};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Smallest reserved address range of a list in words: 1 GiB.
const LEAST_RESERVED: usize = 1 << 27;
/// Cells of a block with two ghost layers.
pub(in crate::particles) const BLOCK: u32 = 12 * 12 * 12;
/// Cells of a block with one ghost layer, enough for particles inside the patch.
pub(in crate::particles) const BESIDE: u32 = 10 * 10 * 10;
/// Smallest number of threads of a block that loads such cells.
pub(in crate::particles) const LEAST: u32 = 128;

/// Kernels shared by all species, ready to launch.
pub struct ParticleKernels {
    pub(in crate::particles) device: Device,
    pub(in crate::particles) precision: Precision,
    pub(in crate::particles) count: Kernel,
    pub(in crate::particles) scatter: Kernel,
    pub(in crate::particles) stage: Kernel,
    pub(in crate::particles) place_staged: Kernel,
    pub(in crate::particles) remap: Kernel,
    pub(in crate::particles) insert_pages: Kernel,
    pub(in crate::particles) unpack: Kernel,
    pub(in crate::particles) pack: Kernel,
    pub(in crate::particles) maximum: Kernel,
    pub(in crate::particles) terms: Kernel,
    pub(in crate::particles) deposit: Kernel,
    pub(in crate::particles) pack_sums: Kernel,
    pub(in crate::particles) merge_sums: Kernel,
    pub(in crate::particles) density: Kernel,
    pub(in crate::particles) mark: Kernel,
    /// Words that kernels report to the host.
    pub(in crate::particles) words: Buffer<u64>,
    /// Text of the field with which programs of functions are built.
    pub(super) text: FieldText,
    /// Kernels of functions, by kernel and function.
    pub(super) functions: Mutex<BTreeMap<(&'static str, String), Kernel>>,
    /// Tables among the parameters of functions.
    pub(super) tables: DeviceTables,
    pub(in crate::particles) memory: Mutex<KernelBuffers>,
}

/// Buffers that kernels pass to each other.
#[derive(Default)]
pub(in crate::particles) struct KernelBuffers {
    pub cursors: ReusableBuffer<u32>,
    /// See [`DriftParameters::keys`](nestar_kernels::particles::device::DriftParameters::keys).
    pub keys: ReusableBuffer<u8>,
    /// See [`DriftParameters::positions`](nestar_kernels::particles::device::DriftParameters::positions).
    pub positions: ReusableBuffer<u32>,
    pub tags: ReusableBuffer<u64>,
    /// See
    /// [`DriftParameters::free_from_batch`](nestar_kernels::particles::device::DriftParameters::free_from_batch).
    pub free_from_batch: ReusableBuffer<u32>,
    /// Pages of particles that leave the rank.
    pub outgoing: ReusableBuffer<u64>,
    /// Pages of staged particles.
    pub staged: ReusableBuffer<u64>,
    /// Identities of particles that leave the domain.
    pub escaped: ReusableBuffer<u64>,
    pub records: ReusableBuffer<u8>,
    /// Records sent to and received from devices of other ranks.
    pub sent: ReusableBuffer<u8>,
    pub received: ReusableBuffer<u8>,
    pub pages: ReusableBuffer<u64>,
    pub page_rows: ReusableBuffer<u32>,
    /// Slot tables by level, each with the revision of the topology tables it is valid for.
    pub slot_tables: BTreeMap<usize, (u64, SlotTable)>,
    pub sums: ReusableBuffer<u64>,
    pub wide: ReusableBuffer<u64>,
    /// Sums sent to and received from other ranks.
    pub packed_sums: ReusableBuffer<u64>,
    pub received_sums: ReusableBuffer<u64>,
    /// What the packing kernel reports about them.
    pub report: ReusableBuffer<u64>,
    /// First bytes of arrival segments.
    pub starts: ReusableBuffer<u64>,
    pub pieces: ReusableBuffer<u32>,
    /// Chunks with particles that may leave this rank, by source list.
    pub borders: [ReusableBuffer<u32>; 3],
    pub kept: ReusableBuffer<u32>,
    /// Gathered cells of blocks that exceed shared memory.
    pub blocks: ReusableBuffer<u64>,
}

/// List of particles with the launch shape of its kernels.
#[derive(Clone, Copy)]
pub(in crate::particles) struct ListLaunch {
    pub list: ParticleList,
    /// One block per chunk.
    pub shape: LaunchShape,
    /// Number of particles.
    pub particles: usize,
}

impl ListLaunch {
    /// Restricts the launch to a range of chunks with this number of particles.
    pub fn part(self, pieces: Range<usize>, particles: usize) -> Self {
        let first = self.list.chunks.number() + 12 * pieces.start as u64;
        Self {
            list: ParticleList {
                chunks: first.into(),
                ..self.list
            },
            shape: LaunchShape {
                blocks: pieces.len() as u32,
                ..self.shape
            },
            particles,
        }
    }
}

impl ParticleKernels {
    /// Compiles the kernels for the device and precision of a pool.
    ///
    /// # Errors
    /// The compiler fails; memory does not suffice.
    pub fn new(pool: &DevicePool) -> Result<Self, DeviceError> {
        let device = pool.device().clone();
        let module = device.compile("particles", &pool.program(&items(), &[PARTICLES]))?;
        let kernel = |name: &str| module.kernel(name);
        Ok(Self {
            precision: pool.precision(),
            count: kernel("particles_count")?,
            scatter: kernel("particles_scatter")?,
            stage: kernel("particles_stage")?,
            place_staged: kernel("particles_place_staged")?,
            remap: kernel("particles_remap")?,
            insert_pages: kernel("particles_insert_pages")?,
            unpack: kernel("particles_unpack")?,
            pack: kernel("particles_pack")?,
            maximum: kernel("particles_maximum")?,
            terms: kernel("particles_terms")?,
            deposit: kernel("particles_deposit")?,
            pack_sums: kernel("particles_pack_sums")?,
            merge_sums: kernel("particles_merge_sums")?,
            density: kernel("particles_density")?,
            mark: kernel("particles_mark")?,
            words: device.buffer(8)?,
            text: pool.text().clone(),
            functions: Mutex::default(),
            tables: DeviceTables::new(&device, pool.precision()),
            memory: Mutex::default(),
            device,
        })
    }

    pub(in crate::particles) fn memory(&self) -> MutexGuard<'_, KernelBuffers> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Launches a kernel on a list. `bytes` is the memory traffic per particle.
    pub(in crate::particles) fn work<P: Parameter>(
        &self,
        kernel: &Kernel,
        on: &ListLaunch,
        bytes: usize,
        args: &P,
    ) -> Result<(), DeviceError> {
        kernel.count_work(on.particles, on.particles * bytes);
        self.device.launch(kernel, on.shape, args)
    }

    /// Grows a list to this number of particles without moving its contents. Returns `false` if the reserved
    /// address range is too small.
    pub(in crate::particles) fn grow(
        &self,
        columns: ParticleColumns,
        words: &mut Option<Growable<u64>>,
        particles: usize,
    ) -> Result<bool, DeviceError> {
        if particles > u32::MAX as usize {
            let why = format!("{particles} particles in one list exceed the limit of 2^32");
            return Err(DeviceError::Range(why));
        }
        let wanted = particles.div_ceil(PAGE) * columns.page_words();
        if wanted == 0 {
            return Ok(true);
        }
        let words = match words {
            Some(words) => words,
            None => {
                let all = self.device.memory()?.total as usize / 8;
                let most = (8 * wanted).max(LEAST_RESERVED).min(all.max(wanted));
                words.insert(self.device.growable(most)?)
            }
        };
        let fits = wanted <= words.most();
        if fits {
            words.grow(wanted)?;
        }
        Ok(fits)
    }
}
