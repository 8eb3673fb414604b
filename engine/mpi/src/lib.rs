//! Ranks of a cluster: one run over many processes, through MPI.
//!
//! A program calls [`Launch::start`] first and [`Launch::conclude`] last. Started by an MPI launcher (`mpirun`, `mpiexec`,
//! `srun`) it is one of several ranks; started alone it is the only one, and no MPI call is made. MPI itself is behind the
//! feature `mpi`; without it nothing of MPI is needed, and a start as one of several ranks is refused.

#[cfg(feature = "mpi")]
mod backoff;
mod launch;
mod launcher;
#[cfg(feature = "mpi")]
mod messages;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(any(feature = "mpi", test))]
mod seat;
mod verdict;

pub use launch::Launch;
pub use verdict::Verdict;
