//! A field's pool: its banks of rows, a clock per level, and the views that kernels read.

use super::clocks::{BankClock, Changes};
use super::device::{DeviceBoundaries, DevicePool};
use super::{Beyond, Correct, FieldSpec, Precision, Registers, Slabs};
use crate::device::DeviceError;
use crate::device::parallel::PerThread;
use crate::mesh::Topology;
use bevy_ecs::prelude::*;
use nestar_device::Real;
use nestar_kernels::CELLS;
use nestar_kernels::mesh::{Boundaries, Centring, FaceRule, GatherScratch, GhostView, Rows};
use std::marker::PhantomData;

/// A registered field: a marker type that names a pool.
pub trait Field: Send + Sync + 'static {
    /// Name in messages.
    const NAME: &'static str;
}

/// Floating-point types that a pool may hold.
pub trait Element: Real + bytemuck::Pod {
    /// The precision that this type has.
    const PRECISION: Precision;
    /// The pool's typed side, if it holds this type.
    fn typed(storage: &Storage) -> Option<&TypedPool<Self>>;
    /// A pool's storage of this type on the host.
    fn storage(pool: TypedPool<Self>) -> Storage;
    /// The field's test of physical states.
    fn physical(spec: &FieldSpec) -> fn(&[Self]) -> bool;
    /// What stands beyond a face of the domain, in this precision.
    fn face(beyond: Beyond) -> FaceRule<Self>;
    /// The rules of the domain's faces, for a pool on a device.
    fn on_device(boundaries: Boundaries<Self>) -> DeviceBoundaries;
}

macro_rules! element {
    ($t:ty, $variant:ident, $physical:ident) => {
        impl Element for $t {
            const PRECISION: Precision = Precision::$variant;
            fn typed(storage: &Storage) -> Option<&TypedPool<Self>> {
                if let Storage::$variant(pool) = storage {
                    Some(pool)
                } else {
                    None
                }
            }
            fn storage(pool: TypedPool<Self>) -> Storage {
                Storage::$variant(pool)
            }
            fn physical(spec: &FieldSpec) -> fn(&[Self]) -> bool {
                spec.physical
                    .map_or(|_| true, |physical| physical.$physical)
            }
            fn face(beyond: Beyond) -> FaceRule<Self> {
                match beyond {
                    Beyond::Periodic => FaceRule::Periodic,
                    Beyond::Outflow => FaceRule::Outflow,
                    Beyond::Reflecting => FaceRule::Reflecting,
                    Beyond::Rule(rule) => FaceRule::Rule(rule),
                }
            }
            fn on_device(boundaries: Boundaries<Self>) -> DeviceBoundaries {
                DeviceBoundaries::$variant(boundaries)
            }
        }
    };
}
element!(f32, Single, single);
element!(f64, Double, double);

/// The banks of one precision, and the rules beyond the domain's faces.
pub struct TypedPool<R> {
    banks: Vec<Slabs<R>>,
    /// Ghost rules at the domain's faces.
    pub boundaries: Boundaries<R>,
    /// Flux registers at coarse-fine faces.
    pub registers: Registers<R>,
    /// Working space of gathers.
    pub gather_scratch: PerThread<GatherScratch<R>>,
    /// Results of maps that read the states around cells, row by row; made at the first use.
    pub(super) results: Slabs<R>,
    /// Working space of functions of cells: a block with ghost cells, and results in a row.
    pub(super) cell_scratch: PerThread<[Vec<R>; 2]>,
    /// Working space of the flux correction, `[axis][component][512]`.
    pub(super) correct_scratch: PerThread<Vec<R>>,
    physical: fn(&[R]) -> bool,
}

/// A pool's values in the precision and on the device that the deck chooses.
pub enum Storage {
    /// 32-bit values.
    Single(TypedPool<f32>),
    /// 64-bit values.
    Double(TypedPool<f64>),
    /// Values on a device, in either precision.
    Device(Box<DevicePool>),
}

/// Evaluates `$body` with `$typed` bound to the [`TypedPool`] that `$storage` (a reference to a [`Storage`]) holds, or
/// `$on_device` with `$device` bound to its [`DevicePool`].
#[macro_export]
macro_rules! with_storage {
    ($storage:expr, $typed:ident => $body:expr, $device:ident => $on_device:expr) => {
        match $storage {
            $crate::field::Storage::Single($typed) => $body,
            $crate::field::Storage::Double($typed) => $body,
            $crate::field::Storage::Device($device) => $on_device,
        }
    };
}

