//! A gas cell in a patch row.

use super::Conserved;
use crate::CELLS;
use crate::mesh::cell::CellState;
use nestar_device::Lane;

impl<R: Lane> CellState<R> for Conserved<R> {
    fn read(row: &[R], cell: usize) -> Self {
        let u = |c: usize| row[c * CELLS + cell];
        Conserved {
            density: u(0),
            momentum: [u(1), u(2), u(3)],
            energy: u(4),
        }
    }

    fn write(self, row: &mut [R], cell: usize) {
        let [x, y, z] = self.momentum;
        for (c, value) in [self.density, x, y, z, self.energy].into_iter().enumerate() {
            row[c * CELLS + cell] = value;
        }
    }
}
