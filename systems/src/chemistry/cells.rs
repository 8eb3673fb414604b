//! Cell functions of chemistry: convert densities of scalars to abundances of the network and back; rescale species
//! to the elements.
//!
//! Species fluxes are limited independently, and flux corrections at coarse-fine faces follow the reactions. The gas
//! density determines the mass of hydrogen and helium in a cell.

use crate::fields::quantities::per_velocity_squared;
use nestar_device::{Place, Real, device};
use nestar_kernels::chemistry::species::{
    DI, DP, H2, H2P, HD, HEI, HEII, HEIII, HI, HII, HM, SPECIES,
};
use nestar_kernels::chemistry::{
    Abundances, CellConditions, Network, SubstepClock, advance, electrons, equilibrium,
    equilibrium_at, least_energy, renormalised, temperature,
};
use nestar_kernels::hydro::{Conserved, internal_energy};
use nestar_kernels::mesh::subcycle::Subcycle;

/// Index of each scalar among the abundances.
#[device]
const PLACES: [usize; SPECIES] = [HI, HII, HEI, HEII, HEIII, HM, H2, H2P, DI, DP, HD];
/// Masses of the species, in hydrogen masses.
#[device]
const MASSES: [f64; SPECIES] = [1.0, 1.0, 4.0, 4.0, 4.0, 1.0, 2.0, 2.0, 2.0, 2.0, 3.0];

/// The network and conversion factors from code units.
#[device]
#[derive(Clone)]
pub struct ChemistryParameters<R> {
    /// The network.
    pub network: Network<R>,
    /// Mass fraction of hydrogen.
    pub hydrogen: R,
    /// Hydrogen nuclei per cm^3 per code unit of hydrogen density.
    pub per_cm3: R,
    /// Kelvin per code unit of energy per hydrogen mass.
    pub kelvin: R,
    /// Code time in Myr.
    pub myr: R,
    /// Heating in kelvin per Myr and hydrogen nucleus.
    pub heating: R,
    /// Photo-electric heating by dust, of cold gas.
    pub dust: R,
    /// Kelvin per Myr per erg per second.
    pub per_erg: R,
    /// Largest number of sub-steps.
    pub most: i32,
    /// 1: the initial ionisation equilibrium keeps the temperature of the gas; 0: its energy.
    pub isothermal: i32,
}

/// State that is carried from call to call.
#[device]
#[derive(Clone, Copy)]
pub struct SubcycleState<R: Real> {
    /// Remaining time, next sub-step, and energies added by the floor and by heating.
    left: R,
    step: R,
    floored: R,
    heated: R,
    /// Energy lost by the gas, per volume.
    gone: R,
    /// Number of sub-steps so far.
    used: R,
}

/// Converts the densities of `K` scalars to abundances, rescaled so that each element has its mass fraction, and
/// computes the thermal energy.
#[device]
pub(super) fn abundances<R: Real, const S: usize, const K: usize>(
    gas: Conserved<R>,
    species: &[R; K],
    p: &ChemistryParameters<R>,
) -> Abundances<R> {
    let hydrogen = p.hydrogen * gas.density;
    let mut s = Abundances {
        y: [0.0; 11],
        energy: internal_energy(gas) * p.kelvin / hydrogen,
    };
    for k in 0..K {
        s.y[PLACES[k]] = species[k] / (R::lit(MASSES[k]) * hydrogen);
    }
    renormalised::<R, S>(&s, p.network.helium, p.network.deuterium)
}

/// Converts abundances to the densities of `K` scalars.
#[device]
pub(super) fn densities<R: Real, const K: usize>(s: &Abundances<R>, hydrogen: R) -> [R; K] {
    let mut species = [0.0; K];
    for k in 0..K {
        species[k] = s.y[PLACES[k]] * R::lit(MASSES[k]) * hydrogen;
    }
    species
}

/// Returns the properties of a cell; `more` is the heating by formula, erg per second and hydrogen nucleus.
#[device]
pub(super) fn surroundings<R: Real>(
    gas: Conserved<R>,
    more: R,
    p: &ChemistryParameters<R>,
) -> CellConditions<R> {
    CellConditions {
        density: p.hydrogen * gas.density * p.per_cm3,
        heating: p.heating + more * p.per_erg,
        dust: p.dust,
    }
}

