//! Numerics of Nestar: how cells, patches and particles are computed, on the CPU and in CUDA.
//!
//! Nothing here knows the ECS, MPI, files or configuration: kernels take views, scalars and parameter structs.
pub mod chemistry;
pub mod choice;
pub mod cooling;
pub mod criteria;
pub mod gravity;
pub mod hydro;
pub mod mailbox;
pub mod mesh;
pub mod multigrid;
pub mod particles;

/// Cells along one axis of a patch.
pub const PATCH: usize = 8;
/// Cells of a patch.
pub const CELLS: usize = PATCH * PATCH * PATCH;
