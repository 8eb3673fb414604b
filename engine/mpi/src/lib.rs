//! Ranks of a cluster: one run over many processes, through MPI.
//!
//! A program calls [`Launch::start`] first and [`Launch::conclude`] last. Started by an MPI launcher (`mpirun`, `mpiexec`,
//! `srun`) it is one of several ranks; started alone it is the only one, and no MPI call is made. MPI itself is behind the
//! feature `mpi`; without it nothing of MPI is needed, and a start as one of several ranks is refused.

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
