//! Particles at the points of a lattice.

use super::{Made, Source};
use nestar_deck::{Deck, DeckError, Formula};
use nestar_device::math::sum3;
use nestar_engine::mesh::Domain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Variables of the formulas: the lattice point, its distance from the origin, and the identity.
const VARIABLES: [&str; 5] = ["x", "y", "z", "r", "id"];

/// A lattice that fills the domain evenly, its points in the middles of its cells; the identity counts along x first. Formulas may name the
/// point x, y, z, its distance r from the origin and `id`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lattice {
    /// Points along x, y, z.
    #[schemars(extend("minimum" = 1))]
    pub points: [u32; 3],
    /// Way from the point to the particle along x, y, z, formulas.
    #[serde(default = "zeros")]
    #[schemars(extend("unit" = "length"))]
    pub displacement: [String; 3],
    /// Velocity along x, y, z, formulas.
    #[serde(default = "zeros")]
    #[schemars(extend("unit" = "length/time"))]
    pub velocity: [String; 3],
    /// Mass of the particle, a formula; of no meaning where the species says the mass of each.
    #[serde(default = "zero")]
    #[schemars(extend("unit" = "mass"))]
    pub mass: String,
    /// Which points have a particle, a formula: those where it is not 0. Identities still count all points.
    #[serde(default = "one")]
    pub keep: String,
}

fn zero() -> String {
    "0".into()
}

fn zeros() -> [String; 3] {
    [zero(), zero(), zero()]
}

fn one() -> String {
    "1".into()
}

/// The points, and what is at each.
pub(super) struct Points {
    points: [u64; 3],
    left: [f64; 3],
    right: [f64; 3],
    displacement: [Formula; 3],
    velocity: [Formula; 3],
    mass: Formula,
    keep: Formula,
}

impl Lattice {
    /// The points of the lattice at `path` of the deck.
    ///
    /// # Errors
    /// A formula that is none.
    pub(super) fn points(
        &self,
        deck: &Deck,
        path: &str,
        domain: &Domain,
    ) -> Result<Points, DeckError> {
        let formula =
            |key: &str, text: &str| deck.formula(&format!("{path}.{key}"), text, &VARIABLES);
        let three = |key: &str, texts: &[String; 3]| -> Result<[Formula; 3], DeckError> {
            let [x, y, z] = [0, 1, 2].map(|axis| formula(&format!("{key}[{axis}]"), &texts[axis]));
            Ok([x?, y?, z?])
        };
        if let Some(axis) = (0..3).find(|&axis| self.points[axis] == 0) {
            return Err(deck.error_at(&format!("{path}.points[{axis}]"), "must be at least 1"));
        }
        Ok(Points {
            points: self.points.map(u64::from),
            left: domain.left_edge,
            right: domain.right_edge,
            displacement: three("displacement", &self.displacement)?,
            velocity: three("velocity", &self.velocity)?,
            mass: formula("mass", &self.mass)?,
            keep: formula("keep", &self.keep)?,
        })
    }
}

impl Source for Points {
    fn count(&self) -> u64 {
        self.points.iter().product()
    }

    fn make(&self, id: u64) -> Option<Made> {
        let [nx, ny, _] = self.points;
        let at = [id % nx, id / nx % ny, id / (nx * ny)];
        let point = [0, 1, 2].map(|a| {
            let share = (at[a] as f64 + 0.5) / self.points[a] as f64;
            self.left[a] + share * (self.right[a] - self.left[a])
        });
        let [x, y, z] = point;
        let r = sum3(x * x, y * y, z * z).sqrt();
        let values = [x, y, z, r, id as f64];
        (self.keep.eval(&values) != 0.0).then(|| Made {
            position: [0, 1, 2].map(|a| point[a] + self.displacement[a].eval(&values)),
            velocity: [0, 1, 2].map(|a| self.velocity[a].eval(&values)),
            mass: self.mass.eval(&values),
        })
    }
}
