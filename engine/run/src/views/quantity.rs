//! Quantities of views: fields of any store, derived quantities, and formulas of both.

use bevy_ecs::prelude::*;
use nestar_deck::{Deck, DeckError, formula_units};
use nestar_engine_data::Components;
use nestar_engine_data::criteria::{CellQuantity, NamedQuantity};

/// Compiles a text at a path of the deck to a quantity of these names.
pub type CompileFormula =
    fn(&Deck, &str, &str, Vec<(String, NamedQuantity)>) -> Result<CellQuantity, DeckError>;

/// A named quantity that views may use.
#[derive(Clone)]
pub struct ViewQuantity {
    /// Name.
    pub name: String,
    /// Unit, such as `mass/length**3`.
    pub units: String,
    /// Description.
    pub long_name: String,
    /// Name of the store whose components it reads.
    pub store: &'static str,
    /// How it is computed from the components of the store.
    pub number: NamedQuantity,
}

/// All quantities that views may use.
#[derive(Resource)]
pub struct ViewQuantities {
    /// The quantities.
    pub names: Vec<ViewQuantity>,
    /// Sums over particles; their store is [`DEPOSITS`], their component the number in this list.
    pub deposits: Vec<ViewDeposit>,
    /// Compiles formulas.
    pub compile: CompileFormula,
}

/// Name in place of a store of quantities that are sums over particles.
pub const DEPOSITS: &str = "(particles)";

/// A sum over the particles in each cell, per volume.
#[derive(Clone, Debug)]
pub struct ViewDeposit {
    /// Group and name of the particle set, such as `particles/stars`.
    pub path: String,
    /// Column that is summed; `None` for the number of particles.
    pub column: Option<String>,
}

/// Components of different stores have numbers that differ by this.
const STRIDE: usize = 1 << 16;

/// A quantity of a view.
#[derive(Clone)]
pub struct Quantity {
    /// Name.
    pub name: String,
    /// Unit; `None` if it is not known.
    pub units: Option<String>,
    /// Description.
    pub long_name: String,
    /// The quantity as a function of `inputs`.
    pub number: CellQuantity,
    /// Components that it reads: the store and the component, in the order in which the quantity numbers them.
    pub inputs: Vec<(&'static str, usize)>,
}

impl Quantity {
    /// Returns `true` if the quantity is computed from particles.
    pub(super) fn has_particles(&self) -> bool {
        self.inputs.iter().any(|(store, _)| *store == DEPOSITS)
    }

    /// Returns the quantity as a function of the components of its store, if there is only one.
    pub(super) fn in_store(&self) -> CellQuantity {
        let mut number = self.number.clone();
        for part in number.parts_mut() {
            for c in part
                .components
                .iter_mut()
                .filter(|c| **c != Components::ZERO)
            {
                *c = self.inputs[*c].1;
            }
        }
        number
    }
}

impl ViewQuantities {
    /// Returns the stores in the order of their numbers.
    fn stores(&self) -> Vec<&'static str> {
        let mut stores: Vec<&'static str> = Vec::new();
        for own in &self.names {
            if !stores.contains(&own.store) {
                stores.push(own.store);
            }
        }
        stores
    }

    /// Compiles `text` at `path` of the deck: one of the names, or a formula of them.
    ///
    /// # Errors
    /// There is no such name; the formula is invalid.
    pub(super) fn compile(
        &self,
        deck: &Deck,
        path: &str,
        name: &str,
        text: &str,
    ) -> Result<Quantity, DeckError> {
        let known = self.names.iter().find(|own| own.name == text.trim());
        let is_word = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if known.is_none() && is_word && text.parse::<f64>().is_err() {
            // formulas cannot have names with blanks
            let names = self.names.iter().map(|own| &*own.name);
            let names: Vec<&str> = names.filter(|name| !name.contains(' ')).collect();
            return Err(deck.unknown_word_at(path, text, &names));
        }
        let stores = self.stores();
        let numbered = |own: &ViewQuantity| {
            let store = stores.iter().position(|store| *store == own.store);
            let mut number = own.number.clone();
            for c in &mut number.components {
                if *c != Components::ZERO {
                    *c += STRIDE * (1 + store.unwrap_or_default());
                }
            }
            (own.name.clone(), number)
        };
        let names = self.names.iter().map(numbered).collect();
        let mut number = (self.compile)(deck, path, text, names)?;
        let inputs = renumber(&mut number, &stores);
        if inputs.len() >= Components::ZERO {
            let message = format!("`{path}` reads {} components", inputs.len());
            return Err(deck.error_at(path, message));
        }
        let units = || {
            let units = self.names.iter().map(|own| (&*own.name, &*own.units));
            formula_units(text, &units.collect::<Vec<_>>())
        };
        Ok(Quantity {
            name: name.into(),
            units: known.map_or_else(units, |own| Some(own.units.clone())),
            long_name: known.map_or_else(|| text.into(), |own| own.long_name.clone()),
            number,
            inputs,
        })
    }
}

/// Numbers the components of a quantity from 0 on, in ascending order; returns them.
fn renumber(number: &mut CellQuantity, stores: &[&'static str]) -> Vec<(&'static str, usize)> {
    let parts = number.parts_mut().iter();
    let all = parts.flat_map(|part| part.components.iter().copied());
    let mut inputs: Vec<usize> = all.filter(|&c| c != Components::ZERO).collect();
    inputs.sort_unstable();
    inputs.dedup();
    for part in number.parts_mut() {
        for c in &mut part.components {
            if let Ok(place) = inputs.binary_search(c) {
                *c = place;
            }
        }
    }
    let input = |c: usize| (stores[c / STRIDE - 1], c % STRIDE);
    inputs.into_iter().map(input).collect()
}
