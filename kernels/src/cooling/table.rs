//! Tables of heating and cooling rates.

use nestar_device::math::{exp, ln};
use nestar_device::{Real, Table, device};

/// Rates over metallicity, density and temperature. Each factor of 2 in temperature over mean molecular weight is divided into equidistant
/// bins, each factor of 2 in density has equidistant nodes. A number's position in them follows from its exponent and leading digits.
#[device]
#[derive(Clone, Debug)]
pub struct CoolingTable<R> {
    /// Temperature over mean molecular weight of each node, kelvin, ascending.
    pub nodes: Table<R>,
    /// Index of the last node up to the lower end of each bin; 0 if there is none. Empty if each bin is the interval between two nodes.
    pub starts: Table<R>,
    /// Logarithm of the ratio of the ends of the interval above each node; one fewer than nodes.
    pub widths: Table<R>,
    /// Cooling in kelvin per million years and hydrogen nucleus per cubic centimetre, `[metallicity][density][node]`.
    pub cooling: Table<R>,
    /// Heating in kelvin per million years, `[metallicity][density][node]`.
    pub heating: Table<R>,
    /// Metallicities of the planes, ascending; a single one means no dependence.
    pub metallicities: Table<R>,
    /// Temperature in kelvin, `[density][node]`, if the mean molecular weight depends on temperature; otherwise empty.
    pub temperatures: Table<R>,
    /// Lowest temperature, kelvin.
    pub floor: R,
    /// Lowest temperature over mean molecular weight at the lowest density, kelvin.
    pub floor_theta: R,
    /// Largest metallicity to which the last two planes are extrapolated.
    pub richest: R,
    /// Exponent of 2 of the lower end of the first bin.
    pub octave: i32,
    /// Bins per factor of 2 of temperature over mean molecular weight.
    pub per_octave: i32,
    /// Exponent of 2 of the first density, per cubic centimetre.
    pub density_octave: i32,
    /// Densities per factor of 2.
    pub densities_per_octave: i32,
    /// Number of densities; 1 means no dependence.
    pub densities: i32,
}

/// Interpolates the rates for the density and metallicity of a cell.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct RateSlice<R> {
    /// Offset of its rates in the tables.
    pub first: i32,
    /// Offsets to the next density and to the next metallicity; 0 for none.
    pub strides: [i32; 2],
    /// Weights of the next density and of the next metallicity.
    pub weights: [R; 2],
    /// Hydrogen nuclei per cubic centimetre.
    pub density: R,
    /// Additional heating, kelvin per million years.
    pub extra_heating: R,
}

/// Returns the interval of a grid that contains a positive number, counted from the node `2^octave`, and the position in it, 0 to 1.
#[device]
fn grid_interval<R: Real>(x: R, octave: i32, per_octave: i32) -> (i32, R) {
    let (part, power) = x.frexp();
    let place = (2.0 * part - 1.0) * R::from_i32(per_octave);
    let n = place.to_i32();
    (
        (power - 1 - octave) * per_octave + n,
        place - R::from_i32(n),
    )
}

/// Returns the index of the last node up to `theta`, of the first or the last but one outside their range.
#[device]
pub fn node_below<R: Real>(theta: R, p: &CoolingTable<R>) -> i32 {
    let (bin, _) = grid_interval(theta, p.octave, p.per_octave);
    let last = p.nodes.len() as i32 - 2;
    let bins = p.starts.len() as i32;
    if bins == 0 {
        return bin.max(0).min(last);
    }
    let mut k = p.starts.at(bin.max(0).min(bins - 1)).to_i32();
    while k < last && theta >= p.nodes.at(k + 1) {
        k += 1;
    }
    k
}

/// Returns the plane below a metallicity, and the weight of the one above.
#[device]
fn plane_of<R: Real>(metallicity: R, p: &CoolingTable<R>) -> (i32, R) {
    let z = metallicity.max(p.metallicities.at(0)).min(p.richest);
    let last = p.metallicities.len() as i32 - 2;
    let mut n = 0;
    while n < last && p.metallicities.at(n + 1) <= z {
        n += 1;
    }
    let (low, high) = (p.metallicities.at(n), p.metallicities.at(n + 1));
    (n, (z - low) / (high - low))
}

