//! A run as one of the ranks that an MPI launcher started: one of them speaks, and all end together.

use super::run::{self, RunArgs};
use super::{FAILED, Failure, guarded};
use nestar::engine::ranks::{Ranks, RanksError};
use nestar::mpi::{Launch, Verdict};

/// Runs a deck as one of the ranks, or as the only one; the exit status.
pub fn run(arguments: &RunArgs) -> Result<u8, Failure> {
    let launch = Launch::start()?;
    let ranks = launch.ranks();
    let library = launch.library();
    let result = guarded(|| run::run(arguments, &ranks, library.as_deref()));
    let named = |failure: Failure| failure.of_rank(ranks.rank(), ranks.size());
    match (launch.conclude(result.is_err()), result) {
        (Verdict::Done, result) => result,
        (Verdict::Failed { rank, all }, Err(failure)) if rank == ranks.rank() => {
            Err(if all { failure } else { named(failure) })
        }
        (Verdict::Failed { .. }, result) => Err(Failure::silent(result.err().map(|f| f.status))),
        (Verdict::Deserted, result) => {
            let failure = named(result.err().unwrap_or_else(|| Failure::silent(None)));
            failure.tell();
            launch.end_all(failure.status)
        }
    }
}

impl Failure {
    /// A failure that another rank tells of.
    fn silent(status: Option<u8>) -> Self {
        Self::new(status.unwrap_or(FAILED), "")
    }

    /// The failure with the rank it happened on.
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

/// A note where several ranks compute on one GPU: every rank calls this.
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
        format!("warning: {count} ranks share GPUs with others: one rank for each GPU is fastest (docs/cluster.md)")
    }))
}

#[cfg(test)]
mod tests {
    use super::{Failure, shared_gpus};
    use nestar::engine::ranks::{Ranks, Threads};

    #[test]
    fn a_gpu_of_two_ranks_is_told_of() {
        let told = |gpus: [Option<u8>; 3]| {
            let ranks = Threads::connect(3).into_iter().zip(gpus);
            let started: Vec<_> = ranks
                .map(|(rank, gpu)| {
                    let work = move || shared_gpus(&Ranks::new(rank), gpu.map(|n| [n; 16]));
                    std::thread::spawn(work)
                })
                .collect();
            let notes = started.into_iter().map(|t| t.join().unwrap().unwrap());
            notes.map(|note| note.is_some()).collect::<Vec<_>>()
        };
        assert_eq!(told([Some(1), Some(2), Some(1)]), [true; 3]);
        assert_eq!(told([Some(1), Some(2), Some(3)]), [false; 3]);
        assert_eq!(told([None; 3]), [false; 3]);
    }

    #[test]
    fn a_failure_names_its_rank_where_there_are_several() {
        let failure = || Failure::new(1, "why");
        assert_eq!(failure().of_rank(2, 4).message, "rank 2 of 4: why");
        assert_eq!(failure().of_rank(0, 1).message, "why");
    }
}
