//! From the table `[cooling]` to rates at nodes.

use super::config::{CoolingConfig, LawsConfig, RatesConfig};
use super::group::Group;
use super::known::Source;
use super::laws::{KOYAMA_INUTSUKA, Law, Laws};
use nestar_deck::{Deck, DeckError, TableFile, nearest};
use nestar_kernels::cooling::laws::{
    DUST_ENDS, KOYAMA_INUTSUKA_HEATING, PowerLaws, koyama_inutsuka,
};
use nestar_kernels::cooling::tabulate::Weight;
use nestar_kernels::cooling::{Curves, Grid, Rates, tabulate};
use std::sync::Arc;

/// Temperature of the cosmic microwave background today, kelvin (D. J. Fixsen, ApJ 707, 916, 2009).
const BACKGROUND: f64 = 2.725;
/// Metallicities at which a law of the program is tabulated.
const METALLICITIES: [f64; 8] = [0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];

impl Source {
    fn of_law(law: Law, densities: [f64; 2]) -> Self {
        let [cooling, heating] = [law.clone(), law];
        let rates = Rates {
            cooling: Box::new(move |n, t, z| cooling(n, t, z).cooling),
            heating: Box::new(move |n, t, z| heating(n, t, z).heating),
            weight: Weight::Fixed(1.0),
        };
        Self {
            rates,
            densities: Some(densities),
            metallicities: METALLICITIES.to_vec(),
            richest: METALLICITIES[METALLICITIES.len() - 1],
            ..Self::plain(|_| 0.0, 0.0)
        }
    }

    fn of_laws(laws: &LawsConfig) -> Result<Self, String> {
        let LawsConfig {
            temperature_k,
            lambda,
            exponent,
        } = laws;
        let laws = match exponent.is_empty() {
            true => PowerLaws::through(temperature_k, lambda)?,
            false => PowerLaws::pieces(temperature_k, lambda, exponent)?,
        };
        Ok(Self::plain(move |t| laws.at(t), 0.0))
    }

    fn of_file(path: &std::path::Path) -> Result<Self, DeckError> {
        let file = TableFile::read(path)?;
        let (places, values) = (file.ascending("temperature_k")?, file.column("lambda")?);
        let laws = PowerLaws::through(&places, &values);
        let laws = laws.map_err(|why| DeckError::new(path.display().to_string(), why))?;
        Ok(Self {
            known: [laws.lowest(), laws.highest()],
            ..Self::plain(move |t| laws.at(t), 0.0)
        })
    }

    /// # Errors
    /// No such law; what is wrong with a file.
    pub fn read(config: &CoolingConfig, deck: &Deck, laws: &Laws) -> Result<Self, DeckError> {
        let wrong = |why: String| deck.error_at("cooling.table", why);
        let name = match &config.table {
            RatesConfig::Laws(laws) => return Self::of_laws(laws).map_err(wrong),
            RatesConfig::Named(name) => name,
        };
        let path = match deck.directory() {
            Some(directory) => directory.join(name),
            None => name.into(),
        };
        if name == KOYAMA_INUTSUKA {
            return Ok(Self::plain(koyama_inutsuka, KOYAMA_INUTSUKA_HEATING));
        }
        if let Some(law) = laws.0.get(name) {
            return Ok(Self::of_law(law.clone(), config.densities_cm3));
        }
        if name.ends_with(".zarr") {
            let group = Group::read(&path, config.redshift).map_err(wrong)?;
            return Ok(group.source());
        }
        if name.ends_with(".csv") || name.ends_with(".txt") {
            return Self::of_file(&path);
        }
        let known = laws.0.keys().map(String::as_str);
        let known: Vec<&str> = std::iter::once(KOYAMA_INUTSUKA).chain(known).collect();
        let guess = nearest(name, known.iter().copied());
        let guess = guess.map_or_else(String::new, |word| format!("; did you mean {word:?}?"));
        Err(wrong(format!(
            "`cooling.table` = {name:?} is no law of cooling (there are {}) and no file that ends in .csv or .zarr{guess}",
            known.join(", ")
        )))
    }
}

/// The curves by which cells cool: the rates of `source` with the heating and the background of the deck.
///
/// # Errors
/// The floor is colder than the rates are known; those of [`tabulate`].
pub(super) fn curves(
    config: &CoolingConfig,
    deck: &Deck,
    source: Source,
    (gamma, carries, constant): (f64, bool, f64),
) -> Result<Curves<f64>, DeckError> {
    let [lowest, highest] = source.known;
    if config.floor_k < lowest * (1.0 - 1e-9) {
        let floor = config.floor_k;
        return Err(deck.error_at(
            "cooling.floor_k",
            format!(
                "the rates of `cooling.table` are known from {lowest} K on, and `cooling.floor_k` is {floor} K: raise it to {lowest}"
            ),
        ));
    }
    let varies = source.metallicities.len() > 1 && carries;
    let grid = Grid {
        temperatures: [config.floor_k, config.top_k.min(highest)],
        per_octave: config.nodes,
        densities: source.densities,
        densities_per_octave: config.density_nodes,
        metallicities: match varies {
            true => source.metallicities,
            false => vec![config.metallicity],
        },
        richest: match varies {
            true => source.richest,
            false => config.metallicity,
        },
        gamma,
        hydrogen: config.hydrogen_fraction,
    };
    let rates = with_heating(config, source.rates, constant);
    tabulate(&rates, &grid).map_err(|why| deck.error_at("cooling.table", why))
}

/// Rates with those of the deck.
fn with_heating(config: &CoolingConfig, rates: Rates<'static>, constant: f64) -> Rates<'static> {
    let Rates {
        cooling,
        heating,
        weight,
    } = rates;
    let cooling = Arc::new(cooling);
    let background = config
        .background
        .then_some(BACKGROUND * (1.0 + config.redshift));
    let dust = config.photoelectric;
    let lost = move |n: f64, t: f64, z: f64| match background {
        None => cooling(n, t, z),
        Some(coldest) => cooling(n, t, z) - cooling(n, coldest, z),
    };
    let gained = move |n: f64, t: f64, z: f64| {
        heating(n, t, z) + constant + if t < DUST_ENDS { dust } else { 0.0 }
    };
    Rates {
        cooling: Box::new(lost),
        heating: Box::new(gained),
        weight: match weight {
            Weight::Fixed(_) => Weight::Fixed(config.mean_molecular_weight),
            known => known,
        },
    }
}
