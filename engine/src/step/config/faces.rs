//! What decks say of the faces of the domain.

use crate::data::BoundaryCondition;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What stands beyond a face of the domain: a word of the engine's or of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum BoundaryKind {
    /// The domain continues at the opposite face.
    Periodic,
    /// Zero gradient.
    Outflow,
    /// A mirror.
    Reflecting,
    /// What a plugin has registered under the word.
    SystemOptions(String),
}

/// What the list of words is called in schemas.
pub(crate) const LIST: &str = "boundary";

impl BoundaryKind {
    /// The words that the engine knows.
    pub const BUILT_IN: [(&'static str, &'static str); 3] = [
        ("periodic", "The domain continues at the opposite face."),
        ("outflow", "Zero gradient."),
        ("reflecting", "A mirror."),
    ];
    /// The kind that a word means.
    #[must_use]
    pub fn of(word: &str) -> Self {
        match word {
            "periodic" => Self::Periodic,
            "outflow" => Self::Outflow,
            "reflecting" => Self::Reflecting,
            _ => Self::SystemOptions(word.into()),
        }
    }

    /// The word.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Self::Periodic => "periodic",
            Self::Outflow => "outflow",
            Self::Reflecting => "reflecting",
            Self::SystemOptions(word) => word,
        }
    }

    pub(crate) fn is_built_in(&self) -> bool {
        !matches!(self, Self::SystemOptions(_))
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

/// Any text: who knows the words puts them in, see [`tables`](super::super::tables).
impl JsonSchema for BoundaryKind {
    fn schema_name() -> Cow<'static, str> {
        "BoundaryKind".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "words": LIST })
    }
}

/// For fields that have no rules of their own: zero gradient unless the face is periodic or reflecting.
impl From<&BoundaryKind> for BoundaryCondition {
    fn from(kind: &BoundaryKind) -> Self {
        match kind {
            BoundaryKind::Periodic => Self::Periodic,
            BoundaryKind::Reflecting => Self::Reflecting,
            _ => Self::Outflow,
        }
    }
}

/// The two faces of an axis: one word for both, or [lower, upper].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AxisBoundary {
    /// Both faces.
    Both(BoundaryKind),
    /// Lower and upper face.
    Each([BoundaryKind; 2]),
}

impl AxisBoundary {
    /// Lower and upper face.
    #[must_use]
    pub fn sides(&self) -> [BoundaryKind; 2] {
        match self {
            Self::Both(kind) => [kind, kind].map(Clone::clone),
            Self::Each(sides) => sides.clone(),
        }
    }
}

/// The faces of the three axes.
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

/// All faces: one word, or a table of the axes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Boundary {
    /// Every face.
    All(BoundaryKind),
    /// Each axis its own.
    Axes(AxisBoundaries),
}

impl Boundary {
    /// The kinds as `[axis][side]`.
    #[must_use]
    pub fn faces(&self) -> [[BoundaryKind; 2]; 3] {
        match self {
            Self::All(kind) => [[kind, kind]; 3].map(|sides| sides.map(Clone::clone)),
            Self::Axes(axes) => [axes.x.sides(), axes.y.sides(), axes.z.sides()],
        }
    }

    /// Path of the word for a face in the deck.
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
