//! Centre of pictures, profiles and phase diagrams.

use crate::cells::position_of_maximum;
use crate::error::Result;
use crate::field::PlotField;
use crate::view::{domain, outside};
use crate::{Centre, PlotOptions};
use nestar_snapshot::Snapshot;

/// Returns the centre of the picture: by default the middle of the domain.
pub(crate) fn centre(
    snapshot: &Snapshot,
    field: &PlotField,
    options: &PlotOptions,
) -> Result<[f64; 3]> {
    let (low, high) = domain(snapshot);
    match options.centre {
        Centre::Middle => Ok(std::array::from_fn(|i| 0.5 * (low[i] + high[i]))),
        Centre::Maximum => position_of_maximum(snapshot, field, options.max_level),
        Centre::At(point) => {
            let inside = |&i: &usize| (low[i]..=high[i]).contains(&point[i]);
            match (0..3).find(|i| !inside(i)) {
                None => Ok(point),
                Some(axis) => Err(outside(snapshot, options, "--centre", axis)),
            }
        }
    }
}
