//! What an event gives to the cells around it.

use bevy_ecs::prelude::*;
use nestar_device::math::pow;

/// Number of cells around an event, its own included.
pub const CELLS_AROUND: usize = 27;

/// Offsets of the 27 cells, x fastest.
pub(super) const OFFSETS: [[i32; 3]; CELLS_AROUND] = {
    let (mut all, mut n) = ([[0; 3]; CELLS_AROUND], 0);
    while n < CELLS_AROUND {
        let i = n as i32;
        all[n] = [i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1];
        n += 1;
    }
    all
};

/// An event of feedback: the supernovae or the wind of a star since the last time of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct FeedbackEvent {
    /// Identity of the star.
    pub id: u64,
    /// Number of the source of events: supernovae after a delay, then those of each rate, then winds.
    pub source: u64,
    /// Cell of the event on the level of the step.
    pub cell: [i32; 3],
    /// Level of the step.
    pub level: i32,
    /// Velocity of the star.
    pub velocity: [f64; 3],
    /// Number of supernovae; 0 for a wind.
    pub count: f64,
    /// Energy.
    pub energy: f64,
    /// Mass.
    pub mass: f64,
    /// Mass of metals.
    pub metals: f64,
}

/// The gas in the 27 cells around an event, and units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Surroundings {
    /// Mean density.
    pub density: f64,
    /// Densities of the cells, x fastest; 0 beyond an open face of the domain.
    pub densities: [f64; CELLS_AROUND],
    /// Velocities of the gas in the cells, relative to the star.
    pub velocities: [[f64; 3]; CELLS_AROUND],
    /// Mean mass fraction of metals.
    pub metallicity: f64,
    /// Width of the cells of the level.
    pub width: f64,
    /// Volume of a cell of the level.
    pub volume: f64,
    /// Units in cgs: length, mass, time.
    pub units: [f64; 3],
}

/// What one of the 27 cells gets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Injection {
    /// Mass; it brings the velocity of the star.
    pub mass: f64,
    /// Momentum in the frame of the star.
    pub momentum: [f64; 3],
    /// Energy in the frame of the star. What the momentum does not take heats the gas.
    pub energy: f64,
    /// Mass of metals.
    pub metals: f64,
}

/// What the 27 cells around an event get, x fastest.
pub type Injections = [Injection; CELLS_AROUND];

/// Returns what the cells around an event get.
pub type InjectionFn = fn(&FeedbackEvent, &Surroundings) -> Injections;

impl Injection {
    /// Returns the injections that a function gives for the offsets of the cells from the event, -1, 0 or 1 along each axis.
    pub fn at_offsets(of: impl FnMut([i32; 3]) -> Self) -> Injections {
        OFFSETS.map(of)
    }
}

