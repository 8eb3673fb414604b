//! What formulas of the deck say of a particle.

use super::{InitialParticle, SpeciesInfo, massless};
use nestar_deck::{Deck, DeckError, Formula};
use std::collections::BTreeMap;

/// The default of a formula: nothing.
pub(super) fn zero() -> String {
    "0".into()
}

/// The default of three formulas.
pub(in crate::particles) fn zeros() -> [String; 3] {
    [zero(), zero(), zero()]
}

/// The default of a condition: always.
pub(super) fn one() -> String {
    "1".into()
}

/// The formula of the mass in the table `path`: 0 where the species has one for all.
///
/// # Errors
/// Nobody says the mass.
pub(super) fn mass_of<'a>(
    deck: &Deck,
    path: &str,
    own: &'a Option<String>,
    species: &SpeciesInfo,
) -> Result<&'a str, DeckError> {
    match own {
        Some(mass) => Ok(mass),
        None if species.mass.is_some() => Ok("0"),
        None => Err(massless(deck, path, species.name)),
    }
}

/// Compiles the formulas of a table.
pub(super) struct Compile<'a> {
    pub deck: &'a Deck,
    /// The table.
    pub path: &'a str,
    pub variables: &'a [&'a str],
}

impl Compile<'_> {
    /// The formula of a key.
    ///
    /// # Errors
    /// It is none.
    pub fn one(&self, key: &str, text: &str) -> Result<Formula, DeckError> {
        let path = format!("{}.{key}", self.path);
        self.deck.formula(&path, text, self.variables)
    }

    /// The three formulas of a key.
    ///
    /// # Errors
    /// One of them is none.
    pub fn three(&self, key: &str, texts: &[String; 3]) -> Result<[Formula; 3], DeckError> {
        let [x, y, z] = [0, 1, 2].map(|axis| self.one(&format!("{key}[{axis}]"), &texts[axis]));
        Ok([x?, y?, z?])
    }

    /// The formulas of the scalars of a species, in its order: 0 where there is none.
    ///
    /// # Errors
    /// One of them is none, or of a scalar that the species does not have.
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

/// What a particle has beside its place.
pub(super) struct AttributeFormulas {
    pub velocity: [Formula; 3],
    pub mass: Formula,
    /// The table that `keep` is a key of.
    pub path: String,
    /// Not 0 where there is a particle.
    pub keep: Formula,
    pub scalars: Vec<Formula>,
}

impl AttributeFormulas {
    /// All of them.
    pub fn formulas(&self) -> impl Iterator<Item = &Formula> {
        let one = [&self.mass, &self.keep];
        self.velocity.iter().chain(one).chain(&self.scalars)
    }

    /// The particle with these values of the variables, if there is one.
    ///
    /// # Errors
    /// `keep` is not a number there.
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
