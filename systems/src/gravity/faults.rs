//! A density or a potential that is no number: where it is, and what to do.

use crate::fields::Matter;
use crate::fields::Potential;
use nestar_device::Real;
use nestar_engine::data::{Field, LevelRows};
use nestar_engine::step::FieldView;
use nestar_engine::{Error, in_precision};
use nestar_kernels::{CELLS, PATCH};
use std::fmt;

/// A cell in which a number of gravity is none.
#[derive(Debug)]
struct Unsound {
    what: &'static str,
    value: f64,
    level: usize,
    patch: [i32; 3],
    cell: [usize; 3],
    centre: [f64; 3],
    time: f64,
    advice: &'static str,
}

impl std::error::Error for Unsound {}

impl fmt::Display for Unsound {
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

/// Stops the run after the schedule: something that gravity is made of is no number. Says where this rank has it: the density on the
/// finest such level, as coarser ones have its means, else the potential on the coarsest one.
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
        let told = (
            "the density of the matter that attracts",
            "look at what adds to it (`gravity_source` of a plugin), and at the gas there",
        );
        if let Some(found) = find(rows, &matter(level), told)? {
            rows.fail(found);
            return Ok(());
        }
    }
    for level in levels {
        let told = (
            "the gravitational potential",
            "the density is a number everywhere here, so the sums of the solver overflow, or another rank has one that is none; \
             choose units in which the density times gravity.constant is closer to 1, or run.precision = \"double\"",
        );
        if let Some(found) = find(rows, &potential(level), told)? {
            rows.fail(found);
            return Ok(());
        }
    }
    Ok(())
}

/// The first cell of a level in which a field is no number.
fn find<F: Field>(
    rows: &LevelRows,
    field: &FieldView<F>,
    (what, advice): (&'static str, &'static str),
) -> Result<Option<Unsound>, Error> {
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
        return Ok(Some(Unsound {
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
