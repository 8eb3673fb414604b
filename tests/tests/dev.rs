//! Development.
#[path = "suite/particles/mod.rs"]
mod particles;
