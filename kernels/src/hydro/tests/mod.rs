//! Tests of the fluid kernels.
mod conservation;
mod dual;
mod lanes;
mod parabolic;
mod pointwise;
mod riemann;
mod sample;
mod symmetry;
mod transport;
mod tube;
mod tubes;
