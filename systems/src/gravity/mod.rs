//! Self-gravity.

pub mod root;
