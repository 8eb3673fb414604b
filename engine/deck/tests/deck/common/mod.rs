//! Sample tables for the tests.
#![allow(
    dead_code,
    missing_docs,
    reason = "each test file uses some of the tables"
)]

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys at the top.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Top {
    /// A registered initial condition.
    pub scenario: String,
    /// A line for the log.
    pub title: Option<String>,
}

/// Slope limiters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limiter {
    /// The most diffusive one.
    Minmod,
    /// Smooth.
    VanLeer,
    /// Monotonized central.
    MonotonizedCentral,
}

/// Undocumented words.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "this is what is tested")]
pub enum Side {
    Periodic,
    Outflow,
    Reflecting,
}

/// Gas dynamics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Hydro {
    /// Ratio of specific heats.
    #[schemars(range(max = 3.0), extend("exclusiveMinimum" = 1.0))]
    pub gamma: f64,
    /// Slope limiter.
    pub limiter: Limiter,
    /// Cooling rate.
    #[schemars(range(min = 0.0), extend("unit" = "1/time"))]
    pub cooling: f64,
    /// Passive scalars.
    #[schemars(length(max = 3), inner(length(min = 1)))]
    pub scalars: Vec<String>,
    /// Where the density may not fall below.
    pub floor: Option<f64>,
    /// Steps without refinement.
    pub quiet_steps: u32,
    /// Report each repaired cell.
    pub verbose: bool,
}

impl Default for Hydro {
    fn default() -> Self {
        Hydro {
            gamma: 5.0 / 3.0,
            limiter: Limiter::MonotonizedCentral,
            cooling: 0.0,
            scalars: Vec::new(),
            floor: None,
            quiet_steps: 0,
            verbose: false,
        }
    }
}

/// The box.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Domain {
    /// Cells of level 0.
    #[schemars(inner(range(min = 8)), extend("elements" = ["x", "y", "z"]))]
    pub cells: [u32; 3],
    /// Upper corner.
    #[schemars(extend("elements" = ["x", "y", "z"], "unit" = "length"))]
    pub right_edge: [f64; 3],
    /// Boundary conditions.
    pub boundary: Boundary,
}

impl Default for Domain {
    fn default() -> Self {
        Domain {
            cells: [64; 3],
            right_edge: [1.0; 3],
            boundary: Boundary::All(Side::Periodic),
        }
    }
}

/// One for all faces, or for each axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Boundary {
    /// All faces.
    All(Side),
    /// Each axis.
    Axes(Axes),
}

/// The axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Axes {
    /// Lower and upper x face.
    pub x: OneOrTwo,
    /// Lower and upper y face.
    pub y: OneOrTwo,
}

/// One for both faces, or each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrTwo {
    /// Both faces.
    Both(Side),
    /// Lower and upper.
    Each([Side; 2]),
}

/// A number, or one for each level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PerLevel {
    /// The same on all levels.
    All(f64),
    /// One a level.
    Each(Vec<f64>),
}

/// When to refine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "criterion", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Refine {
    /// Relative jump across a cell.
    Gradient {
        /// The field.
        field: String,
        /// Refine above it.
        #[schemars(extend("minimum" = 0.0, "unit" = "1/length"))]
        threshold: PerLevel,
    },
    /// Inside a box.
    Region {
        /// Lower corner.
        #[schemars(extend("elements" = ["x", "y", "z"]))]
        left: [f64; 3],
        /// Upper corner.
        #[serde(default = "one")]
        right: [f64; 3],
    },
    /// Everywhere.
    Always,
}

fn one() -> [f64; 3] {
    [1.0; 3]
}

/// The mesh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mesh {
    /// Finest level.
    #[schemars(range(max = 20))]
    pub max_level: u8,
    /// Refinement criteria.
    pub refine: Vec<Refine>,
}

/// Formulas of the initial state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Initial {
    /// Density.
    pub density: String,
    /// Pressure.
    pub pressure: String,
    /// Scalars by name.
    #[serde(flatten)]
    pub scalars: BTreeMap<String, String>,
}

impl Default for Initial {
    fn default() -> Self {
        Initial {
            density: "1".to_string(),
            pressure: "1".to_string(),
            scalars: BTreeMap::new(),
        }
    }
}

/// A table that must say something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Needy {
    /// The mass.
    pub mass: f64,
}

/// A mesh whose criteria belong to several owners.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OpenMesh {
    /// Refinement criteria.
    pub refine: Vec<nestar_deck::OpenTable>,
}

/// Resolve the Jeans length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Jeans {
    /// Cells in a Jeans length.
    #[schemars(range(min = 1.0))]
    pub cells: f64,
    /// Where it holds, a formula.
    pub within: String,
}

impl Default for Jeans {
    fn default() -> Self {
        Jeans {
            cells: 4.0,
            within: "1".to_string(),
        }
    }
}

/// An even number: a condition that no schema says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u32")]
pub struct Even(pub u32);

impl TryFrom<u32> for Even {
    type Error = String;

    fn try_from(number: u32) -> Result<Self, String> {
        if number.is_multiple_of(2) {
            Ok(Even(number))
        } else {
            Err(format!("{number} is odd"))
        }
    }
}

/// Tiles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tiles {
    /// How many.
    pub count: Even,
}

/// Shapes of tables that serde can make.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Shapes {
    /// Tables of a common part and a tagged one.
    pub sources: Vec<Source>,
    /// A pair of unlike values.
    pub pair: (f64, String),
    /// A word or one table of its own name.
    pub mode: Option<Mode>,
}

/// A common part and a tagged one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// Common to all kinds.
    #[serde(default)]
    pub rate: f64,
    /// The rest.
    #[serde(flatten)]
    pub kind: SourceKind,
}

/// The tagged part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SourceKind {
    /// At a point.
    Point {
        /// Where.
        at: [f64; 3],
    },
    /// Everywhere.
    Uniform,
}

/// A word or one table of its own name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Nothing.
    Off,
    /// A law.
    Law {
        /// Its index.
        index: f64,
    },
    /// A number.
    Fixed(f64),
}
