//! Radiation backgrounds whose ionisation, heating and dissociation rates depend on redshift.

use nestar_deck::{Deck, DeckError, TableFile, deck, nearest};
use nestar_device::math::{exp, ln};
use nestar_snapshot::{PlainArray, read_array};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The key of the table.
const KEY: &str = "chemistry.radiation";
/// Columns of rates (1/s, in the order of the network), then of heating rates (eV/s per atom or ion).
const NAMES: [&str; 9] = [
    "HI",
    "HeI",
    "HeII",
    "HM",
    "H2I",
    "H2II",
    "heat_HI",
    "heat_HeI",
    "heat_HeII",
];
/// Number of columns with rates.
const RATES: usize = 6;
/// Number of columns with heating rates.
const HEATS: usize = 3;
/// Column of redshifts.
const REDSHIFT: &str = "redshift";

/// Table of radiation by redshift: a file or columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RadiationConfig {
    /// A text file (`.csv`) or Zarr group (`.zarr`), relative to the deck.
    File(String),
    /// Columns.
    Columns(Box<RadiationColumns>),
}

/// Rates at ascending redshifts; missing columns are 0. Rates are interpolated as power laws of 1 + redshift.
#[deck]
pub struct RadiationColumns {
    /// Redshifts, in ascending order.
    #[key(default = Vec::new())]
    pub redshift: Vec<f64>,
    /// Photo-ionisation of H.
    #[key(default = Vec::new(), unit = "1/s", min = 0.0)]
    #[serde(rename = "HI", skip_serializing_if = "Vec::is_empty")]
    pub h: Vec<f64>,
    /// Photo-ionisation of He.
    #[key(default = Vec::new(), unit = "1/s", min = 0.0)]
    #[serde(rename = "HeI", skip_serializing_if = "Vec::is_empty")]
    pub he: Vec<f64>,
    /// Photo-ionisation of He+.
    #[key(default = Vec::new(), unit = "1/s", min = 0.0)]
    #[serde(rename = "HeII", skip_serializing_if = "Vec::is_empty")]
    pub he_ion: Vec<f64>,
    /// Photo-detachment of H-.
    #[key(default = Vec::new(), unit = "1/s", min = 0.0)]
    #[serde(rename = "HM", skip_serializing_if = "Vec::is_empty")]
    pub h_minus: Vec<f64>,
    /// Photo-dissociation of H2 and HD.
    #[key(default = Vec::new(), unit = "1/s", min = 0.0)]
    #[serde(rename = "H2I", skip_serializing_if = "Vec::is_empty")]
    pub h2: Vec<f64>,
    /// Photo-dissociation of H2+.
    #[key(default = Vec::new(), unit = "1/s", min = 0.0)]
    #[serde(rename = "H2II", skip_serializing_if = "Vec::is_empty")]
    pub h2_ion: Vec<f64>,
    /// Photo-ionisation heating per H atom.
    #[key(default = Vec::new(), unit = "eV/s", min = 0.0)]
    #[serde(rename = "heat_HI", skip_serializing_if = "Vec::is_empty")]
    pub heat_h: Vec<f64>,
    /// Photo-ionisation heating per He atom.
    #[key(default = Vec::new(), unit = "eV/s", min = 0.0)]
    #[serde(rename = "heat_HeI", skip_serializing_if = "Vec::is_empty")]
    pub heat_he: Vec<f64>,
    /// Photo-ionisation heating per He+ ion.
    #[key(default = Vec::new(), unit = "eV/s", min = 0.0)]
    #[serde(rename = "heat_HeII", skip_serializing_if = "Vec::is_empty")]
    pub heat_he_ion: Vec<f64>,
}

impl RadiationColumns {
    fn table(self) -> RadiationTable {
        let values = [
            self.h,
            self.he,
            self.he_ion,
            self.h_minus,
            self.h2,
            self.h2_ion,
            self.heat_h,
            self.heat_he,
            self.heat_he_ion,
        ];
        RadiationTable {
            redshift: self.redshift,
            values,
        }
    }
}

/// Columns in the order of [`NAMES`]; missing columns are empty.
#[derive(Clone, Debug)]
pub(super) struct RadiationTable {
    redshift: Vec<f64>,
    values: [Vec<f64>; 9],
}

impl RadiationTable {
    /// Builds a table from a function that returns a column by name, if it exists.
    fn by<E>(mut column: impl FnMut(&str) -> Result<Option<Vec<f64>>, E>) -> Result<Self, E> {
        let redshift = column(REDSHIFT)?.unwrap_or_default();
        let mut values: [Vec<f64>; 9] = Default::default();
        for (name, values) in NAMES.iter().zip(&mut values) {
            *values = column(name)?.unwrap_or_default();
        }
        Ok(Self { redshift, values })
    }

    fn of_text(path: &Path) -> Result<Self, DeckError> {
        let file = TableFile::read(path)?;
        let known = || [REDSHIFT].into_iter().chain(NAMES);
        let strange = |name: &&String| known().all(|column| column != **name);
        if let Some(name) = file.names().iter().find(strange) {
            let guess = nearest(name, known());
            let guess = guess.map_or_else(String::new, |word| format!("; did you mean {word:?}?"));
            let known: Vec<&str> = known().collect();
            let known = known.join(", ");
            let why = format!("unknown column {name:?}{guess} (known columns: {known})");
            return Err(DeckError::new(path.display().to_string(), why));
        }
        file.ascending(REDSHIFT)?;
        Self::by(|name| match file.names().iter().any(|own| own == name) {
            true => file.column(name).map(Some),
            false => Ok(None),
        })
    }

