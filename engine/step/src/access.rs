//! System parameters for fields. [`Read`] and [`Write`] declare a field and a halo width in the signature of
//! a system. The schedule inserts halo exchanges before systems that need them; reading a stale halo is an
//! error.

mod cells;

use super::{AccessError, Error};
use bevy_ecs::prelude::*;
use bevy_ecs::system::{SystemName, SystemParam};
pub use cells::{Around, FunctionFields, OtherFields, OtherHandles, UpdateInputs};
use nestar_engine_comm::Comm;
use nestar_engine_comm::halo::LevelSplit;
use nestar_engine_data::criteria::CriteriaList;
use nestar_engine_data::device::{DevicePool, DeviceView};
use nestar_engine_data::level::LevelView;
use nestar_engine_data::store::{LevelBank, Store};
use nestar_engine_data::{
    CirculationRegisters, Element, Field, FieldSpec, FluxRegisters, LevelRows, Pool, PoolResource,
    Precision, operators, store,
};
use nestar_engine_device::DeviceError;
use nestar_kernels::mesh::{GhostView, Rows};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// Describes how a system accesses one field.
pub(super) struct FieldAccess {
    pub field: &'static str,
    pub writes: bool,
    /// Halo width that the system reads.
    pub depth: AtomicUsize,
    /// `true` if the system exchanges the halo itself.
    pub manages_itself: AtomicBool,
    /// `true` if the field may be missing.
    pub is_optional: AtomicBool,
}

/// Collects the field accesses of the system that is being registered.
#[derive(Resource, Default)]
pub(super) struct FieldAccesses(pub Vec<Arc<FieldAccess>>);

/// Holds the declared access of a handle as its system state.
#[doc(hidden)]
pub struct HandleState<F, const DEPTH: usize, const WRITES: bool>(
    Arc<FieldAccess>,
    PhantomData<fn(F)>,
);

impl<F: Field, const DEPTH: usize, const WRITES: bool> FromWorld for HandleState<F, DEPTH, WRITES> {
    fn from_world(world: &mut World) -> Self {
        let declaration = Arc::new(FieldAccess {
            field: F::NAME,
            writes: WRITES,
            depth: AtomicUsize::new(DEPTH),
            manages_itself: AtomicBool::new(false),
            is_optional: AtomicBool::new(false),
        });
        let mut declarations = world.get_resource_or_init::<FieldAccesses>();
        declarations.0.push(declaration.clone());
        Self(declaration, PhantomData)
    }
}

/// Gives a handle the level and the clocks of its system.
#[derive(SystemParam)]
struct LevelContext<'w, 's> {
    rows: LevelRows<'w, 's>,
    name: SystemName,
}

/// Reads field `F` on the current level: own rows and `DEPTH` halo layers. The halo includes the coarser
/// level as far as ghost cells are interpolated from it. With `DEPTH` above 0 the halo is exchanged before
/// the system runs.
#[derive(SystemParam)]
pub struct Read<'w, 's, F: Field, const DEPTH: usize = 0> {
    pool: Res<'w, PoolResource<F>>,
    place: LevelContext<'w, 's>,
    declared: Local<'s, HandleState<F, DEPTH, false>>,
}

/// Reads and writes field `F`, as [`Read`] and for own rows. A system that changes the field and then reads
/// the halo again calls [`Write::refresh`] in between.
#[derive(SystemParam)]
pub struct Write<'w, 's, F: Field, const DEPTH: usize = 0> {
    pool: ResMut<'w, PoolResource<F>>,
    place: LevelContext<'w, 's>,
    declared: Local<'s, HandleState<F, DEPTH, true>>,
}

/// Returns a view that reads `reach` halo layers of the current level.
fn view<'a, F: Field>(
    pool: &'a Pool<F>,
    place: &'a LevelContext,
    reach: usize,
) -> FieldView<'a, F> {
    view_on(pool, place, place.rows.level(), reach)
}

/// Returns a view that reads `reach` halo layers of any level.
fn view_on<'a, F: Field>(
    pool: &'a Pool<F>,
    place: &'a LevelContext,
    level: usize,
    reach: usize,
) -> FieldView<'a, F> {
    FieldView {
        pool,
        level: place.rows.view_of(level),
        reach,
    }
}

