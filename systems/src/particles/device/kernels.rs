//! The kernels of particles, and the memory that they share.

use super::super::columns::{PAGE, ParticleColumns};
use super::super::deposit::SlotTable;
use super::super::moved_by::MovedBy;
use nestar_device::Parameter;
use nestar_engine::data::Precision;
use nestar_engine::data::device::DevicePool;
use nestar_engine::device::{
    Buffer, Device, DeviceError, Growable, Kernel, LaunchShape, ReusableBuffer,
};
use nestar_kernels::particles::device::{PARTICLES, ParticleList, items};
use nestar_kernels::particles::field_kernels::{self, KICK_SOURCE, TRACER_SOURCE};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Words that a list has addresses for at least: 1 GiB.
const LEAST_RESERVED: usize = 1 << 27;
/// Cells of a block about a patch with what clouds reach around it.
pub(in crate::particles) const BLOCK: u32 = 12 * 12 * 12;
/// The same of what particles within the patch feel.
pub(in crate::particles) const BESIDE: u32 = 10 * 10 * 10;
/// Fewest threads of a block that works on one.
pub(in crate::particles) const LEAST: u32 = 128;

/// Every kernel that all species share, ready to launch.
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
    /// What kernels tell the host.
    pub(in crate::particles) words: Buffer<u64>,
    pub(in crate::particles) memory: Mutex<KernelBuffers>,
}

/// What one kernel leaves for the next.
#[derive(Default)]
pub(in crate::particles) struct KernelBuffers {
    pub cursors: ReusableBuffer<u32>,
    /// Of the particles that take part in a step: see [`DriftParameters::keys`](nestar_kernels::particles::device::DriftParameters::keys).
    pub keys: ReusableBuffer<u8>,
    /// See [`DriftParameters::places`](nestar_kernels::particles::device::DriftParameters::places).
    pub among: ReusableBuffer<u32>,
    pub tags: ReusableBuffer<u64>,
    /// See [`DriftParameters::free_from`](nestar_kernels::particles::device::DriftParameters::free_from).
    pub free_from_batch: ReusableBuffer<u32>,
    /// Pages of particles that leave the rank.
    pub outgoing: ReusableBuffer<u64>,
    /// Pages of particles that are set aside, until their places are free.
    pub staged: ReusableBuffer<u64>,
    /// Identities of what leaves the box.
    pub escaped: ReusableBuffer<u64>,
    pub records: ReusableBuffer<u8>,
    /// Records for other ranks' devices, and from them.
    pub sent: ReusableBuffer<u8>,
    pub passed: ReusableBuffer<u8>,
    pub pages: ReusableBuffer<u64>,
    pub homes: ReusableBuffer<u32>,
    /// Where sums stand, by level, each with the revision of the tables that they are good for.
    pub places: BTreeMap<usize, (u64, SlotTable)>,
    pub sums: ReusableBuffer<u64>,
    pub wide: ReusableBuffer<u64>,
    /// Sums for other ranks, and from them.
    pub spilled: ReusableBuffer<u64>,
    pub joined: ReusableBuffer<u64>,
    /// What a kernel tells of them.
    pub told: ReusableBuffer<u64>,
    /// Where pieces of what comes begin.
    pub starts: ReusableBuffer<u64>,
    pub pieces: ReusableBuffer<u32>,
    /// Pieces with particles that may leave this rank, by source.
    pub borders: [ReusableBuffer<u32>; 3],
    pub kept: ReusableBuffer<u32>,
    /// What blocks gather that has no room in shared memory.
    pub blocks: ReusableBuffer<u64>,
}

/// The kernel that says how particles move, of the program of the field that it reads: accelerations or gas.
///
/// # Errors
/// As [`Kernels::new`].
pub fn mover(pool: &DevicePool, what: MovedBy) -> Result<Kernel, DeviceError> {
    let (name, text, kernel) = match what {
        MovedBy::Fall => ("pull", KICK_SOURCE, "particles_kick"),
        MovedBy::Gas => ("trace", TRACER_SOURCE, "particles_advect"),
        MovedBy::MassFluxes => ("trace", TRACER_SOURCE, "particles_jump"),
    };
    let program = pool.program(&field_kernels::items(), &[text]);
    pool.device().compile(name, &program)?.kernel(kernel)
}

/// Particles that kernels work on, and how.
#[derive(Clone, Copy)]
pub(in crate::particles) struct ListLaunch {
    pub list: ParticleList,
    /// A block for each piece.
    pub shape: LaunchShape,
    /// How many.
    pub particles: usize,
}

impl ListLaunch {
    /// Some of its pieces, with so many particles.
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
    /// Compiles them for the device and the precision of a pool.
    ///
    /// # Errors
    /// The compiler's messages; memory that does not suffice.
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
            memory: Mutex::default(),
            device,
        })
    }

    pub(in crate::particles) fn memory(&self) -> MutexGuard<'_, KernelBuffers> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a kernel on the pieces of a list; it has to read and write so many bytes of each particle.
    pub(in crate::particles) fn work<P: Parameter>(
        &self,
        kernel: &Kernel,
        (on, bytes): (&ListLaunch, usize),
        parameters: &P,
    ) -> Result<(), DeviceError> {
        kernel.count_work(on.particles, on.particles * bytes);
        self.device.launch(kernel, on.shape, parameters)
    }

    /// Makes room for so many particles at least; what stands there stays where it is. Whether there are addresses for so many.
    pub(in crate::particles) fn grow(
        &self,
        columns: ParticleColumns,
        words: &mut Option<Growable<u64>>,
        particles: usize,
    ) -> Result<bool, DeviceError> {
        if particles > u32::MAX as usize {
            let why = format!("{particles} particles in one list are more than 2^32");
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
