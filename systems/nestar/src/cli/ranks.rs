//! Runs a command on one or several ranks, started by an MPI launcher or as threads of this process. One rank prints, and all
//! end together.

use super::{CommandError, FAILED, INVALID_INPUT, guarded};
use clap::Args;
use nestar::engine::comm::{Ranks, RanksError, ThreadRank};
use nestar::mpi::{JobStatus, Launch};

/// Argument for the number of ranks in this process.
#[derive(Args, Clone, Copy)]
pub struct RanksArgs {
    /// Number of ranks as threads of this process, each with a GPU or a share of the cores; use an MPI launcher for several hosts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    ranks: Option<u16>,
}

impl RanksArgs {
    /// Returns `true` if several ranks are threads of this process.
    pub fn are_several(self) -> bool {
        self.ranks.is_some_and(|ranks| ranks > 1)
    }
}

/// Runs `work` on all ranks of this process: the one started by an MPI launcher, the requested threads, or a single one. `work`
/// also gets the name of the library that connects the ranks. Returns the exit status.
pub fn each<W>(arguments: RanksArgs, work: W) -> Result<u8, CommandError>
where
    W: Fn(&Ranks, &str) -> Result<u8, CommandError> + Sync,
{
    let launch = Launch::start()?;
    match arguments.ranks.map_or(1, usize::from) {
        1 => launched(&launch, work),
        size if launch.ranks().is_single() => as_threads(size, &work),
        _ => launched(&launch, |_, _| {
            let why = "--ranks starts ranks as threads of one process, but an MPI launcher has started several processes: omit --ranks";
            Err(CommandError::new(INVALID_INPUT, why))
        }),
    }
}

/// Runs `work` on the rank that a launcher started, or on a single rank.
fn launched<W>(launch: &Launch, work: W) -> Result<u8, CommandError>
where
    W: Fn(&Ranks, &str) -> Result<u8, CommandError>,
{
    let ranks = launch.ranks();
    let library = launch.library().unwrap_or_default();
    let result = guarded(|| work(&ranks, &library));
    let named = |failure: CommandError| failure.of_rank(ranks.rank(), ranks.size());
    match (launch.conclude(result.is_err()), result) {
        (JobStatus::Done, result) => result,
        (JobStatus::Failed { rank, all }, Err(failure)) if rank == ranks.rank() => {
            Err(if all { failure } else { named(failure) })
        }
        (JobStatus::Failed { .. }, result) => {
            Err(CommandError::silent(result.err().map(|f| f.status)))
        }
        (JobStatus::Unresponsive, result) => {
            let failure = named(result.err().unwrap_or_else(|| CommandError::silent(None)));
            failure.print();
            launch.end_all(failure.status)
        }
    }
}

/// Runs `work` on `size` ranks, each a thread.
fn as_threads<W>(size: usize, work: &W) -> Result<u8, CommandError>
where
    W: Fn(&Ranks, &str) -> Result<u8, CommandError> + Sync,
{
    let ranks: Vec<Ranks> = ThreadRank::connect(size)
        .into_iter()
        .map(Ranks::new)
        .collect();
    let as_thread = |ranks: &Ranks| {
        let result = guarded(|| work(ranks, "threads"));
        if let Err(failure) = &result {
            ranks.communicator().abort(&failure.message);
        }
        result
    };
    let unstarted = |ranks: &Ranks, error: &std::io::Error| {
        let failure = CommandError::new(
            FAILED,
            format!(
                "cannot start its thread: {error}; allow more threads (`ulimit -u`) or memory (`ulimit -v`), or use fewer ranks"
            ),
        );
        // otherwise the other ranks would wait for it
        ranks.communicator().abort(&failure.message);
        failure
    };
    let ended = std::thread::scope(|scope| {
        let start = |ranks| {
            let started = std::thread::Builder::new().spawn_scoped(scope, move || as_thread(ranks));
            started.map_err(|error| unstarted(ranks, &error))
        };
        let started: Vec<_> = ranks.iter().map(start).collect();
        let gone = |_| Err(CommandError::new(FAILED, "its thread is gone"));
        let ended = started.into_iter().map(|t| t?.join().unwrap_or_else(gone));
        ended.collect()
    });
    first_cause(ended, ranks[0].communicator().failure())
}