/// Returns a view if the system declares `reach` halo layers and they are up to date.
fn checked_view<'a, F: Field>(
    pool: &'a Pool<F>,
    place: &'a LevelContext,
    level: usize,
    declared: &FieldAccess,
    reach: usize,
) -> Result<FieldView<'a, F>, Error> {
    let (field, system) = (F::NAME, || place.name.as_str().to_string());
    let depth = declared.depth.load(Relaxed);
    if reach > depth {
        return Err(Error::Access(AccessError::Undeclared {
            field,
            system: system(),
            declared: depth,
            reach,
        }));
    }
    match store::stale_banks(pool, level, reach).next() {
        Some(at) => Err(stale(pool, place, at, reach)),
        None => Ok(view_on(pool, place, level, reach)),
    }
}

/// Builds the error of a system that reads a stale halo.
fn stale<F: Field>(pool: &Pool<F>, place: &LevelContext, at: LevelBank, reach: usize) -> Error {
    Error::Access(AccessError::Stale {
        field: F::NAME,
        level: at.level,
        present: at == Store::present_bank(pool, at.level),
        system: place.name.as_str().to_string(),
        reach,
        fresh: pool.valid_layers(at),
    })
}

/// Checks the halo of the bank from which fluxes of the current level are computed.
fn fresh_before<F: Field>(pool: &Pool<F>, place: &LevelContext, reach: usize) -> Result<(), Error> {
    let bank = pool.flux_source_bank(&place.rows);
    match pool.valid_layers(bank) < reach {
        true => Err(stale(pool, place, bank, reach)),
        false => Ok(()),
    }
}

impl<F: Field, const DEPTH: usize> Write<'_, '_, F, DEPTH> {
    /// Exchanges the declared halo layers if they are stale. Collective.
    ///
    /// # Errors
    /// Another rank has failed, or the transport or the device has.
    pub fn refresh(&mut self, ranks: &mut Comm) -> Result<(), Error> {
        self.refresh_on(ranks, self.place.rows.level())
    }

    /// Exchanges the halo as [`Write::refresh`], on any level.
    ///
    /// # Errors
    /// As [`Write::refresh`].
    pub fn refresh_on(&mut self, ranks: &mut Comm, level: usize) -> Result<(), Error> {
        self.begin_refresh(ranks, level)?;
        self.finish_refresh(ranks, level)
    }

    /// Sends averages from halo copies of covered patches to the owners of these patches. For systems that
    /// restrict the field themselves. Collective.
    ///
    /// # Errors
    /// As [`Write::refresh`].
    pub fn send_averages(&mut self, ranks: &mut Comm, level: usize) -> Result<(), Error> {
        Ok(ranks.send_averages(&mut self.pool.0, level)?)
    }

