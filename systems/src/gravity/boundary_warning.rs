//! Warns of finer levels at the faces of an isolated domain that contains particles.
//!
//! Outside the domain all levels use the potential of the root level, where a body near a face is as wide as a root
//! cell. On a finer level the body is narrower, and the difference exerts a force on it. At coarse-fine faces bodies
//! use the representation of the coarser level; here that would have to be the root level.

use crate::order::Ready;
use bevy_ecs::prelude::*;
use nestar_engine::comm::Comm;
use nestar_engine::data::{LevelRows, Patches};
use nestar_engine::mesh::PatchIndex;
use nestar_engine::step::Remarks;
use nestar_engine::{Engine, Error};

/// Text of the warning.
const REMARK: &str = "[gravity] finer levels touch the boundary of an isolated domain: bodies within two root cells of it exert a force on themselves, up to a few tenths \
     of that of an equal neighbour at two of their cells. To avoid it, keep finer levels away from the boundary: a larger domain, a smaller `mesh.flag_buffer`";

/// Registers the check of the initial hierarchy.
pub(super) fn register(sim: &mut Engine) {
    sim.system_in(Ready::Recompute, warn_of_levels_at_boundary);
}

/// Finer levels touch the boundary only if level 1 does.
fn warn_of_levels_at_boundary(
    rows: LevelRows,
    patches: Patches<&PatchIndex>,
    others: Comm,
    mut remarks: ResMut<Remarks>,
) -> Result<(), Error> {
    if rows.is_estimate() || rows.level() != 1 {
        return Ok(());
    }
    let domain = rows.view().topology.domain;
    let last = domain.root.map(|patches| 2 * patches - 1);
    let touches = patches.iter().any(|(_, index)| {
        let at_face = |axis: usize| index.0[axis] == 0 || index.0[axis] == last[axis];
        (0..3).any(|axis| !domain.periodic[axis] && at_face(axis))
    });
    if others.max(u64::from(touches))? > 0 {
        remarks.0.push(REMARK.into());
    }
    Ok(())
}
