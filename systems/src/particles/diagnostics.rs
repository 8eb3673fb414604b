//! Particle columns of the diagnostics. Sums are exact integers, independent of the order and of the number
//! of ranks.

use super::device::{ReductionContext, TermSums};
use super::mass_quantum::{MassQuantum, power_of_two};
use super::pages::{Page, ParticleReal};
use super::species::{PatchParticles, Species, SpeciesMap};
use crate::fields::{ParticleDensity, Potential};
use crate::register::Register;
use crate::units::Units;
use bevy_ecs::prelude::*;
use nestar_device::{Real, device};
use nestar_engine::comm::{DiagnosticColumns, Ranks, RanksError, Reduce, Reduction};
use nestar_engine::data::ParticleSet;
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::{Topology, parallel};
use nestar_engine::{Engine, in_precision};
use nestar_kernels::PATCH;
use nestar_kernels::particles::cloud::quanta_of;
use nestar_kernels::particles::terms::{TERMS, position, round_to_integer, terms};

/// Names of the sums over all particles: see [`terms`].
const NAMES: [&str; TERMS] = [
    "particles_energy_kinetic",
    "particles_momentum_x",
    "particles_momentum_y",
    "particles_momentum_z",
    "particles_angular_momentum_x",
    "particles_angular_momentum_y",
    "particles_angular_momentum_z",
];

/// Gravitational energy density: half the particle density times the potential.
#[device]
fn gravitational<R: Real>(u: (R, R)) -> R {
    let (density, potential) = u;
    0.5 * density * potential
}

/// Registers the columns. `falls` adds the gravitational energy.
pub(super) fn register(sim: &mut Engine, falls: bool) {
    let species = sim.world.resource::<SpeciesMap>().0.iter();
    let names: Vec<String> = species.map(|species| species.name.clone()).collect();
    for (n, name) in names.iter().enumerate() {
        let own = ["count", "mass", "lost", "lost_mass"].map(|what| format!("{name}_{what}"));
        for masses in [&own[1], &own[3]] {
            DiagnosticColumns::set_units(&mut sim.world, masses.clone(), "mass");
        }
        DiagnosticColumns::add_numbers(&mut sim.world, own, move |world| counts(world, n));
    }
    DiagnosticColumns::add_numbers(&mut sim.world, NAMES, sums);
    for (n, name) in NAMES.into_iter().enumerate() {
        let units = match n {
            0 => "mass*length**2/time**2",
            1..4 => "mass*length/time",
            _ => "mass*length**2/time",
        };
        DiagnosticColumns::set_units(&mut sim.world, name, units);
    }
    if falls && sim.deck.has("gravity") {
        let name = "particles_energy_potential";
        let units = Units::of_gravity(sim, "mass*length**2/time**2");
        sim.column::<(ParticleDensity, Potential), gravitational>(name, Reduce::Integral, [])
            .unit(&units);
    }
}

/// Returns the count and mass of a species, and what has left the domain.
fn counts(world: &mut World, n: usize) -> Result<Vec<f64>, RanksError> {
    world.resource_scope(|world, mut all: Mut<SpeciesMap>| {
        let (quantum, ranks) = (world.resource::<MassQuantum>(), world.resource::<Ranks>());
        let (species, lost) = (&mut all.0[n], quantum.lost[n]);
        let context = ReductionContext::of(world);
        let mut sums = [context.number(species), context.quanta(species)?];
        ranks.communicator().reduce(Reduction::Sum, &mut sums)?;
        let mass = |quanta| quantum.mass_of(quanta);
        Ok(vec![
            sums[0] as f64,
            mass(sums[1]),
            lost.count as f64,
            mass(lost.mass),
        ])
    })
}

/// Returns the sums over all particles.
fn sums(world: &mut World) -> Result<Vec<f64>, RanksError> {
    world.resource_scope(|world, mut all: Mut<SpeciesMap>| {
        let (context, ranks) = (ReductionContext::of(world), world.resource::<Ranks>());
        let number = all.0.iter().map(|species| context.number(species)).sum();
        let (mut number, mut most) = ([number], [0u64; TERMS]);
        ranks.communicator().reduce(Reduction::Sum, &mut number)?;
        for species in &mut all.0 {
            let own = context.terms(species, None)?;
            (0..TERMS).for_each(|k| most[k] = most[k].max(own[k]));
        }
        // non-negative numbers have the order of their bits, and NaN comes last
        ranks.communicator().reduce(Reduction::Max, &mut most)?;
        let bits = 62 - (u64::BITS - number[0].leading_zeros()) as i32;
        let scales = most.map(|most| scale_of(f64::from_bits(most), bits));
        let mut sums = [0u64; TERMS];
        for species in &mut all.0 {
            let own = context.terms(species, Some(scales))?;
            (0..TERMS).for_each(|k| sums[k] = sums[k].wrapping_add(own[k]));
        }
        ranks.communicator().reduce(Reduction::Sum, &mut sums)?;
        let value = |k: usize| match most[k] {
            _ if !f64::from_bits(most[k]).is_finite() => f64::NAN,
            0 => 0.0,
            _ => sums[k] as i64 as f64 / scales[k],
        };
        Ok((0..TERMS).map(value).collect())
    })
}

