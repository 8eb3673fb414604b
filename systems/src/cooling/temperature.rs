//! Temperature by the mean molecular weight of a table.

use super::config::{CoolingConfig, RatesConfig};
use super::tabulation::path_of;
use super::zarr_table::has_weight;
use crate::fields::PressureFormula;
use crate::units::Units;
use nestar_deck::{Curve, DeckError, Extrapolation};
use nestar_device::math::ln;
use nestar_engine::Engine;
use nestar_kernels::cooling::tabulate::density_node;
use nestar_kernels::cooling::{CoolingModel, CoolingTable};
use std::sync::Arc;

/// Returns `true` if the table of the deck has a mean molecular weight.
///
/// # Errors
/// The table `[cooling]` is invalid.
pub(super) fn is_known(sim: &mut Engine) -> Result<bool, DeckError> {
    let config: CoolingConfig = sim.deck.table("cooling")?;
    Ok(match &config.table {
        RatesConfig::Named(name) if name.ends_with(".zarr") => {
            has_weight(&path_of(&sim.deck, name))
        }
        _ => false,
    })
}

/// Returns the pressure at a temperature, from a table that has temperatures. Between densities of the table, temperature over mean molecular
/// weight is linear. The units are those at a scale factor of 1, with which they change if `are_changing`.
pub(super) fn pressure_formula(
    cooler: &CoolingModel<f64>,
    units: &Units,
    are_changing: bool,
) -> PressureFormula {
    let table = &cooler.curves;
    let count = table.nodes.len();
    let rows = (0..table.densities as usize).map(|row| theta_curve(table, row * count));
    let name = |(n, curve)| (format!("theta_{n}"), Arc::new(curve));
    let mut curves: Vec<(String, Arc<Curve>)> = rows.enumerate().map(name).collect();
    if curves.iter().all(|(_, curve)| **curve == *curves[0].1) {
        curves.truncate(1);
    }
    let nodes: Vec<f64> = (0..curves.len()).map(|n| density_node(table, n)).collect();
    let [per_density, per_energy] = match are_changing {
        true => ["/scale_factor**3", "*scale_factor**2"],
        false => [""; 2],
    };
    let nuclei = format!("density*{:?}{per_density}", cooler.nuclei);
    let term = |n: usize| {
        let theta = format!("exp(theta_{n}(ln(temperature_k)))");
        match nodes.len() {
            1 => theta,
            _ => format!("{theta}*{}", share(&nodes, n, &nuclei)),
        }
    };
    let terms: Vec<String> = (0..curves.len()).map(term).collect();
    PressureFormula {
        text: format!(
            "density*({})/{:?}{per_energy}",
            terms.join(" + "),
            units.temperature()
        ),
        curves,
    }
}

/// Writes the weight of node `n` in the linear interpolation at `x`.
fn share(nodes: &[f64], n: usize, x: &str) -> String {
    let side = |other: f64| format!("({x} - {other:?})/({:?})", nodes[n] - other);
    let below = n.checked_sub(1).map(|n| side(nodes[n]));
    let above = nodes.get(n + 1).map(|other| side(*other));
    let sides: Vec<String> = below.into_iter().chain(above).chain(["1".into()]).collect();
    let least = sides.into_iter().reduce(|a, b| format!("min({a}, {b})"));
    format!("max({}, 0)", least.unwrap_or_default())
}

/// Returns the logarithm of temperature over mean molecular weight as a function of that of temperature, at the density whose temperatures
/// begin at `first`. It is linear between nodes.
fn theta_curve(table: &CoolingTable<f64>, first: usize) -> Curve {
    let count = table.nodes.len();
    let point = |k: usize| [ln(table.temperatures.at(first + k)), ln(table.nodes.at(k))];
    let all: Vec<[f64; 2]> = (0..count).map(point).collect();
    let slope = |k: usize| (all[k + 1][1] - all[k][1]) / (all[k + 1][0] - all[k][0]);
    let [mut points, mut values, mut slopes] = [const { Vec::new() }; 3];
    let mut add = |x: f64, y: f64, slope: f64| {
        points.push(x);
        values.push(y);
        slopes.push(slope);
    };
    add(all[0][0], all[0][1], slope(0));
    for (k, [x, y]) in all.iter().enumerate().take(count - 1).skip(1) {
        // two points around a kink, because a curve has one slope at a point
        let step = 3e-14 * x.abs().max(1.0);
        if x - step > all[k - 1][0] && x + step < all[k + 1][0] {
            add(x - step, y - step * slope(k - 1), slope(k - 1));
            add(x + step, y + step * slope(k), slope(k));
        }
    }
    add(all[count - 1][0], all[count - 1][1], slope(count - 2));
    Curve::new(&points, &values, &slopes, [Extrapolation::Linear; 2])
}
