//! Why a picture cannot be made.

use nestar_snapshot::SnapshotError;
use std::fmt;

/// An error of [`crate::plot`]; its text says what to do.
#[derive(Clone, Debug, PartialEq)]
pub enum PlotError {
    /// The snapshot cannot be read.
    Snapshot(SnapshotError),
    /// The snapshot has no such field and none can be derived.
    UnknownField {
        /// The name that was asked for.
        name: String,
        /// The most similar name that can be drawn.
        nearest: Option<String>,
        /// All names that can be drawn.
        known: Vec<String>,
    },
    /// An option does not fit the snapshot or the other options.
    Option(String),
}

impl fmt::Display for PlotError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Snapshot(error) => error.fmt(out),
            Self::UnknownField {
                name,
                nearest,
                known,
            } => {
                write!(out, "there is no field {name:?}")?;
                if let Some(nearest) = nearest {
                    write!(out, "; did you mean {nearest:?}?")?;
                }
                write!(out, " The fields are {}", known.join(", "))
            }
            Self::Option(text) => out.write_str(text),
        }
    }
}

impl std::error::Error for PlotError {}

impl From<SnapshotError> for PlotError {
    fn from(error: SnapshotError) -> Self {
        Self::Snapshot(error)
    }
}

/// The result of drawing.
pub type Result<T> = std::result::Result<T, PlotError>;

/// The name in `known` that is most similar to `name`, if any is similar at all.
pub(crate) fn nearest<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a String>,
) -> Option<&'a String> {
    let scored = known
        .into_iter()
        .map(|other| (strsim::jaro_winkler(name, other), other));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(score, _)| *score > 0.7)
        .map(|(_, other)| other)
}
