//! Catalogues of halos: groups of particles by friends of friends, with the spheres of a given mean density around them.

mod catalogue;
mod friends;
mod space;
mod spheres;

#[cfg(test)]
mod tests;

use super::matter::{Matter, Points, require_no_cells};
use crate::fields::{CriticalDensity, GravitationalConstant, gravity_strength};
use catalogue::{Halo, Search, catalogue};
use nestar_deck::DeckError;
use nestar_device::math::pow;
use nestar_engine::comm::Ranks;
use nestar_engine::mesh::{Domain, Levels, Topology};
use nestar_engine::run::views::{
    ComputedEntry, ComputedView, ViewArray, ViewColumn, ViewConfig, ViewContext, ViewCoordinate,
    ViewKind, ViewLayout, ViewList, ViewOutput,
};
use nestar_engine::step::error::agreed;
use nestar_engine::{Engine, Error};
use nestar_kernels::mesh::exact_sum::ExactSum;
use nestar_snapshot::Values;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use space::Space;
use spheres::Sphere;

/// Mean density of spheres over the critical or the mean density.
const OVERDENSITY: f64 = 200.0;

/// Halos: groups of particles that friends of friends finds, by descending mass. Each entry is a list of any length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct HalosConfig {
    #[serde(flatten)]
    pub common: ViewConfig,
    /// Species of particles that form groups; default: all with mass.
    #[serde(default)]
    pub species: Vec<String>,
    /// Largest distance of two friends, in units of the mean distance of the particles of these species (box volume over their number, to
    /// the power of 1/3).
    #[serde(default = "usual_length")]
    #[schemars(range(min = 1e-4, max = 1.0))]
    pub linking_length: f64,
    /// Points of the lattice of these species along x, y, z if it fills only a part of the box, so that their number does not tell the mean
    /// distance.
    #[schemars(inner(range(min = 1)))]
    pub points: Option<[u32; 3]>,
    /// Least particles of a group.
    #[serde(default = "usual_least")]
    #[schemars(range(min = 2))]
    pub least: u64,
}

fn usual_length() -> f64 {
    0.2
}

fn usual_least() -> u64 {
    20
}

impl ViewKind for HalosConfig {
    const NAME: &'static str = "halos";

    fn common(&self) -> &ViewConfig {
        &self.common
    }

    fn view(&self, context: &ViewContext) -> Result<ViewOutput, DeckError> {
        require_no_cells(context, "halos")?;
        let world = context.world();
        Ok(ViewOutput::computed(Halos {
            matter: Matter::new(context, &self.species, true)?,
            linking_length: self.linking_length,
            lattice: self.points.map(|all| all.map(f64::from).iter().product()),
            least: self.least as usize,
            has_others: !self.species.is_empty(),
            has_critical_density: world.contains_resource::<CriticalDensity>(),
            has_gravity: world.contains_resource::<GravitationalConstant>(),
        }))
    }
}

/// A view of halos.
struct Halos {
    matter: Matter,
    /// In units of the mean distance of particles.
    linking_length: f64,
    /// Number of particles that would fill the box, if given.
    lattice: Option<f64>,
    least: usize,
    /// `true` if the deck chooses the species that form groups.
    has_others: bool,
    has_critical_density: bool,
    has_gravity: bool,
}

impl Halos {
    /// Returns how groups of these points are found.
    ///
    /// # Errors
    /// There are too many points.
    fn search(&self, sim: &Engine, points: &Points) -> Result<Search, Error> {
        if u32::try_from(points.all.len()).is_err() {
            let count = points.all.len();
            return Err(Error::Setup(format!(
                "a view of halos has at most 2^32 particles and cells of gas, found {count}"
            )));
        }
        let domain = &sim.world.resource::<Topology>().domain;
        let space = space_of(domain);
        let volume: f64 = space.lengths.iter().product();
        let count = self.lattice.unwrap_or(points.chosen.max(1) as f64);
        let distance = pow(volume / count, 1.0 / 3.0);
        // the order of the points depends on the ranks
        let mut mass = ExactSum::default();
        points.all.iter().for_each(|point| mass.add(point.mass));
        let time = sim.world.resource::<Levels>().time(0);
        let critical = sim.world.get_resource::<CriticalDensity>();
        let critical = critical.map(|density| (density.0)(time));
        let densities = critical.into_iter().chain([mass.value() / volume]);
        Ok(Search {
            space,
            linking_length: self.linking_length * distance,
            least: self.least,
            densities: densities.map(|density| OVERDENSITY * density).collect(),
        })
    }
}

fn space_of(domain: &Domain) -> Space {
    Space {
        left: domain.left_edge,
        lengths: [0, 1, 2].map(|a| domain.right_edge[a] - domain.left_edge[a]),
        periodic: domain.periodic,
    }
}

