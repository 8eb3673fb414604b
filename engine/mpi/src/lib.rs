//! Runs one simulation in many processes through MPI.
//!
//! A program calls [`Launch::start`] first and [`Launch::conclude`] last. Started by an MPI launcher (`mpirun`,
//! `mpiexec`, `srun`) it is one of several ranks. Started alone it is the only rank and makes no MPI call. MPI requires
//! the feature `mpi`; without it, programs refuse to start as one of several ranks.

#[cfg(feature = "mpi")]
mod communicator;
mod launch;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(any(feature = "mpi", test))]
mod placement;

pub use launch::Launch;

/// How the ranks of a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobStatus {
    /// All ranks have finished without failure.
    Done,
    /// All ranks have finished, and some have failed.
    Failed {
        /// Lowest failed rank.
        rank: usize,
        /// Is `true` if all ranks have failed.
        all: bool,
    },
    /// This rank has failed and the others have not noticed; they must be aborted.
    Unresponsive,
}
