//! Rescales species to the element abundances of their gas.
//!
//! Species fluxes are limited independently, and flux corrections at coarse-fine faces follow the reactions. The gas
//! density determines the mass of hydrogen and helium in a cell.

use super::cells::{ChemistryParameters, Gas6, Gas9, Gas12, abundances, densities};
use nestar_device::{Real, device};
use nestar_kernels::hydro::Conserved;

/// Rescales the densities of species, with one factor per element, to the element masses of the gas.
#[device]
fn rescaled<R: Real, const S: usize, const K: usize>(
    gas: Conserved<R>,
    species: &[R; K],
    p: &ChemistryParameters<R>,
) -> [R; K] {
    let s = abundances::<R, S, K>(gas, species, p);
    densities::<R, K>(&s, p.hydrogen * gas.density)
}

/// Rescales 6 species to the elements of their gas, after flux corrections.
#[device]
pub fn rescale_elements_6<R: Real>(u: Gas6<R>, p: &ChemistryParameters<R>) -> Gas6<R> {
    Gas6 {
        gas: u.gas,
        species: rescaled::<R, 3, 5>(u.gas, &u.species, p),
    }
}

/// Rescales 9 species to the elements of their gas, after flux corrections.
#[device]
pub fn rescale_elements_9<R: Real>(u: Gas9<R>, p: &ChemistryParameters<R>) -> Gas9<R> {
    Gas9 {
        gas: u.gas,
        species: rescaled::<R, 6, 8>(u.gas, &u.species, p),
    }
}

/// Rescales 12 species to the elements of their gas, after flux corrections.
#[device]
pub fn rescale_elements_12<R: Real>(u: Gas12<R>, p: &ChemistryParameters<R>) -> Gas12<R> {
    Gas12 {
        gas: u.gas,
        species: rescaled::<R, 8, 11>(u.gas, &u.species, p),
    }
}
