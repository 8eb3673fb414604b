//! What the domain holds of all fields.

use crate::comm;
use crate::data::Stores;
use crate::step::{Engine, Error};

/// Totals of all fields that have them, component by component. All ranks call this.
///
/// # Errors
/// A device fails; another rank has failed.
pub(super) fn totals(sim: &Engine) -> Result<Vec<f64>, Error> {
    let operations = Stores::of(&sim.world, |spec| spec.in_totals);
    let mut totals = Vec::new();
    for field in &operations {
        totals.extend(comm::totals(&sim.world, field)?);
    }
    Ok(totals)
}