    /// Returns a view for writing as [`Write::change`], on any level.
    pub fn change_on(&mut self, level: usize) -> FieldView<'_, F> {
        self.pool.0.mark_all_changed(level);
        view_on(&self.pool.0, &self.place, level, 0)
    }

    /// Starts a halo exchange on any level, in a system registered with
    /// [`manages_own_halo`](super::SystemOptions::manages_own_halo). If it returns a split, the rows of
    /// `LevelSplit::interior` can be advanced until [`Write::finish_refresh`].
    ///
    /// # Errors
    /// As [`Write::refresh`].
    pub fn begin_refresh(
        &mut self,
        ranks: &mut Comm,
        level: usize,
    ) -> Result<Option<Arc<LevelSplit>>, Error> {
        Ok(ranks.start_halo(&self.pool.0, level, self.halo_width())?)
    }

    /// Completes the exchange that [`Write::begin_refresh`] started.
    ///
    /// # Errors
    /// As [`Write::refresh`].
    pub fn finish_refresh(&mut self, ranks: &mut Comm, level: usize) -> Result<(), Error> {
        let depth = self.halo_width();
        Ok(ranks.finish_halo(&mut self.pool.0, level, depth)?)
    }

    /// Returns the field during a halo exchange of a level; only rows of `LevelSplit::interior` may be used
    /// because they read no halo.
    #[must_use]
    pub fn interior(&self, level: usize, _: &LevelSplit) -> FieldView<'_, F> {
        view_on(&self.pool.0, &self.place, level, self.halo_width())
    }

    /// Sets the present state of distinct own rows from `[row][component][8][8][8]`, on the host or the
    /// device. Collective, also without rows.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// As [`Pool::store`].
    pub fn store<R: Element>(&mut self, rows: &[u32], values: &[R]) -> Result<(), DeviceError> {
        self.store_on(self.place.rows.level(), rows, values)
    }

    /// Sets own rows as [`Write::store`], on any level.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// As [`Write::store`].
    pub fn store_on<R: Element>(
        &mut self,
        level: usize,
        rows: &[u32],
        values: &[R],
    ) -> Result<(), DeviceError> {
        self.pool.0.store(level, rows, values)
    }

    /// Returns a view for kernels that change the present state of own rows. It marks the halo and all data
    /// derived from the level as stale. Collective.
    pub fn change(&mut self) -> FieldView<'_, F> {
        self.pool.0.mark_all_changed(self.place.rows.level());
        view(&self.pool.0, &self.place, 0)
    }

    /// Returns a view for kernels that change the present state of some own rows of a level. It marks the halo and data derived from these rows
    /// as stale; on a device, the kernels mark the rows. Collective, also without rows.
    pub fn change_rows_on(&mut self, level: usize, rows: &[u32]) -> FieldView<'_, F> {
        self.pool.0.touch(level, rows);
        view_on(&self.pool.0, &self.place, level, 0)
    }

    /// Restricts children to covered cells by averaging; returns the number of cells corrected on the host.
    pub(super) fn restrict(&mut self) -> Result<u64, DeviceError> {
        operators::restrict(&mut self.pool.0, &self.place.rows.view())
    }

    /// Makes values shared by several patches equal to those of one of them.
    pub(super) fn share(&mut self) -> Result<(), Error> {
        self.get(1)?;
        Ok(operators::unify_shared_values(
            &mut self.pool.0,
            &self.place.rows.view(),
        )?)
    }

    /// Applies flux correction at coarse-fine faces; returns the number of cells corrected on the host.
    pub(super) fn correct(&mut self) -> Result<u64, DeviceError> {
        operators::correct(&mut self.pool.0, &self.place.rows.view())
    }

    /// Begins a stage of the step of the current level: gathers read the result of the stage before, as the state after the fraction `time` of
    /// the step. Its halo is out of date.
    pub fn begin_stage(&mut self, stage: usize, time: f64) {
        let clock = self.place.rows.view().clock;
        let time = clock.time + time * clock.dt;
        self.pool.0.begin_stage(clock.level, stage, time);
    }

    /// Ends the stages of a step that is not accepted: gathers read the present state again.
    pub fn end_stages(&mut self) {
        self.pool.0.end_stages(self.place.rows.level());
    }

    /// Accepts the step of the current level: its results become the present state and its fluxes are
    /// recorded.
    ///
    /// # Errors
    /// The device fails.
    pub fn commit(&mut self) -> Result<(), DeviceError> {
        let place = self.place.rows.view();
        let (clock, rows) = (place.clock, place.rows());
        self.pool.0.commit(clock.level, clock.end, clock.dt, rows)
    }
}

/// Gives a system access to a field on one level.
#[derive(Clone, Copy)]
pub struct FieldView<'a, F: Field> {
    pub(super) pool: &'a Pool<F>,
    pub(super) level: LevelView<'a>,
    /// Halo layers that may be read.
    pub(super) reach: usize,
}

impl<'a, F: Field> FieldView<'a, F> {
    /// Returns the level.
    #[must_use]
    pub fn level(&self) -> usize {
        self.level.clock.level
    }

