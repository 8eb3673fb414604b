//! Terms of the equations: reacting pairs, their rates and derivatives.
use super::network::{Inputs, Network};
use super::species::TEMPERATURE;
use super::table::interpolate_column;
use nestar_device::{Real, device};

/// Rate of a reacting pair, per Myr and hydrogen nucleus, with derivatives.
#[device]
#[derive(Clone, Copy)]
pub struct ReactionTerm<R> {
    /// First species of the pair.
    pub a: usize,
    /// Second species of the pair.
    pub b: usize,
    /// Reaction rate.
    pub rate: R,
    /// Derivative with respect to the first.
    pub by_a: R,
    /// Derivative with respect to the second.
    pub by_b: R,
    /// Derivative with respect to the temperature.
    pub by_t: R,
}

/// Returns the term of a pair with a rate coefficient and its temperature derivative.
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

/// Returns the term of a pair with the coefficient from a table column.
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

/// Adds a term proportional to one species to a row.
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
