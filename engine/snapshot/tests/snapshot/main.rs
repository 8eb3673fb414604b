//! The tests of the crate: one program, so that the crate is linked once.

mod blobs;
mod bounds;
mod common;
mod faults;
mod particles;
mod python;
mod round_trip;
mod series;
mod table;
mod uniform;
mod writers;