/// Describes a column.
fn column(name: &str, units: &str, long_name: &str) -> ViewColumn {
    ViewColumn {
        array: ViewArray {
            name: name.into(),
            dimensions: Vec::new(),
            units: Some(units.into()),
            long_name: long_name.into(),
        },
        is_integer: false,
    }
}

/// Describes a column of three numbers.
fn vector(name: &str, units: &str, long_name: &str) -> ViewColumn {
    let mut own = column(name, units, long_name);
    own.array.dimensions.push("axis".into());
    own
}

/// Describes a column of integers.
fn integer(name: &str, long_name: &str) -> ViewColumn {
    let mut own = column(name, "1", long_name);
    // readers multiply what has a unit, but identities have more digits than floating-point numbers
    own.array.units = None;
    own.is_integer = true;
    own
}

impl ComputedView for Halos {
    fn layout(&self) -> ViewLayout {
        let axis = ViewCoordinate {
            name: "axis".into(),
            units: None,
            long_name: "0, 1, 2 for x, y, z".into(),
            values: vec![0.0, 1.0, 2.0],
        };
        ViewLayout {
            coordinates: vec![axis],
            arrays: Vec::new(),
        }
    }

    fn list(&self) -> Option<ViewList> {
        let mut columns = vec![
            integer("id", "least identity of a particle of the group"),
            integer("species", "number of the species of this particle"),
            integer("number", "number of particles"),
            column("mass", "mass", "mass of the particles"),
            vector("position", "length", "particle with the lowest potential"),
            vector("centre_of_mass", "length", "centre of mass"),
            vector("velocity", "length/time", "mean velocity"),
        ];
        if self.has_critical_density {
            columns.extend([
                column("r200c", "length", "radius of 200 critical densities"),
                column("m200c", "mass", "mass of all matter within r200c"),
            ]);
        }
        columns.extend([
            column("r200m", "length", "radius of 200 mean densities"),
            column("m200m", "mass", "mass of all matter within r200m"),
        ]);
        if self.has_gravity {
            let about = "largest circular velocity within r200m";
            columns.push(column("vmax", "length/time", about));
        }
        if self.has_others {
            let about = "distance of the nearest particle of another species";
            columns.push(column("nearest_other", "length", about));
        }
        Some(ViewList {
            dimension: "halo".into(),
            long_name: "number of halos".into(),
            columns,
        })
    }

    fn entry(&self, sim: &Engine) -> Result<Option<ComputedEntry>, Error> {
        let points = self.matter.collect(sim)?;
        let search = points.as_ref().map(|points| self.search(sim, points));
        let search = agreed(sim.world.resource::<Ranks>(), search.transpose())?;
        Ok(points.zip(search).map(|(points, search)| {
            let halos = catalogue(&points.all, points.chosen, &search);
            ComputedEntry {
                columns: self.columns(sim, &halos),
                ..ComputedEntry::default()
            }
        }))
    }
}

impl Halos {
    /// Returns the values of the columns.
    fn columns(&self, sim: &Engine, halos: &[Halo]) -> Vec<Values> {
        let integers = |of: fn(&Halo) -> u64| Values::U64(halos.iter().map(of).collect());
        let vectors = |of: fn(&Halo) -> [f64; 3]| Values::F64(halos.iter().flat_map(of).collect());
        let of_sphere = |n: usize, of: fn(&Sphere) -> f64| {
            Values::F64(halos.iter().map(|halo| of(&halo.spheres[n])).collect())
        };
        let mut columns = vec![
            integers(|halo| halo.identity[0]),
            integers(|halo| halo.identity[1]),
            integers(|halo| halo.number),
            Values::F64(halos.iter().map(|halo| halo.mass).collect()),
            vectors(|halo| halo.position),
            vectors(|halo| halo.centre_of_mass),
            vectors(|halo| halo.velocity),
        ];
        for n in 0..1 + usize::from(self.has_critical_density) {
            columns.push(of_sphere(n, |sphere| sphere.radius));
            columns.push(of_sphere(n, |sphere| sphere.mass));
        }
        if let Some(gravity) = sim.world.get_resource::<GravitationalConstant>() {
            let levels = sim.world.resource::<Levels>();
            let strength = gravity.0 * gravity_strength(levels, levels.time(0));
            let velocity = |halo: &Halo| (strength * halo.steepest).sqrt();
            columns.push(Values::F64(halos.iter().map(velocity).collect()));
        }
        if self.has_others {
            let distances = halos
                .iter()
                .map(|halo| halo.nearest_other.unwrap_or(f64::NAN));
            columns.push(Values::F64(distances.collect()));
        }
        columns
    }
}
