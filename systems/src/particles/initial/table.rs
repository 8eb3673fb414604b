//! Particles from files.

use super::formulas::{Compile, Others, one};
use super::{About, Made, Source};
use nestar_deck::{Deck, DeckError, Formula, TableFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The rows of a file, from which the identity counts: formulas of its columns by their names (`column_1`, `column_2` … where they are no
/// names), with the deck's constants, such as those of units. Each rank reads the whole file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// A text file with columns of numbers, from the folder of the deck: a line a row, cells separated by commas, semicolons or blanks, names
    /// in the first row; `#` begins a comment.
    pub file: String,
    /// Place along x, y, z, formulas.
    #[serde(default = "places")]
    #[schemars(extend("unit" = "length"))]
    pub position: [String; 3],
    /// Velocity along x, y, z, formulas; absent: the columns vx, vy, vz, or at rest where the file has none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("unit" = "length/time"))]
    pub velocity: Option<[String; 3]>,
    /// Mass of the particle, a formula; absent: the column mass. Of no meaning where the species says the mass of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("unit" = "mass"))]
    pub mass: Option<String>,
    /// Which rows are particles, a formula: those for which it is not 0.
    #[serde(default = "one")]
    pub keep: String,
    /// Scalars of the particle by name, formulas; absent: the column of that name, or 0 where there is none.
    #[serde(default)]
    pub scalars: BTreeMap<String, String>,
}

fn places() -> [String; 3] {
    ["x", "y", "z"].map(String::from)
}

/// The rows.
pub(super) struct Rows {
    /// The columns that formulas use.
    columns: Vec<Vec<f64>>,
    count: usize,
    position: [Formula; 3],
    others: Others,
}

/// Names of columns in formulas.
fn names(file: &TableFile) -> Vec<String> {
    let is_name = |name: &str| {
        let mut letters = name.chars();
        letters.next().is_some_and(|c| c.is_ascii_alphabetic())
            && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let named = file.names().iter().enumerate();
    let named = named.map(|(n, name)| match is_name(name) {
        true => name.clone(),
        false => format!("column_{}", n + 1),
    });
    named.collect()
}

impl Table {
    /// The rows of the table `path` of the deck.
    ///
    /// # Errors
    /// What is wrong in the file, with line and column, and with formulas; a mass that nobody says.
    pub(super) fn rows(&self, deck: &Deck, path: &str, species: &About) -> Result<Rows, DeckError> {
        let folder = deck.directory().unwrap_or(Path::new(""));
        let file = TableFile::read(folder.join(&self.file));
        let at = |error: DeckError| deck.error_at(&format!("{path}.file"), error.to_string());
        let file = file.map_err(at)?;
        let names = names(&file);
        let whole = self.filled(&names, species, |key, why| {
            let path = format!("{path}.{key}");
            deck.error_at(path.as_str(), format!("`{path}` {why}"))
        })?;
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let (position, others) = whole.compiled(deck, path, species.scalars, &all)?;
        let formulas = position.iter().chain(others.formulas());
        let formulas: Vec<&Formula> = formulas.collect();
        let is_used = |name: &&str| formulas.iter().any(|formula| formula.uses(name));
        // again with the columns alone that they use, which are kept
        let used: Vec<&str> = all.iter().copied().filter(is_used).collect();
        let mut columns = Vec::new();
        for (name, known) in file.names().iter().zip(&all) {
            if used.contains(known) {
                columns.push(file.column(name).map_err(at)?);
            }
        }
        let count = file.column(&file.names()[0]).map_err(at)?.len();
        let (position, others) = whole.compiled(deck, path, species.scalars, &used)?;
        Ok(Rows {
            columns,
            count,
            position,
            others,
        })
    }

    /// With formulas for all that a particle has, of the columns `names`.
    fn filled(
        &self,
        names: &[String],
        species: &About,
        wrong: impl Fn(&str, &str) -> DeckError,
    ) -> Result<Self, DeckError> {
        let has = |name: &str| names.iter().any(|known| known == name);
        let mut whole = self.clone();
        if whole.velocity.is_none() {
            let columns = ["vx", "vy", "vz"];
            let moves = columns.iter().any(|name| has(name));
            whole.velocity = Some(columns.map(|name| if moves { name } else { "0" }.into()));
        }
        if whole.mass.is_none() {
            let massive = species.mass.is_none();
            if massive && !has("mass") {
                let why = "is missing, and the file has no column mass: give a formula, or the mass of the species";
                return Err(wrong("mass", why));
            }
            whole.mass = Some(if massive { "mass" } else { "0" }.into());
        }
        for name in species.scalars.iter().filter(|name| has(name)) {
            let formula = whole.scalars.entry(name.clone());
            formula.or_insert_with(|| name.clone());
        }
        Ok(whole)
    }

    fn compiled(
        &self,
        deck: &Deck,
        path: &str,
        scalars: &[String],
        variables: &[&str],
    ) -> Result<([Formula; 3], Others), DeckError> {
        let compile = Compile {
            deck,
            path,
            variables,
        };
        let none = super::formulas::zeros();
        let others = Others {
            velocity: compile.three("velocity", self.velocity.as_ref().unwrap_or(&none))?,
            mass: compile.one("mass", self.mass.as_deref().unwrap_or("0"))?,
            keep: compile.one("keep", &self.keep)?,
            scalars: compile.scalars(scalars, &self.scalars)?,
        };
        Ok((compile.three("position", &self.position)?, others))
    }
}

impl Source for Rows {
    fn count(&self) -> u64 {
        self.count as u64
    }

    fn make(&self, id: u64) -> Option<Made> {
        let values: Vec<f64> = self
            .columns
            .iter()
            .map(|column| column[id as usize])
            .collect();
        self.others.made(&values, || {
            [0, 1, 2].map(|axis| self.position[axis].eval(&values))
        })
    }
}