/// Returns the exit status of ranks that have ended, or the error of the rank that failed first.
fn first_cause(
    ended: Vec<Result<u8, CommandError>>,
    failure: Option<RanksError>,
) -> Result<u8, CommandError> {
    let size = ended.len();
    let first = match failure {
        Some(RanksError::Stopped { rank, .. }) => rank,
        _ => 0,
    };
    let words =
        |result: &Result<u8, CommandError>| result.as_ref().err().map(|f| f.message.clone());
    let same = ended.iter().all(|one| words(one) == words(&ended[0]));
    match ended.into_iter().nth(first) {
        Some(Err(failure)) if !same => Err(failure.of_rank(first, size)),
        Some(result) => result,
        None => Err(CommandError::new(FAILED, "no rank was started")),
    }
}

impl CommandError {
    /// Returns an error that another rank reports.
    fn silent(status: Option<u8>) -> Self {
        Self::new(status.unwrap_or(FAILED), "")
    }

    /// Adds the rank to the message, if there are several.
    fn of_rank(self, rank: usize, size: usize) -> Self {
        match size {
            1 => self,
            _ => Self::new(
                self.status,
                format!("rank {rank} of {size}: {}", self.message),
            ),
        }
    }
}

/// Returns a warning if several ranks use the same GPU. Collective.
///
/// # Errors
/// Another rank has failed.
pub fn shared_gpus(ranks: &Ranks, own: Option<[u8; 16]>) -> Result<Option<String>, RanksError> {
    let own = own.map_or_else(Vec::new, Vec::from);
    let all = ranks.communicator().all_gather(&own)?;
    let sharing = |rank: &usize| {
        let others = all.iter().enumerate().filter(|(other, _)| other != rank);
        !all[*rank].is_empty() && others.into_iter().any(|(_, other)| *other == all[*rank])
    };
    let count = (0..all.len()).filter(sharing).count();
    Ok((count > 0).then(|| {
        format!("warning: {count} ranks share GPUs; one rank per GPU is fastest (docs/cluster.md)")
    }))
}

#[cfg(test)]
mod tests {
    use super::{CommandError, as_threads, shared_gpus};
    use nestar::engine::comm::{Ranks, ThreadRank};

    #[test]
    fn a_gpu_shared_by_two_ranks_is_reported() {
        let printed = |gpus: [Option<u8>; 3]| {
            let ranks = ThreadRank::connect(3).into_iter().zip(gpus);
            let started: Vec<_> = ranks
                .map(|(rank, gpu)| {
                    let work = move || shared_gpus(&Ranks::new(rank), gpu.map(|n| [n; 16]));
                    std::thread::spawn(work)
                })
                .collect();
            let notes = started.into_iter().map(|t| t.join().unwrap().unwrap());
            notes.map(|note| note.is_some()).collect::<Vec<_>>()
        };
        assert_eq!(printed([Some(1), Some(2), Some(1)]), [true; 3]);
        assert_eq!(printed([Some(1), Some(2), Some(3)]), [false; 3]);
        assert_eq!(printed([None; 3]), [false; 3]);
    }

    #[test]
    fn threads_end_together_with_the_message_of_the_one_that_failed() {
        let status = |failing: &[usize]| {
            let work = |ranks: &Ranks, _: &str| {
                if failing.contains(&ranks.rank()) {
                    return Err(CommandError::new(7, "why"));
                }
                ranks.any(false).map_err(CommandError::from).map(|_| 3)
            };
            as_threads(3, &work).map_err(|failure| (failure.status, failure.message))
        };
        assert_eq!(status(&[]), Ok(3));
        assert_eq!(status(&[1]), Err((7, "rank 1 of 3: why".into())));
        assert_eq!(status(&[0, 1, 2]), Err((7, "why".into())));
    }

    #[test]
    fn a_failure_on_several_ranks_contains_the_rank() {
        let failure = || CommandError::new(1, "why");
        assert_eq!(failure().of_rank(2, 4).message, "rank 2 of 4: why");
        assert_eq!(failure().of_rank(0, 1).message, "why");
    }
}
