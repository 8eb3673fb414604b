//! Starts and ends a rank.

#[cfg(feature = "mpi")]
use crate::communicator::Mpi;
use crate::job_status::JobStatus;
use crate::launcher::LaunchKind;
use nestar_engine::Error;
#[cfg(feature = "mpi")]
use nestar_engine::comm::Communicator as _;
use nestar_engine::comm::Ranks;

/// Default for the largest message, bytes; MPI counts them in 31 bits.
const LARGEST_MESSAGE: usize = 1 << 30;

/// This process as one of the ranks of a run, or as the only one.
pub struct Launch {
    #[cfg(feature = "mpi")]
    mpi: Option<Mpi>,
}

impl Launch {
    /// Starts MPI if an MPI launcher has started this process.
    ///
    /// # Errors
    /// A launcher started several processes and this program is built without MPI, or MPI cannot be used.
    pub fn start() -> Result<Self, Error> {
        Self::with_messages_of(LARGEST_MESSAGE)
    }

    /// Starts with messages of at most `largest` bytes (1 to 2^31 - 1); longer ones are split.
    ///
    /// # Errors
    /// As [`Launch::start`].
    pub fn with_messages_of(largest: usize) -> Result<Self, Error> {
        match LaunchKind::read(|name| std::env::var(name).ok()) {
            LaunchKind::Single => Ok(Self::alone()),
            started => Self::launched(started, largest),
        }
    }

    /// Returns the ranks for the simulation; a job of one rank makes no calls of MPI.
    #[must_use]
    pub fn ranks(&self) -> Ranks {
        #[cfg(feature = "mpi")]
        if let Some(mpi) = self.mpi.as_ref().filter(|mpi| mpi.size() > 1) {
            return Ranks::new(mpi.clone());
        }
        Ranks::default()
    }

    /// Waits for the other ranks, ends MPI and returns the status of the job.
    ///
    /// Every rank calls this once, failed or not, on the thread that called `start`; no rank may be used afterwards. If
    /// this rank has failed while others continue, it waits briefly and must then [abort all ranks](Launch::end_all).
    #[must_use]
    pub fn conclude(&self, failed: bool) -> JobStatus {
        #[cfg(feature = "mpi")]
        if let Some(mpi) = &self.mpi {
            let job_status = mpi.agree_on_end(failed);
            if job_status != JobStatus::Unresponsive {
                mpi.end();
            }
            return job_status;
        }
        match failed {
            true => JobStatus::Failed { rank: 0, all: true },
            false => JobStatus::Done,
        }
    }

    /// Aborts the processes of all ranks with an exit status.
    pub fn end_all(&self, status: u8) -> ! {
        #[cfg(feature = "mpi")]
        if let Some(mpi) = &self.mpi {
            mpi.end_all(status);
        }
        std::process::exit(status.into())
    }

    /// Returns the name of the MPI library, if MPI connects the ranks.
    #[must_use]
    pub fn library(&self) -> Option<String> {
        #[cfg(feature = "mpi")]
        if self.mpi.is_some() {
            return Some(crate::mpi::library());
        }
        None
    }
}

#[cfg(feature = "mpi")]
impl Launch {
    fn alone() -> Self {
        Self { mpi: None }
    }

    fn launched(started: LaunchKind, largest: usize) -> Result<Self, Error> {
        let mpi = Mpi::start(largest).map_err(|why| Error::Setup(format!("MPI: {why}")))?;
        match (started, mpi.size()) {
            // Each process would run the whole simulation and overwrite the files of the others.
            (LaunchKind::Launched { size, rank }, 1) if size > 1 => {
                mpi.end();
                Err(Error::Setup(format!(
                    "the launcher started {size} processes, but MPI connects 1 (this is process {rank}): use the launcher of \
                     the MPI library, or `srun --mpi=pmix` or `--mpi=pmi2` (docs/cluster.md)"
                )))
            }
            _ => Ok(Self { mpi: Some(mpi) }),
        }
    }
}

#[cfg(not(feature = "mpi"))]
impl Launch {
    fn alone() -> Self {
        Self {}
    }

    fn launched(started: LaunchKind, _: usize) -> Result<Self, Error> {
        match started {
            LaunchKind::Launched { size, .. } if size > 1 => Err(Error::Setup(format!(
                "an MPI launcher started {size} processes, and this program is built without MPI: build it with\n  \
                 cargo build --release --features mpi"
            ))),
            _ => Ok(Self::alone()),
        }
    }
}
