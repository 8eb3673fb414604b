//! Changes of a field: what is derived from its values, on this rank or on others, is out of date after one.

use super::pool::{Field, Pool};
use super::storage::with_storage;

impl<F: Field> Pool<F> {
    /// Counts a change of the present state of `level` of which the rows are known otherwise, as kernels of the engine mark
    /// them on a device. Copies on other ranks are out of date from now on: all ranks call this, whether they have rows or not.
    pub(crate) fn mark_changed(&mut self, level: usize) {
        self.changes[level].all += 1;
        self.invalidate_present_halo(level);
    }

    /// Counts a change of any rows of the present state of `level`, whoever made it and wherever the pool lives: what is
    /// derived from any of them is out of date, as are the copies on other ranks. All ranks call this alike.
    pub fn mark_all_changed(&mut self, level: usize) {
        self.mark_changed(level);
        self.changes[level].of_all_rows = self.changes[level].all;
    }

    /// Marks `rows` of the present state of `level` as changed, so that values derived from them are made anew (on a device the
    /// kernels mark them), and the copies of the level on other ranks as out of date. All ranks call this, whether they have rows or not.
    pub fn touch(&mut self, level: usize, rows: &[u32]) {
        self.mark_changed(level);
        if self.on_device().is_none() {
            for &row in rows {
                self.epochs[row as usize] = self.epochs[row as usize].wrapping_add(1);
            }
        }
    }

    /// Declares the copies of the present state of `level` out of date.
    pub(super) fn invalidate_present_halo(&mut self, level: usize) {
        let clock = &mut self.clocks[level];
        clock.valid_layers[clock.current] = 0;
    }

    /// Marks the rows of `level` that flux corrections change.
    pub(super) fn touch_corrected(&mut self, level: usize) {
        self.mark_changed(level);
        let epochs = &mut self.epochs;
        with_storage!(&self.storage,
            typed => for (row, _) in typed.registers.corrected(level) {
                epochs[*row as usize] = epochs[*row as usize].wrapping_add(1);
            },
            _ => ());
    }

    /// Counts the changes of the values or patches of `level`: what is derived from the level is good while the count stands.
    #[must_use]
    pub fn changes(&self, level: usize) -> u64 {
        self.changes[level].all
    }

    /// Whether a change of `level` after its count stood at `count` may concern any row, see [`Pool::mark_all_changed`]. Other
    /// changes mark their rows: on the host by [`Pool::epoch`], on a device by
    /// [`DevicePool::stale`](super::device::DevicePool::stale).
    #[must_use]
    pub fn any_row_changed_since(&self, level: usize, count: u64) -> bool {
        self.changes[level].of_all_rows > count
    }

    /// Counts the changes of a row on the host; a cached value is good while the count stands and
    /// [`Pool::any_row_changed_since`] says no.
    #[must_use]
    pub fn epoch(&self, row: u32) -> u32 {
        self.epochs[row as usize]
    }
}
