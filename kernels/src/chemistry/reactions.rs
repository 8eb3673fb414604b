//! Reactions: their contributions to the derivatives of the species.
use super::dissociation::dissociation_rates;
use super::network::{Inputs, Network};
use super::rates::{
    K1, K2, K3, K4, K5, K6, K7, K8, K9, K11, K12, K14, K15, K16, K17, K18, K19, K21, K22, K50, K51,
    K52, K53, K54, K55, K57, K58,
};
use super::species::{DI, DP, ELECTRONS, H2, H2P, HD, HEI, HEII, HEIII, HI, HII, HM};
use super::table::interpolate_column;
use super::terms::{ReactionTerm, add, add_one, pair, product};
use nestar_device::{Real, device};

/// H2+ + H -> H2 + H+: 6.0e-10 cm^3/s, per Myr (after Karpas, Anicich & Huntress 1979).
#[device]
const K10: f64 = 6.0e-10 * 3.155_76e13;
/// Binding energy of H2, 4.48 eV, in kelvin.
#[device]
const BOND: f64 = 51_988.24;

/// Energy lost by an ionisation of H, 2.18e-11 erg, in kelvin.
#[device]
const H_IONISED: f64 = 157_896.757;
/// Energy lost by an ionisation of He, 3.94e-11 erg, in kelvin.
#[device]
const HE_IONISED: f64 = 285_373.038;

/// Adds reactions 1 to 6, 57 and 58, with the energy lost by 3, 57 and 58.
#[device]
pub fn atoms<R: Real, const N: usize, const J: usize>(
    p: &Network<R>,
    x: &Inputs<R>,
    f: &mut [R; N],
    d: &mut [[R; 13]; N],
) {
    let term = pair(p, x, K1, HI, ELECTRONS);
    add::<R, N, J>(f, d, HII, 1.0, &term);
    let term = pair(p, x, K2, HII, ELECTRONS);
    add::<R, N, J>(f, d, HII, -1.0, &term);
    let term = pair(p, x, K3, HEI, ELECTRONS);
    add::<R, N, J>(f, d, HEII, 1.0, &term);
    add::<R, N, J>(f, d, N - 1, -R::lit(HE_IONISED), &term);
    let term = pair(p, x, K4, HEII, ELECTRONS);
    add::<R, N, J>(f, d, HEII, -1.0, &term);
    let term = pair(p, x, K5, HEII, ELECTRONS);
    add::<R, N, J>(f, d, HEII, -1.0, &term);
    add::<R, N, J>(f, d, HEIII, 1.0, &term);
    let term = pair(p, x, K6, HEIII, ELECTRONS);
    add::<R, N, J>(f, d, HEIII, -1.0, &term);
    add::<R, N, J>(f, d, HEII, 1.0, &term);
    let term = pair(p, x, K57, HI, HI);
    add::<R, N, J>(f, d, HII, 1.0, &term);
    add::<R, N, J>(f, d, N - 1, -R::lit(H_IONISED), &term);
    let term = pair(p, x, K58, HI, HEI);
    add::<R, N, J>(f, d, HII, 1.0, &term);
    add::<R, N, J>(f, d, N - 1, -R::lit(H_IONISED), &term);
}

/// Adds photo-ionisation of H, He and He+.
#[device]
pub fn photons<R: Real, const N: usize, const J: usize>(
    p: &Network<R>,
    x: &Inputs<R>,
    f: &mut [R; N],
    d: &mut [[R; 13]; N],
) {
    add_one::<R, N, J>(f, d, HII, p.photo[0], (HI, x.v[HI]));
    add_one::<R, N, J>(f, d, HEII, p.photo[1], (HEI, x.v[HEI]));
    add_one::<R, N, J>(f, d, HEII, -p.photo[2], (HEII, x.v[HEII]));
    add_one::<R, N, J>(f, d, HEIII, p.photo[2], (HEII, x.v[HEII]));
}

