//! Conserved totals and norms of errors.

use crate::state::State;
use nestar::engine::Engine;
use nestar::engine::comm;
use nestar::engine::data::Stores;

/// Conserved totals of all components.
///
/// # Panics
/// If a device fails.
#[must_use]
pub fn totals(sim: &Engine) -> Vec<f64> {
    let fields = sim.world.resource::<Stores>().all();
    fields
        .iter()
        .flat_map(|field| comm::totals(&sim.world, field).expect("the device adds up"))
        .collect()
}

/// Sum over all leaf cells of the absolute value of each component times the volume: the scale of drifts.
#[must_use]
pub fn magnitudes(state: &State) -> Vec<f64> {
    let mut sums = vec![0.0; state.components];
    state.each_leaf_cell(|_, _, volume, u| {
        for (sum, value) in sums.iter_mut().zip(u) {
            *sum += volume * value.abs();
        }
    });
    sums
}

/// Per component, the mean over the domain of |state - exact|, where `exact` gives the conserved state at a cell of
/// the given centre and widths.
#[must_use]
pub fn l1(state: &State, exact: impl Fn([f64; 3], [f64; 3]) -> [f64; 5]) -> [f64; 5] {
    let mut sums = [0.0; 5];
    let mut total = 0.0;
    state.each_leaf_cell(|level, centre, volume, u| {
        let expected = exact(centre, state.domain.cell_width(level));
        for c in 0..5 {
            sums[c] += volume * (u[c] - expected[c]).abs();
        }
        total += volume;
    });
    sums.map(|s| s / total)
}

/// Root of the sum of the squares.
#[must_use]
pub fn rms(norms: [f64; 5]) -> f64 {
    norms.iter().map(|n| n * n).sum::<f64>().sqrt()
}

/// Mean of `f` over a cell by Gauss-Legendre quadrature with three points an axis.
#[must_use]
pub fn cell_mean(f: impl Fn([f64; 3]) -> [f64; 5], centre: [f64; 3], width: [f64; 3]) -> [f64; 5] {
    const PLACES: [f64; 3] = [-0.387_298_334_620_741_7, 0.0, 0.387_298_334_620_741_7];
    const WEIGHTS: [f64; 3] = [5.0 / 18.0, 8.0 / 18.0, 5.0 / 18.0];
    let mut mean = [0.0; 5];
    for n in 0..27 {
        let at = [n % 3, n / 3 % 3, n / 9];
        let point = std::array::from_fn(|a| centre[a] + PLACES[at[a]] * width[a]);
        let weight: f64 = at.iter().map(|&i| WEIGHTS[i]).product();
        for (sum, value) in mean.iter_mut().zip(f(point)) {
            *sum += weight * value;
        }
    }
    mean
}

/// Conserved from primitive variables (density, velocity, pressure).
#[must_use]
pub fn conserved(w: [f64; 5], gamma: f64) -> [f64; 5] {
    let [density, x, y, z, pressure] = w;
    let energy = pressure / (gamma - 1.0) + 0.5 * density * (x * x + y * y + z * z);
    [density, density * x, density * y, density * z, energy]
}
