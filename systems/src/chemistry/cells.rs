//! What happens in a cell: between the densities of the gas's scalars and the abundances of the network.

use nestar_device::{Place, Real, device};
use nestar_kernels::chemistry::species::{
    DI, DP, H2, H2P, HD, HEI, HEII, HEIII, HI, HII, HM, SPECIES,
};
use nestar_kernels::chemistry::{
    Abundances, CellConditions, Network, SubstepClock, advance, electrons, equilibrium,
    least_energy, renormalised, temperature,
};
use nestar_kernels::hydro::{Conserved, internal_energy};
use nestar_kernels::mesh::subcycle::Subcycle;

/// Where the scalars, in their order, stand among the abundances.
#[device]
const PLACES: [usize; SPECIES] = [HI, HII, HEI, HEII, HEIII, HM, H2, H2P, DI, DP, HD];
/// Their masses in hydrogen masses.
#[device]
const MASSES: [f64; SPECIES] = [1.0, 1.0, 4.0, 4.0, 4.0, 1.0, 2.0, 2.0, 2.0, 2.0, 3.0];

/// The gas and the densities of 5 scalars.
#[device]
#[derive(Clone, Copy)]
pub struct Six<R: Real> {
    pub(super) gas: Conserved<R>,
    pub(super) species: [R; 5],
}

/// The gas and the densities of 8 scalars.
#[device]
#[derive(Clone, Copy)]
pub struct Nine<R: Real> {
    pub(super) gas: Conserved<R>,
    pub(super) species: [R; 8],
}

/// The gas and the densities of 11 scalars.
#[device]
#[derive(Clone, Copy)]
pub struct Twelve<R: Real> {
    pub(super) gas: Conserved<R>,
    pub(super) species: [R; 11],
}

/// The network, and what its units are in those of the code.
#[device]
#[derive(Clone)]
pub struct Chemistry<R> {
    /// The network.
    pub network: Network<R>,
    /// Mass fraction of hydrogen.
    pub hydrogen: R,
    /// Hydrogen nuclei per cm^3 in a code density of hydrogen.
    pub per_cm3: R,
    /// Kelvin in a code energy by mass of hydrogen.
    pub kelvin: R,
    /// Myr in a code time.
    pub myr: R,
    /// Heating in kelvin per Myr and hydrogen nucleus.
    pub heating: R,
    /// That by dust, of cold gas.
    pub dust: R,
    /// Kelvin per Myr in an erg per second.
    pub per_erg: R,
    /// Most sub-steps.
    pub most: i32,
}

/// What goes from call to call.
#[device]
#[derive(Clone, Copy)]
pub struct Reached<R: Real> {
    /// What is left of the step, the next sub-step, and what the floor and heating have added.
    left: R,
    step: R,
    floored: R,
    heated: R,
    /// Energy that the gas has less, per volume.
    gone: R,
    /// Sub-steps so far.
    used: R,
}

