//! Views of a field on a level, as systems use them.

use nestar_engine_data::criteria::CriteriaList;
use nestar_engine_data::device::{DevicePool, DeviceView};
use nestar_engine_data::level::LevelView;
use nestar_engine_data::{Element, Field, FieldSpec, FluxRegisters, LevelRows, Pool, Precision};
use nestar_engine_device::DeviceError;
use nestar_kernels::mesh::{GhostView, Rows};

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

    /// Returns the flux registers on the host.
    #[must_use]
    pub fn registers<R: Element>(&self) -> &'a FluxRegisters<R> {
        &self.pool.typed::<R>().registers
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
