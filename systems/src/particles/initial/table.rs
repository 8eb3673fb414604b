//! Particles from files: text, Parquet, or Zarr arrays.

use super::formulas::{AttributeFormulas, Compile, one};
use super::parquet::{ParquetFile, is_parquet};
use super::{InitialParticle, ParticleSource, SpeciesInfo};
use nestar_deck::{Deck, DeckError, Formula, TableFile, deck};
use nestar_snapshot::{column_names, read_columns};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Particles from the rows of a file. Formulas may use the columns by name (`column_1`, `column_2`, ... if a
/// name is not valid), the row number `row` from 0, and the deck's constants, for example those of units.
/// Each rank reads the whole file.
#[deck]
pub struct TableInitial {
    /// File name, relative to the folder of the deck. A text file has one row per line, with numbers
    /// separated by commas, semicolons or blanks, and names in the first row. Comments follow `#`, and `1D-3`
    /// means `1e-3`. A Parquet file has columns of float, double, int32 or int64. A folder is a Zarr group of
    /// arrays with one value per row. An array `v` with three values per row gives the columns `v_x`, `v_y`
    /// and `v_z`.
    pub file: String,
    /// Position along x, y, z, formulas.
    #[key(default = ["x", "y", "z"].map(String::from), unit = "length")]
    pub position: [String; 3],
    /// Identity, a formula: a unique integer from 0 to 2^53. Default: the column `id`, or the row number if
    /// there is none.
    pub id: Option<String>,
    /// Velocity along x, y, z, formulas. Default: the columns `vx`, `vy`, `vz`, or 0 if there are none.
    #[key(unit = "length/time")]
    pub velocity: Option<[String; 3]>,
    /// Mass, a formula. Default: the column `mass`. Not allowed if the species gives the mass.
    #[key(unit = "mass")]
    pub mass: Option<String>,
    /// Condition, a formula: a row is a particle if it is not 0.
    #[key(default = one())]
    pub keep: String,
    /// Scalars by name, formulas. Default: the column of the same name, or 0 if there is none.
    #[key(default = BTreeMap::new())]
    pub scalars: BTreeMap<String, String>,
}

/// Name of the row number in formulas.
const ROW: &str = "row";
/// Upper limit of identities: integers below it are exact in double precision.
const MOST: f64 = (1u64 << 53) as f64;

/// Source of particles from a table.
pub(super) struct TableSource {
    /// Columns used by formulas.
    columns: Vec<Vec<f64>>,
    file: String,
    count: usize,
    /// Identities by row; empty if they are the row numbers.
    identities: Vec<u64>,
    formulas: Formulas,
}

/// Formulas of a row.
struct Formulas {
    position: [Formula; 3],
    id: Option<Formula>,
    others: AttributeFormulas,
}

impl Formulas {
    fn uses_column(&self, name: &str) -> bool {
        let mut all = self
            .position
            .iter()
            .chain(&self.id)
            .chain(self.others.formulas());
        all.any(|formula| formula.uses(name))
    }
}

/// Input file.
enum File {
    Text(TableFile),
    Parquet(ParquetFile),
    /// Zarr group with the names of its columns.
    Zarr(PathBuf, Vec<String>),
}

impl File {
    fn open(path: PathBuf) -> Result<Self, String> {
        match path.is_dir() {
            false if is_parquet(&path) => ParquetFile::open(path).map(Self::Parquet),
            false => TableFile::read(path)
                .map(Self::Text)
                .map_err(|error| error.to_string()),
            true => {
                let names = column_names(&path).map_err(|error| error.to_string())?;
                Ok(Self::Zarr(path, names))
            }
        }
    }

    fn names(&self) -> &[String] {
        match self {
            Self::Text(file) => file.names(),
            Self::Parquet(file) => file.names(),
            Self::Zarr(_, names) => names,
        }
    }

    /// Reads columns.
    fn columns(&self, names: &[&str]) -> Result<Vec<Vec<f64>>, String> {
        match self {
            Self::Parquet(file) => file.columns(names),
            Self::Zarr(path, _) => read_columns(path, names).map_err(|error| error.to_string()),
            Self::Text(file) => {
                let columns = names.iter().map(|name| file.column(name));
                columns
                    .collect::<Result<_, _>>()
                    .map_err(|error| error.to_string())
            }
        }
    }
}

impl File {
    /// Reads the columns that formulas use, of `all` columns including [`ROW`]. Returns them and the number
    /// of rows.
    fn used_columns(
        &self,
        all: &[&str],
        used_columns: &[&str],
    ) -> Result<(Vec<Vec<f64>>, usize), String> {
        let own = self.names().iter().zip(all);
        let own = own.filter(|(_, known)| used_columns.contains(known));
        let mut own: Vec<&str> = own.map(|(name, _)| &**name).collect();
        let kept = own.len();
        if own.is_empty() {
            // gives the number of rows
            own.push(&self.names()[0]);
        }
        let mut columns = self.columns(&own)?;
        let count = columns[0].len();
        columns.truncate(kept);
        if used_columns.len() > kept {
            columns.push((0..count).map(|row| row as f64).collect());
        }
        Ok((columns, count))
    }
}

/// Returns the names of columns in formulas.
fn names(file: &File) -> Result<Vec<String>, String> {
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
    let names: Vec<String> = named.collect();
    let twice = (1..names.len()).find(|&n| names[..n].contains(&names[n]));
    match twice {
        None => Ok(names),
        Some(n) => Err(format!(
            "two columns have the name `{}` in formulas (the second is {:?} in the file): rename one",
            names[n],
            file.names()[n]
        )),
    }
}

impl TableInitial {
    /// Reads the table of the deck table `path`.
    ///
    /// # Errors
    /// The file or a formula is invalid, with line and column; the mass is missing.
    pub(super) fn rows(
        &self,
        deck: &Deck,
        path: &str,
        species: &SpeciesInfo,
    ) -> Result<TableSource, DeckError> {
        let folder = deck.directory().unwrap_or(Path::new(""));
        let at = |error: String| deck.error_at(&format!("{path}.file"), error);
        let file = File::open(folder.join(&self.file)).map_err(at)?;
        let names = names(&file).map_err(at)?;
        let whole = self.with_defaults(&names, species, |key, why| {
            let path = format!("{path}.{key}");
            deck.error_at(path.as_str(), format!("`{path}` {why}"))
        })?;
        let mut all: Vec<&str> = names.iter().map(String::as_str).collect();
        if !all.contains(&ROW) {
            all.push(ROW);
        }
        let formulas = whole.compile_formulas(deck, path, species.scalars, &all)?;
        // compile again with the used columns only, which are kept in memory
        let used_columns: Vec<&str> = (all.iter().copied())
            .filter(|name| formulas.uses_column(name))
            .collect();
        let (columns, count) = file.used_columns(&all, &used_columns).map_err(at)?;
        let mut rows = TableSource {
            columns,
            file: self.file.clone(),
            count,
            identities: Vec::new(),
            formulas: whole.compile_formulas(deck, path, species.scalars, &used_columns)?,
        };
        let wrong =
            |why: String| deck.error_at(&format!("{path}.id"), format!("{}: {why}", self.file));
        rows.identities = rows.read_identities().map_err(wrong)?;
        Ok(rows)
    }

    /// Fills in default formulas for all attributes, given the column names.
    fn with_defaults(
        &self,
        names: &[String],
        species: &SpeciesInfo,
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
                let why = "is missing, and the file has no column mass: give a formula, or `mass` of the species";
                return Err(wrong("mass", why));
            }
            whole.mass = Some(if massive { "mass" } else { "0" }.into());
        }
        if whole.id.is_none() && has("id") {
            whole.id = Some("id".into());
        }
        for name in species.scalars.iter().filter(|name| has(name)) {
            let formula = whole.scalars.entry(name.clone());
            formula.or_insert_with(|| name.clone());
        }
        Ok(whole)
    }

    fn compile_formulas(
        &self,
        deck: &Deck,
        path: &str,
        scalars: &[String],
        variables: &[&str],
    ) -> Result<Formulas, DeckError> {
        let compile = Compile {
            deck,
            path,
            variables,
        };
        let none = super::formulas::zeros();
        let others = AttributeFormulas {
            path: path.into(),
            velocity: compile.three("velocity", self.velocity.as_ref().unwrap_or(&none))?,
            mass: compile.one("mass", self.mass.as_deref().unwrap_or("0"))?,
            keep: compile.one("keep", &self.keep)?,
            scalars: compile.scalars(scalars, &self.scalars)?,
        };
        let id = self.id.as_ref().map(|text| compile.one("id", text));
        Ok(Formulas {
            position: compile.three("position", &self.position)?,
            id: id.transpose()?,
            others,
        })
    }
}

