//! Numerics of Nestar: how cells, patches and particles are computed, on the CPU and in CUDA.
//!
//! Nothing here knows the ECS, MPI, files or configuration: kernels take views, scalars and parameter structs.
pub mod hydro;
pub mod mesh;
