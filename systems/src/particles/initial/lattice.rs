//! Particles on a lattice.

use super::formulas::{AttributeFormulas, Compile, mass_of, one, zeros};
use super::{InitialParticle, ParticleSource, SpeciesInfo};
use crate::fields::{PerturbationField, PerturbedMatter};
use nestar_deck::{Deck, DeckError, Formula, deck};
use nestar_device::math::sum3;
use nestar_engine::mesh::Domain;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Variables of the formulas: the lattice point, its distance from the origin, and the identity.
const VARIABLES: [&str; 5] = ["x", "y", "z", "r", "id"];

/// Particles on a regular lattice in the domain, one at the centre of each lattice cell, displaced by
/// formulas. Formulas may use the lattice point `x`, `y`, `z`, its distance `r` from the origin, and the
/// identity `id`, which counts along x first.
#[deck]
pub struct LatticeInitial {
    /// Lattice points along x, y, z.
    #[schemars(extend("minimum" = 1))]
    pub points: [u32; 3],
    /// Displacement from the lattice point along x, y, z, formulas.
    #[key(default = zeros(), unit = "length")]
    pub displacement: [String; 3],
    /// Velocity along x, y, z, formulas.
    #[key(default = zeros(), unit = "length/time")]
    pub velocity: [String; 3],
    /// Add the displacement and the velocity of the initial perturbations, which the table `[perturbations]` defines.
    #[key(default = false)]
    pub perturbed: bool,
    /// Mass, a formula; not allowed if the species gives the mass.
    #[key(unit = "mass")]
    pub mass: Option<String>,
    /// Condition, a formula: a point has a particle where it is not 0. Identities count all points.
    #[key(default = one())]
    pub keep: String,
    /// Scalars by name, formulas; default 0.
    #[key(default = BTreeMap::new())]
    pub scalars: BTreeMap<String, String>,
}

/// Source of lattice particles.
pub(super) struct LatticeSource {
    points: [u64; 3],
    left: [f64; 3],
    right: [f64; 3],
    displacement: [Formula; 3],
    perturbations: Option<Arc<dyn PerturbationField>>,
    others: AttributeFormulas,
}

impl LatticeInitial {
    /// Compiles the lattice of the deck table `path` for a species.
    ///
    /// # Errors
    /// A formula is invalid or the mass is missing.
    pub(super) fn points(
        &self,
        deck: &Deck,
        path: &str,
        species: &SpeciesInfo,
        domain: &Domain,
        perturbations: Option<Arc<dyn PerturbationField>>,
    ) -> Result<LatticeSource, DeckError> {
        let compile = Compile {
            deck,
            path,
            variables: &VARIABLES,
        };
        if let Some(axis) = (0..3).find(|&axis| self.points[axis] == 0) {
            return Err(deck.error_at(&format!("{path}.points[{axis}]"), "must be at least 1"));
        }
        if self.perturbed && perturbations.is_none() {
            let why = "needs the tables [cosmology] and [perturbations]: add them";
            return Err(deck.error_at(&format!("{path}.perturbed"), why));
        }
        let perturbations = perturbations.filter(|_| self.perturbed);
        if let Some(perturbations) = &perturbations {
            perturbations.prepare(deck, PerturbedMatter::Particles)?;
        }
        let points = self.points.map(u64::from);
        let in_plane = points[0] * points[1];
        if in_plane.checked_mul(points[2]).is_none() {
            let why = "the number of points exceeds 64 bits";
            return Err(deck.error_at(&format!("{path}.points"), why));
        }
        Ok(LatticeSource {
            points,
            left: domain.left_edge,
            right: domain.right_edge,
            perturbations,
            displacement: compile.three("displacement", &self.displacement)?,
            others: AttributeFormulas {
                path: path.into(),
                velocity: compile.three("velocity", &self.velocity)?,
                mass: compile.one("mass", mass_of(deck, path, &self.mass, species)?)?,
                keep: compile.one("keep", &self.keep)?,
                scalars: compile.scalars(species.scalars, &self.scalars)?,
            },
        })
    }
}

impl ParticleSource for LatticeSource {
    fn count(&self) -> u64 {
        self.points.iter().product()
    }

    fn make(&self, id: u64) -> Result<Option<InitialParticle>, String> {
        let [nx, ny, _] = self.points;
        let at = [id % nx, id / nx % ny, id / (nx * ny)];
        let point = [0, 1, 2].map(|a| {
            let share = (at[a] as f64 + 0.5) / self.points[a] as f64;
            self.left[a] + share * (self.right[a] - self.left[a])
        });
        let [x, y, z] = point;
        let r = sum3(x * x, y * y, z * z).sqrt();
        let values = [x, y, z, r, id as f64];
        let made = self.others.made(&values, || {
            [0, 1, 2].map(|a| point[a] + self.displacement[a].eval(&values))
        });
        let Some(perturbations) = &self.perturbations else {
            return made;
        };
        let (by, velocity) = (
            perturbations.displacement(point),
            perturbations.velocity(point),
        );
        made.map(|made| {
            made.map(|mut particle| {
                for a in 0..3 {
                    particle.position[a] += by[a];
                    particle.velocity[a] += velocity[a];
                }
                particle
            })
        })
    }
}
