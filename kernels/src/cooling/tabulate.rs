//! Builds rate tables from rate functions, on the host and in double precision.

use super::laws::between;
use super::table::CoolingTable;
use nestar_device::Table;
use nestar_device::math::ln;

/// Boltzmann's constant, erg/K (exact, SI 2019).
const BOLTZMANN: f64 = 1.380_649e-16;
/// Seconds in a million Julian years.
const MILLION_YEARS: f64 = 3.155_76e13;

/// Function of hydrogen nuclei per cubic centimetre, temperature in kelvin and metallicity in solar units.
type Rate<'a> = Box<dyn Fn(f64, f64, f64) -> f64 + Send + Sync + 'a>;

/// Source of the mean molecular weight.
pub enum MolecularWeight<'a> {
    /// Constant.
    Fixed(f64),
    /// Values at ascending temperatures, as a function of hydrogen nuclei per cubic centimetre and the index of the temperature.
    At(Vec<f64>, Box<dyn Fn(f64, usize) -> f64 + Send + Sync + 'a>),
}

/// Functions from which a table is built.
pub struct RateFunctions<'a> {
    /// Cooling, erg cm^3/s: the energy loss per volume and time over the square of the hydrogen nuclei.
    pub cooling: Rate<'a>,
    /// Heating, erg/s per hydrogen nucleus.
    pub heating: Rate<'a>,
    /// Mean molecular weight.
    pub weight: MolecularWeight<'a>,
}

/// Nodes of a table and properties of its gas.
#[derive(Clone, Debug, PartialEq)]
pub struct TableGrid {
    /// Lowest temperature of the gas and highest of the table, kelvin.
    pub temperatures: [f64; 2],
    /// Nodes per factor of 2 of temperature over mean molecular weight.
    pub per_octave: u32,
    /// Lowest and highest density, hydrogen nuclei per cubic centimetre; `None` for no dependence.
    pub densities: Option<[f64; 2]>,
    /// Densities per factor of 2.
    pub densities_per_octave: u32,
    /// Metallicities of the planes in solar units, ascending; a single one means no dependence.
    pub metallicities: Vec<f64>,
    /// Largest metallicity to which the last two planes are extrapolated.
    pub richest: f64,
    /// Ratio of specific heats.
    pub gamma: f64,
    /// Mass fraction of hydrogen.
    pub hydrogen: f64,
}

/// Returns kelvin per million years, per erg per second and hydrogen nucleus, for a mass fraction of hydrogen: (gamma - 1) X / k_B.
#[must_use]
pub fn scale(gamma: f64, hydrogen: f64) -> f64 {
    (gamma - 1.0) * hydrogen / BOLTZMANN * MILLION_YEARS
}

impl TableGrid {
    /// Returns [`scale`] of its gas.
    #[must_use]
    pub fn scale(&self) -> f64 {
        scale(self.gamma, self.hydrogen)
    }

    /// Returns the exponent of the largest power of 2 up to the lowest density, and the densities.
    fn density_nodes(&self) -> (i32, Vec<f64>) {
        match self.densities {
            None => (0, vec![1.0]),
            Some(range) => {
                let (octave, mut nodes) = binades(range, self.densities_per_octave);
                if nodes.len() < 2 {
                    nodes.push(2.0 * nodes[0]);
                }
                (octave, nodes)
            }
        }
    }
}

/// Returns the exponent of the largest power of 2 up to a positive number.
fn octave_of(x: f64) -> i32 {
    use nestar_device::Real;
    x.frexp().1 - 1
}

/// Returns the exponent of the first power of 2 and the nodes of the grid that covers a range.
fn binades([low, high]: [f64; 2], per_octave: u32) -> (i32, Vec<f64>) {
    use nestar_device::Real;
    let first = octave_of(low);
    let mut nodes = Vec::new();
    for octave in first.. {
        for n in 0..per_octave {
            let node = (1.0 + f64::from(n) / f64::from(per_octave)).ldexp(octave);
            nodes.push(node);
            if node >= high && nodes.len() > 1 {
                return (first, nodes);
            }
        }
    }
    unreachable!("numbers end")
}

/// Relation between temperature and theta = T / mu at a density.
struct ThetaRelation<'a> {
    rates: &'a RateFunctions<'a>,
    density: f64,
    /// theta at the temperatures of known weight.
    thetas: Vec<f64>,
}

