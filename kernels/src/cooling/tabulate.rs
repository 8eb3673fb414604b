//! Builds rate tables from rate functions, on the host and in double precision.

use super::laws::between;
use super::table::CoolingTable;
use nestar_device::math::{exp, ln};
use nestar_device::{Real, Table};
use std::f64::consts::LN_2;

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

/// Bins per factor of 2 in which nodes of a curve are looked up.
const BINS: u32 = 64;
/// Nodes of a curve that are closer to the end of the table, relative to it, are omitted.
const NEAR_END: f64 = 1e-6;
/// Largest number of nodes that [`TableNodes::Filled`] adds between two.
const MOST_ADDED: f64 = 128.0;

/// Nodes of a table in temperature.
#[derive(Clone, Debug, PartialEq)]
pub enum TableNodes {
    /// Equidistant nodes within each factor of 2 of temperature over mean molecular weight.
    Uniform,
    /// These ascending temperatures in kelvin, between which the rates are power laws, and further ones where they are far apart: about the
    /// given number in a factor of 2. Steps over short intervals are the cheapest.
    Own(Vec<f64>),
    /// As [`TableNodes::Own`], for rates that are no power laws between the temperatures, with further nodes where a cooling rate is steep:
    /// about half of the given number in a factor of 2 of the rate.
    Filled(Vec<f64>),
}

