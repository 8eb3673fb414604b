//! Tables of heating and cooling rates.

use nestar_device::{Real, Table, device};

/// Rates over metallicity, density and temperature, on grids with `n` equidistant nodes within each factor of 2. A number's position
/// follows from its exponent and leading digits.
#[device]
#[derive(Clone, Debug)]
pub struct CoolingTable<R> {
    /// Temperature over mean molecular weight of each node, kelvin.
    pub nodes: Table<R>,
    /// Logarithm of the ratio of the ends of the interval above each node; one fewer than nodes.
    pub widths: Table<R>,
    /// Cooling in kelvin per million years and hydrogen nucleus per cubic centimetre, `[metallicity][density][node]`.
    pub cooling: Table<R>,
    /// Heating in kelvin per million years, `[metallicity][density][node]`.
    pub heating: Table<R>,
    /// Metallicities of the planes, ascending; a single one means no dependence.
    pub metallicities: Table<R>,
    /// Lowest temperature over mean molecular weight, by density, kelvin.
    pub floors: Table<R>,
    /// Largest metallicity to which the last two planes are extrapolated.
    pub richest: R,
    /// Exponent of 2 of the first node.
    pub octave: i32,
    /// Nodes per factor of 2 of temperature.
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
pub fn grid_interval<R: Real>(x: R, octave: i32, per_octave: i32) -> (i32, R) {
    let (part, power) = x.frexp();
    let place = (2.0 * part - 1.0) * R::from_i32(per_octave);
    let n = place.to_i32();
    (
        (power - 1 - octave) * per_octave + n,
        place - R::from_i32(n),
    )
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

/// Returns the value of a table at a node, linear in density and metallicity.
#[device]
fn value_at<R: Real>(values: &Table<R>, node: i32, c: &RateSlice<R>) -> R {
    let i = c.first + node;
    let [x, z] = c.weights;
    let mut value = values.at(i);
    if c.strides[0] > 0 {
        value += x * (values.at(i + c.strides[0]) - value);
    }
    if c.strides[1] > 0 {
        let j = i + c.strides[1];
        let mut other = values.at(j);
        if c.strides[0] > 0 {
            other += x * (values.at(j + c.strides[0]) - other);
        }
        value += z * (other - value);
    }
    value
}

/// Returns the net rate at a node, and the heating in it, kelvin per million years.
#[device]
pub fn rates_at<R: Real>(node: i32, c: &RateSlice<R>, p: &CoolingTable<R>) -> (R, R) {
    let heating = value_at(&p.heating, node, c) + c.extra_heating;
    (heating - c.density * value_at(&p.cooling, node, c), heating)
}

/// Returns the lowest temperature over mean molecular weight at a density.
#[device]
pub fn temperature_floor<R: Real>(c: &RateSlice<R>, p: &CoolingTable<R>) -> R {
    if p.densities < 2 {
        return p.floors.at(0);
    }
    let n = (c.first / p.nodes.len() as i32) % p.densities;
    let low = p.floors.at(n);
    low + c.weights[0] * (p.floors.at(n + 1) - low)
}