/// Returns the rates for a density (hydrogen nuclei per cubic centimetre, above 0) and a metallicity.
#[device]
pub fn rate_slice<R: Real>(
    density: R,
    metallicity: R,
    extra_heating: R,
    p: &CoolingTable<R>,
) -> RateSlice<R> {
    let nodes = p.nodes.len() as i32;
    let mut c = RateSlice::<R> {
        first: 0,
        strides: [0, 0],
        weights: [0.0, 0.0],
        density,
        extra_heating,
    };
    if p.densities > 1 {
        let (mut n, mut weight) = grid_interval(density, p.density_octave, p.densities_per_octave);
        if n < 0 {
            n = 0;
            weight = 0.0;
        } else if n > p.densities - 2 {
            n = p.densities - 2;
            weight = 1.0;
        }
        c.first = n * nodes;
        c.strides[0] = nodes;
        c.weights[0] = weight;
    }
    if p.metallicities.len() > 1 {
        let (n, weight) = plane_of(metallicity, p);
        c.strides[1] = nodes * p.densities;
        c.first += n * c.strides[1];
        c.weights[1] = weight;
    }
    c
}

/// Returns the value of a table `[density][node]` at a node, linear in density. `first` is the offset of the lower density.
#[device]
fn value_at_density<R: Real>(values: &Table<R>, first: i32, node: i32, c: &RateSlice<R>) -> R {
    let i = first + node;
    let mut value = values.at(i);
    if c.strides[0] > 0 {
        value += c.weights[0] * (values.at(i + c.strides[0]) - value);
    }
    value
}

/// Returns the value of a table at a node, linear in density and metallicity.
#[device]
fn value_at<R: Real>(values: &Table<R>, node: i32, c: &RateSlice<R>) -> R {
    let mut value = value_at_density(values, c.first, node, c);
    if c.strides[1] > 0 {
        let other = value_at_density(values, c.first + c.strides[1], node, c);
        value += c.weights[1] * (other - value);
    }
    value
}

/// Returns the net rate at a node, and the heating in it, kelvin per million years.
#[device]
pub fn rates_at<R: Real>(node: i32, c: &RateSlice<R>, p: &CoolingTable<R>) -> (R, R) {
    let heating = value_at(&p.heating, node, c) + c.extra_heating;
    (heating - c.density * value_at(&p.cooling, node, c), heating)
}

/// Returns the temperature at a node, kelvin, from a table that has temperatures.
#[device]
fn temperature_at<R: Real>(node: i32, c: &RateSlice<R>, p: &CoolingTable<R>) -> R {
    let densities = p.nodes.len() as i32 * p.densities;
    value_at_density(&p.temperatures, c.first % densities, node, c)
}

/// Returns the temperature in kelvin at a positive temperature over mean molecular weight, from a table that has temperatures: a power law
/// between nodes.
#[device]
pub fn temperature_of<R: Real>(theta: R, c: &RateSlice<R>, p: &CoolingTable<R>) -> R {
    let k = node_below(theta, p);
    let (low, high) = (temperature_at(k, c, p), temperature_at(k + 1, c, p));
    low * exp(ln(high / low) / p.widths.at(k) * ln(theta / p.nodes.at(k)))
}

/// Returns the temperature over mean molecular weight at a temperature in kelvin: the inverse of [`temperature_of`].
#[device]
fn theta_of<R: Real>(temperature: R, c: &RateSlice<R>, p: &CoolingTable<R>) -> R {
    let (mut k, mut end) = (0, p.nodes.len() as i32 - 1);
    while k + 1 < end {
        let middle = (k + end) / 2;
        if temperature_at(middle, c, p) <= temperature {
            k = middle;
        } else {
            end = middle;
        }
    }
    let (low, high) = (temperature_at(k, c, p), temperature_at(k + 1, c, p));
    p.nodes.at(k) * exp(p.widths.at(k) / ln(high / low) * ln(temperature / low))
}

/// Returns the lowest temperature over mean molecular weight at a density.
#[device]
pub fn temperature_floor<R: Real>(c: &RateSlice<R>, p: &CoolingTable<R>) -> R {
    if p.densities < 2 || p.temperatures.len() as i32 == 0 {
        return p.floor_theta;
    }
    theta_of(p.floor, c, p)
}
