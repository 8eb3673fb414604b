//! Rules by which sinks form and accrete gas.

use bevy_ecs::prelude::*;

/// Gas around the place at which a sink may form: sums over the cells within the accretion radius.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FormingSink {
    /// Mass of the gas.
    pub mass: f64,
    /// Kinetic energy in the frame of the centre of mass.
    pub kinetic_energy: f64,
    /// Thermal energy, 3/2 of the pressure times the volume.
    pub thermal_energy: f64,
    /// Magnetic energy.
    pub magnetic_energy: f64,
    /// Energy of the gravity between the cells, negative.
    pub gravitational_energy: f64,
    /// `true` if the velocity converges along each axis at the centre.
    pub is_converging: bool,
    /// `true` if the potential is lowest at the centre.
    pub is_minimum: bool,
}

/// A sink in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SinkState {
    /// Velocity.
    pub velocity: [f64; 3],
    /// Mass; 0 for a sink that forms in this step.
    pub mass: f64,
    /// `true` if the sink forms in this step.
    pub is_new: bool,
}

/// Gas of a cell within the accretion radius of a sink.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SinkCell {
    /// Position of the centre of the cell relative to the sink, code length.
    pub offset: [f64; 3],
    /// Velocity relative to the sink.
    pub velocity: [f64; 3],
    /// Density.
    pub density: f64,
    /// Pressure.
    pub pressure: f64,
    /// Mass above the threshold density.
    pub excess: f64,
    /// Kinetic and gravitational energy relative to the sink per mass: the gravity is that of the sink and of the gas inside the
    /// distance of the cell.
    pub energy: f64,
    /// `true` for the cells next to the sink.
    pub is_central: bool,
}

/// A rule by which sinks form and accrete.
#[derive(Clone, Copy, Debug)]
pub struct SinkRule {
    /// Returns `true` if a sink forms. The centre exceeds the threshold density and is a minimum of the potential among its 26 neighbours, and
    /// no other sink is within the accretion radius.
    pub forms: fn(&FormingSink) -> bool,
    /// Returns the mass that a sink takes from a cell above the threshold density in a step; 0 for nothing. At most nine tenths of the gas of the
    /// cell are taken, by the sink relative to which the cell has the lowest energy.
    pub accretes: fn(&SinkState, &SinkCell) -> f64,
}

/// Rules by their words in decks. A plugin adds one in `declare`.
#[derive(Resource, Clone)]
pub struct SinkRules(pub Vec<(&'static str, SinkRule)>);

impl Default for SinkRules {
    fn default() -> Self {
        let federrath = SinkRule {
            forms: is_collapsing,
            accretes: bound_excess,
        };
        Self(vec![("federrath", federrath)])
    }
}

/// Returns `true` for gas that collapses in all directions, is bound and exceeds a Jeans mass (Federrath et al. 2010, section 2.2).
#[must_use]
pub fn is_collapsing(gas: &FormingSink) -> bool {
    let energy = gas.kinetic_energy + gas.thermal_energy + gas.magnetic_energy;
    gas.is_converging
        && gas.is_minimum
        && energy + gas.gravitational_energy < 0.0
        && -gas.gravitational_energy > 2.0 * gas.thermal_energy
}

/// Returns the mass above the threshold if the gas is bound to the sink and flows towards it (Federrath et al. 2010, section 2.3). A sink
/// that forms takes all of it.
#[must_use]
pub fn bound_excess(sink: &SinkState, cell: &SinkCell) -> f64 {
    let along: f64 = cell
        .offset
        .iter()
        .zip(cell.velocity)
        .map(|(x, v)| x * v)
        .sum();
    let is_falling = cell.is_central || along < 0.0;
    match sink.is_new || (cell.energy < 0.0 && is_falling) {
        true => cell.excess,
        false => 0.0,
    }
}
