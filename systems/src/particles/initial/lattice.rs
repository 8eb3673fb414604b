//! Particles on a lattice.

use super::formulas::{AttributeFormulas, Compile, mass_of, one, zeros};
use super::region::Region;
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
    /// Add the displacement and the velocity of the initial perturbations, which the table `[perturbations]` defines, by the waves that the points
    /// can have.
    #[key(default = false)]
    pub perturbed: bool,
    /// Text file, relative to the deck, with the cells that contain particles; all other cells are empty. Its first row has the numbers of cells of the
    /// box along x, y and z; `points` must be multiples of them. Each further row has the indices of a cell, from 0. Particles keep the identities of
    /// the whole lattice.
    pub inside: Option<String>,
    /// Text file of the same form with cells that have no particles.
    pub outside: Option<String>,
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
    perturbations: Option<LatticePerturbations>,
    inside: Option<LatticeCells>,
    outside: Option<LatticeCells>,
    others: AttributeFormulas,
}

/// Perturbations by the waves of a level.
struct LatticePerturbations {
    field: Arc<dyn PerturbationField>,
    level: usize,
}

/// Cells of a region, and the lattice points in each along x, y, z.
struct LatticeCells {
    region: Region,
    points: [u64; 3],
}

impl LatticeCells {
    /// Reads the file at the key `key` of the deck for a lattice of these numbers of points.
    ///
    /// # Errors
    /// The file is invalid, or the points do not divide into its cells.
    fn read(deck: &Deck, key: &str, file: &str, points: [u64; 3]) -> Result<Self, DeckError> {
        let region = Region::read(deck, key, file)?;
        let points = region.points_per_cell(deck, key, points)?;
        Ok(Self { region, points })
    }

    /// Returns the place of a point in the cells of the region, which are counted one after the other.
    fn place(&self, number: u64) -> [u64; 3] {
        let [nx, ny, nz] = self.points;
        let in_cell = nx * ny * nz;
        let (cell, n) = (self.region.cell(number / in_cell), number % in_cell);
        let within = [n % nx, n / nx % ny, n / (nx * ny)];
        [0, 1, 2].map(|a| cell[a] * self.points[a] + within[a])
    }

    /// Returns `true` if the region contains the point at this place.
    fn contains(&self, place: [u64; 3]) -> bool {
        let cell = [0, 1, 2].map(|a| place[a] / self.points[a]);
        self.region.contains(cell)
    }
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
        let points = self.points.map(u64::from);
        let perturbations = perturbations.filter(|_| self.perturbed);
        let perturbations = perturbations.map(|field| LatticePerturbations {
            level: field.level_of_lattice(points),
            field,
        });
        if let Some(LatticePerturbations { field, .. }) = &perturbations {
            field.prepare(deck, PerturbedMatter::Particles)?;
        }
        let in_plane = points[0] * points[1];
        if in_plane.checked_mul(points[2]).is_none() {
            let why = "the number of points exceeds 64 bits";
            return Err(deck.error_at(&format!("{path}.points"), why));
        }
        let cells = |key: &str, file: &Option<String>| {
            let read =
                |file: &String| LatticeCells::read(deck, &format!("{path}.{key}"), file, points);
            file.as_ref().map(read).transpose()
        };
        Ok(LatticeSource {
            points,
            inside: cells("inside", &self.inside)?,
            outside: cells("outside", &self.outside)?,
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

impl LatticeSource {
    /// Returns the place of a point on the lattice.
    fn place(&self, number: u64) -> [u64; 3] {
        let [nx, ny, _] = self.points;
        match &self.inside {
            Some(cells) => cells.place(number),
            None => [number % nx, number / nx % ny, number / (nx * ny)],
        }
    }

    /// Returns the identity of the point at a place.
    fn identity_of(&self, [x, y, z]: [u64; 3]) -> u64 {
        x + self.points[0] * (y + self.points[1] * z)
    }
}

impl ParticleSource for LatticeSource {
    fn count(&self) -> u64 {
        match &self.inside {
            Some(cells) => cells.region.len() * cells.points.iter().product::<u64>(),
            None => self.points.iter().product(),
        }
    }

    fn identity(&self, number: u64) -> u64 {
        self.identity_of(self.place(number))
    }

    fn make(&self, number: u64) -> Result<Option<InitialParticle>, String> {
        let at = self.place(number);
        if self
            .outside
            .as_ref()
            .is_some_and(|cells| cells.contains(at))
        {
            return Ok(None);
        }
        let point = [0, 1, 2].map(|a| {
            let share = (at[a] as f64 + 0.5) / self.points[a] as f64;
            self.left[a] + share * (self.right[a] - self.left[a])
        });
        let [x, y, z] = point;
        let r = sum3(x * x, y * y, z * z).sqrt();
        let values = [x, y, z, r, self.identity_of(at) as f64];
        let made = self.others.made(&values, || {
            [0, 1, 2].map(|a| point[a] + self.displacement[a].eval(&values))
        });
        let Some(LatticePerturbations { field, level }) = &self.perturbations else {
            return made;
        };
        let (by, velocity) = (
            field.displacement(point, *level),
            field.velocity(point, *level),
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
