//! Cell function that finds places at which sinks may form.

use nestar_device::{Real, Stencil, device};
use nestar_kernels::mesh::cell_record::CellRecord;

/// Dense gas at a minimum of the potential among the 26 neighbouring cells.
#[device]
pub(super) fn dense_minimum<R: Real>(u: &Stencil<R>, gas: [R; 4], density: R) -> CellRecord<R> {
    let own = u.at(0, 0, 0);
    let mut is_lowest = gas[0] > density;
    let mut is_uniform = true;
    for n in 0..27 {
        let near = u.at(n % 3 - 1, n / 3 % 3 - 1, n / 9 - 1);
        is_lowest = is_lowest && own <= near;
        is_uniform = is_uniform && own >= near;
    }
    CellRecord::<R> {
        found: is_lowest && !is_uniform,
        record: own,
    }
}
