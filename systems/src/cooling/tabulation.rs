//! Tabulates the rates of the table `[cooling]`.

use super::config::{CoolingConfig, LawsConfig, RatesConfig};
use super::rate_source::{CoolingLawMap, KOYAMA_INUTSUKA, Law, RateSource, implausible};
use super::zarr_table::ZarrTable;
use nestar_deck::{Deck, DeckError, TableFile, nearest};
use nestar_kernels::cooling::laws::{
    DUST_MAX_TEMPERATURE, KOYAMA_INUTSUKA_HEATING, PowerLaws, around, koyama_inutsuka,
};
use nestar_kernels::cooling::tabulate::MolecularWeight;
use nestar_kernels::cooling::{CoolingTable, RateFunctions, TableGrid, TableNodes, tabulate};
use std::path::PathBuf;
use std::sync::Arc;

/// Temperature of the cosmic microwave background today, in kelvin (D. J. Fixsen, ApJ 707, 916, 2009).
const BACKGROUND: f64 = 2.725;
/// Metallicities at which a law of the program is tabulated.
const METALLICITIES: [f64; 8] = [0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];

/// Returns the path of a file that the deck names.
pub(super) fn path_of(deck: &Deck, name: &str) -> PathBuf {
    match deck.directory() {
        Some(directory) => directory.join(name),
        None => name.into(),
    }
}

