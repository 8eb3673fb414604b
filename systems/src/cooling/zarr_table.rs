//! Cooling tables in Zarr groups.
//!
//! Axes are one-dimensional, ascending arrays: `log_density` (hydrogen nuclei per cm^3), optional `metallicity` (solar
//! units) and `redshift`, `log_temperature` (kelvin); logarithms are to base 10. Rates have one dimension per axis, in
//! this order: `cooling_primordial` and `cooling_metal` (erg cm^3/s), `heating_primordial` and `heating_metal` (erg/s
//! per hydrogen nucleus), `mean_molecular_weight`; all but the first are optional. Without a metallicity axis the
//! contribution of metals is for solar metallicity and proportional to it.

use super::rate_source::{RateSource, implausible};
use nestar_deck::nearest;
use nestar_device::math::pow;
use nestar_kernels::cooling::RateFunctions;
use nestar_kernels::cooling::laws::between;
use nestar_kernels::cooling::tabulate::MolecularWeight;
use nestar_snapshot::{PlainArray, read_array};
use std::path::Path;
use std::sync::Arc;

/// Largest metallicity of a table without such an axis, in solar units.
const RICHEST: f64 = 1e3;

/// Largest decimal logarithm of an axis; larger values are probably no logarithms.
const LARGEST_LOGARITHM: f64 = 30.0;

/// Names of the arrays.
const ARRAYS: [&str; 9] = [
    "log_density",
    "metallicity",
    "redshift",
    "log_temperature",
    "cooling_primordial",
    "cooling_metal",
    "heating_primordial",
    "heating_metal",
    "mean_molecular_weight",
];

/// Axes of a table.
#[derive(Clone, Debug, Default)]
struct Axes {
    density: Vec<f64>,
    metallicity: Vec<f64>,
    redshift: Vec<f64>,
    temperature: Vec<f64>,
}

/// Rates at one redshift, `[density][metallicity][temperature]`.
type RateValues = Arc<Vec<f64>>;

/// A table at one redshift.
pub(super) struct ZarrTable {
    axes: Arc<Axes>,
    cooling: RateValues,
    heating: RateValues,
    /// Contribution of metals at solar metallicity: cooling, heating.
    metals: [RateValues; 2],
    weight: Option<RateValues>,
}

impl Axes {
    fn read(path: &Path) -> Result<Self, String> {
        let axis = |name: &str, wanted: bool| -> Result<Vec<f64>, String> {
            if !wanted && !path.join(name).is_dir() {
                return Ok(Vec::new());
            }
            let PlainArray { shape, values } = array(path, name)?;
            let rises = values.windows(2).all(|pair| pair[1] > pair[0]);
            match shape.len() == 1 && rises && !values.is_empty() {
                true => Ok(values),
                false => Err(format!(
                    "{}: the axis `{name}` must have one dimension and ascend, its shape is {shape:?}",
                    path.display()
                )),
            }
        };
        let powers = |name: &str| -> Result<Vec<f64>, String> {
            let values = axis(name, true)?;
            match values
                .iter()
                .find(|x| x.is_nan() || x.abs() > LARGEST_LOGARITHM)
            {
                None => Ok(values.into_iter().map(|x| pow(10.0, x)).collect()),
                Some(value) => Err(format!(
                    "{}: the axis `{name}` contains {value:?}, but its values are logarithms to base 10",
                    path.display()
                )),
            }
        };
        let temperature = powers("log_temperature")?;
        if temperature.len() < 2 {
            return Err("the axis `log_temperature` needs at least two values".into());
        }
        let metallicity = axis("metallicity", false)?;
        if metallicity.len() == 1 || metallicity.first().is_some_and(|z| *z < 0.0) {
            return Err(format!(
                "{}: the axis `metallicity` needs at least two values, in solar units (no logarithms), found {metallicity:?}; without this \
                 axis the contribution of metals is for solar metallicity and proportional to it",
                path.display()
            ));
        }
        Ok(Self {
            density: powers("log_density")?,
            metallicity,
            redshift: axis("redshift", false)?,
            temperature,
        })
    }

    /// Returns the sizes of the dimensions.
    fn shape(&self) -> Vec<u64> {
        let all = [
            &self.density,
            &self.metallicity,
            &self.redshift,
            &self.temperature,
        ];
        let there = all.iter().filter(|axis| !axis.is_empty());
        there.map(|axis| axis.len() as u64).collect()
    }

