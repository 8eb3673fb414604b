//! Boundary conditions of the domain in decks.

use nestar_engine_data::BoundaryCondition;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Names a boundary condition: one of the engine's words or a word of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum BoundaryKind {
    /// The opposite face continues the domain.
    Periodic,
    /// Zero gradient: the state of the nearest cell.
    Outflow,
    /// A wall: mirror image with reversed normal velocity.
    Reflecting,
    /// A condition that a plugin has registered under this word.
    Registered(String),
}

/// Name of the list of words in schemas.
pub(crate) const LIST: &str = "boundary";

impl BoundaryKind {
    /// The engine's own words with their documentation.
    pub const BUILT_IN: [(&'static str, &'static str); 3] = [
        ("periodic", "The domain continues at the opposite face."),
        ("outflow", "Zero gradient: the state of the nearest cell."),
        (
            "reflecting",
            "A wall: mirror image with reversed normal velocity.",
        ),
    ];
    /// Returns the condition that a word names.
    #[must_use]
    pub fn of(word: &str) -> Self {
        match word {
            "periodic" => Self::Periodic,
            "outflow" => Self::Outflow,
            "reflecting" => Self::Reflecting,
            _ => Self::Registered(word.into()),
        }
    }

    /// Returns the word.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Self::Periodic => "periodic",
            Self::Outflow => "outflow",
            Self::Reflecting => "reflecting",
            Self::Registered(word) => word,
        }
    }

    pub(crate) fn is_built_in(&self) -> bool {
        !matches!(self, Self::Registered(_))
    }
}

impl From<String> for BoundaryKind {
    fn from(word: String) -> Self {
        Self::of(&word)
    }
}

impl From<BoundaryKind> for String {
    fn from(kind: BoundaryKind) -> Self {
        kind.word().into()
    }
}

/// Accepts any text; [`tables`](super::super::tables) inserts the known words.
impl JsonSchema for BoundaryKind {
    fn schema_name() -> Cow<'static, str> {
        "BoundaryKind".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "words": LIST })
    }
}

/// Converts to the rule for fields without rules of their own: zero gradient, periodic or reflecting.
impl From<&BoundaryKind> for BoundaryCondition {
    fn from(kind: &BoundaryKind) -> Self {
        match kind {
            BoundaryKind::Periodic => Self::Periodic,
            BoundaryKind::Reflecting => Self::Reflecting,
            _ => Self::Outflow,
        }
    }
}

/// Boundary conditions of the two faces of an axis: one word for both, or [lower, upper].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AxisBoundary {
    /// Both faces.
    Both(BoundaryKind),
    /// Lower and upper face.
    Each([BoundaryKind; 2]),
}

impl AxisBoundary {
    /// Returns the conditions of the lower and the upper face.
    #[must_use]
    pub fn sides(&self) -> [BoundaryKind; 2] {
        match self {
            Self::Both(kind) => [kind, kind].map(Clone::clone),
            Self::Each(sides) => sides.clone(),
        }
    }
}

/// Boundary conditions of the faces of the three axes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AxisBoundaries {
    /// Faces across x.
    pub x: AxisBoundary,
    /// Faces across y.
    pub y: AxisBoundary,
    /// Faces across z.
    pub z: AxisBoundary,
}

/// Boundary conditions of all faces: one word, or a table of the axes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Boundary {
    /// All faces.
    All(BoundaryKind),
    /// A condition for each axis.
    Axes(AxisBoundaries),
}

impl Boundary {
    /// Returns the conditions as `[axis][side]`.
    #[must_use]
    pub fn faces(&self) -> [[BoundaryKind; 2]; 3] {
        match self {
            Self::All(kind) => [[kind, kind]; 3].map(|sides| sides.map(Clone::clone)),
            Self::Axes(axes) => [axes.x.sides(), axes.y.sides(), axes.z.sides()],
        }
    }

    /// Returns the deck path of the word for a face.
    pub(crate) fn path(&self, axis: usize, side: usize) -> String {
        let Self::Axes(axes) = self else {
            return "domain.boundary".into();
        };
        let (name, of_axis) = [("x", &axes.x), ("y", &axes.y), ("z", &axes.z)][axis];
        match of_axis {
            AxisBoundary::Both(_) => format!("domain.boundary.{name}"),
            AxisBoundary::Each(_) => format!("domain.boundary.{name}[{side}]"),
        }
    }
}