/// Nodes of a table and properties of its gas.
#[derive(Clone, Debug, PartialEq)]
pub struct TableGrid {
    /// Lowest temperature of the gas and highest of the table, kelvin.
    pub temperatures: [f64; 2],
    /// Nodes in temperature.
    pub nodes: TableNodes,
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

/// Returns density `n` of a table, hydrogen nuclei per cubic centimetre.
#[must_use]
pub fn density_node(table: &CoolingTable<f64>, n: usize) -> f64 {
    let per_octave = table.densities_per_octave as usize;
    let part = (n % per_octave) as f64 / per_octave as f64;
    (1.0 + part).ldexp(table.density_octave + (n / per_octave) as i32)
}

/// Returns the exponent of the largest power of 2 up to a positive number.
fn octave_of(x: f64) -> i32 {
    x.frexp().1 - 1
}

/// Returns the exponent of the first power of 2 and the nodes of the grid that covers a range.
fn binades([low, high]: [f64; 2], per_octave: u32) -> (i32, Vec<f64>) {
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
    if !(coldest > 0.0 && hottest > coldest * (1.0 + 2.0 * NEAR_END) && hottest.is_finite()) {
        return Err(format!(
            "the table needs a lowest temperature above 0 and a higher largest one, found {coldest} K to {hottest} K"
        ));
    }
    let (density_octave, densities) = grid.density_nodes();
    let relations: Result<Vec<ThetaRelation>, String> = densities
        .iter()
        .map(|&density| ThetaRelation::new(rates, density))
        .collect();
    let relations = relations?;
    let nodes = place_nodes(rates, grid, &relations)?;
    let [cooling, heating] = planes(rates, grid, &relations, &nodes)?;
    let (bins, starts) = match grid.nodes {
        TableNodes::Uniform => (grid.per_octave, Vec::new()),
        TableNodes::Own(_) | TableNodes::Filled(_) => (BINS, starts(&nodes, BINS)),
    };
    let temperatures: Vec<f64> = match &rates.weight {
        MolecularWeight::Fixed(_) => Vec::new(),
        MolecularWeight::At(..) => {
            let of_density =
                |r: &ThetaRelation| nodes.iter().map(|x| r.temperature(*x)).collect::<Vec<_>>();
            relations.iter().flat_map(of_density).collect()
        }
    };
    let widths: Vec<f64> = nodes.windows(2).map(|pair| ln(pair[1] / pair[0])).collect();
    let octave = octave_of(nodes[0]);
    Ok(CoolingTable {
        starts: Table::new(starts),
        nodes: Table::new(nodes),
        widths: Table::new(widths),
        cooling: Table::new(cooling),
        heating: Table::new(heating),
        metallicities: Table::new(&grid.metallicities[..]),
        temperatures: Table::new(temperatures),
        floor: coldest,
        floor_theta: relations[0].theta(coldest),
        richest: grid.richest,
        octave,
        per_octave: bins as i32,
        density_octave,
        densities_per_octave: grid.densities_per_octave as i32,
        densities: densities.len() as i32,
    })
}

/// Returns the index of the last node up to the lower end of each bin, 0 if there is none. The bins end below the last node.
fn starts(nodes: &[f64], per_octave: u32) -> Vec<f64> {
    let last = nodes[nodes.len() - 1];
    let (_, bins) = binades([nodes[0], last], per_octave);
    let start = |bin: &f64| nodes.partition_point(|node| node <= bin).max(1) - 1;
    let below = bins.iter().filter(|bin| **bin < last);
    below.map(|bin| start(bin) as f64).collect()
}

/// Returns the nodes of a table, in temperature over mean molecular weight.
fn place_nodes(
    rates: &RateFunctions,
    grid: &TableGrid,
    relations: &[ThetaRelation],
) -> Result<Vec<f64>, String> {
    match &grid.nodes {
        TableNodes::Uniform => {
            let ends = |t: f64| relations.iter().map(move |r| r.theta(t));
            let [coldest, hottest] = grid.temperatures;
            let least = ends(coldest).fold(f64::INFINITY, f64::min);
            let most = ends(hottest).fold(0.0, f64::max);
            Ok(binades([least, most], grid.per_octave).1)
        }
        TableNodes::Own(temperatures) | TableNodes::Filled(temperatures) => {
            let nodes = own_nodes(temperatures, grid, relations);
            let [cooling, _] = planes(rates, grid, relations, &nodes)?;
            Ok(filled(&nodes, &cooling, grid))
        }
    }
}

/// A temperature over mean molecular weight that a curve of one density has as a node.
struct OwnNode {
    theta: f64,
    density: usize,
}

/// Returns the nodes of the curves of all densities, from the floor or below to the end of the table. Nodes of different densities that are
/// closer than 1/64 of a factor of 2 become one.
fn own_nodes(temperatures: &[f64], grid: &TableGrid, relations: &[ThetaRelation]) -> Vec<f64> {
    let [coldest, hottest] = grid.temperatures;
    let inside = |t: &f64| *t < hottest * (1.0 - NEAR_END);
    let floor = Some(coldest).filter(|floor| *floor < temperatures[0]);
    let places = floor.into_iter().chain(temperatures.iter().copied());
    let mut places: Vec<f64> = places.filter(inside).collect();
    places.push(hottest);
    let of_density = |(density, relation): (usize, &ThetaRelation)| {
        let node = |t: &f64| OwnNode {
            theta: relation.theta(*t),
            density,
        };
        places.iter().map(node).collect::<Vec<_>>()
    };
    let mut all: Vec<OwnNode> = relations.iter().enumerate().flat_map(of_density).collect();
    all.sort_by(|a, b| a.theta.total_cmp(&b.theta));
    let apart = exp(LN_2 / f64::from(BINS));
    let mut kept: Vec<OwnNode> = Vec::new();
    for node in all {
        let new = kept
            .last()
            .is_none_or(|last| match node.density == last.density {
                true => node.theta > last.theta,
                false => node.theta > last.theta * apart,
            });
        if new {
            kept.push(node);
        }
    }
    kept.into_iter().map(|node| node.theta).collect()
}

/// Adds nodes between nodes that are far apart or, if rates are no power laws, differ much in a cooling rate, `[plane][node]`.
fn filled(nodes: &[f64], cooling: &[f64], grid: &TableGrid) -> Vec<f64> {
    let exact = matches!(grid.nodes, TableNodes::Own(_));
    let octaves = |ratio: f64| (ln(ratio) / LN_2).abs() * f64::from(grid.per_octave);
    let mut all = Vec::new();
    for (k, pair) in nodes.windows(2).enumerate() {
        let ratio = pair[1] / pair[0];
        let parts = |plane: &[f64]| match plane[k] > 0.0 && plane[k + 1] > 0.0 {
            true if exact => octaves(ratio),
            true => octaves(ratio).max(0.5 * octaves(plane[k + 1] / plane[k])),
            // a line, which power laws would change
            false if exact => 0.0,
            false => octaves(ratio),
        };
        let parts = cooling.chunks(nodes.len()).map(parts);
        let parts = match ratio < 1.0 + NEAR_END {
            true => 1.0,
            false if exact => parts.fold(f64::INFINITY, f64::min).round().max(1.0),
            false => parts.fold(1.0, f64::max).round().min(MOST_ADDED),
        };
        let place = |n: u32| pair[0] * exp(f64::from(n) / parts * ln(ratio));
        all.extend((0..parts as u32).map(place));
    }
    all.extend(nodes.last());
    all
}

/// Returns cooling and heating at all nodes.
fn planes(
    rates: &RateFunctions,
    grid: &TableGrid,
    relations: &[ThetaRelation],
    nodes: &[f64],
) -> Result<[Vec<f64>; 2], String> {
    let scale = grid.scale();
    let mut planes = [Vec::new(), Vec::new()];
    for &metallicity in &grid.metallicities {
        for relation in relations {
            for &node in nodes {
                let (n, t) = (relation.density, relation.temperature(node));
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
