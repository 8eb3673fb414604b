//! Errors of the engine, and their agreement among ranks. A function is called *collective* if all ranks must call it
//! in the same order.

use super::memory::Shortage;
use nestar_engine_comm::{Ranks, RanksError, Reduction};
use nestar_engine_device::DeviceError;
use nestar_engine_mesh::AuditError;
use std::fmt;
use std::io::ErrorKind;
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
        /// Time that the run cannot reach with such steps, if the step is long enough to advance the present time.
        until: Option<f64>,
        /// Cell or particle that makes the limit short; empty if unknown.
        place: String,
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
                until,
                place,
            } => {
                write!(f, "level {level} at time {time:.6e}: ")?;
                match until {
                    Some(until) => endless(f, name, *dt, until - time)?,
                    None => step_limit(f, name, *dt)?,
                }
                if place.is_empty() {
                    return f.write_str("look for extreme values in the latest snapshot");
                }
                write!(f, "the limit is that of {place}")
            }
            Self::File {
                doing,
                path,
                source,
            } => write!(
                f,
                "{doing} {}: {source}{}",
                path.display(),
                remedy(source.kind())
            ),
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
            "`time.max_step` = {dt:e} is too small to advance the time: set a longer step; "
        );
    }
    if dt > 0.0 {
        return write!(
            f,
            "the step of {dt:e} that the limit \"{name}\" sets is too small to advance the time; "
        );
    }
    write!(
        f,
        "the limit \"{name}\" proposes a time step of {dt:e}, which is not positive: one of its inputs is 0 or NaN \
         in a cell of the level; "
    )
}

/// Writes that steps of length `dt`, which the limit `name` sets, do not reach a time that lies `remaining` ahead.
fn endless(f: &mut fmt::Formatter<'_>, name: &str, dt: f64, remaining: f64) -> fmt::Result {
    write!(
        f,
        "the limit \"{name}\" sets steps of {dt:e}; the run would need {:.1e} of them to advance by {remaining:e}; ",
        remaining / dt
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

/// Returns what to do about an error of a file; empty if the system's text suffices.
fn remedy(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "; the disk is full: free some space, or choose another directory"
        }
        ErrorKind::FileTooLarge => {
            "; a limit forbids larger files: raise it (ulimit -f), or choose another directory"
        }
        _ => "",
    }
}

/// First byte of a message about a user's mistake, which is shown without a rank.
const MISTAKE: u8 = 1;
/// First byte of a message about a failure, which is shown with its rank.
const FAILURE: u8 = 0;

/// Bit that marks a rank with an error.
const FAILED: u64 = 1 << 63;

/// Makes the result of local work collective: all ranks return the error of the first rank that failed.
///
/// # Errors
/// The same on all ranks; one of them can report it for all.
pub fn agreed<T>(ranks: &Ranks, own: Result<T, Error>) -> Result<T, Error> {
    agreed_with_flags(ranks, own, 0).map(|(own, _)| own)
}

/// Runs `work` on the first rank and makes its error collective; other ranks get `None`. Collective.
///
/// # Errors
/// As [`agreed`].
pub fn on_first_rank<T>(
    ranks: &Ranks,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    agreed(ranks, (ranks.rank() == 0).then(work).transpose())
}

/// Makes a result collective as [`agreed`] and combines `flags` of all ranks by OR (63 bits) in the same
/// reduction.
///
/// # Errors
/// As [`agreed`].
pub fn agreed_with_flags<T>(
    ranks: &Ranks,
    own: Result<T, Error>,
    flags: u64,
) -> Result<(T, u64), Error> {
    if ranks.is_single() {
        return own.map(|own| (own, flags));
    }
    let mut bits = [if own.is_err() { FAILED } else { flags }];
    let reduced = ranks.communicator().reduce(Reduction::Or, &mut bits);
    let failed = match (reduced, own) {
        (Ok(()), Ok(own)) if bits[0] & FAILED == 0 => return Ok((own, bits[0])),
        (Ok(()), own) => own.err(),
        // the other ranks cannot be reached
        (Err(_), Err(error)) => return Err(error),
        (Err(error), Ok(_)) => return Err(error.into()),
    };
    let own = failed.map_or_else(Vec::new, |error| message(&error));
    let all = ranks.communicator().all_gather(&own)?;
    let first = all.iter().enumerate();
    let first = first.filter_map(|(rank, message)| Some((rank, message.split_first()?)));
    let Some((rank, (&kind, text))) = first.into_iter().next() else {
        let why = "a rank has failed without a message";
        return Err(RanksError::Transport(why.into()).into());
    };
    let message = String::from_utf8_lossy(text).into_owned();
    Err(match kind {
        MISTAKE => Error::Setup(message),
        _ => RanksError::Stopped { rank, message }.into(),
    })
}

fn message(error: &Error) -> Vec<u8> {
    let kind = match error {
        Error::Deck(_) | Error::Setup(_) => MISTAKE,
        _ => FAILURE,
    };
    let mut message = vec![kind];
    message.extend(error.to_string().into_bytes());
    message
}

#[cfg(test)]
mod tests {
    use crate::error::*;
    use nestar_engine_comm::ThreadRank;

    fn on_ranks<T: Send>(size: usize, work: impl Fn(&Ranks) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let work = &work;
            let start = |rank| scope.spawn(move || work(&Ranks::new(rank)));
            let started: Vec<_> = ThreadRank::connect(size).into_iter().map(start).collect();
            started.into_iter().map(|t| t.join().unwrap()).collect()
        })
    }

    #[test]
    fn all_ranks_get_the_error_of_the_first_that_has_one() {
        let text = |kind: fn(String) -> Error, failing: &[usize]| {
            let told = on_ranks(3, |ranks| {
                let rank = ranks.rank();
                let own = match failing.contains(&rank) {
                    true => Err(kind(format!("why {rank}"))),
                    false => Ok(rank),
                };
                agreed(ranks, own).map_err(|error| error.to_string())
            });
            assert!(told.iter().all(|one| one.is_ok() || *one == told[0]));
            told[0].clone()
        };
        assert_eq!(text(Error::Snapshot, &[]), Ok(0));
        let failed = |rank: usize| Err(format!("rank {rank} failed: why {rank}"));
        assert_eq!(text(Error::Snapshot, &[2]), failed(2));
        assert_eq!(text(Error::Snapshot, &[0, 1, 2]), failed(0));
        assert_eq!(text(Error::Setup, &[1, 2]), Err("why 1".into()));
    }

    #[test]
    fn a_flag_of_any_rank_counts_for_all() {
        let joined = on_ranks(3, |ranks| {
            let (own, bits) =
                agreed_with_flags(ranks, Ok(ranks.rank()), 1 << (2 * ranks.rank())).unwrap();
            assert_eq!(own, ranks.rank());
            bits
        });
        assert_eq!(joined, [0b1_0101; 3]);
    }
}
