//! Parameters of the kernels that call functions of particles, and what the host shares with them.

use super::device::ParticleList;
use super::terms::{position, round_to_integer};
use crate::mesh::order::order_key;
use nestar_device::{Address, Item, ParticlePlace, Real, device};

/// Calls of functions of particles; followed by [`named`], then by [`UPDATE`], [`REDUCE`] or [`COLLECT`].
pub const CALLS: &str = concat!(include_str!("pages.cuh"), include_str!("functions.cuh"));
/// Kernel `particles_update`: sets particles to the results of a function.
pub const UPDATE: &str = include_str!("function_update.cu");
/// Kernel `particles_reduce`: reduces the results of a function.
pub const REDUCE: &str = include_str!("function_reduce.cu");
/// Kernel `particles_collect`: lists particles for which a function returns a record.
pub const COLLECT: &str = include_str!("function_collect.cu");

/// Returns the text that names the function that the kernels call.
#[must_use]
pub fn named(function: &Item) -> String {
    format!(
        "namespace particles {{ typedef Function<&::{}<REAL>> F; }}\n",
        function.path()
    )
}

/// Returns all structures and functions that the kernels need, without the function that they call.
#[must_use]
pub fn items() -> Vec<&'static Item> {
    let mut items = super::device::items();
    items.extend([FunctionLevel, FunctionInput, FunctionParameters]);
    items.extend([
        LARGEST::ITEM,
        SMALLEST::ITEM,
        MAGNITUDE::ITEM,
        SUM::ITEM,
        is_mass_sound::ITEM,
        reduced::ITEM,
        particle_place::ITEM,
    ]);
    items
}

/// Mass and velocity of a particle: the first numbers of the state of a function.
#[device]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Body<R> {
    /// Mass.
    pub mass: R,
    /// Velocity, code units.
    pub velocity: [R; 3],
}

/// Largest number of numbers of a state: mass, velocity, and scalars.
pub const MOST_NUMBERS: usize = 32;

/// Level that moves particles, and that of their patches.
#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FunctionLevel {
    /// Lower edges of the domain.
    pub left: [f64; 3],
    /// Width of the patches of the particles.
    pub patch_width: [f64; 3],
    /// Width of a cell of the level that moves them.
    pub width: [f64; 3],
    /// The level that moves them.
    pub level: i32,
    /// Simulation time at the beginning of its step.
    pub time: f64,
    /// Length of its step.
    pub dt: f64,
    /// Numbers that follow the simulation time.
    pub numbers: [f64; 2],
}

/// Particles of a launch, and its results.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct FunctionInput<R> {
    /// Particles.
    pub from: ParticleList,
    /// Level and time.
    pub level: FunctionLevel,
    /// Columns of the state, counted after the identity; -1 for the mass that all particles have.
    pub columns: [i32; 32],
    /// Mass of each particle, if all have the same.
    pub mass: R,
    /// Mass quanta per unit mass.
    pub quanta_per_mass: f64,
    /// Words of the result, which are 0 at first.
    ///
    /// An update adds the change of the mass in quanta, its positive part, and the number of particles of another mass. It also sets the
    /// largest complement of the identity of a particle that it leaves as it is because its result is invalid. A reduction has one word. A
    /// list has the number of its particles.
    pub words: Address<u64>,
    /// Listed particles, `[particle][2 + numbers + numbers of the record]`.
    pub out: Address<u64>,
    /// Largest number of particles in `out`.
    pub room: i64,
    /// What a reduction finds.
    pub what: i32,
    /// Units per unit of the result in a sum.
    pub scale: f64,
}

/// Parameters of the kernels that call functions of particles.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct FunctionParameters<R, P> {
    /// Particles and results.
    pub input: FunctionInput<R>,
    /// The function's own parameters.
    pub parameters: P,
}

/// A reduction to the largest value.
#[device]
pub const LARGEST: i32 = 0;
/// A reduction to the smallest value.
#[device]
pub const SMALLEST: i32 = 1;
/// A reduction to the largest magnitude.
#[device]
pub const MAGNITUDE: i32 = 2;
/// A reduction to the sum.
#[device]
pub const SUM: i32 = 3;

/// Returns the integer to which a value is reduced. Sums add these integers; of others the largest one counts.
#[device]
#[must_use]
pub fn reduced(value: f64, what: i32, scale: f64) -> u64 {
    if what == LARGEST {
        order_key(value)
    } else if what == SMALLEST {
        order_key(-value)
    } else if what == MAGNITUDE {
        value.abs().to_bits()
    } else {
        round_to_integer(value * scale)
    }
}

/// Returns `true` if a particle of mass `before` may get a mass. It must be unchanged if all particles share it. Otherwise it must be
/// finite, and 0 or at least one quantum, so that the particle is a source of gravity.
#[device]
#[must_use]
pub fn is_mass_sound(mass: f64, before: f64, is_own: bool, quanta_per_mass: f64) -> bool {
    let is_positive = mass > 0.0 && mass.is_finite() && mass * quanta_per_mass >= 1.0;
    mass == before || (is_own && (mass == 0.0 || is_positive))
}

/// Returns the place of a particle with an offset in units of 2^-64 patch widths in a patch, whose index is that on its level.
#[device]
#[must_use]
pub fn particle_place<R: Real>(
    at: &FunctionLevel,
    id: u64,
    offset: [u64; 3],
    index: [i32; 3],
) -> ParticlePlace<R> {
    let mut x: [R; 3] = [0.0; 3];
    let mut width: [R; 3] = [0.0; 3];
    for axis in 0..3usize {
        let place = position(
            offset[axis],
            index[axis],
            at.left[axis],
            at.patch_width[axis],
        );
        x[axis] = R::from_f64(place);
        width[axis] = R::from_f64(at.width[axis]);
    }
    ParticlePlace {
        id,
        position: x,
        width,
        level: at.level,
        time: at.time,
        dt: R::from_f64(at.dt),
        numbers: at.numbers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masses_are_unchanged_or_finite_and_at_least_a_quantum() {
        let sound = |mass, is_own| is_mass_sound(mass, 2.0, is_own, 8.0);
        assert!(sound(2.0, false) && !sound(1.0, false) && sound(1.0, true));
        assert!(sound(0.0, true) && sound(0.125, true) && !sound(0.1, true));
        assert!(!sound(-1.0, true) && !sound(f64::NAN, true) && !sound(f64::INFINITY, true));
        assert!(!is_mass_sound(1.0, 0.0, true, 0.0) && is_mass_sound(0.0, 0.0, true, 0.0));
    }

    #[test]
    fn places_are_those_of_offsets_in_patches() {
        let at = FunctionLevel {
            left: [-1.0; 3],
            patch_width: [0.5; 3],
            width: [0.0625; 3],
            level: 2,
            time: 3.0,
            dt: 0.25,
            numbers: [1.0; 2],
        };
        let place = particle_place::<f32>(&at, 7, [0, 1 << 63, 1 << 62], [0, 3, 1]);
        assert_eq!(place.position, [-1.0, 0.75, -0.375]);
        assert_eq!((place.id, place.level, place.dt), (7, 2, 0.25));
    }
}
