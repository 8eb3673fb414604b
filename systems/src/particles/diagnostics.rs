//! What the diagnostics say of particles. Sums are those of whole numbers: the same in any order, on any number of ranks.

use super::columns::{Page, Precise};
use super::species::{AllSpecies, Patch, Species};
use super::units::{Units, power_of_two};
use crate::fields::{ParticleDensity, Potential};
use crate::register::Register;
use bevy_ecs::prelude::*;
use nestar_device::{Real, device};
use nestar_engine::mesh::Topology;
use nestar_engine::ranks::{Columns, Ranks, RanksError, Reduce, Reduction};
use nestar_engine::{Engine, in_precision};
use nestar_kernels::PATCH;
use rayon::prelude::*;

/// Names of what is summed up over all particles: [`Terms`].
const NAMES: [&str; TERMS] = [
    "particles_energy_kinetic",
    "particles_momentum_x",
    "particles_momentum_y",
    "particles_momentum_z",
    "particles_angular_momentum_x",
    "particles_angular_momentum_y",
    "particles_angular_momentum_z",
];
const TERMS: usize = 7;

/// What a particle adds to each sum.
type Terms = [f64; TERMS];

/// Gravitational energy of a volume: half the mass of its particles times the potential.
#[device]
fn gravitational<R: Real>(u: (R, R)) -> R {
    let (density, potential) = u;
    0.5 * density * potential
}

/// Adds the columns.
pub(super) fn register(sim: &mut Engine) {
    let species = sim.world.resource::<AllSpecies>().0.iter();
    let names: Vec<String> = species.map(|species| species.name.clone()).collect();
    for (n, name) in names.iter().enumerate() {
        let own = ["count", "mass", "lost", "lost_mass"].map(|what| format!("{name}_{what}"));
        Columns::add_numbers(&mut sim.world, own, move |world| counts(world, n));
    }
    Columns::add_numbers(&mut sim.world, NAMES, sums);
    if sim.deck.has("gravity") {
        let name = "particles_energy_potential";
        sim.column_of_two::<ParticleDensity, Potential, gravitational>(name, Reduce::Integral, [])
            .unit("mass*length**2/time**2");
    }
}

/// Particles of a species and their mass, and what has left the box of both.
fn counts(world: &mut World, n: usize) -> Result<Vec<f64>, RanksError> {
    world.resource_scope(|world, mut all: Mut<AllSpecies>| {
        let (units, ranks) = (world.resource::<Units>(), world.resource::<Ranks>());
        let (species, lost) = (&mut all.0[n], units.lost[n]);
        species.fetch()?;
        let mut sums = [0, super::audit::units(species, units.scale)?];
        species.each(|_, patch| sums[0] += super::species::count(patch) as u64);
        ranks.communicator().reduce(Reduction::Sum, &mut sums)?;
        let mass = |units_of_mass: u64| match units.scale {
            0.0 => 0.0,
            scale => units_of_mass as f64 / scale,
        };
        Ok(vec![
            sums[0] as f64,
            mass(sums[1]),
            lost.count as f64,
            mass(lost.mass),
        ])
    })
}

