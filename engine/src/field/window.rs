//! What stands around a patch.

use super::cells::gather_block;
use super::element::Element;
use super::level::LevelView;
use super::pool::{Field, Pool};
use super::storage::with_storage;
use crate::device::DeviceError;

impl<F: Field> Pool<F> {
    /// A copy of the present state of a row with so many layers of ghost cells, `[component][n][n][n]` with n = 8 + 2 `layers`,
    /// wherever the field lives; at least one layer.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// If the pool holds the other precision.
    pub(crate) fn window<R: Element>(
        &self,
        level: &LevelView,
        row: u32,
        layers: usize,
    ) -> Result<Vec<R>, DeviceError> {
        with_storage!(&self.storage,
            _typed => {
                let view = self.ghosts::<R>(level.topology, level.clock.level, layers);
                let mut block = Vec::new();
                let scratch = &self.typed::<R>().gather_scratch;
                let shape = [self.components(), layers];
                gather_block(&view, row, shape, &mut block, &mut scratch.get());
                Ok(block)
            },
            _ => self.window_on_device(level, row, layers))
    }
}