/// Advances a cell by one call: as many sub-steps as so far, at first one. `dt` is the step, `more` the heating by
/// formula. Gas below the floor is raised to it first. Returns the status and the number of sub-steps.
#[device]
fn react<R: Real, const S: usize, const N: usize, const K: usize>(
    gas: &mut Conserved<R>,
    species: &mut [R; K],
    reached: &mut SubcycleState<R>,
    dt: R,
    more: R,
    p: &ChemistryParameters<R>,
) -> (i32, i32) {
    let mut s = abundances::<R, S, K>(*gas, species, p);
    let hydrogen = p.hydrogen * gas.density;
    let per_kelvin = hydrogen / p.kelvin;
    let before = s.energy;
    let mut clock = SubstepClock {
        left: reached.left,
        step: reached.step,
        floored: reached.floored,
        heated: reached.heated,
    };
    let least = least_energy::<R, S>(&p.network, &s);
    if clock.step == 0.0 && s.energy < least {
        clock.floored = least - s.energy;
        s.energy = least;
    }
    let used = reached.used.to_i32();
    let most = used.max(1).min(p.most - used);
    let cell = surroundings(*gas, more, p);
    let end = advance::<R, S, N>(&p.network, &cell, s, clock, dt * p.myr, most);
    let old = gas.energy;
    gas.energy = old + (end.state.energy - before) * per_kelvin;
    *species = densities::<R, K>(&end.state, hydrogen);
    *reached = SubcycleState {
        left: end.clock.left,
        step: end.clock.step,
        floored: end.clock.floored,
        heated: end.clock.heated,
        gone: reached.gone + (old - gas.energy),
        used: reached.used + R::from_i32(end.substeps),
    };
    (end.status, end.substeps)
}

/// Returns the energies per volume: lost, gained by heating, gained by the floor. They follow from the stored values,
/// so that the budget closes.
#[device]
fn exchanged<R: Real>(
    gas: Conserved<R>,
    reached: SubcycleState<R>,
    p: &ChemistryParameters<R>,
) -> [R; 3] {
    let per_kelvin = p.hydrogen * gas.density / p.kelvin;
    let (heated, raised) = (reached.heated * per_kelvin, reached.floored * per_kelvin);
    [reached.gone + heated + raised, heated, raised]
}

/// Sets the densities of species to those of ionisation equilibrium. The gas keeps its energy, or its temperature.
#[device]
fn ionise<R: Real, const S: usize, const K: usize>(
    gas: &mut Conserved<R>,
    species: &mut [R; K],
    p: &ChemistryParameters<R>,
) {
    let hydrogen = p.hydrogen * gas.density;
    let energy = internal_energy(*gas) * p.kelvin / hydrogen;
    let cell = surroundings(*gas, 0.0, p);
    if p.isothermal > 0 {
        let old = stored_abundances::<R, K>(*gas, species, p.hydrogen, p.kelvin);
        let s = equilibrium_at::<R, S>(&p.network, &cell, temperature::<R, S>(&old));
        gas.energy += (s.energy - energy) * hydrogen / p.kelvin;
        *species = densities::<R, K>(&s, hydrogen);
    } else {
        let s = equilibrium::<R, S>(&p.network, &cell, energy);
        *species = densities::<R, K>(&s, hydrogen);
    }
}

/// Converts the stored densities to abundances without rescaling.
#[device]
fn stored_abundances<R: Real, const K: usize>(
    gas: Conserved<R>,
    species: &[R; K],
    hydrogen: R,
    kelvin: R,
) -> Abundances<R> {
    let mass = hydrogen * gas.density;
    let mut s = Abundances {
        y: [0.0; 11],
        energy: internal_energy(gas) * kelvin / mass,
    };
    for k in 0..K {
        s.y[PLACES[k]] = species[k] / (R::lit(MASSES[k]) * mass);
    }
    s
}

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