impl<'a> ThetaRelation<'a> {
    /// Tabulates theta at a density.
    ///
    /// # Errors
    /// Temperature over mean molecular weight decreases somewhere.
    fn new(rates: &'a RateFunctions<'a>, density: f64) -> Result<Self, String> {
        let thetas = match &rates.weight {
            MolecularWeight::Fixed(_) => Vec::new(),
            MolecularWeight::At(temperatures, weight) => {
                let theta = |(n, t): (usize, &f64)| t / weight(density, n);
                temperatures.iter().enumerate().map(theta).collect()
            }
        };
        if let (MolecularWeight::At(at, _), Some(n)) = (&rates.weight, falls(&thetas)) {
            return Err(format!(
                "temperature over mean molecular weight must rise with temperature, but from {} K to {} K it goes from {} to {} at a \
                 density of {density} hydrogen nuclei per cm^3",
                at[n],
                at[n + 1],
                thetas[n],
                thetas[n + 1]
            ));
        }
        Ok(Self {
            rates,
            density,
            thetas,
        })
    }

    fn temperature(&self, theta: f64) -> f64 {
        match &self.rates.weight {
            MolecularWeight::Fixed(weight) => theta * weight,
            MolecularWeight::At(temperatures, _) => interpolated(&self.thetas, temperatures, theta),
        }
    }

    fn theta(&self, temperature: f64) -> f64 {
        match &self.rates.weight {
            MolecularWeight::Fixed(weight) => temperature / weight,
            MolecularWeight::At(temperatures, _) => {
                interpolated(temperatures, &self.thetas, temperature)
            }
        }
    }
}

fn falls(numbers: &[f64]) -> Option<usize> {
    let rises = |pair: &[f64]| pair[1] > pair[0];
    numbers.windows(2).position(|pair| !rises(pair))
}

/// Interpolates with power laws, extrapolated outside.
fn interpolated(places: &[f64], values: &[f64], x: f64) -> f64 {
    let above = places.partition_point(|&place| place <= x);
    let n = above.clamp(1, places.len() - 1) - 1;
    between([places[n], places[n + 1]], [values[n], values[n + 1]], x)
}

/// Tabulates rates on a grid.
///
/// # Errors
/// An empty temperature range; temperature over mean molecular weight that does not increase with temperature; a rate that is not finite.
pub fn tabulate(rates: &RateFunctions, grid: &TableGrid) -> Result<CoolingTable<f64>, String> {
    let [coldest, hottest] = grid.temperatures;
    if !(coldest > 0.0 && hottest > coldest && hottest.is_finite()) {
        return Err(format!(
            "the table needs a lowest temperature above 0 and a higher largest one, found {coldest} K to {hottest} K"
        ));
    }
    let (density_octave, densities) = grid.density_nodes();
    let inverses: Result<Vec<ThetaRelation>, String> = densities
        .iter()
        .map(|&density| ThetaRelation::new(rates, density))
        .collect();
    let inverses = inverses?;
    let floors: Vec<f64> = inverses.iter().map(|i| i.theta(coldest)).collect();
    let least = floors.iter().fold(f64::INFINITY, |a, &b| a.min(b));
    let most = inverses
        .iter()
        .map(|i| i.theta(hottest))
        .fold(0.0, f64::max);
    let (octave, nodes) = binades([least, most], grid.per_octave);
    let [cooling, heating] = planes(rates, grid, &inverses, &nodes)?;
    let widths: Vec<f64> = nodes.windows(2).map(|pair| ln(pair[1] / pair[0])).collect();
    Ok(CoolingTable {
        nodes: Table::new(nodes),
        widths: Table::new(widths),
        cooling: Table::new(cooling),
        heating: Table::new(heating),
        metallicities: Table::new(&grid.metallicities[..]),
        floors: Table::new(floors),
        richest: grid.richest,
        octave,
        per_octave: grid.per_octave as i32,
        density_octave,
        densities_per_octave: grid.densities_per_octave as i32,
        densities: densities.len() as i32,
    })
}

/// Returns cooling and heating at all nodes.
fn planes(
    rates: &RateFunctions,
    grid: &TableGrid,
    inverses: &[ThetaRelation],
    nodes: &[f64],
) -> Result<[Vec<f64>; 2], String> {
    let scale = grid.scale();
    let mut planes = [Vec::new(), Vec::new()];
    for &metallicity in &grid.metallicities {
        for inverse in inverses {
            for &node in nodes {
                let (n, t) = (inverse.density, inverse.temperature(node));
                let both = [
                    (rates.cooling)(n, t, metallicity),
                    (rates.heating)(n, t, metallicity),
                ];
                for (plane, rate) in planes.iter_mut().zip(both) {
                    if !rate.is_finite() {
                        return Err(format!(
                            "a rate is {rate} at {t} K, {n} hydrogen nuclei per cm^3 and {metallicity} solar metallicities"
                        ));
                    }
                    plane.push(rate * scale);
                }
            }
        }
    }
    Ok(planes)
}
