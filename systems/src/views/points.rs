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

/// Second numbers of identities from here on are of gas.
const FIRST_OF_GAS: u64 = u64::MAX / 2;

impl MassPoint {
    /// Returns `true` for the gas of a cell.
    #[must_use]
    pub fn is_gas(&self) -> bool {
        self.identity[1] >= FIRST_OF_GAS
    }
}
