//! Tests of the crate in one program, so that the crate is linked once.

mod common;
mod constants;
mod curves;
mod device_text;
mod errors;
mod formulas;
mod locations;
mod tables;
mod units;
mod unused_keys;
mod variants;
