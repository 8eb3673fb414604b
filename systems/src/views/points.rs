//! Points with mass.

use bytemuck::{Pod, Zeroable};

/// A particle, or the gas of a cell at its centre.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct MassPoint {
    /// Position, code length.
    pub position: [f64; 3],
    /// Velocity, code units.
    pub velocity: [f64; 3],
    /// Mass, code units.
    pub mass: f64,
    /// Identity and number of the species: unique for all points, and the same on any number of ranks.
    pub identity: [u64; 2],
}
