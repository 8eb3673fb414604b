//! Table of the dissociation of H2, indexed by the leading bits of temperature and density.
use super::rates::{Dissociation, RateChoices, Temperature};
use super::table::{NEGLIGIBLE, NODES, TablePosition, node_temperature, slope};
use nestar_device::{Real, Table, device};

/// First octave of temperature, from 512 K; colder gas does not dissociate.
#[device]
const FIRST_OCTAVE: usize = 9;
/// Octaves of temperature; hotter gas uses the rates at 65536 K.
#[device]
const OCTAVES: usize = 7;
/// Octaves of density, from 1 per cm^3. The last node holds the rates in local thermal equilibrium.
#[device]
const DENSITY_OCTAVES: usize = 33;
/// Intervals per octave of density.
#[device]
const DENSITY_NODES: usize = 4;
/// Numbers of a node of density: value and slope per interval of the rates by H and by H2.
#[device]
const NUMBERS: usize = 4;
/// Numbers of a node of temperature.
#[device]
const ROW: usize = (DENSITY_OCTAVES * DENSITY_NODES + 1) * NUMBERS;

/// Returns the values of [`Network::dissociation`](super::Network::dissociation), in cm^3 per Myr.
///
/// Between two densities, rates are linear in density. Between two temperatures they are cubic, as in a [`RateTable`](super::RateTable).
pub(super) fn dissociation_table(choices: RateChoices) -> Vec<f64> {
    let first = FIRST_OCTAVE * (NODES + 1);
    let rows = first..first + OCTAVES * (NODES + 1);
    rows.flat_map(|row| row_of(row, choices)).collect()
}

fn row_of(row: usize, choices: RateChoices) -> Vec<f64> {
    let (t, width) = node_temperature(row);
    let h = 1e-4 * t;
    let at = |step: f64| {
        let t = Temperature {
            t: t + step * h,
            branch: t,
        };
        Dissociation::at(t, choices.three_body)
    };
    let fits = [-2.0, -1.0, 0.0, 1.0, 2.0].map(at);
    let last = DENSITY_OCTAVES * DENSITY_NODES;
    let node = |n: usize| {
        let octave = (1u64 << (n / DENSITY_NODES)) as f64;
        let density = octave * (1.0 + (n % DENSITY_NODES) as f64 / DENSITY_NODES as f64);
        let rates = fits.map(|fit| match n == last {
            true => fit.dense(),
            false => fit.rates(density),
        });
        [0, 1].map(|k| {
            let values = rates.map(|both| both[k]);
            match values[2] < NEGLIGIBLE {
                true => [0.0, 0.0],
                false => [values[2], slope(values, h) * width],
            }
        })
    };
    (0..=last).flat_map(node).flatten().collect()
}

/// Rates of the dissociation of H2 with temperature derivatives, in cm^3 per Myr.
#[device]
#[derive(Clone, Copy)]
pub struct DissociationRates<R> {
    /// Rate by H.
    pub by_h: R,
    /// Its derivative.
    pub by_h_slope: R,
    /// Rate by H2.
    pub by_h2: R,
    /// Its derivative.
    pub by_h2_slope: R,
}

/// Position of a density in a row.
#[device]
#[derive(Clone, Copy)]
struct DensityPosition<R> {
    /// Offset of the lower node.
    node: usize,
    /// Position between the nodes, 0 to 1.
    x: R,
}

/// Returns the position of a density, hydrogen nuclei per cm^3; densities outside the range and NaN give an end.
#[device]
fn density_position<R: Real>(density: R) -> DensityPosition<R> {
    let has_logarithm = density > 1.0;
    if !has_logarithm {
        return DensityPosition::<R> { node: 0, x: 0.0 };
    }
    let (m, e) = density.frexp();
    let octave = e - 1;
    if octave >= DENSITY_OCTAVES as i32 {
        return DensityPosition::<R> {
            node: ROW - 2 * NUMBERS,
            x: 1.0,
        };
    }
    let position = (2.0 * m - 1.0) * R::from_usize(DENSITY_NODES);
    let interval = position.to_i32();
    DensityPosition::<R> {
        node: (octave as usize * DENSITY_NODES + interval as usize) * NUMBERS,
        x: position - R::from_i32(interval),
    }
}

/// Returns the dissociation rates of H2 at a density of hydrogen nuclei per cm^3 and a temperature position.
#[device]
pub fn dissociation_rates<R: Real>(
    table: &Table<R>,
    density: R,
    at: &TablePosition<R>,
) -> DissociationRates<R> {
    let mut found = [0.0; 4];
    let first = FIRST_OCTAVE * (NODES + 1);
    let last = OCTAVES * (NODES + 1) - 2;
    if at.row >= first {
        let n = density_position(density);
        let mut row = at.row - first;
        let (mut x, mut per_kelvin) = (at.x, at.per_kelvin);
        if row > last {
            row = last;
            x = 1.0;
            per_kelvin = 0.0;
        }
        let low = row * ROW + n.node;
        for k in 0..2 {
            let value = between(table, low + 2 * k, n.x);
            let slope = between(table, low + 2 * k + 1, n.x);
            let rise = between(table, low + ROW + 2 * k, n.x) - value;
            let end_slope = between(table, low + ROW + 2 * k + 1, n.x);
            let square = (rise - slope) + (rise - slope) + (rise - end_slope);
            let cube = (slope - rise) + (end_slope - rise);
            found[2 * k] = value + x * (slope + x * (square + x * cube));
            found[2 * k + 1] = (slope + x * (2.0 * square + 3.0 * x * cube)) * per_kelvin;
        }
    }
    DissociationRates::<R> {
        by_h: found[0],
        by_h_slope: found[1],
        by_h2: found[2],
        by_h2_slope: found[3],
    }
}

/// Interpolates a number between two nodes of density.
#[device]
fn between<R: Real>(table: &Table<R>, at: usize, x: R) -> R {
    let low = table.at(at);
    low + x * (table.at(at + NUMBERS) - low)
}