    fn of_group(path: &Path) -> Result<Self, String> {
        Self::by(|name| {
            if !path.join(name).is_dir() {
                return Ok(None);
            }
            let array = read_array(path, name).map_err(|error| error.to_string())?;
            let PlainArray { shape, values } = array;
            match shape.len() == 1 {
                true => Ok(Some(values)),
                false => Err(format!(
                    "{}: `{name}` must have one dimension, its shape is {shape:?}",
                    path.display()
                )),
            }
        })
    }

    /// Checks the table.
    ///
    /// # Errors
    /// Redshifts are negative or do not ascend; columns differ in length; rates are negative; there is heating without
    /// ionisation.
    fn check(&self) -> Result<(), String> {
        let Self { redshift, values } = self;
        if redshift.first().is_none_or(|first| *first < 0.0) {
            return Err("it needs a column `redshift` with values from 0 on".into());
        }
        if let Some(pair) = redshift.windows(2).find(|pair| pair[1] <= pair[0]) {
            let [low, high] = [pair[0], pair[1]];
            return Err(format!("`redshift` must ascend, found {high} after {low}"));
        }
        for (name, values) in NAMES.iter().zip(values) {
            let (wanted, found) = (redshift.len(), values.len());
            if found != 0 && found != wanted {
                return Err(format!(
                    "`{name}` must have a value for each of {wanted} redshifts, found {found}"
                ));
            }
            if let Some(n) = values.iter().position(|x| !(*x >= 0.0 && x.is_finite())) {
                let (value, z) = (values[n], redshift[n]);
                return Err(format!(
                    "`{name}` must be a number from 0 on, found {value} at redshift {z}"
                ));
            }
        }
        for (n, z) in redshift.iter().enumerate() {
            let value = |column: usize| values[column].get(n).copied().unwrap_or(0.0);
            if let Some(k) = (0..HEATS).find(|&k| value(RATES + k) > 0.0 && value(k) == 0.0) {
                let [heat, rate] = [NAMES[RATES + k], NAMES[k]];
                return Err(format!(
                    "`{heat}` is positive at redshift {z}, but the photo-ionisation rate `{rate}` is 0 there"
                ));
            }
        }
        Ok(())
    }

    /// Returns the radiation at a redshift, which the table must cover.
    pub(super) fn at(&self, z: f64) -> Radiation {
        let value = |column: usize| between(&self.redshift, &self.values[column], z);
        Radiation {
            rates: std::array::from_fn(value),
            heats: std::array::from_fn(|n| value(RATES + n)),
        }
    }
}

/// Radiation background at one redshift.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Radiation {
    /// Photo-ionisation rates of H, He, He+, photo-detachment of H-, photo-dissociation of H2 and H2+, 1/s.
    pub rates: [f64; 6],
    /// Heating rates per H, He, He+, eV/s.
    pub heats: [f64; 3],
}

impl RadiationTable {
    /// Reads the radiation background of a deck; `None` without `chemistry.radiation`.
    ///
    /// # Errors
    /// The table is invalid; it does not cover the redshifts `wanted`, from the lowest to the highest, which the key `path` gives.
    pub(super) fn read(
        given: Option<&RadiationConfig>,
        deck: &Deck,
        wanted: Option<[f64; 2]>,
        path: &str,
    ) -> Result<Option<Self>, DeckError> {
        let wrong = |why: String| deck.error_at(KEY, format!("`{KEY}`: {why}"));
        let Some(given) = given else {
            return Ok(None);
        };
        let table = Self::of(given, deck)?;
        table.check().map_err(wrong)?;
        let Some([low, high]) = wanted else {
            let why = "it needs a redshift: set `chemistry.redshift`";
            return Err(wrong(why.into()));
        };
        let covered = table.redshift[0]..=table.redshift[table.redshift.len() - 1];
        if covered.contains(&low) && covered.contains(&high) {
            return Ok(Some(table));
        }
        let (first, last) = covered.into_inner();
        let missing = match low == high {
            true => format!("`{path}` is {low}"),
            false => format!("the run goes from redshift {high} to {low}"),
        };
        let why = format!(
            "`{KEY}` covers redshifts {first} to {last}, but {missing}: add rows, with rates of 0 where there is no radiation"
        );
        Err(deck.error_at(path, why))
    }

    /// Reads the columns of a deck or of a file.
    fn of(given: &RadiationConfig, deck: &Deck) -> Result<Self, DeckError> {
        let wrong = |why: String| deck.error_at(KEY, format!("`{KEY}`: {why}"));
        let name = match given {
            RadiationConfig::Columns(columns) => return Ok((**columns).clone().table()),
            RadiationConfig::File(name) => name,
        };
        let directory = deck.directory();
        let path = directory.map_or_else(|| name.into(), |d| d.join(name));
        match name.rsplit_once('.').map(|(_, end)| end) {
            Some("zarr") => Self::of_group(&path).map_err(wrong),
            Some("csv" | "txt") if !path.is_file() => {
                Err(wrong(format!("file not found: {}", path.display())))
            }
            Some("csv" | "txt") => Self::of_text(&path),
            _ => Err(wrong(format!("{name:?} does not end in .csv or .zarr"))),
        }
    }
}

/// Interpolates as a power law of 1 + redshift; if one value is 0, linearly in ln(1 + redshift).
fn between(redshift: &[f64], values: &[f64], z: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let above = redshift.partition_point(|&place| place <= z);
    let n = above.saturating_sub(1);
    let (Some(&next), Some(&b)) = (redshift.get(n + 1), values.get(n + 1)) else {
        return values[n];
    };
    let a = values[n];
    let part = ln((1.0 + z) / (1.0 + redshift[n])) / ln((1.0 + next) / (1.0 + redshift[n]));
    match a > 0.0 && b > 0.0 {
        true => a * exp(part * ln(b / a)),
        false => a + part * (b - a),
    }
}
