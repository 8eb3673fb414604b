//! Errors of plots.

use nestar_snapshot::SnapshotError;
use std::fmt;

/// An error of [`crate::plot`].
#[derive(Clone, Debug, PartialEq)]
pub enum PlotError {
    /// The snapshot cannot be read.
    Snapshot(SnapshotError),
    /// The snapshot has no such field, and it cannot be derived.
    UnknownField {
        /// The requested name.
        name: String,
        /// The most similar known name.
        nearest: Option<String>,
        /// All known names.
        known: Vec<String>,
    },
    /// An option is invalid for the snapshot or conflicts with another option.
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
                write!(out, " Known fields are {}", known.join(", "))
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

/// Result of a plot function.
pub type Result<T> = std::result::Result<T, PlotError>;

/// Returns the name in `known` that is most similar to `name`, or `None` if no name is similar.
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
