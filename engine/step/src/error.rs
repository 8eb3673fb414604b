//! Errors of the engine.

use super::memory::Shortage;
use nestar_engine_comm::RanksError;
use nestar_engine_device::DeviceError;
use nestar_engine_mesh::AuditError;
use std::fmt;
use std::path::PathBuf;

/// Reports that a system reads halo copies in a way that it must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessError {
    /// The system reads more halo layers than are up to date.
    Stale {
        /// The field.
        field: &'static str,
        /// The level.
        level: usize,
        /// Selects the bank of the present state.
        present: bool,
        /// The system.
        system: String,
        /// Halo layers that the system reads.
        reach: usize,
        /// Halo layers that are up to date.
        fresh: usize,
    },
    /// The system reads more halo layers than its signature declares.
    Undeclared {
        /// The field.
        field: &'static str,
        /// The system.
        system: String,
        /// Halo layers that the system declares.
        declared: usize,
        /// Halo layers that the system reads.
        reach: usize,
    },
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale {
                field,
                level,
                present,
                system,
                reach,
                fresh,
            } => write!(
                f,
                "`{system}` reads {reach} halo layers of the field `{field}` (level {level}, {} bank), but {fresh} are up to \
                 date: after the last change of the field call `field.refresh(&mut ranks)?`, with `mut ranks: Comm` among \
                 the parameters",
                if *present { "present" } else { "previous" }
            ),
            Self::Undeclared {
                field,
                system,
                declared,
                reach,
            } => write!(
                f,
                "`{system}` reads {reach} halo layers of the field `{field}` but declares {declared}: write \
                 `Read<_, {reach}>` or `Write<_, {reach}>` in its signature, or `.halo_width::<_>({reach})` where it is registered"
            ),
        }
    }
}

/// An error of the engine. The command line returns exit status 2 for decks and arguments, and 1 otherwise.
#[derive(Debug)]
pub enum Error {
    /// The deck or an argument is wrong.
    Deck(nestar_deck::DeckError),
    /// The deck does not fit what is registered; found after parsing.
    Setup(String),
    /// The run cannot continue: a function failed in a cell, left an unphysical state or produced no number.
    Fault(String),
    /// A step of a level stays unphysical after all retries.
    Unphysical {
        /// The level.
        level: usize,
        /// Simulation time at the beginning of the step.
        time: f64,
        /// Number of retries with smaller steps.
        retries: u32,
        /// Patch, cell and state.
        why: String,
    },
    /// No usable step length exists.
    StepLimit {
        /// The level.
        level: usize,
        /// Simulation time.
        time: f64,
        /// Name of the limit.
        name: &'static str,
        /// Proposed step length.
        dt: f64,
    },
    /// Reading or writing a file failed.
    File {
        /// Failed action.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A snapshot cannot be read or written.
    Snapshot(String),
    /// Requested patches do not fit into memory.
    Memory(Shortage),
    /// The device failed.
    Device(DeviceError),
    /// The ranks cannot continue together.
    Ranks(RanksError),
    /// A system reads halo copies that are not declared or not up to date.
    Access(AccessError),
    /// The hierarchy is inconsistent, or particles are lost.
    Audit(AuditError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deck(e) => e.fmt(f),
            Self::Setup(e) | Self::Fault(e) | Self::Snapshot(e) => f.write_str(e),
            Self::Unphysical {
                level,
                time,
                retries,
                why,
            } => write!(
                f,
                "level {level} at time {time:.6e}: the state stays unphysical after {retries} smaller steps: {why}"
            ),
            Self::StepLimit {
                level,
                time,
                name,
                dt,
            } => {
                write!(f, "level {level} at time {time:.6e}: ")?;
                step_limit(f, name, *dt)
            }
            Self::File {
                doing,
                path,
                source,
            } => write!(f, "{doing} {}: {source}", path.display()),
            Self::Memory(e) => e.fmt(f),
            Self::Device(e) => e.fmt(f),
            Self::Ranks(e) => e.fmt(f),
            Self::Access(e) => e.fmt(f),
            Self::Audit(e) => e.fmt(f),
        }
    }
}

/// Writes why the step of length `dt` that the limit `name` proposes is unusable.
fn step_limit(f: &mut fmt::Formatter<'_>, name: &str, dt: f64) -> fmt::Result {
    if dt > 0.0 && name == "max_step" {
        return write!(
            f,
            "`time.max_step` = {dt:e} is too small to advance the time; set a longer step"
        );
    }
    if dt > 0.0 {
        return write!(
            f,
            "the step of {dt:e} that the limit \"{name}\" sets is too small to advance the time; look for extreme values in \
             the latest snapshot"
        );
    }
    write!(
        f,
        "the limit \"{name}\" proposes a time step of {dt:e}, which is not positive: one of its inputs is 0 or NaN \
         in a cell of the level; look for extreme values in the latest snapshot"
    )
}

impl std::error::Error for Error {}

impl From<nestar_deck::DeckError> for Error {
    fn from(e: nestar_deck::DeckError) -> Self {
        Self::Deck(e)
    }
}

impl From<AuditError> for Error {
    fn from(e: AuditError) -> Self {
        Self::Audit(e)
    }
}

impl From<DeviceError> for Error {
    fn from(e: DeviceError) -> Self {
        RanksError::from(e).into()
    }
}

impl From<RanksError> for Error {
    fn from(e: RanksError) -> Self {
        match e {
            RanksError::Device(DeviceError::Setup(why)) => Self::Setup(why),
            RanksError::Device(e) => Self::Device(e),
            e => Self::Ranks(e),
        }
    }
}

impl Error {
    /// Joins two independent errors of a deck or a setup, so that a user can correct both at once. Any other error precedes them.
    #[must_use]
    pub fn and(self, next: Self) -> Self {
        match (self, next) {
            (Self::Deck(first), Self::Deck(next)) => Self::Deck(first.and(next)),
            (first @ (Self::Deck(_) | Self::Setup(_)), next @ (Self::Deck(_) | Self::Setup(_))) => {
                Self::Setup(format!("{first}\n{next}"))
            }
            (Self::Deck(_) | Self::Setup(_), other) | (other, _) => other,
        }
    }

    /// Joins the errors among `results` as [`Error::and`].
    ///
    /// # Errors
    /// There are errors.
    pub fn all(results: impl IntoIterator<Item = Result<(), Self>>) -> Result<(), Self> {
        let errors = results.into_iter().filter_map(Result::err);
        errors.reduce(Self::and).map_or(Ok(()), Err)
    }

    /// Wraps a file error.
    pub fn file(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File {
            doing,
            path,
            source,
        }
    }
}
