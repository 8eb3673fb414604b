//! A remark on levels that touch the faces of an isolated domain, where bodies fall.
//!
//! Beyond the domain all levels know the potential of the root level alone: of a body near a face that is the potential of a cloud as wide
//! as a root cell. On a finer level the body attracts as a narrower cloud, and feels the difference. Beside faces between levels bodies
//! have the coarser level's cloud; here that would have to be the root level's, on whatever level they are.

use crate::order::Ready;
use bevy_ecs::prelude::*;
use nestar_engine::comm::Comm;
use nestar_engine::data::LevelRows;
use nestar_engine::step::Remarks;
use nestar_engine::{Engine, Error};
use nestar_kernels::mesh::OUTSIDE;

/// What people are told.
const REMARK: &str = "[gravity] finer levels touch the border of an isolated domain: bodies within two root cells of it feel themselves there, by up to a few tenths \
     of what a neighbour at two of their cells does. Where that matters, keep finer levels away from it: a larger domain, a smaller `mesh.flag_buffer`";

/// Enters the look at the hierarchy that a run begins with.
pub(super) fn register(sim: &mut Engine) {
    sim.system_in(Ready::Recompute, remark);
}

/// A finer level touches the border where level 1 does, or nowhere.
fn remark(rows: LevelRows, others: Comm, mut remarks: ResMut<Remarks>) -> Result<(), Error> {
    if rows.is_estimate() || rows.level() != 1 {
        return Ok(());
    }
    let topology = rows.view_of(1).topology;
    let mut own = topology.rows(1).iter();
    let touches = own.any(|&row| topology.neighbours(row).contains(&OUTSIDE));
    if others.max(u64::from(touches))? > 0 {
        remarks.0.push(REMARK.into());
    }
    Ok(())
}
