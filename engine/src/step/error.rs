//! What can go wrong in a run.

use super::memory::Shortage;
use crate::comm::RanksError;
use crate::device::DeviceError;
use crate::mesh::AuditError;
use std::fmt;
use std::path::PathBuf;

/// A system reads copies of other ranks' patches in a way that it may not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessError {
    /// Fewer layers are up to date than it reads.
    Stale {
        /// The field.
        field: &'static str,
        /// The level.
        level: usize,
        /// Whether it is the bank of the present state.
        present: bool,
        /// The system.
        system: String,
        /// Layers that it reads.
        reach: usize,
        /// Layers that are up to date.
        fresh: usize,
    },
    /// It reads more layers than its signature says.
    Undeclared {
        /// The field.
        field: &'static str,
        /// The system.
        system: String,
        /// Layers that it declares.
        declared: usize,
        /// Layers that it reads.
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
                "`{system}` reads {reach} layers of copies of the field `{field}` (level {level}, {} bank), but {fresh} are up to \
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
                "`{system}` reads {reach} layers of copies of the field `{field}` but declares {declared}: write \
                 `Read<_, {reach}>` or `Write<_, {reach}>` in its signature, or `.halo_width::<_>({reach})` where it is registered"
            ),
        }
    }
}

/// An error of the engine. The command line turns it into an exit status: 2 for decks and arguments, 1 otherwise.
#[derive(Debug)]
pub enum Error {
    /// The deck or an argument is wrong.
    Deck(nestar_deck::DeckError),
    /// Something in the deck fits nothing that is registered, found after reading.
    Setup(String),
    /// The state that a run has come to cannot be gone on from: a function fails in a cell or leaves no sound state there, numbers are none.
    Fault(String),
    /// A level's step stays unphysical.
    Unphysical {
        /// The level.
        level: usize,
        /// Simulation time at the beginning of the step.
        time: f64,
        /// How often a smaller step was tried.
        retries: u32,
        /// Patch, cell and state.
        why: String,
    },
    /// No usable step length.
    StepLimit {
        /// The level.
        level: usize,
        /// Simulation time.
        time: f64,
        /// The limit at fault.
        name: &'static str,
        /// What it proposed.
        dt: f64,
    },
    /// Reading or writing failed.
    File {
        /// What was being done.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// A snapshot cannot be read or written.
    Snapshot(String),
    /// The patches asked for do not fit into memory.
    Memory(Shortage),
    /// The device refuses or fails.
    Device(DeviceError),
    /// The ranks cannot go on together.
    Ranks(RanksError),
    /// A system reads copies that it may not.
    Access(AccessError),
    /// The hierarchy is inconsistent, or items are lost.
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

/// Why the step of length `dt` that the limit `name` proposes cannot be taken.
fn step_limit(f: &mut fmt::Formatter<'_>, name: &str, dt: f64) -> fmt::Result {
    if dt > 0.0 {
        return write!(
            f,
            "the step of {dt:e} that the limit \"{name}\" sets is too small to advance the time; look for extreme values in \
             the latest snapshot"
        );
    }
    write!(
        f,
        "the limit \"{name}\" proposes a time step of {dt:e}, which is not positive: what it is made of is 0 or no number \
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
