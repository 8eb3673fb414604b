//! A field's pool: its banks of rows, a clock per level, and the views that kernels read.

use super::Precision;
use super::clocks::{BankClock, ChangeCounts};
use super::device::DevicePool;
use super::element::Element;
use super::spec::{BoundaryCondition, Correct, FieldSpec};
use super::storage::{Storage, TypedPool, with_storage};
use crate::device::{Device, DeviceError};
use crate::mesh::Topology;
use nestar_kernels::mesh::{Centring, GhostView, Rows};
use std::marker::PhantomData;

/// A registered field: a marker type that names a pool.
pub trait Field: Send + Sync + 'static {
    /// Name in messages.
    const NAME: &'static str;
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
    pub(super) storage: Storage,
    pub(super) clocks: Vec<BankClock>,
    pub(super) changes: Vec<ChangeCounts>,
    pub(super) epochs: Vec<u32>,
    /// Whether a function of what surrounds cells has changed the field in place, so that its results take a bank of their own.
    pub(super) keeps_results: bool,
    marker: PhantomData<F>,
}

impl<F: Field> Pool<F> {
    /// An empty pool for `levels` levels, in memory of `device` if there is one, with `beyond` beyond the faces of the domain,
    /// `[axis][side]`.
    ///
    /// # Errors
    /// A boundary rule works on the host only; the device refuses.
    pub(crate) fn new(
        spec: FieldSpec,
        beyond: &[[BoundaryCondition; 2]; 3],
        precision: Precision,
        device: Option<&Device>,
        levels: usize,
    ) -> Result<Self, DeviceError> {
        let storage = Storage::new(&spec, beyond, precision, device, levels)?;
        let clock = BankClock {
            current: 0,
            times: [0.0; 2],
            valid_layers: vec![0; spec.banks],
        };
        Ok(Self {
            spec,
            storage,
            clocks: vec![clock; levels],
            changes: vec![ChangeCounts::default(); levels],
            epochs: Vec::new(),
            keeps_results: false,
            marker: PhantomData,
        })
    }

    /// Number of components.
    #[must_use]
    pub fn components(&self) -> usize {
        self.spec.components.len()
    }

    /// Precision of the values.
    #[must_use]
    pub fn precision(&self) -> Precision {
        with_storage!(&self.storage, <R> => R::PRECISION, device => device.precision())
    }

    /// Bytes reserved by all banks; on a device, by all that goes along with them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        with_storage!(&self.storage,
            typed => typed.bytes(),
            device => device.bytes())
    }

    /// Bytes of the flux registers.
    #[must_use]
    pub fn register_bytes(&self) -> usize {
        with_storage!(&self.storage,
            typed => typed.registers.bytes(),
            device => device.register_bytes())
    }

    /// Grows to `rows` rows.
    ///
    /// # Errors
    /// A device's memory does not suffice.
    pub fn grow(&mut self, rows: usize) -> Result<(), DeviceError> {
        self.epochs.resize(rows, 0);
        with_storage!(&mut self.storage,
            typed => typed.grow(rows),
            device => device.grow(rows))
    }

    /// The typed side.
    ///
    /// # Panics
    /// If the pool holds the other precision, or lives on a device; copies of its rows come from [`Pool::host`].
    #[must_use]
    pub fn typed<R: Element>(&self) -> &TypedPool<R> {
        self.storage
            .typed()
            .expect("the pool lives on the host and holds the precision asked for")
    }

    /// The device's side of the pool, if it lives on a device.
    #[must_use]
    pub fn on_device(&self) -> Option<&DevicePool> {
        match &self.storage {
            Storage::Device(pool) => Some(pool),
            _ => None,
        }
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
        self.swap_banks(level, time);
        self.touch(level, rows);
        Ok(())
    }

    /// Exchanges the time levels of `level`, each with what is known of its copies.
    fn swap_banks(&mut self, level: usize, time: f64) {
        let clock = &mut self.clocks[level];
        clock.current = self.spec.time_levels - 1 - clock.current;
        clock.times[clock.current] = time;
    }

    /// Declares the present state of `level` to be of time `time` and drops what its other bank held.
    pub fn set_time(&mut self, level: usize, time: f64) {
        let clock = &mut self.clocks[level];
        clock.times = [time; 2];
        if self.spec.time_levels == 2 {
            clock.valid_layers[1 - clock.current] = 0;
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
        let at = (self.current(level), self.time(level));
        self.ghosts_at(topology, level, reach, at)
    }

    /// As [`Pool::ghosts`] of the state that stands in a bank, at its time.
    pub(super) fn ghosts_at<'a, R: Element>(
        &'a self,
        topology: &'a Topology,
        level: usize,
        reach: usize,
        (bank, time): (usize, f64),
    ) -> GhostView<'a, R> {
        assert_eq!(
            self.spec.centring,
            Centring::Cell,
            "centring of `{}`",
            F::NAME
        );
        let typed = self.typed::<R>();
        let (coarse_old, coarse_new, weight) = self.coarse_banks::<R>(level, time);
        GhostView {
            level: typed.bank(bank),
            coarse_old,
            coarse_new,
            weight: R::lit(weight),
            neighbours: topology.neighbour_table(),
            parent: topology.parent_table(),
            index: topology.index_table(),
            number: level as i32,
            domain_cells: topology.domain.cells(level),
            edges: [topology.domain.left_edge, topology.domain.right_edge],
            boundaries: &typed.boundaries,
            time,
            limiter: self.spec.prolong.limiter(),
            states: typed.states,
            reach,
        }
    }

    /// The banks of the level below `level` and the weight of the newer one at `time`.
    fn coarse_banks<R: Element>(&self, level: usize, time: f64) -> (Rows<'_, R>, Rows<'_, R>, f64) {
        let typed = self.typed::<R>();
        let (old, new, weight) = self.coarse_clock(level, time);
        (typed.bank(old), typed.bank(new), weight)
    }

    /// The bank that fluxes are made of, and its time: where the state was advanced in this step already, the one before that, so
    /// that a cell and its ghost cells stand at one time, whatever else the step has changed.
    pub(super) fn flux_state(&self, level: usize, adds: bool) -> (usize, f64) {
        let clock = &self.clocks[level];
        let bank = match adds && self.spec.time_levels == 2 {
            true => 1 - clock.current,
            false => clock.current,
        };
        (bank, clock.times[bank])
    }

    /// Weights of the newer state of the level `other` at the times of the states of `level`, the present one last.
    pub(crate) fn weights_on(&self, level: usize, other: usize) -> [f64; 2] {
        let next = self.next_bank(level);
        [next, 1 - next].map(|bank| {
            let time = self.clocks[level].times[bank];
            self.coarse_clock(other + 1, time).2
        })
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