/// Defines the state of the gas of a network and its cell functions, for `$s` species with abundances to solve for, `$n`
/// equations and `$k` scalars.
macro_rules! network {
    ($gas:ident, $s:tt, $n:tt, $k:tt: $call:ident, $react:ident, $react_by:ident, $ionise:ident, $temperature:ident,
     $electrons:ident, $rescale:ident) => {
        /// Gas and the densities of its species, except electrons.
        #[device]
        #[derive(Clone, Copy)]
        pub struct $gas<R: Real> {
            pub(super) gas: Conserved<R>,
            pub(super) species: [R; $k],
        }

        /// One call, with the step and heating by formula.
        #[device]
        fn $call<R: Real>(
            from: $gas<R>,
            before: SubcycleState<R>,
            dt: R,
            more: R,
            p: &ChemistryParameters<R>,
        ) -> Subcycle<$gas<R>, SubcycleState<R>, [R; 3]> {
            let (mut u, mut reached) = (from, before);
            let (status, work) =
                react::<R, $s, $n, $k>(&mut u.gas, &mut u.species, &mut reached, dt, more, p);
            Subcycle::<$gas<R>, SubcycleState<R>, [R; 3]> {
                state: u,
                carried: reached,
                sums: exchanged(u.gas, reached, p),
                status,
                work,
            }
        }

        /// Reactions, heating and cooling, with up to `chemistry.max_substeps` sub-steps per cell.
        #[device]
        pub fn $react<R: Real>(
            all: ($gas<R>, SubcycleState<R>),
            at: &Place<R>,
            p: &ChemistryParameters<R>,
        ) -> Subcycle<$gas<R>, SubcycleState<R>, [R; 3]> {
            $call(all.0, all.1, at.dt, 0.0, p)
        }

        /// Reactions with heating by a formula (erg/s per hydrogen nucleus), with up to `chemistry.max_substeps`
        /// sub-steps.
        #[device]
        pub fn $react_by<R: Real>(
            all: ($gas<R>, [R; 1], SubcycleState<R>),
            at: &Place<R>,
            p: &ChemistryParameters<R>,
        ) -> Subcycle<$gas<R>, SubcycleState<R>, [R; 3]> {
            $call(all.0, all.2, at.dt, all.1[0], p)
        }

        /// Ionisation equilibrium.
        #[device]
        pub fn $ionise<R: Real>(u: $gas<R>, p: &ChemistryParameters<R>) -> $gas<R> {
            let mut v = u;
            ionise::<R, $s, $k>(&mut v.gas, &mut v.species, p);
            v
        }

        /// Temperature in kelvin, from the species.
        #[device]
        pub fn $temperature<R: Real>(u: $gas<R>, at: &Place<R>, hydrogen: R, kelvin: R) -> R {
            let present = kelvin * per_velocity_squared(at);
            temperature::<R, $s>(&stored_abundances::<R, $k>(
                u.gas, &u.species, hydrogen, present,
            ))
        }

        /// Electrons per hydrogen nucleus.
        #[device]
        pub fn $electrons<R: Real>(u: $gas<R>, hydrogen: R) -> R {
            electrons::<R, $s>(&stored_abundances::<R, $k>(
                u.gas, &u.species, hydrogen, 1.0,
            ))
        }

        /// Rescales the species to the elements of their gas, after flux corrections.
        #[device]
        pub fn $rescale<R: Real>(u: $gas<R>, p: &ChemistryParameters<R>) -> $gas<R> {
            $gas {
                gas: u.gas,
                species: rescaled::<R, $s, $k>(u.gas, &u.species, p),
            }
        }
    };
}
network!(Gas6, 3, 4, 5: react_call_6, react_6, react_6_by, ionise_6, temperature_6, electrons_6, rescale_elements_6);
network!(Gas9, 6, 7, 8: react_call_9, react_9, react_9_by, ionise_9, temperature_9, electrons_9, rescale_elements_9);
network!(Gas12, 8, 9, 11: react_call_12, react_12, react_12_by, ionise_12, temperature_12, electrons_12, rescale_elements_12);
