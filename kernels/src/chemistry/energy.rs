//! Heating and cooling terms of the energy equation.
use super::network::{Inputs, Network};
use super::rates::{
    COOL_HEII, COOL_HEIII, COOL_HI, COOL_HII, H2_BY_E, H2_BY_H, H2_BY_H2, H2_BY_HE, H2_BY_HP,
    H2_LTE, HD_BY_H, HD_LTE,
};
use super::species::{ELECTRONS, H2, HD, HEI, HEII, HEIII, HI, HII, TEMPERATURE};
use super::table::interpolate_column;
use super::terms::{add, add_one, pair};
use nestar_device::{Real, device};

/// Lower limit for sums of line cooling, in kelvin per Myr, so that their squares remain normal numbers.
#[device]
const LEAST_COOLING: f64 = 1e-15;

/// Adds cooling by H, He+, He++ and H+ with electrons.
#[device]
pub fn atomic_cooling<R: Real, const N: usize, const J: usize>(
    p: &Network<R>,
    x: &Inputs<R>,
    f: &mut [R; N],
    d: &mut [[R; 13]; N],
) {
    let term = pair(p, x, COOL_HI, HI, ELECTRONS);
    add::<R, N, J>(f, d, N - 1, -1.0, &term);
    let term = pair(p, x, COOL_HEII, HEII, ELECTRONS);
    add::<R, N, J>(f, d, N - 1, -1.0, &term);
    let term = pair(p, x, COOL_HII, HII, ELECTRONS);
    add::<R, N, J>(f, d, N - 1, -1.0, &term);
    let term = pair(p, x, COOL_HEIII, HEIII, ELECTRONS);
    add::<R, N, J>(f, d, N - 1, -1.0, &term);
}

/// Adds heat of photo-ionisation, and Compton cooling at temperature `t`.
#[device]
pub fn radiation_heat<R: Real, const N: usize, const J: usize>(
    p: &Network<R>,
    x: &Inputs<R>,
    t: R,
    f: &mut [R; N],
    d: &mut [[R; 13]; N],
) {
    add_one::<R, N, J>(f, d, N - 1, p.photo[0] * p.photo_heat[0], (HI, x.v[HI]));
    add_one::<R, N, J>(f, d, N - 1, p.photo[1] * p.photo_heat[1], (HEI, x.v[HEI]));
    add_one::<R, N, J>(f, d, N - 1, p.photo[2] * p.photo_heat[2], (HEII, x.v[HEII]));
    let lost = p.compton * (p.background - t);
    add_one::<R, N, J>(f, d, N - 1, lost, (ELECTRONS, x.v[ELECTRONS]));
    if J == 1 {
        let by_t = d[N - 1][TEMPERATURE] - p.compton * x.v[ELECTRONS];
        d[N - 1][TEMPERATURE] = by_t;
    }
}

/// Low-density collisional cooling of a molecule: its sum over partners, per kelvin.
#[device]
#[derive(Clone, Copy)]
struct Low<R> {
    sum: R,
    by_t: R,
}

/// Adds the line cooling of a molecule to a row: `L = low lte / (low + lte)` (Hollenbach & McKee 1979). Also adds its derivatives with
/// respect to molecule and temperature, and returns the factor of the derivatives of `low`.
#[device]
fn add_lines<R: Real, const N: usize, const J: usize>(
    low: &Low<R>,
    lte: R,
    lte_by_t: R,
    molecule: usize,
    abundance: R,
    f: &mut [R; N],
    d: &mut [[R; 13]; N],
) -> R {
    let sum = (low.sum + lte).max(R::lit(LEAST_COOLING));
    let share = lte / sum;
    let other = low.sum / sum;
    let line = low.sum * share;
    f[N - 1] -= line * abundance;
    if J == 1 {
        let by_t = share * share * low.by_t + other * other * lte_by_t;
        d[N - 1][molecule] -= line;
        d[N - 1][TEMPERATURE] -= by_t * abundance;
    }
    share * share * abundance
}

/// Adds line cooling by H2, and by HD in networks with deuterium.
#[device]
pub fn molecular_cooling<R: Real, const N: usize, const J: usize>(
    p: &Network<R>,
    x: &Inputs<R>,
    f: &mut [R; N],
    d: &mut [[R; 13]; N],
) {
    let n = x.density;
    let (by_h, slope) = interpolate_column(&p.rates, &x.table_position, H2_BY_H);
    let mut low = Low {
        sum: by_h * n * x.v[HI],
        by_t: slope * n * x.v[HI],
    };
    let mut others = [0.0; 4];
    if p.all_partners {
        others = partners(p, x, &mut low);
    }
    let (lte, lte_slope) = interpolate_column(&p.rates, &x.table_position, H2_LTE);
    let factor = add_lines::<R, N, J>(&low, lte, lte_slope, H2, x.v[H2], f, d);
    if J == 1 {
        d[N - 1][HI] -= factor * n * by_h;
        d[N - 1][HEI] -= factor * n * others[0];
        d[N - 1][H2] -= factor * n * others[1];
        d[N - 1][HII] -= factor * n * others[2];
        d[N - 1][ELECTRONS] -= factor * n * others[3];
    }
    if N > 7 {
        let (by_h, slope) = interpolate_column(&p.rates, &x.table_position, HD_BY_H);
        let low = Low {
            sum: by_h * n * x.v[HI],
            by_t: slope * n * x.v[HI],
        };
        let (lte, lte_slope) = interpolate_column(&p.rates, &x.table_position, HD_LTE);
        let factor = add_lines::<R, N, J>(&low, lte, lte_slope, HD, x.v[HD], f, d);
        if J == 1 {
            d[N - 1][HI] -= factor * n * by_h;
        }
    }
}

/// Adds excitation of H2 by He, H2, H+ and electrons; returns the coefficients.
#[device]
fn partners<R: Real>(p: &Network<R>, x: &Inputs<R>, low: &mut Low<R>) -> [R; 4] {
    let (by_he, he_slope) = interpolate_column(&p.rates, &x.table_position, H2_BY_HE);
    let (by_h2, h2_slope) = interpolate_column(&p.rates, &x.table_position, H2_BY_H2);
    let (by_hp, hp_slope) = interpolate_column(&p.rates, &x.table_position, H2_BY_HP);
    let (by_e, e_slope) = interpolate_column(&p.rates, &x.table_position, H2_BY_E);
    let sum = by_he * x.v[HEI] + by_h2 * x.v[H2] + by_hp * x.v[HII] + by_e * x.v[ELECTRONS];
    let slope =
        he_slope * x.v[HEI] + h2_slope * x.v[H2] + hp_slope * x.v[HII] + e_slope * x.v[ELECTRONS];
    low.sum += x.density * sum;
    low.by_t += x.density * slope;
    [by_he, by_h2, by_hp, by_e]
}