    /// Interpolates values linearly in redshift.
    fn at_redshift(&self, values: &[f64], redshift: f64) -> Vec<f64> {
        if self.redshift.is_empty() {
            return values.to_vec();
        }
        let (n, weight) = weigh(&self.redshift, redshift);
        let next = (n + 1).min(self.redshift.len() - 1);
        let (count, inner) = (self.redshift.len(), self.temperature.len());
        let outer = values.chunks(count * inner);
        let mixed = outer.flat_map(|values| {
            let [low, high] = [n, next].map(|n| &values[n * inner..(n + 1) * inner]);
            let mix = |(a, b): (&f64, &f64)| a + weight * (b - a);
            low.iter().zip(high).map(mix).collect::<Vec<_>>()
        });
        mixed.collect()
    }

    /// Interpolates linearly in metallicity; `at` returns the value of a plane. Without an axis there is one plane.
    fn mixed(&self, z: f64, at: impl Fn(usize) -> f64) -> f64 {
        let (plane, weight) = weigh(&self.metallicity, z);
        let low = at(plane);
        match self.metallicity.len() {
            0 => low,
            _ => low + weight * (at(plane + 1) - low),
        }
    }

    /// Interpolates a plane of metallicity by power laws in density and temperature.
    fn value(&self, values: &[f64], plane: usize, n: f64, t: f64) -> f64 {
        let planes = self.metallicity.len().max(1);
        let (i, _) = weigh(&self.density, n);
        let (k, _) = weigh(&self.temperature, t);
        let inner = self.temperature.len();
        let along = |i: usize| {
            let row = &values[(i * planes + plane) * inner..][..inner];
            let [low, high] = [self.temperature[k], self.temperature[k + 1]];
            between([low, high], [row[k], row[k + 1]], t)
        };
        let Some(&next) = self.density.get(i + 1) else {
            return along(i);
        };
        let n = n.clamp(self.density[i], next);
        between([self.density[i], next], [along(i), along(i + 1)], n)
    }
}

/// Returns the interval of an axis and the position within it, 0 to 1.
fn weigh(axis: &[f64], x: f64) -> (usize, f64) {
    if axis.len() < 2 {
        return (0, 0.0);
    }
    let n = axis.partition_point(|&place| place <= x);
    let n = n.clamp(1, axis.len() - 1) - 1;
    let weight = (x - axis[n]) / (axis[n + 1] - axis[n]);
    (n, weight.clamp(0.0, 1.0))
}

fn array(path: &Path, name: &str) -> Result<PlainArray, String> {
    read_array(path, name).map_err(|error| error.to_string())
}

/// Checks the names of the arrays.
///
/// # Errors
/// An array has an unknown name.
fn check_names(path: &Path) -> Result<(), String> {
    // a path that is not a group is reported when its axes are read
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if ARRAYS.contains(&&*name) || name.starts_with('.') || !entry.path().is_dir() {
            continue;
        }
        let guess = nearest(&name, ARRAYS.iter().copied());
        let guess = guess.map_or_else(String::new, |word| format!("; did you mean {word:?}?"));
        return Err(format!(
            "{}: unknown array {name:?}{guess} (known arrays: {})",
            path.display(),
            ARRAYS.join(", ")
        ));
    }
    Ok(())
}

/// Returns `true` if a group contains a mean molecular weight.
pub(super) fn has_weight(path: &Path) -> bool {
    path.join("mean_molecular_weight").is_dir()
}

impl ZarrTable {
    /// Reads a table at a redshift.
    ///
    /// # Errors
    /// An array is missing or has an unknown name or a wrong shape; the redshift is outside the table.
    pub fn read(path: &Path, redshift: f64) -> Result<Self, String> {
        check_names(path)?;
        let axes = Axes::read(path)?;
        let ends = axes.redshift.first().zip(axes.redshift.last());
        if let Some((first, last)) = ends
            && !(*first..=*last).contains(&redshift)
        {
            return Err(format!(
                "{}: the table covers redshifts {first} to {last}, but `cooling.redshift` is {redshift}",
                path.display()
            ));
        }
        let values = |name: &str| -> Result<Option<Vec<f64>>, String> {
            if !path.join(name).is_dir() {
                return Ok(None);
            }
            let PlainArray { shape, values } = array(path, name)?;
            match shape == axes.shape() {
                true => Ok(Some(axes.at_redshift(&values, redshift))),
                false => Err(format!(
                    "`{name}` has the shape {shape:?}, but its axes have {:?} values (density, optional metallicity and redshift, temperature)",
                    axes.shape()
                )),
            }
        };
        let count = axes.density.len() * axes.metallicity.len().max(1) * axes.temperature.len();
        let or_nothing =
            |values: Option<Vec<f64>>| Arc::new(values.unwrap_or_else(|| vec![0.0; count]));
        let cooling = values("cooling_primordial")?;
        let cooling = cooling.ok_or("the array `cooling_primordial` is missing")?;
        let table = Self {
            cooling: Arc::new(cooling),
            heating: or_nothing(values("heating_primordial")?),
            metals: [
                or_nothing(values("cooling_metal")?),
                or_nothing(values("heating_metal")?),
            ],
            weight: values("mean_molecular_weight")?.map(Arc::new),
            axes: Arc::new(axes),
        };
        table
            .check_values()
            .map_err(|why| format!("{}: {why}", path.display()))?;
        Ok(table)
    }

