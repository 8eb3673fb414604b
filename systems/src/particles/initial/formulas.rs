//! Formulas of the deck for particle attributes.

use super::{InitialParticle, SpeciesInfo, missing_mass};
use nestar_deck::{Deck, DeckError, Formula};
use std::collections::BTreeMap;

/// Default of a formula: 0.
pub(super) fn zero() -> String {
    "0".into()
}

/// Default of three formulas: 0.
pub(in crate::particles) fn zeros() -> [String; 3] {
    [zero(), zero(), zero()]
}

/// Default of a condition: true.
pub(super) fn one() -> String {
    "1".into()
}

/// Returns the mass formula of the table `path`, or 0 if the species gives the mass.
///
/// # Errors
/// The mass is missing.
pub(super) fn mass_of<'a>(
    deck: &Deck,
    path: &str,
    own: &'a Option<String>,
    species: &SpeciesInfo,
) -> Result<&'a str, DeckError> {
    match own {
        Some(mass) => Ok(mass),
        None if species.mass.is_some() => Ok("0"),
        None => Err(missing_mass(deck, path, species.name)),
    }
}

/// Compiles the formulas of a table.
pub(super) struct Compile<'a> {
    pub deck: &'a Deck,
    /// Path of the table.
    pub path: &'a str,
    pub variables: &'a [&'a str],
}

impl Compile<'_> {
    /// Compiles the formula of a key.
    ///
    /// # Errors
    /// The formula is invalid.
    pub fn one(&self, key: &str, text: &str) -> Result<Formula, DeckError> {
        let path = format!("{}.{key}", self.path);
        self.deck.formula(&path, text, self.variables)
    }

    /// Compiles the three formulas of a key.
    ///
    /// # Errors
    /// A formula is invalid.
    pub fn three(&self, key: &str, texts: &[String; 3]) -> Result<[Formula; 3], DeckError> {
        let [x, y, z] = [0, 1, 2].map(|axis| self.one(&format!("{key}[{axis}]"), &texts[axis]));
        Ok([x?, y?, z?])
    }

    /// Compiles the formulas of the scalars, in the order of the species; default 0.
    ///
    /// # Errors
    /// A formula is invalid, or a scalar is unknown.
    pub fn scalars(
        &self,
        names: &[String],
        texts: &BTreeMap<String, String>,
    ) -> Result<Vec<Formula>, DeckError> {
        if let Some(name) = texts.keys().find(|name| !names.contains(name)) {
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            let path = format!("{}.scalars.{name}", self.path);
            return Err(self.deck.unknown_key_at(&path, &known));
        }
        let formula = |name: &String| match texts.get(name) {
            Some(text) => self.one(&format!("scalars.{name}"), text),
            None => self.one("scalars", "0"),
        };
        names.iter().map(formula).collect()
    }
}

/// Formulas of the attributes of a particle other than its position.
pub(super) struct AttributeFormulas {
    pub velocity: [Formula; 3],
    pub mass: Formula,
    /// Path of the table with the key `keep`.
    pub path: String,
    /// The particle is created if this is not 0.
    pub keep: Formula,
    pub scalars: Vec<Formula>,
}

impl AttributeFormulas {
    /// Returns all formulas.
    pub fn formulas(&self) -> impl Iterator<Item = &Formula> {
        let one = [&self.mass, &self.keep];
        self.velocity.iter().chain(one).chain(&self.scalars)
    }

    /// Evaluates the formulas. Returns `None` if the particle is not kept.
    ///
    /// # Errors
    /// `keep` is not a number.
    pub fn made(
        &self,
        values: &[f64],
        position: impl FnOnce() -> [f64; 3],
    ) -> Result<Option<InitialParticle>, String> {
        let (keep, position) = (self.keep.eval(values), position());
        if keep.is_nan() {
            return Err(format!(
                "`{}.keep` is not a number at {position:?}",
                self.path
            ));
        }
        let made = (keep != 0.0).then(|| InitialParticle {
            position,
            velocity: [0, 1, 2].map(|axis| self.velocity[axis].eval(values)),
            mass: self.mass.eval(values),
            scalars: self
                .scalars
                .iter()
                .map(|scalar| scalar.eval(values))
                .collect(),
        });
        Ok(made)
    }
}
