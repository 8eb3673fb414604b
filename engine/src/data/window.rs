//! What stands around a patch.

use super::element::Element;
use super::level::LevelView;
use super::pool::{Field, Pool};
use super::storage::with_storage;
use crate::device::DeviceError;
use nestar_kernels::PATCH;
use nestar_kernels::mesh::gather::{GatherTarget, gather_sectors};
use nestar_kernels::mesh::{GatherScratch, GhostView};

impl<F: Field> Pool<F> {
    /// Fills `values` with the present state of a row with so many layers of ghost cells, `[component][n][n][n]` with n = 8 + 2 `layers`,
    /// wherever the field lives; at least one layer. Of the 27 patches those that are `wanted`, as bits, are read; others may be.
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
        (layers, wanted): (usize, u32),
        values: &mut Vec<R>,
    ) -> Result<(), DeviceError> {
        let number = level.clock.level;
        let at = (self.current(number), self.time(number));
        self.window_at((level, row), (layers, wanted), at, values)
    }

    /// As [`Pool::window`] of the states before and after the latest step of the level, each with its time; of the present one alone where
    /// that is all there is.
    ///
    /// # Errors
    /// As [`Pool::window`].
    ///
    /// # Panics
    /// As [`Pool::window`].
    pub(crate) fn windows<R: Element>(
        &self,
        level: &LevelView,
        row: u32,
        layers: usize,
    ) -> Result<Vec<(f64, Vec<R>)>, DeviceError> {
        self.windows_of(level, row, layers, self.states(level.clock.level))
    }

    /// The banks with the states of a level before and after its latest step; that of the present one alone where that is all there is.
    pub(super) fn states(&self, level: usize) -> Vec<usize> {
        let clock = &self.clocks[level];
        let (present, other) = (clock.current, 1 - clock.current);
        match self.spec.time_levels > 1 && clock.times[other] < clock.times[present] {
            true => vec![other, present],
            false => vec![present],
        }
    }

    /// As [`Pool::window`] of a row of the next coarser level than `level`, before and after its step where `time` is within that; else its
    /// present state alone. Each with its time.
    ///
    /// # Errors
    /// As [`Pool::window`].
    ///
    /// # Panics
    /// As [`Pool::window`].
    pub(crate) fn coarser_windows<R: Element>(
        &self,
        level: &LevelView,
        row: u32,
        layers: usize,
        time: f64,
    ) -> Result<Vec<(f64, Vec<R>)>, DeviceError> {
        let number = level.clock.level;
        let (old, new, _) = self.coarse_clock(number, time);
        let mut below = *level;
        below.clock.level = number - 1;
        below.clock.cell_width = level.topology.domain.cell_width(number - 1);
        let mut banks = vec![old, new];
        banks.dedup();
        self.windows_of(&below, row, layers, banks)
    }

    fn windows_of<R: Element>(
        &self,
        level: &LevelView,
        row: u32,
        layers: usize,
        banks: Vec<usize>,
    ) -> Result<Vec<(f64, Vec<R>)>, DeviceError> {
        let window = |bank: usize| {
            let time = self.clocks[level.clock.level].times[bank];
            let mut values = Vec::new();
            self.window_at((level, row), (layers, u32::MAX), (bank, time), &mut values)?;
            Ok((time, values))
        };
        banks.into_iter().map(window).collect()
    }

    /// As [`Pool::window`] of the state that stands in a bank, at its time.
    fn window_at<R: Element>(
        &self,
        (level, row): (&LevelView, u32),
        (layers, wanted): (usize, u32),
        at: (usize, f64),
        window: &mut Vec<R>,
    ) -> Result<(), DeviceError> {
        with_storage!(&self.storage,
            _typed => {
                let view = self.ghosts_at::<R>(level.topology, level.clock.level, layers, at);
                let scratch = &self.typed::<R>().gather_scratch;
                let shape = [self.components(), layers];
                gather_block(&view, (row, wanted), shape, window, &mut scratch.get());
            },
            _ => *window = self.window_on_device(level, row, layers, at)?);
        Ok(())
    }
}

/// Fills `block` with so many components of a field around a row, in so many layers, from those patches of the 27 that are `wanted`, as bits.
pub(super) fn gather_block<R: Element>(
    view: &GhostView<R>,
    (row, wanted): (u32, u32),
    [components, ghosts]: [usize; 2],
    block: &mut Vec<R>,
    scratch: &mut GatherScratch<R>,
) {
    let stride = (PATCH + 2 * ghosts).pow(3);
    block.resize(components * stride, R::lit(0.0));
    let mut target = GatherTarget {
        values: block,
        stride,
        components,
        ghosts,
    };
    gather_sectors(view, row, (&mut target, wanted), scratch);
}
