//! Totals of all fields over the domain.

use crate::comm;
use crate::data::Stores;
use crate::step::{Engine, Error};

/// Returns the totals of all fields that have totals, by component. Collective.
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