/// Adds reactions 7 to 22 and photo-reactions of H-, H2, H2+.
#[device]
pub fn molecules<R: Real, const N: usize, const J: usize>(
    p: &Network<R>,
    x: &Inputs<R>,
    f: &mut [R; N],
    d: &mut [[R; 13]; N],
) {
    negative_ions::<R, N, J>(p, x, f, d);
    positive_ions::<R, N, J>(p, x, f, d);
    three_bodies::<R, N, J>(p, x, f, d);
    dissociation::<R, N, J>(p, x, f, d);
    let term = pair(p, x, K12, H2, ELECTRONS);
    add::<R, N, J>(f, d, H2, -1.0, &term);
    add::<R, N, J>(f, d, N - 1, -R::lit(BOND), &term);
    add_one::<R, N, J>(f, d, HM, -p.photo[3], (HM, x.v[HM]));
    add_one::<R, N, J>(f, d, H2, -p.photo[4], (H2, x.v[H2]));
    add_one::<R, N, J>(f, d, H2P, -p.photo[5], (H2P, x.v[H2P]));
    add_one::<R, N, J>(f, d, HII, p.photo[5], (H2P, x.v[H2P]));
}

/// Adds the reactions of H-.
#[device]
fn negative_ions<R: Real, const N: usize, const J: usize>(
    p: &Network<R>,
    x: &Inputs<R>,
    f: &mut [R; N],
    d: &mut [[R; 13]; N],
) {
    let term = pair(p, x, K7, HI, ELECTRONS);
    add::<R, N, J>(f, d, HM, 1.0, &term);
    let term = pair(p, x, K8, HI, HM);
    add::<R, N, J>(f, d, HM, -1.0, &term);
    add::<R, N, J>(f, d, H2, 1.0, &term);
    let term = pair(p, x, K14, HM, ELECTRONS);
    add::<R, N, J>(f, d, HM, -1.0, &term);
    let term = pair(p, x, K15, HM, HI);
    add::<R, N, J>(f, d, HM, -1.0, &term);
    let term = pair(p, x, K16, HM, HII);
    add::<R, N, J>(f, d, HM, -1.0, &term);
    add::<R, N, J>(f, d, HII, -1.0, &term);
    let term = pair(p, x, K17, HM, HII);
    add::<R, N, J>(f, d, HM, -1.0, &term);
    add::<R, N, J>(f, d, HII, -1.0, &term);
    add::<R, N, J>(f, d, H2P, 1.0, &term);
    let term = pair(p, x, K19, H2P, HM);
    add::<R, N, J>(f, d, H2P, -1.0, &term);
    add::<R, N, J>(f, d, HM, -1.0, &term);
    add::<R, N, J>(f, d, H2, 1.0, &term);
}

/// Adds the reactions of H2+.
#[device]
fn positive_ions<R: Real, const N: usize, const J: usize>(
    p: &Network<R>,
    x: &Inputs<R>,
    f: &mut [R; N],
    d: &mut [[R; 13]; N],
) {
    let term = pair(p, x, K9, HI, HII);
    add::<R, N, J>(f, d, H2P, 1.0, &term);
    add::<R, N, J>(f, d, HII, -1.0, &term);
    let term = product(x, H2P, HI, R::lit(K10), 0.0);
    add::<R, N, J>(f, d, H2P, -1.0, &term);
    add::<R, N, J>(f, d, H2, 1.0, &term);
    add::<R, N, J>(f, d, HII, 1.0, &term);
    let term = pair(p, x, K11, H2, HII);
    add::<R, N, J>(f, d, H2, -1.0, &term);
    add::<R, N, J>(f, d, H2P, 1.0, &term);
    add::<R, N, J>(f, d, HII, -1.0, &term);
    let term = pair(p, x, K18, H2P, ELECTRONS);
    add::<R, N, J>(f, d, H2P, -1.0, &term);
}

/// Adds reactions 21 and 22 with the released heat; the third body is an additional factor of the rate.
#[device]
fn three_bodies<R: Real, const N: usize, const J: usize>(
    p: &Network<R>,
    x: &Inputs<R>,
    f: &mut [R; N],
    d: &mut [[R; 13]; N],
) {
    let (by_h2, by_h2_slope) = interpolate_column(&p.rates, &x.table_position, K21);
    let (by_h, by_h_slope) = interpolate_column(&p.rates, &x.table_position, K22);
    let h = x.v[HI];
    let square = x.density * x.density * h * h;
    let twice = 2.0 * x.density * x.density * h;
    let coefficient = by_h * h + by_h2 * x.v[H2];
    let term = ReactionTerm {
        a: HI,
        b: H2,
        rate: coefficient * square,
        by_a: coefficient * twice + by_h * square,
        by_b: by_h2 * square,
        by_t: (by_h_slope * h + by_h2_slope * x.v[H2]) * square,
    };
    add::<R, N, J>(f, d, H2, 1.0, &term);
    add::<R, N, J>(f, d, N - 1, R::lit(BOND), &term);
}