/// The pool of field `F`: rows `[component][8][8][8]` (or as its centring says), one per patch, in as many banks as its
/// declaration says; the first one or two are time levels (before and after the level's step), the others working space.
///
/// Systems reach it by [`Read`](crate::step::Read) and [`Write`](crate::step::Write) alone, which know what of the copies of
/// other ranks' patches is up to date; who has the whole world, by [`Pool::of`].
pub struct Pool<F: Field> {
    /// The field's declaration.
    pub spec: FieldSpec,
    /// The values.
    pub storage: Storage,
    pub(super) clocks: Vec<BankClock>,
    pub(super) changes: Vec<Changes>,
    pub(super) epochs: Vec<u32>,
    marker: PhantomData<F>,
}

impl<F: Field> Pool<F> {
    /// An empty pool for `levels` levels with the storage of the same declaration.
    #[must_use]
    pub fn new(spec: FieldSpec, storage: Storage, levels: usize) -> Self {
        let clock = BankClock {
            current: 0,
            times: [0.0; 2],
            fresh: vec![0; spec.banks],
        };
        Self {
            spec,
            storage,
            clocks: vec![clock; levels],
            changes: vec![Changes::default(); levels],
            epochs: Vec::new(),
            marker: PhantomData,
        }
    }

    /// Number of components.
    #[must_use]
    pub fn components(&self) -> usize {
        self.spec.components.len()
    }

    /// Precision of the values.
    #[must_use]
    pub fn precision(&self) -> Precision {
        match &self.storage {
            Storage::Single(_) => Precision::Single,
            Storage::Double(_) => Precision::Double,
            Storage::Device(pool) => pool.precision(),
        }
    }