/// Abundances by the densities of `K` scalars, with one factor for each element, and the thermal energy.
#[device]
pub(super) fn abundances<R: Real, const S: usize, const K: usize>(
    gas: Conserved<R>,
    species: &[R; K],
    p: &Chemistry<R>,
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

/// The densities of `K` scalars.
#[device]
pub(super) fn densities<R: Real, const K: usize>(s: &Abundances<R>, hydrogen: R) -> [R; K] {
    let mut species = [0.0; K];
    for k in 0..K {
        species[k] = s.y[PLACES[k]] * R::lit(MASSES[k]) * hydrogen;
    }
    species
}

/// What is particular to a cell, of which `more` is the heating by formula, erg per second and hydrogen nucleus.
#[device]
pub(super) fn surroundings<R: Real>(
    gas: Conserved<R>,
    more: R,
    p: &Chemistry<R>,
) -> CellConditions<R> {
    CellConditions {
        density: p.hydrogen * gas.density * p.per_cm3,
        heating: p.heating + more * p.per_erg,
        dust: p.dust,
    }
}

/// A call, given the step and heating by formula: as many sub-steps as there were before,
/// one at first. Gas below the floor is raised to it first. Gives the status and the
/// sub-steps.
#[device]
fn react<R: Real, const S: usize, const N: usize, const K: usize>(
    gas: &mut Conserved<R>,
    species: &mut [R; K],
    reached: &mut Reached<R>,
    at: (R, R),
    p: &Chemistry<R>,
) -> (i32, i32) {
    let (dt, more) = at;
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
    *reached = Reached {
        left: end.clock.left,
        step: end.clock.step,
        floored: end.clock.floored,
        heated: end.clock.heated,
        gone: reached.gone + (old - gas.energy),
        used: reached.used + R::from_i32(end.substeps),
    };
    (end.status, end.substeps)
}

/// Energy by volume that gas has lost, and that heating and the floor have added: what is stored decides, so that the sum closes.
#[device]
fn exchanged<R: Real>(gas: Conserved<R>, reached: Reached<R>, p: &Chemistry<R>) -> [R; 3] {
    let per_kelvin = p.hydrogen * gas.density / p.kelvin;
    let (heated, raised) = (reached.heated * per_kelvin, reached.floored * per_kelvin);
    [reached.gone + heated + raised, heated, raised]
}

/// A call in gas of 6 species, given the step and heating by formula.
#[device]
fn reacted_6<R: Real>(
    from: Six<R>,
    before: Reached<R>,
    at: (R, R),
    p: &Chemistry<R>,
) -> Subcycle<Six<R>, Reached<R>, [R; 3]> {
    let (mut u, mut reached) = (from, before);
    let (status, work) = react::<R, 3, 4, 5>(&mut u.gas, &mut u.species, &mut reached, at, p);
    Subcycle::<Six<R>, Reached<R>, [R; 3]> {
        state: u,
        carried: reached,
        sums: exchanged(u.gas, reached, p),
        status,
        work,
    }
}

/// Reactions of 6 species with their heating and cooling, in sub-steps of each cell's own, `chemistry.max_substeps` at most.
#[device]
pub fn react_6<R: Real>(
    all: (Six<R>, Reached<R>),
    at: &Place<R>,
    p: &Chemistry<R>,
) -> Subcycle<Six<R>, Reached<R>, [R; 3]> {
    reacted_6(all.0, all.1, (at.dt, 0.0), p)
}

/// Reactions of 6 species with heating by a formula, erg/s per hydrogen nucleus, in `chemistry.max_substeps` sub-steps at most.
#[device]
pub fn react_6_by<R: Real>(
    all: (Six<R>, [R; 1], Reached<R>),
    at: &Place<R>,
    p: &Chemistry<R>,
) -> Subcycle<Six<R>, Reached<R>, [R; 3]> {
    reacted_6(all.0, all.2, (at.dt, all.1[0]), p)
}

/// A call in gas of 9 species, given the step and heating by formula.
#[device]
fn reacted_9<R: Real>(
    from: Nine<R>,
    before: Reached<R>,
    at: (R, R),
    p: &Chemistry<R>,
) -> Subcycle<Nine<R>, Reached<R>, [R; 3]> {
    let (mut u, mut reached) = (from, before);
    let (status, work) = react::<R, 6, 7, 8>(&mut u.gas, &mut u.species, &mut reached, at, p);
    Subcycle::<Nine<R>, Reached<R>, [R; 3]> {
        state: u,
        carried: reached,
        sums: exchanged(u.gas, reached, p),
        status,
        work,
    }
}

/// Reactions of 9 species with their heating and cooling, in sub-steps of each cell's own, `chemistry.max_substeps` at most.
#[device]
pub fn react_9<R: Real>(
    all: (Nine<R>, Reached<R>),
    at: &Place<R>,
    p: &Chemistry<R>,
) -> Subcycle<Nine<R>, Reached<R>, [R; 3]> {
    reacted_9(all.0, all.1, (at.dt, 0.0), p)
}

/// Reactions of 9 species with heating by a formula, erg/s per hydrogen nucleus, in `chemistry.max_substeps` sub-steps at most.
#[device]
pub fn react_9_by<R: Real>(
    all: (Nine<R>, [R; 1], Reached<R>),
    at: &Place<R>,
    p: &Chemistry<R>,
) -> Subcycle<Nine<R>, Reached<R>, [R; 3]> {
    reacted_9(all.0, all.2, (at.dt, all.1[0]), p)
}

/// A call in gas of 12 species, given the step and heating by formula.
#[device]
fn reacted_12<R: Real>(
    from: Twelve<R>,
    before: Reached<R>,
    at: (R, R),
    p: &Chemistry<R>,
) -> Subcycle<Twelve<R>, Reached<R>, [R; 3]> {
    let (mut u, mut reached) = (from, before);
    let (status, work) = react::<R, 8, 9, 11>(&mut u.gas, &mut u.species, &mut reached, at, p);
    Subcycle::<Twelve<R>, Reached<R>, [R; 3]> {
        state: u,
        carried: reached,
        sums: exchanged(u.gas, reached, p),
        status,
        work,
    }
}

/// Reactions of 12 species with their heating and cooling, in sub-steps of each cell's own, `chemistry.max_substeps` at most.
#[device]
pub fn react_12<R: Real>(
    all: (Twelve<R>, Reached<R>),
    at: &Place<R>,
    p: &Chemistry<R>,
) -> Subcycle<Twelve<R>, Reached<R>, [R; 3]> {
    reacted_12(all.0, all.1, (at.dt, 0.0), p)
}

/// Reactions of 12 species with heating by a formula, erg/s per hydrogen nucleus, in `chemistry.max_substeps` sub-steps at most.
#[device]
pub fn react_12_by<R: Real>(
    all: (Twelve<R>, [R; 1], Reached<R>),
    at: &Place<R>,
    p: &Chemistry<R>,
) -> Subcycle<Twelve<R>, Reached<R>, [R; 3]> {
    reacted_12(all.0, all.2, (at.dt, all.1[0]), p)
}

/// The densities of species in equilibrium of ionisation.
#[device]
fn ionised<R: Real, const S: usize, const K: usize>(gas: Conserved<R>, p: &Chemistry<R>) -> [R; K] {
    let hydrogen = p.hydrogen * gas.density;
    let energy = internal_energy(gas) * p.kelvin / hydrogen;
    let s = equilibrium::<R, S>(&p.network, &surroundings(gas, 0.0, p), energy);
    densities::<R, K>(&s, hydrogen)
}

/// Ionisation of 6 species in equilibrium.
#[device]
pub fn ionise_6<R: Real>(u: Six<R>, p: &Chemistry<R>) -> Six<R> {
    Six {
        gas: u.gas,
        species: ionised::<R, 3, 5>(u.gas, p),
    }
}

/// Ionisation of 9 species in equilibrium.
#[device]
pub fn ionise_9<R: Real>(u: Nine<R>, p: &Chemistry<R>) -> Nine<R> {
    Nine {
        gas: u.gas,
        species: ionised::<R, 6, 8>(u.gas, p),
    }
}

/// Ionisation of 12 species in equilibrium.
#[device]
pub fn ionise_12<R: Real>(u: Twelve<R>, p: &Chemistry<R>) -> Twelve<R> {
    Twelve {
        gas: u.gas,
        species: ionised::<R, 8, 11>(u.gas, p),
    }
}

/// Abundances as they are in the field.
#[device]
fn found<R: Real, const K: usize>(
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

/// Temperature in kelvin, by the species.
#[device]
pub fn temperature_6<R: Real>(u: Six<R>, hydrogen: R, kelvin: R) -> R {
    temperature::<R, 3>(&found::<R, 5>(u.gas, &u.species, hydrogen, kelvin))
}

/// Temperature in kelvin, by the species.
#[device]
pub fn temperature_9<R: Real>(u: Nine<R>, hydrogen: R, kelvin: R) -> R {
    temperature::<R, 6>(&found::<R, 8>(u.gas, &u.species, hydrogen, kelvin))
}

/// Temperature in kelvin, by the species.
#[device]
pub fn temperature_12<R: Real>(u: Twelve<R>, hydrogen: R, kelvin: R) -> R {
    temperature::<R, 8>(&found::<R, 11>(u.gas, &u.species, hydrogen, kelvin))
}

/// Electrons per hydrogen nucleus.
#[device]
pub fn electrons_6<R: Real>(u: Six<R>, hydrogen: R) -> R {
    electrons::<R, 3>(&found::<R, 5>(u.gas, &u.species, hydrogen, 1.0))
}

/// Electrons per hydrogen nucleus.
#[device]
pub fn electrons_9<R: Real>(u: Nine<R>, hydrogen: R) -> R {
    electrons::<R, 6>(&found::<R, 8>(u.gas, &u.species, hydrogen, 1.0))
}

/// Electrons per hydrogen nucleus.
#[device]
pub fn electrons_12<R: Real>(u: Twelve<R>, hydrogen: R) -> R {
    electrons::<R, 8>(&found::<R, 11>(u.gas, &u.species, hydrogen, 1.0))
}
