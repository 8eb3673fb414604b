//! Fields on faces or edges: new patches, and one owner of the values that patches share.

use super::element::Element;
use super::level::LevelView;
use super::pool::{Field, Pool};
use super::storage::with_storage;
use crate::device::DeviceError;
use crate::mesh::{NewRows, Topology};
use nestar_kernels::mesh::shared_values::sync_shared_values;
use nestar_kernels::mesh::staggered::{FaceView, prolong_faces};
use rayon::prelude::*;

/// Fills new rows of a field on faces from the coarser level and from patches beside them that are not new.
pub(super) fn prolong_rows<F: Field, R: Element>(
    pool: &Pool<F>,
    topology: &Topology,
    new: &NewRows,
) {
    let view = FaceView {
        level: pool.present::<R>(new.level),
        coarse: pool.present::<R>(new.level - 1),
        neighbours: topology.neighbour_table(),
        parent: topology.parent_table(),
        index: topology.index_table(),
        fresh: &new.marks,
        limiter: pool.spec.prolong.limiter(),
    };
    new.rows.par_iter().for_each(|&row| {
        // SAFETY: the rows are distinct; of the level, the interpolation reads rows that are not new.
        unsafe { prolong_faces(&view, row) };
    });
}

/// Gives the values that patches of `level` share to one of them: a refined one, of equals the lowest; the others take its
/// values. Copies of others' patches must be up to date. All ranks call it.
///
/// # Errors
/// The device fails.
pub(crate) fn unify_shared_values<F: Field>(
    pool: &mut Pool<F>,
    around: &LevelView,
) -> Result<(), DeviceError> {
    let level = around.clock.level;
    // on all ranks, whether they have such values or not
    pool.mark_changed(level);
    with_storage!(&pool.storage,
        <R> => { share_rows::<F, R>(pool, around.topology, level); Ok(()) },
        device => device.share(around.on_device(), level, pool.current(level)))
}

fn share_rows<F: Field, R: Element>(pool: &mut Pool<F>, topology: &Topology, level: usize) {
    let (centring, neighbours) = (pool.spec.centring, topology.neighbour_table());
    let refined = |row| !topology.is_leaf(row);
    for &row in topology.rows(level) {
        let present = pool.present::<R>(level);
        // SAFETY: the pool is borrowed alone, and rows are set one by one.
        if unsafe { sync_shared_values(centring, &present, neighbours, row, refined) } {
            pool.touch(level, &[row]);
        }
    }
}