    /// Returns the own rows of the level in Hilbert order.
    #[must_use]
    pub fn rows(&self) -> &'a [u32] {
        self.level.rows()
    }

    /// Returns the field's declaration.
    #[must_use]
    pub fn spec(&self) -> &'a FieldSpec {
        &self.pool.spec
    }

    /// Returns the number of components.
    #[must_use]
    pub fn components(&self) -> usize {
        self.pool.components()
    }

    /// Marks patches near the cells that a criterion of a list marks, as [`Pool::mark_by_list`].
    #[must_use]
    pub fn mark_by_list(&self, rows: &LevelRows, buffer: usize, marks: &CriteriaList) -> Vec<u32> {
        self.pool.mark_by_list(rows, buffer, marks)
    }

    /// Returns the present state of an own row on the host, `[component][8][8][8]`.
    ///
    /// # Panics
    /// If the row is a halo copy, or the field has the other precision or is on a device.
    #[must_use]
    pub fn row<R: Element>(&self, row: u32) -> &'a [R] {
        self.require_own(row);
        self.pool.present::<R>(self.level()).row(row)
    }

    /// Returns what gathers of ghost cells read on the host. Gathers wider than this view's halo panic.
    #[must_use]
    pub fn ghosts<R: Element>(&self) -> GhostView<'a, R> {
        self.pool
            .ghosts::<R>(self.level.topology, self.level(), self.reach)
    }

    /// Copies the present state of own rows, `[row][component][8][8][8]`, from the host or the device. Device
    /// transfers are counted.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// As [`FieldView::row`].
    pub fn host<R: Element>(&self, rows: &[u32]) -> Result<Vec<R>, DeviceError> {
        rows.iter().for_each(|&row| self.require_own(row));
        self.pool.host(self.level(), rows)
    }

    /// Fills `values` with the present state of an own row and its ghost cells, on the host or the device.
    /// There is at least one layer: `[component][n][n][n]`. `wanted` selects patches of the 27-patch
    /// neighbourhood (x fastest) as bits; `u32::MAX` selects all. Values of other patches are undefined.
    /// Reuse one vector for many rows.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// As [`FieldView::row`]; if the halo is too narrow.
    pub fn window<R: Element>(
        &self,
        row: u32,
        (layers, wanted): (usize, u32),
        values: &mut Vec<R>,
    ) -> Result<(), DeviceError> {
        self.require_own(row);
        self.require_reach(layers);
        self.pool.window(&self.level, row, (layers, wanted), values)
    }

    /// Returns windows before and after the latest step of the level, with their times; see
    /// [`FieldView::window`]. Only the present one exists for fields with one time level or after changes of
    /// the mesh.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// As [`FieldView::window`].
    pub fn windows<R: Element>(
        &self,
        row: u32,
        layers: usize,
    ) -> Result<Vec<(f64, Vec<R>)>, DeviceError> {
        self.require_own(row);
        self.require_reach(layers);
        self.pool.windows(&self.level, row, layers)
    }

    /// Returns windows of the next coarser level around the parent of an own row. The row may also be an own
    /// coarse one next to own rows of this level. The windows are before and after the coarser step, with
    /// their times, if `time` is within that step, otherwise at the present time.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// If the halo is too narrow, or there is no coarser level.
    pub fn coarser_windows<R: Element>(
        &self,
        row: u32,
        layers: usize,
        time: f64,
    ) -> Result<Vec<(f64, Vec<R>)>, DeviceError> {
        self.require_reach(layers);
        self.pool.coarser_windows(&self.level, row, layers, time)
    }

    /// Returns the precision of the values.
    #[must_use]
    pub fn precision(&self) -> Precision {
        self.pool.precision()
    }

    /// Returns interpolation weights, 0 to 1, of the newer state of a level. The level is this one or a
    /// coarser one; the times are those of the two states of this level, the present one last.
    ///
    /// # Panics
    /// If the field has one time level.
    #[must_use]
    pub fn weights_on(&self, level: usize) -> [f64; 2] {
        self.pool.weights_on(self.level(), level)
    }

    /// Returns the index of a row's patch on the level, in patches.
    #[must_use]
    pub fn index(&self, row: u32) -> [i32; 3] {
        self.level.topology.index(row)
    }

    /// Returns the number of halo layers that may be read.
    #[must_use]
    pub fn reach(&self) -> usize {
        self.reach
    }

    fn require_reach(&self, layers: usize) {
        assert!(
            layers <= self.reach,
            "{layers} halo layers of the field `{}` are requested but {} may be read",
            F::NAME,
            self.reach
        );
    }

    fn require_own(&self, row: u32) {
        assert!(
            self.level.topology.is_owned(row),
            "row {row} of the field `{}` is a halo copy: read it by a gather",
            F::NAME
        );
    }

    /// Returns all rows of the present state on the host, for custom kernels.
    ///
    /// # Panics
    /// If the field has the other precision or is on a device.
    #[must_use]
    pub fn present<R: Element>(&self) -> Rows<'a, R> {
        self.pool.present::<R>(self.level())
    }

    /// Returns the level with its clock and tables.
    #[must_use]
    pub fn place(&self) -> LevelView<'a> {
        self.level
    }

    /// Returns rows of scratch bank `n` on the host.
    ///
    /// # Panics
    /// If the field has no such bank, or is on a device.
    #[must_use]
    pub fn scratch<R: Element>(&self, n: usize) -> Rows<'a, R> {
        self.pool.scratch::<R>(n)
    }

    /// Returns the rows that a step of the level writes, on the host.
    #[must_use]
    pub fn next<R: Element>(&self) -> Rows<'a, R> {
        self.pool.next::<R>(self.level())
    }

    /// Returns rows of a bank on the host, see [`Pool::stage_bank`].
    #[must_use]
    pub fn bank<R: Element>(&self, bank: usize) -> Rows<'a, R> {
        self.pool.bank::<R>(bank)
    }

    /// Returns the bank that a stage of the step writes.
    ///
    /// # Panics
    /// As [`Pool::stage_bank`].
    #[must_use]
    pub fn stage_bank(&self, stage: usize) -> usize {
        self.pool.stage_bank(self.level(), stage)
    }

    /// Returns the flux registers on the host.
    #[must_use]
    pub fn registers<R: Element>(&self) -> &'a FluxRegisters<R> {
        &self.pool.typed::<R>().registers
    }

    /// Returns the circulation registers on the host.
    #[must_use]
    pub fn circulations<R: Element>(&self) -> &'a CirculationRegisters<R> {
        &self.pool.typed::<R>().circulations
    }

    /// Returns what gathers of ghost cells read on the device; see [`FieldView::ghosts`].
    ///
    /// # Panics
    /// If the field is on the host.
    #[must_use]
    pub fn on_device(&self) -> DeviceView {
        let LevelView { topology, .. } = self.level;
        let tables = self.level.on_device();
        self.pool.view(tables, topology, self.level())
    }

    /// Returns device views before and after the latest step of the level, with their times, like
    /// [`FieldView::windows`] on the host.
    ///
    /// # Panics
    /// If the field is on the host.
    #[must_use]
    pub fn states_on_device(&self) -> Vec<(f64, DeviceView)> {
        self.pool.views(&self.level)
    }

    /// Returns the time of the present state of the next coarser level.
    ///
    /// # Panics
    /// On the root level.
    #[must_use]
    pub fn coarser_time(&self) -> f64 {
        self.pool.coarser_time(self.level())
    }

    /// Returns device views of the next coarser level, with their times, like [`FieldView::coarser_windows`]
    /// on the host.
    ///
    /// # Panics
    /// If the field is on the host, or there is no coarser level.
    #[must_use]
    pub fn coarser_on_device(&self, time: f64) -> Vec<(f64, DeviceView)> {
        self.pool.coarser_views(&self.level, time)
    }

    /// Returns `true` if the field is on a device.
    #[must_use]
    pub fn is_on_device(&self) -> bool {
        self.pool.on_device().is_some()
    }

    /// Returns the device part of the field, for custom kernels.
    ///
    /// # Panics
    /// If the field is on the host.
    #[must_use]
    pub fn device(&self) -> &'a DevicePool {
        self.pool.device()
    }

    /// Returns the device banks of the present state and of the next one.
    #[must_use]
    pub fn banks(&self) -> [usize; 2] {
        let present = self.pool.current(self.level());
        [present, 1 - present]
    }

    /// Returns the number of changes of the level, see [`Pool::changes`].
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.pool.changes(self.level())
    }

    /// Returns `true` if any row may have changed since then, see [`Pool::any_row_changed_since`].
    #[must_use]
    pub fn any_row_changed_since(&self, count: u64) -> bool {
        self.pool.any_row_changed_since(self.level(), count)
    }

    /// Returns the number of changes of a row on the host, see [`Pool::epoch`].
    #[must_use]
    pub fn epoch(&self, row: u32) -> u32 {
        self.pool.epoch(row)
    }
}
