//! Columns of the diagnostics that the deck defines in `[[diagnostics]]`: reductions of formulas over the leaf cells.
//!
//! There are no `config.rs`, `systems.rs` and `diagnostics.rs`: the list is a key of the deck's top level, and the plugin adds columns
//! only.

use crate::fields::quantities::{compile, described_in, vocabulary};
use crate::fields::{Gas, GasModel};
use crate::register::{Register, others_of};
use bevy_ecs::prelude::*;
use nestar_deck::{DeckError, formula_units};
use nestar_device::{Real, device};
use nestar_engine::comm::{ColumnInputs, DiagnosticColumns, RanksError, Reduce};
use nestar_engine::data::{Components, DerivedInputs, Pool};
use nestar_engine::step::config::{ColumnConfig, Reduction, RootConfig};
use nestar_engine::{Engine, Error, Plugin};
use std::sync::Arc;

/// Plugin for the list `[[diagnostics]]`.
pub struct DeckColumns;

/// The first number where the second is not 0, `otherwise` elsewhere.
#[device]
fn selected<R: Real>(u: (R, [R; 2]), otherwise: R) -> R {
    let (_, [value, condition]) = u;
    if condition == R::lit(0.0) {
        otherwise
    } else {
        value
    }
}

impl Plugin for DeckColumns {
    fn name(&self) -> &str {
        "diagnostics"
    }

    fn after(&self) -> &[&str] {
        &["hydro", "chemistry", "cooling"]
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let root: RootConfig = sim.deck.root()?;
        for (n, column) in root.diagnostics.iter().enumerate() {
            check_name(sim, &root.diagnostics, n)?;
            add(sim, column, &format!("diagnostics[{n}]"))?;
        }
        Ok(())
    }
}

/// Checks that a column has a name of its own.
fn check_name(sim: &Engine, columns: &[ColumnConfig], n: usize) -> Result<(), DeckError> {
    let name = &columns[n].name;
    let path = format!("diagnostics[{n}].name");
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_word) {
        let why =
            format!("the name of a column must have only letters, digits and `_`, found {name:?}");
        return Err(sim.deck.error_at(&path, why));
    }
    let registered = sim.world.resource::<DiagnosticColumns>();
    if registered.is_taken(name) {
        let why = format!("there is a column {name:?} already: give this one another name");
        return Err(sim.deck.error_at(&path, why));
    }
    Ok(())
}

/// Adds the column of the table `path`.
fn add(sim: &mut Engine, column: &ColumnConfig, path: &str) -> Result<(), Error> {
    let inputs = |key: &str, text: &str| inputs(sim, column, (&format!("{path}.{key}"), text));
    let weight = column.weight.as_deref();
    let (reduce, otherwise, values, weights) = match column.reduction {
        Reduction::Integral => (
            Reduce::Integral,
            0.0,
            inputs("formula", &column.formula)?,
            None,
        ),
        Reduction::Min => (
            Reduce::Smallest,
            f64::INFINITY,
            inputs("formula", &column.formula)?,
            None,
        ),
        Reduction::Max => (
            Reduce::Largest,
            f64::NEG_INFINITY,
            inputs("formula", &column.formula)?,
            None,
        ),
        Reduction::Mean => {
            // by itself, so that an error has its column
            inputs("formula", &column.formula)?;
            let weights = inputs("weight", weight.unwrap_or("1"))?;
            let product = format!("({})*({})", column.formula, weight.unwrap_or("1"));
            (
                Reduce::Integral,
                0.0,
                inputs("formula", &product)?,
                Some(weights),
            )
        }
    };
    if weight.is_some() && column.reduction != Reduction::Mean {
        let why = "a weight needs reduction = \"mean\": remove it, or multiply the formula by it";
        return Err(sim.deck.error_at(&format!("{path}.weight"), why).into());
    }
    let numbers = values
        .numbers
        .clone()
        .into_iter()
        .chain(weights.as_ref().and_then(|w| w.numbers.clone()));
    for numbers in numbers {
        (sim.with_numbers(&numbers))
            .prepare::<Gas>(selected::ITEM.name, Pool::prepare_reduction::<selected>);
    }
    let value = move |world: &mut World| -> Result<Vec<f64>, RanksError> {
        let value = values.reduce::<Gas, selected>(world, reduce, &[otherwise])?;
        let weight = weights
            .as_ref()
            .map(|own| own.reduce::<Gas, selected>(world, reduce, &[otherwise]));
        Ok(vec![value / weight.transpose()?.unwrap_or(1.0)])
    };
    DiagnosticColumns::add_numbers(&mut sim.world, [column.name.clone()], value);
    if let Some(units) = units(sim, column) {
        DiagnosticColumns::set_units(&mut sim.world, column.name.clone(), units);
    }
    Ok(())
}

/// Returns the unit of a column in code units, if it follows from its formula.
fn units(sim: &Engine, column: &ColumnConfig) -> Option<String> {
    let names = vocabulary(sim.world.resource::<GasModel>()).into_iter();
    let known = names.map(|(name, _)| {
        let [units, _] = described_in(sim, &name);
        (name, units)
    });
    let known: Vec<(String, String)> = known.collect();
    let formula = column.formula.trim();
    let value = match known.iter().find(|(name, _)| name == formula) {
        Some((_, units)) => units.clone(),
        None => {
            let known: Vec<(&str, &str)> = known.iter().map(|(n, u)| (&**n, &**u)).collect();
            formula_units(formula, &known)?
        }
    };
    match column.reduction {
        Reduction::Integral => formula_units(
            "value*volume",
            &[("value", &value), ("volume", "length**3")],
        ),
        _ => Some(value),
    }
}

/// Compiles a formula of a column, given by its path and text, and the condition.
fn inputs(
    sim: &Engine,
    column: &ColumnConfig,
    (path, text): (&str, &str),
) -> Result<ColumnInputs, DeckError> {
    let model = sim.world.resource::<GasModel>();
    let value = compile(&sim.deck, path, text, vocabulary(model))?;
    let table = path.rsplit_once('.').map_or(path, |(table, _)| table);
    let condition = column.condition.as_deref().unwrap_or("1");
    let condition = compile(
        &sim.deck,
        &format!("{table}.where"),
        condition,
        vocabulary(model),
    )?;
    Ok(ColumnInputs {
        components: Components::default(),
        others: others_of::<Gas>,
        numbers: Some(Arc::new(DerivedInputs::new(vec![value, condition]))),
    })
}
