//! A field on a level, as a system may see it.

use crate::data::device::{DevicePool, DeviceView};
use crate::data::level::LevelView;
use crate::data::{Element, Field, FieldSpec, FluxRegisters, Pool, Precision};
use crate::device::DeviceError;
use nestar_kernels::mesh::{GhostView, Rows};

/// A field on the level at hand, as its reader may see it.
#[derive(Clone, Copy)]
pub struct FieldView<'a, F: Field> {
    pub(super) pool: &'a Pool<F>,
    pub(super) level: LevelView<'a>,
    /// Layers of copies that may be read.
    pub(super) reach: usize,
}

impl<'a, F: Field> FieldView<'a, F> {
    /// The level.
    #[must_use]
    pub fn level(&self) -> usize {
        self.level.clock.level
    }

    /// Its own rows in Hilbert order.
    #[must_use]
    pub fn rows(&self) -> &'a [u32] {
        self.level.rows()
    }

    /// The field's declaration.
    #[must_use]
    pub fn spec(&self) -> &'a FieldSpec {
        &self.pool.spec
    }

    /// Number of components.
    #[must_use]
    pub fn components(&self) -> usize {
        self.pool.components()
    }

    /// The present state of an own row, `[component][8][8][8]`, where the field lives on the host.
    ///
    /// # Panics
    /// If the row is a copy of another rank's patch, or the field holds the other precision or lives on a device.
    #[must_use]
    pub fn row<R: Element>(&self, row: u32) -> &'a [R] {
        self.require_own(row);
        self.pool.present::<R>(self.level()).row(row)
    }

    /// What gathers of as many ghost cells read as this view reaches, where the field lives on the host. A gather of more panics.
    #[must_use]
    pub fn ghosts<R: Element>(&self) -> GhostView<'a, R> {
        self.pool
            .ghosts::<R>(self.level.topology, self.level(), self.reach)
    }

    /// A copy of the present state of some own rows, `[row][component][8][8][8]`: where the field lives on a device the values
    /// cross the bus, which the device's counters show.
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

    /// Fills `values` with the present state of an own row with so many layers of ghost cells, at least one, `[component][n][n][n]`,
    /// wherever the field lives: whoever walks many rows keeps one vector. Of the 27 patches, x fastest, those are read that are `wanted`, as bits
    /// (`u32::MAX`: all); of the others the window has anything.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// As [`FieldView::row`]; if fewer layers may be read.
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

    /// As [`FieldView::window`] of the states before and after the latest step of the level, each with its time; of the present one alone where
    /// the field keeps no other, or after changes of the mesh.
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

    /// Copies of the state of the next coarser level with so many layers of ghost cells: around the parent of an own row, or around an own row
    /// of that level beside own rows of this one, where they are good towards those. Before and after the coarser level's step where `time`
    /// is within that, each with its time, else its present state alone. As [`FieldView::window`] else.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// If fewer layers may be read, or there is no coarser level.
    pub fn coarser_windows<R: Element>(
        &self,
        row: u32,
        layers: usize,
        time: f64,
    ) -> Result<Vec<(f64, Vec<R>)>, DeviceError> {
        self.require_reach(layers);
        self.pool.coarser_windows(&self.level, row, layers, time)
    }

    /// Precision of the values.
    #[must_use]
    pub fn precision(&self) -> Precision {
        self.pool.precision()
    }

    /// Weights of the newer of the two states of a coarser or of this level, 0 to 1, at the times of the two states of this one, the
    /// present one last.
    ///
    /// # Panics
    /// If the field has one time level.
    #[must_use]
    pub fn weights_on(&self, level: usize) -> [f64; 2] {
        self.pool.weights_on(self.level(), level)
    }

    /// Index of the patch of a row on the level, in patches.
    #[must_use]
    pub fn index(&self, row: u32) -> [i32; 3] {
        self.level.topology.index(row)
    }

    /// Layers of copies that may be read.
    #[must_use]
    pub fn reach(&self) -> usize {
        self.reach
    }

    fn require_reach(&self, layers: usize) {
        assert!(
            layers <= self.reach,
            "{layers} layers of the field `{}` are wanted where {} may be read",
            F::NAME,
            self.reach
        );
    }

    fn require_own(&self, row: u32) {
        assert!(
            !self.level.topology.is_shared() || self.level.topology.is_owned(row),
            "row {row} of the field `{}` is a copy: read it by a gather",
            F::NAME
        );
    }

    /// Rows of the present state, where the field lives on the host: for kernels of one's own.
    ///
    /// # Panics
    /// If the field holds the other precision or lives on a device.
    #[must_use]
    pub fn present<R: Element>(&self) -> Rows<'a, R> {
        self.pool.present::<R>(self.level())
    }

    /// The level with its clock and tables.
    #[must_use]
    pub fn place(&self) -> LevelView<'a> {
        self.level
    }

    /// Rows of bank `n` of the working space, where the field lives on the host.
    ///
    /// # Panics
    /// If the field has no such bank, or lives on a device.
    #[must_use]
    pub fn scratch<R: Element>(&self, n: usize) -> Rows<'a, R> {
        self.pool.scratch::<R>(n)
    }

    /// Rows that a step of the level writes, where the field lives on the host.
    #[must_use]
    pub fn next<R: Element>(&self) -> Rows<'a, R> {
        self.pool.next::<R>(self.level())
    }

    /// Flux registers, where the field lives on the host.
    #[must_use]
    pub fn registers<R: Element>(&self) -> &'a FluxRegisters<R> {
        &self.pool.typed::<R>().registers
    }

    /// As [`FieldView::ghosts`] on the device where the field lives.
    ///
    /// # Panics
    /// If the field lives on the host.
    #[must_use]
    pub fn on_device(&self) -> DeviceView {
        let LevelView { topology, .. } = self.level;
        let tables = self.level.on_device();
        self.pool.view(tables, topology, self.level())
    }

    /// As [`FieldView::on_device`] before and after the latest step of the level, each with its time; now alone where the field keeps no other state. As
    /// [`FieldView::windows`] on the host.
    ///
    /// # Panics
    /// If the field lives on the host.
    #[must_use]
    pub fn states_on_device(&self) -> Vec<(f64, DeviceView)> {
        self.pool.views(&self.level)
    }

    /// What gathers on the next coarser level read on the device where the field lives: before and after that level's step where `time` is within
    /// that, each with its time, else its present state alone. As [`FieldView::coarser_windows`] on the host.
    ///
    /// # Panics
    /// If the field lives on the host, or there is no coarser level.
    #[must_use]
    pub fn coarser_on_device(&self, time: f64) -> Vec<(f64, DeviceView)> {
        self.pool.coarser_views(&self.level, time)
    }

    /// Whether the field lives on a device.
    #[must_use]
    pub fn is_on_device(&self) -> bool {
        self.pool.on_device().is_some()
    }

    /// The device's side, for kernels of one's own.
    ///
    /// # Panics
    /// If the field lives on the host.
    #[must_use]
    pub fn device(&self) -> &'a DevicePool {
        self.pool.device()
    }

    /// The banks on the device that hold the present state of the level and what its step writes.
    #[must_use]
    pub fn banks(&self) -> [usize; 2] {
        let present = self.pool.current(self.level());
        [present, 1 - present]
    }

    /// Counts the changes of the level, see [`Pool::changes`].
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.pool.changes(self.level())
    }

    /// Whether a change since then may concern any row, see [`Pool::any_row_changed_since`].
    #[must_use]
    pub fn any_row_changed_since(&self, count: u64) -> bool {
        self.pool.any_row_changed_since(self.level(), count)
    }

    /// Counts the changes of a row on the host, see [`Pool::epoch`].
    #[must_use]
    pub fn epoch(&self, row: u32) -> u32 {
        self.pool.epoch(row)
    }
}
