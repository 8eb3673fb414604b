//! Ionisation equilibrium.
use super::network::{CellConditions, Network};
use super::rates::{K1, K2, K3, K4, K5, K6, K57, K58};
use super::species::{
    Abundances, DI, DP, HEI, HEII, HEIII, HI, HII, LEAST, electrons, heat_capacity, renormalised,
};
use super::table::{interpolate_column, table_position};
use nestar_device::{Real, device};

/// Number of bisections of the electron abundance.
#[device]
const HALVINGS: usize = 64;

/// Thermal state in which gas is ionised.
#[device]
#[derive(Clone, Copy)]
struct ThermalState<R> {
    /// Thermal energy per hydrogen nucleus, kelvin.
    energy: R,
    /// Temperature, kelvin; 0: that of the energy.
    temperature: R,
}

/// Returns the ionisation of atoms for a given electron abundance and thermal state.
#[device]
fn with_electrons<R: Real, const S: usize>(
    p: &Network<R>,
    cell: &CellConditions<R>,
    thermal: ThermalState<R>,
    e: R,
) -> Abundances<R> {
    let mut s = Abundances {
        y: [0.0; 11],
        energy: thermal.energy,
    };
    s.y[HI] = 1.0;
    s.y[HEI] = p.helium;
    if S > 6 {
        s.y[DI] = p.deuterium;
    }
    let temperature = if thermal.temperature > 0.0 {
        thermal.temperature
    } else {
        thermal.energy / heat_capacity::<R, S>(&s, e)
    };
    let at = table_position(temperature, p.columns);
    let per_electron = 1.0 / (cell.density * e.max(R::lit(LEAST)));
    let h_up = interpolate_column(&p.rates, &at, K1).0 + p.photo[0] * per_electron;
    let he_up = interpolate_column(&p.rates, &at, K3).0 + p.photo[1] * per_electron;
    let hep_up = interpolate_column(&p.rates, &at, K5).0 + p.photo[2] * per_electron;
    let h_down = interpolate_column(&p.rates, &at, K2).0;
    let hep_down = interpolate_column(&p.rates, &at, K4).0;
    let hepp_down = interpolate_column(&p.rates, &at, K6).0;
    let (up, down) = (he_up / hep_down, hep_up / hepp_down);
    let sum = 1.0 + up * (1.0 + down);
    s.y[HEI] = p.helium / sum;
    s.y[HEII] = p.helium * (up / sum);
    s.y[HEIII] = p.helium * (up / sum) * down;
    // H is ionised by electrons, photons, He and, in proportion to itself, by H
    let per_other = 1.0 / e.max(R::lit(LEAST));
    let by_he = interpolate_column(&p.rates, &at, K58).0 * s.y[HEI] * per_other;
    let by_h = interpolate_column(&p.rates, &at, K57).0 * per_other;
    let sum = h_up + by_he + h_down;
    s.y[HI] = 2.0 * h_down / (sum + (sum * sum + 4.0 * by_h * h_down).sqrt());
    let ionised = (h_up + by_he + by_h * s.y[HI]) * s.y[HI] / h_down;
    s.y[HII] = ionised;
    if S > 6 {
        s.y[DI] = p.deuterium * s.y[HI];
        s.y[DP] = p.deuterium * ionised;
    }
    s
}

/// Computes the equilibrium of ionisation and recombination. The electron abundance is found by bisection, because a larger one always gives
/// a lower charge.
#[device]
fn balanced<R: Real, const S: usize>(
    p: &Network<R>,
    cell: &CellConditions<R>,
    thermal: ThermalState<R>,
) -> Abundances<R> {
    let mut low = R::lit(0.0);
    let mut high = 1.0 + 2.0 * p.helium + p.deuterium;
    for _ in 0..HALVINGS {
        let e = 0.5 * (low + high);
        let s = with_electrons::<R, S>(p, cell, thermal, e);
        if electrons::<R, S>(&s) > e {
            low = e;
        } else {
            high = e;
        }
    }
    let s = with_electrons::<R, S>(p, cell, thermal, 0.5 * (low + high));
    renormalised::<R, S>(&s, p.helium, p.deuterium)
}

/// Computes the equilibrium of collisional ionisation, photo-ionisation and recombination, without molecules, at a density and thermal
/// energy (kelvin per hydrogen nucleus).
#[device]
pub fn equilibrium<R: Real, const S: usize>(
    p: &Network<R>,
    cell: &CellConditions<R>,
    energy: R,
) -> Abundances<R> {
    let thermal = ThermalState::<R> {
        energy,
        temperature: 0.0,
    };
    balanced::<R, S>(p, cell, thermal)
}

/// Computes the equilibrium as [`equilibrium`], at a temperature in kelvin, and its thermal energy.
#[device]
pub fn equilibrium_at<R: Real, const S: usize>(
    p: &Network<R>,
    cell: &CellConditions<R>,
    temperature: R,
) -> Abundances<R> {
    let thermal = ThermalState::<R> {
        energy: 0.0,
        temperature,
    };
    let mut s = balanced::<R, S>(p, cell, thermal);
    s.energy = temperature * heat_capacity::<R, S>(&s, electrons::<R, S>(&s));
    s
}