/// Returns the power of two that scales numbers up to `most` to integers of `bits` bits.
pub(super) fn scale_of(most: f64, bits: i32) -> f64 {
    let exponent = (most.to_bits() >> 52) as i32 - 1023;
    power_of_two(bits - 1 - exponent)
}

impl<'a> ReductionContext<'a> {
    fn of(world: &'a World) -> Self {
        Self {
            topology: world.resource::<Topology>(),
            tables: world.get_resource::<DeviceTopology>(),
            quanta_per_mass: world.resource::<MassQuantum>().quanta_per_mass,
        }
    }

    /// Returns the particles of a species on this rank.
    pub fn number(&self, species: &Species) -> u64 {
        let rows = 0..self.topology.capacity() as u32;
        rows.map(|row| species.count(row) as u64).sum()
    }

    /// Returns the mass of a species on this rank, in quanta.
    pub fn quanta(&self, species: &mut Species) -> Result<u64, DeviceError> {
        match species.pool.columns.masses {
            true => Ok(self.terms(species, None)?[TERMS]),
            false => Ok(self.number(species) * quanta_of(species.mass, self.quanta_per_mass)),
        }
    }

    /// Reduces the terms of a species: the largest magnitudes, or the sums if `scales` gives the fixed-point
    /// units.
    fn terms(
        &self,
        species: &mut Species,
        scales: Option<[f64; TERMS]>,
    ) -> Result<TermSums, DeviceError> {
        let mass = species.mass;
        if let Some(lists) = species.upload(self.topology, self.tables)? {
            return lists.terms(self, mass, scales);
        }
        let rows = (0..=self.topology.finest()).flat_map(|level| self.topology.rows(level));
        let mut detached = species.take_patches(rows.copied());
        let shared = &*species;
        let of_patch = |_, (row, patch): &mut (u32, PatchParticles)| in_precision!(shared.precision(), R => self.of_patch::<R>(shared, *row, patch, scales));
        let join = |a: TermSums, b: TermSums| joined(a, b, scales.is_none());
        let sums = parallel::map_mut(&mut detached, of_patch);
        let sums = sums.into_iter().fold([0; TERMS + 1], join);
        species.restore_patches(detached);
        Ok(sums)
    }

    /// Reduces the terms of the particles of a patch.
    fn of_patch<R: ParticleReal>(
        &self,
        species: &Species,
        row: u32,
        patch: &mut PatchParticles,
        scales: Option<[f64; TERMS]>,
    ) -> TermSums {
        let domain = &self.topology.domain;
        let width = domain.cell_width(self.topology.level(row).unwrap_or_default());
        let (left, index) = (domain.left_edge, self.topology.index(row));
        let mut sums = [0; TERMS + 1];
        let columns = species.pool.columns;
        for (page, count) in patch
            .iter_mut()
            .flat_map(|rows| rows.read_pages::<R>(columns))
        {
            for n in 0..count {
                let (offset, mut x) = (page.offset_of(n), [0.0; 3]);
                for a in 0..3 {
                    x[a] = position(offset[a], index[a], left[a], PATCH as f64 * width[a]);
                }
                let v = Page::vector(&page.velocity, n).map(Real::to_f64);
                let mass = page.mass.get(n).map_or(species.mass, |mass| mass.to_f64());
                let (terms, mut own) = (terms(mass, x, v), [0; TERMS + 1]);
                for k in 0..TERMS {
                    own[k] = match &scales {
                        Some(scales) => round_to_integer(terms[k] * scales[k]),
                        None => terms[k].abs().to_bits(),
                    };
                }
                own[TERMS] = quanta_of(mass, self.quanta_per_mass);
                sums = joined(sums, own, scales.is_none());
            }
        }
        sums
    }
}

/// Combines two reductions: maxima if `sizes`, else sums. Masses are always summed.
#[inline(always)]
fn joined(mut a: TermSums, b: TermSums, sizes: bool) -> TermSums {
    for k in 0..=TERMS {
        a[k] = match sizes && k < TERMS {
            true => a[k].max(b[k]),
            false => a[k].wrapping_add(b[k]),
        };
    }
    a
}
