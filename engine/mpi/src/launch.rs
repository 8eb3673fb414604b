//! Detects the launcher of this process from the environment; starts and ends a rank.

use crate::JobStatus;
#[cfg(feature = "mpi")]
use crate::communicator::Mpi;
use nestar_engine::Error;
#[cfg(feature = "mpi")]
use nestar_engine::comm::Communicator as _;
use nestar_engine::comm::Ranks;

/// Environment variables of launchers: number of processes, and rank of this one.
const LAUNCHERS: [(&str, &str); 5] = [
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("PMI_SIZE", "PMI_RANK"),
    ("PALS_SIZE", "PALS_RANKID"),
    ("FLUX_JOB_SIZE", "FLUX_TASK_RANK"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
];
/// Environment variable of all launchers with PMIx, which do not publish the number of processes.
const PMIX: &str = "PMIX_RANK";
/// Environment variable for unknown launchers: `1` always starts MPI, `0` never.
const CHOICE: &str = "NESTAR_MPI";

/// How this process was started, according to the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchKind {
    /// By hand, as the only process.
    Single,
    /// By a launcher, as one of `size` processes; 0 if their number is unknown.
    Launched {
        /// Number of processes.
        size: usize,
        /// Rank of this process.
        rank: usize,
    },
}

impl LaunchKind {
    /// Reads environment variables through `variable`.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name: &str| variable(name).and_then(|text| text.trim().parse().ok());
        match variable(CHOICE).as_deref() {
            Some("0") => return Self::Single,
            Some("1") => return Self::Launched { size: 0, rank: 0 },
            _ => {}
        }
        let known = LAUNCHERS.iter().find_map(|(size, rank)| {
            let (size, rank) = (number(size)?, number(rank)?);
            // A batch script is a step with one task of its own.
            (size > 1).then_some(Self::Launched { size, rank })
        });
        let unsized_rank = || number(PMIX).map(|rank| Self::Launched { size: 0, rank });
        known.or_else(unsized_rank).unwrap_or(Self::Single)
    }
}

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

#[cfg(test)]
mod tests {
    use super::LaunchKind;

    fn read(variables: &[(&str, &str)]) -> LaunchKind {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name);
        LaunchKind::read(|name| find(name).map(|(_, value)| (*value).to_string()))
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        let two = LaunchKind::Launched { size: 2, rank: 1 };
        assert_eq!(read(&[]), LaunchKind::Single);
        assert_eq!(read(&[("PMI_SIZE", "2"), ("PMI_RANK", "1")]), two);
        let open = [("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_RANK", "1")];
        assert_eq!(read(&open), two);
        let slurm = [("SLURM_STEP_NUM_TASKS", "2"), ("SLURM_PROCID", "1")];
        assert_eq!(read(&slurm), two);
        assert_eq!(
            read(&[("PMIX_RANK", "3")]),
            LaunchKind::Launched { size: 0, rank: 3 }
        );
    }

    #[test]
    fn a_batch_script_and_a_single_process_have_one_rank() {
        let script = [("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_PROCID", "0")];
        assert_eq!(read(&script), LaunchKind::Single);
        assert_eq!(
            read(&[("PMI_SIZE", "1"), ("PMI_RANK", "0")]),
            LaunchKind::Single
        );
    }

    #[test]
    fn the_environment_may_decide() {
        let unknown = LaunchKind::Launched { size: 0, rank: 0 };
        assert_eq!(read(&[("NESTAR_MPI", "1")]), unknown);
        let off = [("NESTAR_MPI", "0"), ("PMI_SIZE", "2"), ("PMI_RANK", "1")];
        assert_eq!(read(&off), LaunchKind::Single);
    }
}
