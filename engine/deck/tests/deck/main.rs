//! The tests of the crate: one program, so that the crate is linked once.

mod common;
mod constants;
mod curves;
mod device_text;
mod errors;
mod formulas;
mod nested_left_over;
mod places;
mod tables;
mod units;
mod variants;