impl RateSource {
    fn of_law(law: Law, densities: [f64; 2]) -> Self {
        let [cooling, heating] = [law.clone(), law];
        let rates = RateFunctions {
            cooling: Box::new(move |n, t, z| cooling(n, t, z).cooling),
            heating: Box::new(move |n, t, z| heating(n, t, z).heating),
            weight: MolecularWeight::Fixed(1.0),
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
        for (n, value) in lambda.iter().enumerate() {
            if let Some(why) = implausible(*value) {
                return Err(format!(
                    "value {} of `cooling.table.lambda` is {value:?} erg cm^3/s, {why}",
                    n + 1
                ));
            }
        }
        Ok(Self::of_power_laws(laws))
    }

    fn of_file(path: &std::path::Path) -> Result<Self, DeckError> {
        let file = TableFile::read(path)?;
        let (places, values) = (file.ascending("temperature_k")?, file.column("lambda")?);
        if places[0] <= 0.0 {
            let why = "temperatures must be above 0 kelvin: give temperatures, not logarithms";
            return Err(file.error_at("temperature_k", 0, why));
        }
        if places.len() < 2 {
            let why = "a table needs at least two rows: add another temperature";
            return Err(file.error_at("temperature_k", 0, why));
        }
        for (row, value) in values.iter().enumerate() {
            if let Some(why) = implausible(*value) {
                let why = format!("\"lambda\" is {value:?} erg cm^3/s, {why}");
                return Err(file.error_at("lambda", row, why));
            }
        }
        let laws = PowerLaws::through(&places, &values);
        let laws = laws.map_err(|why| DeckError::new(path.display().to_string(), why))?;
        Ok(Self {
            known: [laws.lowest(), laws.highest()],
            ..Self::of_power_laws(laws)
        })
    }

    /// Reads the source of rates of a deck.
    ///
    /// # Errors
    /// The law does not exist; a file is invalid.
    pub fn read(
        config: &CoolingConfig,
        deck: &Deck,
        laws: &CoolingLawMap,
    ) -> Result<Self, DeckError> {
        let wrong = |why: String| deck.error_at("cooling.table", why);
        let name = match &config.table {
            RatesConfig::Laws(laws) => return Self::of_laws(laws).map_err(wrong),
            RatesConfig::Named(name) => name,
        };
        let path = path_of(deck, name);
        if name == KOYAMA_INUTSUKA {
            return Ok(Self::plain(koyama_inutsuka, KOYAMA_INUTSUKA_HEATING));
        }
        if let Some(law) = laws.0.get(name) {
            return Ok(Self::of_law(law.clone(), config.densities_cm3));
        }
        if name.ends_with(".zarr") {
            let group = ZarrTable::read(&path, config.redshift).map_err(wrong)?;
            return Ok(group.source(config.metallicity));
        }
        if name.ends_with(".csv") || name.ends_with(".txt") {
            if !path.is_file() {
                return Err(wrong(format!("file not found: {}", path.display())));
            }
            return Self::of_file(&path);
        }
        let known = laws.0.keys().map(String::as_str);
        let known: Vec<&str> = std::iter::once(KOYAMA_INUTSUKA).chain(known).collect();
        let guess = nearest(name, known.iter().copied());
        let guess = guess.map_or_else(String::new, |word| format!("; did you mean {word:?}?"));
        Err(wrong(format!(
            "`cooling.table` = {name:?} is neither a cooling law ({}) nor a file that ends in .csv or .zarr{guess}",
            known.join(", ")
        )))
    }
}

/// Places the nodes. Heating and the background make rates that are no power laws between the nodes of a file.
fn nodes(config: &CoolingConfig, source: &RateSource, constant: Option<f64>) -> TableNodes {
    if source.nodes.is_empty() {
        return TableNodes::Uniform;
    }
    let mut nodes = source.nodes.clone();
    let dust = config.photoelectric > 0.0;
    if dust {
        nodes.extend(around(DUST_MAX_TEMPERATURE));
        nodes.sort_by(f64::total_cmp);
    }
    match source.heats || dust || config.background || constant != Some(0.0) {
        true => TableNodes::Filled(nodes),
        false => TableNodes::Own(nodes),
    }
}

/// Temperature that all tables reach, in kelvin. Logarithms of temperatures are smaller.
const LOWEST_REACH: f64 = 10.0;

/// Tabulates the rates of `source` with the heating and the background of the deck. `constant` is the additional heating, unless a formula
/// gives it.
///
/// # Errors
/// The deck asks for values outside the rates, or for a dependence that they do not have; errors of [`tabulate`].
pub(super) fn curves(
    config: &CoolingConfig,
    deck: &Deck,
    source: RateSource,
    gamma: f64,
    carries: bool,
    constant: Option<f64>,
) -> Result<CoolingTable<f64>, DeckError> {
    let highest = source.known[1];
    let varies = source.metallicities.len() > 1 && carries;
    let last = source.nodes.last().copied().unwrap_or(highest);
    if last < LOWEST_REACH {
        let why = format!(
            "the last temperature is {last:?} K: give temperatures in kelvin, not logarithms"
        );
        return Err(deck.error_at("cooling.table", why));
    }
    check_reach(config, deck, source.known)?;
    check_choices(config, deck, &source, varies)?;
    let grid = TableGrid {
        nodes: nodes(config, &source, constant),
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
    let mut rates = with_heating(config, source.rates, constant.unwrap_or(0.0));
    if deck.has("chemistry") {
        // the species give the mean molecular weight
        rates.weight = MolecularWeight::Fixed(1.0);
    }
    tabulate(&rates, &grid).map_err(|why| deck.error_at("cooling.table", why))
}

/// Checks the temperature range.
///
/// # Errors
/// The rates do not include the floor or the temperature of the background.
fn check_reach(
    config: &CoolingConfig,
    deck: &Deck,
    [lowest, highest]: [f64; 2],
) -> Result<(), DeckError> {
    let known = |lowest: f64| format!("the rates of `cooling.table` start at {lowest} K");
    let key = deck.written("cooling.floor_k");
    if config.floor_k < lowest * (1.0 - 1e-9) {
        let (known, floor) = (known(lowest), config.floor_k);
        let why = format!("{known}, but `{key}` is {floor} K: raise it to {lowest}");
        return Err(deck.error_at(key, why));
    }
    let top = config.top_k.min(highest);
    if top <= config.floor_k {
        let (floor, cut) = (config.floor_k, config.top_k < highest);
        let by = if cut {
            "cooling.top_k"
        } else {
            "cooling.table"
        };
        let why = format!(
            "`{key}` is {floor} K, but the rates end at {top} K because of `{by}`: lower the floor or change `{by}`"
        );
        let given = cut && deck.has(by);
        return Err(deck.error_at(if given { by } else { key }, why));
    }
    let lowest = match &config.table {
        RatesConfig::Laws(laws) => laws.temperature_k[0],
        RatesConfig::Named(_) => lowest,
    };
    let coldest = BACKGROUND * (1.0 + config.redshift);
    if config.background && coldest < lowest {
        let known = known(lowest);
        let why = format!(
            "{known}, but the rate at {coldest} K is to be subtracted: use a table that includes it, or remove `cooling.background`"
        );
        return Err(deck.error_at("cooling.background", why));
    }
    Ok(())
}

/// Checks metallicity and densities.
///
/// # Errors
/// The rates do not depend on the metallicity or do not include it; densities do not ascend.
fn check_choices(
    config: &CoolingConfig,
    deck: &Deck,
    source: &RateSource,
    varies: bool,
) -> Result<(), DeckError> {
    let z = config.metallicity;
    if source.metallicities.len() < 2 && z != CoolingConfig::default().metallicity {
        let why = format!(
            "the rates of `cooling.table` do not depend on metals, but `cooling.metallicity` is {z}: remove it, or use a Zarr group with \
             `cooling_metal` or a law of the program"
        );
        return Err(deck.error_at("cooling.metallicity", why));
    }
    let [poorest, richest] = source.metals;
    if !varies && !(poorest..=richest).contains(&z) {
        let why = format!(
            "`cooling.table` covers metallicities {poorest} to {richest}, but `cooling.metallicity` is {z}"
        );
        return Err(deck.error_at("cooling.metallicity", why));
    }
    let [low, high] = config.densities_cm3;
    if low >= high {
        let why = format!("`cooling.densities_cm3` must ascend, found {low} and {high}");
        return Err(deck.error_at("cooling.densities_cm3", why));
    }
    Ok(())
}

/// Adds heating and the background of the deck to rates.
fn with_heating(
    config: &CoolingConfig,
    rates: RateFunctions<'static>,
    constant: f64,
) -> RateFunctions<'static> {
    let RateFunctions {
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
        heating(n, t, z) + constant + if t < DUST_MAX_TEMPERATURE { dust } else { 0.0 }
    };
    RateFunctions {
        cooling: Box::new(lost),
        heating: Box::new(gained),
        weight: match weight {
            MolecularWeight::Fixed(_) => MolecularWeight::Fixed(config.mean_molecular_weight),
            known => known,
        },
    }
}
