//! Reports cells with a non-finite density or potential.

use crate::fields::Matter;
use crate::fields::Potential;
use nestar_device::Real;
use nestar_engine::data::{Field, LevelRows};
use nestar_engine::step::FieldView;
use nestar_engine::{Error, in_precision};
use nestar_kernels::{CELLS, PATCH};
use std::fmt;

/// A cell in which the density or the potential is not finite.
#[derive(Debug)]
struct NonFiniteCell {
    what: &'static str,
    value: f64,
    level: usize,
    patch: [i32; 3],
    cell: [usize; 3],
    centre: [f64; 3],
    time: f64,
    advice: &'static str,
}

impl std::error::Error for NonFiniteCell {}

impl fmt::Display for NonFiniteCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is {} in cell {:?} of patch {:?} on level {} at (x, y, z) = {:?}, t = {}: {}",
            self.what,
            self.value,
            self.cell,
            self.patch,
            self.level,
            self.centre,
            self.time,
            self.advice
        )
    }
}

/// Stops the run after the schedule and reports the first non-finite cell of this rank. A non-finite density is reported
/// on the finest level that has one, because coarser levels contain its averages. Otherwise the potential is reported, on
/// the coarsest such level.
///
/// # Errors
/// The device fails.
pub(super) fn report<'a>(
    rows: &LevelRows,
    matter: impl Fn(usize) -> FieldView<'a, Matter>,
    potential: impl Fn(usize) -> FieldView<'a, Potential>,
) -> Result<(), Error> {
    let levels = 0..=rows.finest();
    for level in levels.clone().rev() {
        let what = "the total density of matter";
        let advice =
            "check the sources of gravity (`gravity_source` of a plugin) and the gas in this cell";
        if let Some(found) = find(rows, &matter(level), what, advice)? {
            rows.fail(found);
            return Ok(());
        }
    }
    for level in levels {
        let what = "the gravitational potential";
        let advice = "the density is finite on this rank: sums of the solver overflow, or another rank has a non-finite density; \
             choose units in which the density times gravity.constant is closer to 1, or run.precision = \"double\"";
        if let Some(found) = find(rows, &potential(level), what, advice)? {
            rows.fail(found);
            return Ok(());
        }
    }
    Ok(())
}

/// Finds the first cell of a level in which a field is not finite.
fn find<F: Field>(
    rows: &LevelRows,
    field: &FieldView<F>,
    what: &'static str,
    advice: &'static str,
) -> Result<Option<NonFiniteCell>, Error> {
    let level = field.level();
    let place = rows.view_of(level);
    for &row in field.rows() {
        let wrong = in_precision!(field.precision(), R => {
            let values = field.host::<R>(&[row])?;
            let values = values.iter().map(|value| Real::to_f64(*value)).take(CELLS);
            values.enumerate().find(|(_, value)| !value.is_finite())
        });
        let Some((cell, value)) = wrong else {
            continue;
        };
        let patch = field.index(row);
        let cell = [cell % PATCH, cell / PATCH % PATCH, cell / (PATCH * PATCH)];
        let left = place.topology.domain.left_edge;
        let centre = std::array::from_fn(|axis| {
            let index = f64::from(patch[axis]) * PATCH as f64 + cell[axis] as f64;
            left[axis] + (index + 0.5) * place.clock.cell_width[axis]
        });
        return Ok(Some(NonFiniteCell {
            what,
            value,
            level,
            patch,
            cell,
            centre,
            time: place.clock.time,
            advice,
        }));
    }
    Ok(None)
}
