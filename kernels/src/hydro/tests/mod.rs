//! Tests of the fluid kernels.
mod conservation;
mod lanes;
mod sample;
mod symmetry;