/// The sums over all particles.
fn sums(world: &mut World) -> Result<Vec<f64>, RanksError> {
    world.resource_scope(|world, mut all: Mut<AllSpecies>| {
        let (topology, ranks) = (world.resource::<Topology>(), world.resource::<Ranks>());
        all.fetch()?;
        let mut walk = Walk {
            all: &mut all,
            topology,
        };
        let mut number = [0];
        walk.all.0.iter_mut().for_each(|species| {
            species.each(|_, patch| number[0] += super::species::count(patch) as u64);
        });
        ranks.communicator().reduce(Reduction::Sum, &mut number)?;
        let larger =
            |most: Terms, terms: Terms| std::array::from_fn(|k| largest(most[k], terms[k].abs()));
        // numbers that are not below 0 are ordered as their bits, and what is no number is behind them
        let mut most = walk.fold([0.0; TERMS], larger, larger).map(f64::to_bits);
        ranks.communicator().reduce(Reduction::Max, &mut most)?;
        let bits = 62 - (u64::BITS - number[0].leading_zeros()) as i32;
        let scales = most.map(|most| scale_of(f64::from_bits(most), bits));
        let add = |sum: [i64; TERMS], terms: Terms| {
            std::array::from_fn(|k| sum[k].wrapping_add((terms[k] * scales[k]).round() as i64))
        };
        let join =
            |a: [i64; TERMS], b: [i64; TERMS]| std::array::from_fn(|k| a[k].wrapping_add(b[k]));
        let mut sums = walk.fold([0; TERMS], add, join).map(|sum| sum as u64);
        ranks.communicator().reduce(Reduction::Sum, &mut sums)?;
        let value = |k: usize| match most[k] {
            _ if !f64::from_bits(most[k]).is_finite() => f64::NAN,
            0 => 0.0,
            _ => sums[k] as i64 as f64 / scales[k],
        };
        Ok((0..TERMS).map(value).collect())
    })
}

fn largest(a: f64, b: f64) -> f64 {
    if a >= b || a.is_nan() { a } else { b }
}

/// A power of two that takes numbers up to `most` to whole ones of so many bits.
fn scale_of(most: f64, bits: i32) -> f64 {
    let exponent = (most.to_bits() >> 52) as i32 - 1023;
    power_of_two(bits - 1 - exponent)
}

/// All particles of this rank.
struct Walk<'a> {
    all: &'a mut AllSpecies,
    topology: &'a Topology,
}

impl Walk<'_> {
    /// Adds up what the particles of each patch give, side by side.
    fn fold<A: Copy + Send + Sync>(
        &mut self,
        none: A,
        add: impl Fn(A, Terms) -> A + Sync,
        join: impl Fn(A, A) -> A + Sync + Send,
    ) -> A {
        let mut result = none;
        let rows: Vec<u32> = (0..=self.topology.finest())
            .flat_map(|level| self.topology.rows(level))
            .copied()
            .collect();
        for species in &mut self.all.0 {
            let mut lifted = species.lift(rows.iter().copied());
            let lent = &*species;
            let sums = lifted.par_iter_mut().map(|(row, patch)| {
                let mut sum = none;
                let give = |terms| sum = add(sum, terms);
                in_precision!(lent.precision(), R => {
                    each_term::<R>((self.topology, lent), (*row, patch), give);
                });
                sum
            });
            let sum = sums.reduce(|| none, &join);
            species.lower(lifted);
            result = join(result, sum);
        }
        result
    }
}

/// Calls `give` with what each particle of the patch of `row` adds.
fn each_term<R: Precise>(
    (topology, species): (&Topology, &Species),
    (row, patch): (u32, &mut Patch),
    mut give: impl FnMut(Terms),
) {
    let width = topology
        .domain
        .cell_width(topology.level(row).unwrap_or_default());
    let width = width.map(|width| PATCH as f64 * width);
    let (left, index) = (topology.domain.left_edge, topology.index(row));
    let columns = species.pool.columns;
    for (page, count) in patch.iter_mut().flat_map(|rows| rows.pages::<R>(columns)) {
        for n in 0..count {
            let place = page
                .place_of(n)
                .map(|place| place as f64 / power_of_two(64));
            let x = [0, 1, 2].map(|a| left[a] + (f64::from(index[a]) + place[a]) * width[a]);
            let v = Page::vector(&page.velocity, n).map(Real::to_f64);
            let mass = page.mass.get(n).map_or(species.mass, |mass| mass.to_f64());
            give(terms(mass, x, v));
        }
    }
}

fn terms(mass: f64, x: [f64; 3], v: [f64; 3]) -> Terms {
    let p = v.map(|v| mass * v);
    let turn = |a: usize, b: usize| x[a] * p[b] - x[b] * p[a];
    let kinetic = 0.5 * (p[0] * v[0] + p[1] * v[1] + p[2] * v[2]);
    [
        kinetic,
        p[0],
        p[1],
        p[2],
        turn(1, 2),
        turn(2, 0),
        turn(0, 1),
    ]
}
