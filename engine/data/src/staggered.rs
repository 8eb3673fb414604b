//! Fields on faces or edges: interpolation into new patches, and unique values on shared faces and edges.

use super::field_spec::Element;
use super::level::LevelView;
use super::pool::{Field, Pool};
use super::storage::with_storage;
use nestar_engine_device::DeviceError;
use nestar_engine_mesh::{NewRows, Topology, parallel};
use nestar_kernels::mesh::shared_values::sync_shared_values;
use nestar_kernels::mesh::staggered::{FaceView, prolong_faces};

/// Fills new rows of a face-centred field from the coarser level and from adjacent patches that are not new.
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
    parallel::for_each(&new.rows, |&row| {
        // SAFETY: the rows are distinct, and the interpolation reads only rows of the level that are not new.
        unsafe { prolong_faces(&view, row) };
    });
}

/// Makes values on faces or edges shared by patches of `level` equal. Collective; the halo must be valid.
/// The value of a refined patch wins; among equals, the patch that is lowest along z, then y, then x.
///
/// # Errors
/// The device fails.
pub fn unify_shared_values<F: Field>(
    pool: &mut Pool<F>,
    around: &LevelView,
) -> Result<(), DeviceError> {
    let level = around.clock.level;
    // collective, also without shared values
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
        // SAFETY: the pool is borrowed exclusively, and rows are written one by one.
        if unsafe { sync_shared_values(centring, &present, neighbours, row, refined) } {
            pool.touch(level, &[row]);
        }
    }
}
