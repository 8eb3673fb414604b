//! Terms of the equations: what reacts, how often, and the derivatives.
use super::conditions::Inputs;
use super::network::Network;
use super::species::TEMPERATURE;
use super::table::interpolate_column;
use nestar_device::{Real, device};

/// How often a pair reacts, per Myr and hydrogen nucleus, and the derivatives.
#[device]
#[derive(Clone, Copy)]
pub struct ReactionTerm<R> {
    /// One of the pair.
    pub a: usize,
    /// The other.
    pub b: usize,
    /// The rate.
    pub rate: R,
    /// Its derivative by the first.
    pub by_a: R,
    /// Its derivative by the second.
    pub by_b: R,
    /// Its derivative by the temperature.
    pub by_t: R,
}

/// A pair with a coefficient and its slope.
#[device]
pub fn product<R: Real>(
    x: &Inputs<R>,
    a: usize,
    b: usize,
    coefficient: R,
    slope: R,
) -> ReactionTerm<R> {
    let c = coefficient * x.density;
    ReactionTerm {
        a,
        b,
        rate: c * x.v[a] * x.v[b],
        by_a: c * x.v[b],
        by_b: c * x.v[a],
        by_t: slope * x.density * x.v[a] * x.v[b],
    }
}

/// A pair by a column of the table.
#[device]
pub fn pair<R: Real>(
    p: &Network<R>,
    x: &Inputs<R>,
    column: usize,
    a: usize,
    b: usize,
) -> ReactionTerm<R> {
    let (coefficient, slope) = interpolate_column(&p.rates, &x.table_position, column);
    product(x, a, b, coefficient, slope)
}

/// Adds a multiple of a term to a row.
#[device]
pub fn add<R: Real, const N: usize, const J: usize>(
    f: &mut [R; N],
    d: &mut [[R; 13]; N],
    row: usize,
    factor: R,
    term: &ReactionTerm<R>,
) {
    f[row] += factor * term.rate;
    if J == 1 {
        d[row][term.a] += factor * term.by_a;
        d[row][term.b] += factor * term.by_b;
        d[row][TEMPERATURE] += factor * term.by_t;
    }
}

/// Adds to a row what is proportional to one species.
#[device]
pub fn add_one<R: Real, const N: usize, const J: usize>(
    f: &mut [R; N],
    d: &mut [[R; 13]; N],
    row: usize,
    coefficient: R,
    of: (usize, R),
) {
    f[row] += coefficient * of.1;
    if J == 1 {
        d[row][of.0] += coefficient;
    }
}
