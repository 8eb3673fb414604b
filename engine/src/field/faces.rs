//! Fields on faces: new patches, and one owner of the values that two patches share.

use super::FaultBox;
use super::pool::{Element, Field, Pool, Storage};
use crate::mesh::{NewRows, Topology};
use bevy_ecs::prelude::*;
use nestar_kernels::mesh::staggered::{FaceView, prolong_faces, share_faces};
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

/// Gives the faces that two patches of `level` share to one of them: the refined one, of equals the lower; the other takes its
/// values. Copies of others' patches must be up to date.
pub(super) fn share<F: Field>(world: &mut World, level: usize) {
    world.resource_scope(|world, mut pool: Mut<Pool<F>>| match pool.storage {
        Storage::Single(_) => share_rows::<F, f32>(&mut pool, world.resource(), level),
        Storage::Double(_) => share_rows::<F, f64>(&mut pool, world.resource(), level),
        Storage::Device(_) => {
            let bank = pool.current(level);
            let shared = pool.device_mut().share(world.resource(), level, bank);
            world.resource::<FaultBox>().check(shared);
        }
    });
}

fn share_rows<F: Field, R: Element>(pool: &mut Pool<F>, topology: &Topology, level: usize) {
    let refined = |row| !topology.is_leaf(row);
    for &row in topology.rows(level) {
        let present = pool.present::<R>(level);
        // SAFETY: the pool is borrowed alone, and rows are set one by one.
        if unsafe { share_faces(&present, topology.neighbour_table(), row, refined) } {
            pool.touch(&[row]);
        }
    }
}
