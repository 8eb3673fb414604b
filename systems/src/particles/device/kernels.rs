//! The kernels of particles, and the memory that they share.

use super::super::columns::{Columns, PAGE};
use super::super::deposit::Places;
use super::super::moved_by::MovedBy;
use nestar_device::Parameter;
use nestar_engine::device::{Buffer, Device, DeviceError, Growable, Kept, Kernel, Shape};
use nestar_engine::field::Precision;
use nestar_engine::field::device::DevicePool;
use nestar_kernels::particles::device::{List, PARTICLES, items};
use nestar_kernels::particles::movers::{self, PULL, TRACE};
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
pub struct Kernels {
    pub(in crate::particles) device: Device,
    pub(in crate::particles) precision: Precision,
    pub(in crate::particles) count: Kernel,
    pub(in crate::particles) deal: Kernel,
    pub(in crate::particles) aside: Kernel,
    pub(in crate::particles) put: Kernel,
    pub(in crate::particles) shift: Kernel,
    pub(in crate::particles) arrive: Kernel,
    pub(in crate::particles) unpack: Kernel,
    pub(in crate::particles) pack: Kernel,
    pub(in crate::particles) largest: Kernel,
    pub(in crate::particles) terms: Kernel,
    pub(in crate::particles) deposit: Kernel,
    pub(in crate::particles) spill: Kernel,
    pub(in crate::particles) join: Kernel,
    pub(in crate::particles) finish: Kernel,
    pub(in crate::particles) mark: Kernel,
    /// What kernels tell the host.
    pub(in crate::particles) words: Buffer<u64>,
    pub(in crate::particles) memory: Mutex<Memory>,
}

/// What one kernel leaves for the next.
#[derive(Default)]
pub(in crate::particles) struct Memory {
    pub cursors: Kept<u32>,
    /// Of the particles that take part in a step: see [`Move::keys`](nestar_kernels::particles::device::Move::keys).
    pub keys: Kept<u8>,
    /// See [`Move::places`](nestar_kernels::particles::device::Move::places).
    pub among: Kept<u32>,
    pub tags: Kept<u64>,
    /// See [`Move::free_from`](nestar_kernels::particles::device::Move::free_from).
    pub free_from: Kept<u32>,
    /// Pages of particles that leave the rank.
    pub leavers: Kept<u64>,
    /// Pages of particles that are set aside, until their places are free.
    pub aside: Kept<u64>,
    /// Identities of what leaves the box.
    pub gone: Kept<u64>,
    pub records: Kept<u8>,
    /// Records for other ranks' devices, and from them.
    pub sent: Kept<u8>,
    pub passed: Kept<u8>,
    pub pages: Kept<u64>,
    pub homes: Kept<u32>,
    /// Where sums stand, by level, each with the revision of the tables that they are good for.
    pub places: BTreeMap<usize, (u64, Places)>,
    pub sums: Kept<u64>,
    pub wide: Kept<u64>,
    /// Sums for other ranks, and from them.
    pub spilled: Kept<u64>,
    pub joined: Kept<u64>,
    /// What a kernel tells of them.
    pub told: Kept<u64>,
    /// Where pieces of what comes begin.
    pub starts: Kept<u64>,
    pub pieces: Kept<u32>,
    /// Pieces with particles that may leave this rank, by source.
    pub borders: [Kept<u32>; 3],
    pub kept: Kept<u32>,
    /// What blocks gather that has no room in shared memory.
    pub blocks: Kept<u64>,
}

/// The kernel that says how particles move, of the program of the field that it reads: accelerations or gas.
///
/// # Errors
/// As [`Kernels::new`].
pub fn mover(pool: &DevicePool, what: MovedBy) -> Result<Kernel, DeviceError> {
    let (name, text, kernel) = match what {
        MovedBy::Fall => ("pull", PULL, "particles_pull"),
        MovedBy::Gas => ("trace", TRACE, "particles_lead"),
        MovedBy::MassFluxes => ("trace", TRACE, "particles_draw"),
    };
    let program = pool.program(&movers::items(), &[text]);
    pool.device().compile(name, &program)?.kernel(kernel)
}

/// Particles that kernels work on, and how.
#[derive(Clone, Copy)]
pub(in crate::particles) struct Listed {
    pub list: List,
    /// A block for each piece.
    pub shape: Shape,
    /// How many.
    pub particles: usize,
}

impl Listed {
    /// Some of its pieces, with so many particles.
    pub fn part(self, pieces: Range<usize>, particles: usize) -> Self {
        let first = self.list.chunks.number() + 12 * pieces.start as u64;
        Self {
            list: List {
                chunks: first.into(),
                ..self.list
            },
            shape: Shape {
                blocks: pieces.len() as u32,
                ..self.shape
            },
            particles,
        }
    }
}

impl Kernels {
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
            deal: kernel("particles_deal")?,
            aside: kernel("particles_aside")?,
            put: kernel("particles_put")?,
            shift: kernel("particles_shift")?,
            arrive: kernel("particles_arrive")?,
            unpack: kernel("particles_unpack")?,
            pack: kernel("particles_pack")?,
            largest: kernel("particles_largest")?,
            terms: kernel("particles_terms")?,
            deposit: kernel("particles_deposit")?,
            spill: kernel("particles_spill")?,
            join: kernel("particles_join")?,
            finish: kernel("particles_finish")?,
            mark: kernel("particles_mark")?,
            words: device.buffer(8)?,
            memory: Mutex::default(),
            device,
        })
    }

    pub(in crate::particles) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a kernel on the pieces of a list; it has to read and write so many bytes of each particle.
    pub(in crate::particles) fn work<P: Parameter>(
        &self,
        kernel: &Kernel,
        (on, bytes): (&Listed, usize),
        given: &P,
    ) -> Result<(), DeviceError> {
        kernel.works_on(on.particles, on.particles * bytes);
        self.device.launch(kernel, on.shape, given)
    }

    /// Makes room for so many particles at least; what stands there stays where it is. Whether there are addresses for so many.
    pub(in crate::particles) fn grow(
        &self,
        columns: Columns,
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
