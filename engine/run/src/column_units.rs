//! Writes `diagnostics.units.csv`: the unit of each column of `diagnostics.csv`.
//!
//! The units have a file of their own, so that the names of columns are the same in all runs, and any reader of the table finds one
//! line of names and rows of numbers. The table is in code units, whose numbers a resumed run continues.

use crate::files::{COLUMN_UNITS, write_atomically};
use nestar_deck::{UnitSystem, formula_units};
use nestar_engine_comm::DiagnosticColumns;
use nestar_engine_data::{Component, Stores};
use nestar_engine_step::{Catalogue, Engine, Error};
use std::fmt::Write as _;
use std::path::Path;

/// Columns of the file. A number of the table times `factor` has the unit `units`, and times `cgs_factor` the unit `cgs_units`.
const HEADER: &str = "column,units,factor,code_units,cgs_units,cgs_factor";

/// Writes the file for the columns `names`. `initial` are the conserved totals at the start. Columns of unknown unit have empty entries.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(
    sim: &Engine,
    directory: &Path,
    names: &[String],
    initial: &[f64],
) -> Result<(), Error> {
    let code = sim.lasting_units();
    let mut text = format!("{HEADER}\n");
    for name in names {
        // writing to a string cannot fail
        let _ = match units_of(sim, name, initial) {
            None => writeln!(text, "{name},,,,,"),
            Some(units) if units == SECONDS => writeln!(text, "{name},s,1,,s,1"),
            Some(units) => {
                let shown = code.shown(
                    &units,
                    UnitSystem::Astronomical,
                    typical(sim, &units, initial),
                );
                let (factor, cgs) = (code.cgs_factor(&units), code.cgs_units(&units));
                writeln!(
                    text,
                    "{name},{},{:e},{units},{cgs},{factor:e}",
                    shown.name, shown.factor
                )
            }
        };
    }
    write_atomically(&directory.join(COLUMN_UNITS), &text)
}

/// Returns a number in a unit that occurs in the run: the end of times, the largest total of other units; 0 if there is none.
fn typical(sim: &Engine, units: &str, initial: &[f64]) -> f64 {
    if units == "time" {
        return sim.settings.time.end;
    }
    let totals = Stores::totalled(&sim.world).into_iter().zip(initial);
    let own =
        totals.filter(|(component, _)| total_units(&component.units).as_deref() == Some(units));
    own.map(|(_, total)| total.abs()).fold(0.0, f64::max)
}

/// Returns the unit of the total of a component.
fn total_units(component: &str) -> Option<String> {
    formula_units(
        "value*volume",
        &[("value", component), ("volume", "length**3")],
    )
}

/// Returns `true` if the drift of a total is not divided by its initial value: for components of vectors, and if that value is 0.
pub(crate) fn is_drift_absolute(component: &Component, initial: f64) -> bool {
    component.normal_to.is_some() || initial == 0.0
}

/// Unit of wall times.
const SECONDS: &str = "s";

/// Returns the unit of a column in code units, or [`SECONDS`]; `None` if it is not known.
fn units_of(sim: &Engine, name: &str, initial: &[f64]) -> Option<String> {
    if name.starts_with("seconds_") {
        return Some(SECONDS.into());
    }
    for (component, initial) in Stores::totalled(&sim.world).into_iter().zip(initial) {
        let is = |head: &str| name.strip_prefix(head) == Some(&*component.name);
        if is("drift_") && !is_drift_absolute(component, *initial) {
            return Some("1".into());
        }
        if is("drift_") || is("total_") {
            return total_units(&component.units);
        }
    }
    if let Some(units) = sim.world.resource::<DiagnosticColumns>().units(name) {
        return Some(units.into());
    }
    let entries = sim.world.resource::<Catalogue>().entries().iter();
    let mut own = entries.filter(|entry| entry.kind == "column" && entry.name == name);
    let unit = own.next().map(|entry| entry.unit.clone());
    let of_time = || ["time", "dt"].contains(&name).then(|| "time".into());
    unit.filter(|unit| !unit.is_empty()).or_else(of_time)
}