/// Kinds of feedback by their words in decks. A plugin adds one in `declare`.
#[derive(Resource, Clone)]
pub struct FeedbackKinds(pub Vec<(&'static str, InjectionFn)>);

impl Default for FeedbackKinds {
    fn default() -> Self {
        Self(vec![
            ("thermal", thermal),
            ("mechanical", mechanical),
            ("kinetic", kinetic),
        ])
    }
}

/// Equal shares of mass, metals and heat.
pub fn thermal(event: &FeedbackEvent, _: &Surroundings) -> Injections {
    let share = 1.0 / CELLS_AROUND as f64;
    let each = Injection {
        mass: share * event.mass,
        momentum: [0.0; 3],
        energy: share * event.energy,
        metals: share * event.metals,
    };
    [each; CELLS_AROUND]
}

/// Solid angles of the cells around a cell as seen from its centre, over that of the sphere: cells at a face, an edge and a corner.
const SOLID_ANGLES: [f64; 3] = [
    0.031_884_280_429_259_93,
    0.039_898_866_135_093_2,
    0.041_238_490_475_415_245,
];

/// Mass of a hydrogen atom, g, times 1.4: mass per hydrogen nucleus.
const MASS_PER_HYDROGEN: f64 = 1.4 * 1.673_532_84e-24;
/// Centimetres of a parsec.
const PARSEC: f64 = 3.085_677_581_491_367_3e18;
/// A solar mass times a kilometre per second, g cm/s.
const SOLAR_MOMENTUM: f64 = 1.988_409_870_698_051e33 * 1e5;
/// Mass fraction of metals of the sun.
pub(super) const SOLAR_METALLICITY: f64 = 0.01295;

/// Number density of hydrogen nuclei, cm^-3, and energy in units of 1e51 erg.
fn in_physical_units(event: &FeedbackEvent, around: &Surroundings) -> [f64; 2] {
    let [length, mass, time] = around.units;
    let density = around.density * mass / (length * length * length);
    let energy = event.energy * mass * (length / time) * (length / time);
    [density / MASS_PER_HYDROGEN, energy / 1e51]
}

/// Radius at which the shell of a remnant forms (Kim & Ostriker 2015, eq. 7), code length.
#[must_use]
pub fn shell_radius(event: &FeedbackEvent, around: &Surroundings) -> f64 {
    let [n, energy] = in_physical_units(event, around);
    22.6 * pow(energy, 0.29) * pow(n, -0.42) * PARSEC / around.units[0]
}

/// Momentum of a remnant that has radiated its heat (Thornton et al. 1998; Kimm & Cen 2014, eq. 34), code units.
#[must_use]
pub fn terminal_momentum(event: &FeedbackEvent, around: &Surroundings) -> f64 {
    let [n, energy] = in_physical_units(event, around);
    let metals = (around.metallicity / SOLAR_METALLICITY).max(0.01);
    let [length, mass, time] = around.units;
    let momentum = 3e5 * pow(energy, 16.0 / 17.0) * pow(n, -2.0 / 17.0) * pow(metals, -0.14);
    momentum * SOLAR_MOMENTUM / (mass * length / time)
}

/// Returns the part of mass and momentum that a cell gets by the solid angle of the cell as seen from the star; 0 for the star's own cell.
fn share_of(offset: [i32; 3]) -> f64 {
    let steps = offset.iter().filter(|step| **step != 0).count();
    steps.checked_sub(1).map_or(0.0, |n| SOLID_ANGLES[n])
}

/// Momentum away from the star, by solid angle. All energy goes into the motion of the gas, unless the momentum would exceed the terminal
/// one: then the remnant has radiated the rest. Where three cells resolve the radius of the shell, heat alone.
pub fn mechanical(event: &FeedbackEvent, around: &Surroundings) -> Injections {
    if around.width < shell_radius(event, around) / 3.0 {
        return thermal(event, around);
    }
    radial(event, around, terminal_momentum(event, around))
}

/// Momentum away from the star, by solid angle; all energy goes into the motion of the gas.
pub fn kinetic(event: &FeedbackEvent, around: &Surroundings) -> Injections {
    radial(event, around, f64::INFINITY)
}

/// Momentum away from the star, at most `most`; the energy is that with which the gas moves.
fn radial(event: &FeedbackEvent, around: &Surroundings, most: f64) -> Injections {
    let (mut square, mut linear) = (0.0, 0.0);
    let mut terms = [[0.0; 2]; CELLS_AROUND];
    for (n, terms) in terms.iter_mut().enumerate() {
        *terms = kinetic_terms(event, around, n, OFFSETS[n]);
        square += terms[0];
        linear += terms[1];
    }
    // the momentum whose kinetic energy is that of the event
    let root = (linear * linear + 4.0 * square * event.energy).sqrt();
    let momentum = ((root - linear) / (2.0 * square)).min(most);
    std::array::from_fn(|n| {
        let (at, own) = (OFFSETS[n], terms[n]);
        let share = share_of(at);
        let along = share * momentum / distance(at).max(1.0);
        Injection {
            mass: share * event.mass,
            momentum: at.map(|step| f64::from(step) * along),
            energy: (own[0] * momentum + own[1]) * momentum,
            metals: share * event.metals,
        }
    })
}

/// Returns the coefficients of the square and of the first power of the whole momentum in the kinetic energy that the gas of cell `n`
/// gains in the frame of the star.
fn kinetic_terms(
    event: &FeedbackEvent,
    around: &Surroundings,
    n: usize,
    offset: [i32; 3],
) -> [f64; 2] {
    let (share, density) = (share_of(offset), around.densities[n]);
    if density <= 0.0 || share <= 0.0 {
        return [0.0; 2];
    }
    let gas = density * around.volume;
    let mass = gas + share * event.mass;
    let velocity = offset.iter().zip(around.velocities[n]);
    let outwards: f64 = velocity.map(|(step, v)| f64::from(*step) * v).sum();
    let outwards = outwards / distance(offset);
    [0.5 * share * share / mass, share * gas * outwards / mass]
}

/// Returns the distance of a cell from the star, in cells.
fn distance(offset: [i32; 3]) -> f64 {
    let steps = offset.iter().filter(|step| **step != 0).count();
    (steps as f64).sqrt()
}
