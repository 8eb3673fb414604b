//! Runs one simulation in many processes through MPI.
//!
//! A program calls [`Launch::start`] first and [`Launch::conclude`] last. Started by an MPI launcher (`mpirun`,
//! `mpiexec`, `srun`) it is one of several ranks. Started alone it is the only rank and makes no MPI call. MPI requires
//! the feature `mpi`; without it, programs refuse to start as one of several ranks.

#[cfg(feature = "mpi")]
mod backoff;
#[cfg(feature = "mpi")]
mod communicator;
mod job_status;
mod launch;
mod launcher;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(any(feature = "mpi", test))]
mod placement;

pub use job_status::JobStatus;
pub use launch::Launch;