    /// Checks the meaning of rates and weights. Metals may lower the rates of primordial gas, but not below 0.
    ///
    /// # Errors
    /// Rates are logarithms or negative; a mean molecular weight is not above 0.
    fn check_values(&self) -> Result<(), String> {
        let place = |k: usize| {
            let Axes {
                density,
                metallicity,
                temperature,
                ..
            } = &*self.axes;
            let row = k / temperature.len() / metallicity.len().max(1);
            let (n, t) = (density[row], temperature[k % temperature.len()]);
            format!("at {n} hydrogen nuclei per cm^3 and {t} K")
        };
        let [cooling_metal, heating_metal] = &self.metals;
        for (name, base, metals) in [
            ("cooling", &self.cooling, cooling_metal),
            ("heating", &self.heating, heating_metal),
        ] {
            for (k, (base, metal)) in base.iter().zip(metals.iter()).enumerate() {
                if let Some(why) = implausible(*base) {
                    let place = place(k);
                    return Err(format!("`{name}_primordial` is {base:?} {place}, {why}"));
                }
                if let Some(why) = implausible(metal.max(base + metal)) {
                    let place = place(k);
                    return Err(format!(
                        "`{name}_metal` is {metal:?} {place}, with the rate of primordial gas {why}"
                    ));
                }
            }
        }
        let weights = self.weight.iter().flat_map(|weights| weights.iter());
        match weights
            .enumerate()
            .find(|(_, weight)| !(0.1..=100.0).contains(*weight))
        {
            None => Ok(()),
            Some((k, weight)) => Err(format!(
                "`mean_molecular_weight` is {weight:?} {}, it must be 0.1 to 100 hydrogen masses",
                place(k)
            )),
        }
    }

    /// Returns the rates and their range; the mean molecular weight is that of `metallicity`.
    pub fn source(self, metallicity: f64) -> RateSource {
        let axes = self.axes.clone();
        let [cooling_metal, heating_metal] = self.metals;
        let any = |values: &RateValues| values.iter().any(|value| *value != 0.0);
        let has_metals = any(&cooling_metal) || any(&heating_metal);
        let (metallicities, richest) = match (axes.metallicity.len(), has_metals) {
            (1.., _) => (
                axes.metallicity.clone(),
                axes.metallicity[axes.metallicity.len() - 1],
            ),
            (_, true) => (vec![0.0, 1.0], RICHEST),
            _ => (Vec::new(), 0.0),
        };
        let weight = self
            .weight
            .map(|weights| weight(axes.clone(), weights, metallicity));
        let last = |axis: &[f64]| [axis[0], axis[axis.len() - 1]];
        RateSource {
            nodes: axes.temperature.clone(),
            heats: any(&self.heating) || any(&heating_metal),
            known: last(&axes.temperature),
            densities: (axes.density.len() > 1).then(|| last(&axes.density)),
            metals: match metallicities.len() {
                0 => [0.0, f64::INFINITY],
                _ => [metallicities[0], richest],
            },
            metallicities,
            richest,
            rates: RateFunctions {
                cooling: Box::new(rate(axes.clone(), self.cooling, cooling_metal)),
                heating: Box::new(rate(axes.clone(), self.heating, heating_metal)),
                weight: weight.unwrap_or(MolecularWeight::Fixed(1.0)),
            },
        }
    }
}

/// Returns the mean molecular weight at a metallicity.
fn weight(axes: Arc<Axes>, weights: RateValues, metallicity: f64) -> MolecularWeight<'static> {
    let temperatures = axes.temperature.clone();
    let at = move |n: f64, k: usize| {
        let t = axes.temperature[k];
        axes.mixed(metallicity, |plane| axes.value(&weights, plane, n, t))
    };
    MolecularWeight::At(temperatures, Box::new(at))
}

/// Returns a rate including metals, as a function of density, temperature and metallicity.
fn rate(
    axes: Arc<Axes>,
    base: RateValues,
    metals: RateValues,
) -> impl Fn(f64, f64, f64) -> f64 + Send + Sync {
    move |n, t, z| {
        if axes.metallicity.is_empty() {
            return axes.value(&base, 0, n, t) + z * axes.value(&metals, 0, n, t);
        }
        axes.mixed(z, |plane| {
            axes.value(&base, plane, n, t) + axes.value(&metals, plane, n, t)
        })
    }
}
