//! Species with as much of each element as their gas has.
//!
//! Fluxes of species are limited one by one, and those through coarse-fine faces are corrected after reactions: the mass of the gas
//! says how much hydrogen and helium a cell has.

use super::cells::{Chemistry, Nine, Six, Twelve, abundances, densities};
use nestar_device::{Real, device};
use nestar_kernels::hydro::Conserved;

/// The densities of species with one factor for each element, so that gas has of each what it has by its mass.
#[device]
fn settled<R: Real, const S: usize, const K: usize>(
    gas: Conserved<R>,
    species: &[R; K],
    p: &Chemistry<R>,
) -> [R; K] {
    let s = abundances::<R, S, K>(gas, species, p);
    densities::<R, K>(&s, p.hydrogen * gas.density)
}

/// 6 species with the elements of their gas, after corrections of fluxes.
#[device]
pub fn settle_6<R: Real>(u: Six<R>, p: &Chemistry<R>) -> Six<R> {
    Six {
        gas: u.gas,
        species: settled::<R, 3, 5>(u.gas, &u.species, p),
    }
}

/// 9 species with the elements of their gas, after corrections of fluxes.
#[device]
pub fn settle_9<R: Real>(u: Nine<R>, p: &Chemistry<R>) -> Nine<R> {
    Nine {
        gas: u.gas,
        species: settled::<R, 6, 8>(u.gas, &u.species, p),
    }
}

/// 12 species with the elements of their gas, after corrections of fluxes.
#[device]
pub fn settle_12<R: Real>(u: Twelve<R>, p: &Chemistry<R>) -> Twelve<R> {
    Twelve {
        gas: u.gas,
        species: settled::<R, 8, 11>(u.gas, &u.species, p),
    }
}