/// Adds the dissociation of H2 by H and by H2 with the energy that it takes.
#[device]
fn dissociation<R: Real, const N: usize, const J: usize>(
    p: &Network<R>,
    x: &Inputs<R>,
    f: &mut [R; N],
    d: &mut [[R; 13]; N],
) {
    let k = dissociation_rates(&p.dissociation, x.density, &x.table_position);
    let term = product(x, H2, HI, k.by_h, k.by_h_slope);
    add::<R, N, J>(f, d, H2, -1.0, &term);
    add::<R, N, J>(f, d, N - 1, -R::lit(BOND), &term);
    let term = product(x, H2, H2, k.by_h2, k.by_h2_slope);
    add::<R, N, J>(f, d, H2, -1.0, &term);
    add::<R, N, J>(f, d, N - 1, -R::lit(BOND), &term);
}

/// Adds the reactions of deuterium: 50 to 56, ionisation and recombination with the rates of H (1 and 2), and photo-reactions with those of
/// H and H2.
#[device]
pub fn deuterium<R: Real, const N: usize, const J: usize>(
    p: &Network<R>,
    x: &Inputs<R>,
    f: &mut [R; N],
    d: &mut [[R; 13]; N],
) {
    charge_of_deuterium::<R, N, J>(p, x, f, d);
    let term = pair(p, x, K52, H2, DP);
    add::<R, N, J>(f, d, H2, -1.0, &term);
    add::<R, N, J>(f, d, DP, -1.0, &term);
    add::<R, N, J>(f, d, HD, 1.0, &term);
    add::<R, N, J>(f, d, HII, 1.0, &term);
    let term = pair(p, x, K53, HD, HII);
    add::<R, N, J>(f, d, HD, -1.0, &term);
    add::<R, N, J>(f, d, HII, -1.0, &term);
    add::<R, N, J>(f, d, H2, 1.0, &term);
    add::<R, N, J>(f, d, DP, 1.0, &term);
    let term = pair(p, x, K54, H2, DI);
    add::<R, N, J>(f, d, H2, -1.0, &term);
    add::<R, N, J>(f, d, HD, 1.0, &term);
    let term = pair(p, x, K55, HD, HI);
    add::<R, N, J>(f, d, HD, -1.0, &term);
    add::<R, N, J>(f, d, H2, 1.0, &term);
    let term = pair(p, x, K8, DI, HM);
    add::<R, N, J>(f, d, HM, -1.0, &term);
    add::<R, N, J>(f, d, HD, 1.0, &term);
    add_one::<R, N, J>(f, d, DP, p.photo[0], (DI, x.v[DI]));
    add_one::<R, N, J>(f, d, HD, -p.photo[4], (HD, x.v[HD]));
}

/// Adds ionisation and recombination of D.
#[device]
fn charge_of_deuterium<R: Real, const N: usize, const J: usize>(
    p: &Network<R>,
    x: &Inputs<R>,
    f: &mut [R; N],
    d: &mut [[R; 13]; N],
) {
    let term = pair(p, x, K1, DI, ELECTRONS);
    add::<R, N, J>(f, d, DP, 1.0, &term);
    let term = pair(p, x, K2, DP, ELECTRONS);
    add::<R, N, J>(f, d, DP, -1.0, &term);
    let term = pair(p, x, K50, HII, DI);
    add::<R, N, J>(f, d, HII, -1.0, &term);
    add::<R, N, J>(f, d, DP, 1.0, &term);
    let term = pair(p, x, K51, HI, DP);
    add::<R, N, J>(f, d, DP, -1.0, &term);
    add::<R, N, J>(f, d, HII, 1.0, &term);
}