    /// Bytes reserved by all banks; on a device, by all that goes along with them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        with_storage!(&self.storage,
            pool => pool.banks.iter().chain([&pool.results]).map(Slabs::bytes).sum(),
            device => device.bytes())
    }

    /// Bytes of the flux registers.
    #[must_use]
    pub fn register_bytes(&self) -> usize {
        with_storage!(&self.storage,
            pool => pool.registers.bytes(),
            device => device.register_bytes())
    }

    /// Grows to `rows` rows.
    ///
    /// # Errors
    /// A device's memory does not suffice.
    pub fn grow(&mut self, rows: usize) -> Result<(), DeviceError> {
        self.epochs.resize(rows, 0);
        with_storage!(&mut self.storage,
            pool => for bank in &mut pool.banks { bank.grow(rows) },
            device => device.grow(rows)?);
        Ok(())
    }

    /// The typed side.
    ///
    /// # Panics
    /// If the pool holds the other precision, or lives on a device; copies of its rows come from [`Pool::host`].
    #[must_use]
    pub fn typed<R: Element>(&self) -> &TypedPool<R> {
        R::typed(&self.storage)
            .expect("the pool lives on the host and holds the precision asked for")
    }

    /// Bank with the present state of `level`.
    #[must_use]
    pub fn current(&self, level: usize) -> usize {
        self.clocks[level].current
    }

    /// Simulation time of the present state of `level`.
    #[must_use]
    pub fn time(&self, level: usize) -> f64 {
        let clock = &self.clocks[level];
        clock.times[clock.current]
    }

    /// Rows of the present state of `level`.
    #[must_use]
    pub fn present<R: Element>(&self, level: usize) -> Rows<'_, R> {
        self.typed::<R>().bank(self.current(level))
    }

    /// The bank that a step of `level` writes.
    ///
    /// # Panics
    /// If the field has one time level.
    #[must_use]
    pub fn next_bank(&self, level: usize) -> usize {
        assert_eq!(self.spec.time_levels, 2, "time levels of `{}`", F::NAME);
        1 - self.current(level)
    }

    /// Rows that a step of `level` writes.
    ///
    /// # Panics
    /// If the field has one time level.
    #[must_use]
    pub fn next<R: Element>(&self, level: usize) -> Rows<'_, R> {
        self.typed::<R>().bank(self.next_bank(level))
    }

    /// The number, among all banks, of bank `n` of the working space.
    ///
    /// # Panics
    /// If the field has no such bank.
    #[must_use]
    pub fn scratch_bank(&self, n: usize) -> usize {
        let bank = self.spec.time_levels + n;
        assert!(bank < self.spec.banks, "bank {bank} of `{}`", F::NAME);
        bank
    }

    /// Rows of bank `n` of the working space.
    ///
    /// # Panics
    /// If the field has no such bank.
    #[must_use]
    pub fn scratch<R: Element>(&self, n: usize) -> Rows<'_, R> {
        self.typed::<R>().bank(self.scratch_bank(n))
    }

    /// A step of `level` of length `dt` to time `time` stands: where the field has two time levels the next bank becomes the
    /// present state; `rows` have changed, and their fluxes count. On a device the kernels that wrote the rows have marked them.
    ///
    /// # Errors
    /// The device fails.
    pub fn commit(
        &mut self,
        level: usize,
        time: f64,
        dt: f64,
        rows: &[u32],
    ) -> Result<(), DeviceError> {
        if self.spec.correct == Correct::Fluxes {
            with_storage!(&mut self.storage,
                typed => typed.registers.commit(level, dt),
                device => device.commit(level, dt)?);
        }
        self.turn(level, time);
        self.touch(level, rows);
        Ok(())
    }

    /// Exchanges the time levels of `level`, each with what is known of its copies.
    fn turn(&mut self, level: usize, time: f64) {
        let clock = &mut self.clocks[level];
        clock.current = self.spec.time_levels - 1 - clock.current;
        clock.times[clock.current] = time;
    }

    /// Declares the present state of `level` to be of time `time` and drops what its other bank held.
    pub fn set_time(&mut self, level: usize, time: f64) {
        let clock = &mut self.clocks[level];
        clock.times = [time; 2];
        if self.spec.time_levels == 2 {
            clock.fresh[1 - clock.current] = 0;
        }
    }

    /// What a gather of up to `reach` layers of ghost cells on `level` reads: the present state, with coarse ghosts interpolated
    /// to its time.
    ///
    /// # Panics
    /// If the field is not cell-centred.
    #[must_use]
    pub fn ghosts<'a, R: Element>(
        &'a self,
        topology: &'a Topology,
        level: usize,
        reach: usize,
    ) -> GhostView<'a, R> {
        assert_eq!(
            self.spec.centring,
            Centring::Cell,
            "centring of `{}`",
            F::NAME
        );
        let typed = self.typed::<R>();
        let time = self.time(level);
        let (coarse_old, coarse_new, weight) = self.coarse_banks::<R>(level, time);
        GhostView {
            level: self.present::<R>(level),
            coarse_old,
            coarse_new,
            weight: R::lit(weight),
            neighbours: topology.neighbour_table(),
            parent: topology.parent_table(),
            index: topology.index_table(),
            domain_cells: topology.domain.cells(level),
            edges: [topology.domain.left_edge, topology.domain.right_edge],
            boundaries: &typed.boundaries,
            time,
            limiter: self.spec.prolong.limiter(),
            physical: typed.physical,
            reach,
        }
    }

    /// The banks of the level below `level` and the weight of the newer one at `time`.
    fn coarse_banks<R: Element>(&self, level: usize, time: f64) -> (Rows<'_, R>, Rows<'_, R>, f64) {
        let typed = self.typed::<R>();
        let (old, new, weight) = self.coarse_clock(level, time);
        (typed.bank(old), typed.bank(new), weight)
    }

    /// Which of the two banks hold the level below `level` before and after its step, and the weight of the latter at `time`.
    pub(super) fn coarse_clock(&self, level: usize, time: f64) -> (usize, usize, f64) {
        let clock = &self.clocks[level.saturating_sub(1)];
        let (present, next) = (clock.current, 1 - clock.current);
        let (old, new) = (clock.times[next], clock.times[present]);
        if level == 0 || self.spec.time_levels == 1 || time >= new || old >= new {
            return (present, present, 1.0);
        }
        (next, present, (time - old) / (new - old))
    }
}

impl<R: Element> TypedPool<R> {
    /// Empty banks for the field `spec` with the rules `boundaries`.
    #[must_use]
    pub fn new(spec: &FieldSpec, boundaries: Boundaries<R>, levels: usize) -> Self {
        let components = spec.components.len();
        Self {
            banks: (0..spec.banks)
                .map(|_| Slabs::new(spec.row_values()))
                .collect(),
            boundaries,
            registers: Registers::new(components, levels),
            gather_scratch: PerThread::new(|| GatherScratch::new(components)),
            results: Slabs::new(spec.row_values()),
            cell_scratch: PerThread::new(Default::default),
            correct_scratch: PerThread::new(|| vec![R::lit(0.0); 3 * components * CELLS]),
            physical: R::physical(spec),
        }
    }

    /// Whether a state (one value per component) is physical.
    #[must_use]
    pub fn physical(&self) -> fn(&[R]) -> bool {
        self.physical
    }

    /// The rows of a bank.
    pub(super) fn bank(&self, bank: usize) -> Rows<'_, R> {
        self.banks[bank].rows()
    }
}
