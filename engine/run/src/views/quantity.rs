//! Quantities of views: fields of any store, derived quantities, and formulas of both.

use bevy_ecs::prelude::*;
use nestar_deck::{Deck, DeckError, formula_units};
use nestar_engine_data::criteria::{CellQuantity, NamedQuantity};
use nestar_engine_data::{Components, StoreRef, Stores};
use nestar_engine_step::{Engine, Error};
use nestar_kernels::CELLS;

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
    /// Compiles formulas.
    pub compile: CompileFormula,
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

/// The components from which quantities are computed.
pub(super) struct Inputs {
    /// Components, each once.
    pub components: Vec<(StoreRef, usize)>,
    /// Places of the inputs of each quantity among them.
    places: Vec<Vec<usize>>,
}

impl Inputs {
    /// Finds the components of some quantities.
    ///
    /// # Errors
    /// A store is not registered.
    pub fn new(sim: &Engine, quantities: &[Quantity]) -> Result<Self, Error> {
        let stores = sim.world.resource::<Stores>().all();
        let (mut components, mut all_places) = (Vec::new(), Vec::new());
        for quantity in quantities {
            let mut places = Vec::new();
            for (name, component) in &quantity.inputs {
                let store = stores.iter().find(|store| store.name == *name);
                let missing = || Error::Setup(format!("no plugin registers the field `{name}`"));
                let store = *store.ok_or_else(missing)?;
                places.push(place_of(&mut components, store, *component));
            }
            all_places.push(places);
        }
        Ok(Self {
            components,
            places: all_places,
        })
    }

    /// Reads the components in some rows of a level: `[component][row][512]`.
    ///
    /// # Errors
    /// The device fails.
    pub fn read(&self, sim: &Engine, level: usize, rows: &[u32]) -> Result<Vec<Vec<f64>>, Error> {
        let values = |(store, component): &(StoreRef, usize)| {
            let values = store.of(&sim.world).save(level, *component, rows)?;
            Ok(values.into_f64())
        };
        self.components.iter().map(values).collect()
    }

    /// Collects the inputs of quantity `n` in patch `number` of those that were read, `[input][512]`.
    pub fn gather(&self, n: usize, read: &[Vec<f64>], number: usize, state: &mut Vec<f64>) {
        state.clear();
        for &place in &self.places[n] {
            state.extend_from_slice(&read[place][number * CELLS..][..CELLS]);
        }
    }
}

/// Returns the place of a component, adding it if necessary.
fn place_of(components: &mut Vec<(StoreRef, usize)>, store: StoreRef, component: usize) -> usize {
    let mut known = components.iter();
    let found = known.position(|(own, c)| own.name == store.name && *c == component);
    found.unwrap_or_else(|| {
        components.push((store, component));
        components.len() - 1
    })
}

impl Quantity {
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
            let names: Vec<&str> = self.names.iter().map(|own| &*own.name).collect();
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