impl TableSource {
    fn values(&self, row: usize) -> Vec<f64> {
        self.columns.iter().map(|column| column[row]).collect()
    }

    /// Returns the identities of all rows; empty if they are the row numbers.
    ///
    /// # Errors
    /// An identity is invalid or not unique.
    fn read_identities(&self) -> Result<Vec<u64>, String> {
        let Some(id) = &self.formulas.id else {
            return Ok(Vec::new());
        };
        let hint = "`id = \"row\"` numbers the particles by row";
        let identities = (0..self.count).into_par_iter().map(|row| {
            let id = id.eval(&self.values(row));
            match (0.0..MOST).contains(&id) && id.fract() == 0.0 {
                true => Ok(id as u64),
                false => Err(format!(
                    "row {} has the identity {id}: it must be an integer from 0 to 2^53; {hint}",
                    row + 1
                )),
            }
        });
        let identities: Vec<u64> = identities.collect::<Result<_, String>>()?;
        let keep = |row: usize| self.formulas.others.keep.eval(&self.values(row)) != 0.0;
        let kept = (0..self.count).into_par_iter().filter(|&row| keep(row));
        let mut kept: Vec<(u64, usize)> = kept.map(|row| (identities[row], row)).collect();
        kept.par_sort_unstable();
        match kept.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            None => Ok(identities),
            Some(pair) => Err(format!(
                "rows {} and {} have the identity {}, which must be unique in the species; {hint}",
                pair[0].1 + 1,
                pair[1].1 + 1,
                pair[0].0
            )),
        }
    }
}

impl ParticleSource for TableSource {
    fn count(&self) -> u64 {
        self.count as u64
    }

    fn identity(&self, number: u64) -> u64 {
        let identity = self.identities.get(number as usize);
        identity.copied().unwrap_or(number)
    }

    fn origin(&self, number: u64) -> String {
        format!(" (row {} of {})", number + 1, self.file)
    }

    fn make(&self, number: u64) -> Result<Option<InitialParticle>, String> {
        let values = self.values(number as usize);
        let Formulas {
            position, others, ..
        } = &self.formulas;
        others.made(&values, || {
            [0, 1, 2].map(|axis| position[axis].eval(&values))
        })
    }
}
