//! Cell functions of star formation.

use nestar_device::random::{Stream, in_cell, uniforms};
use nestar_device::{Place, Real, Stencil, device};
use nestar_kernels::hydro::Conserved;
use nestar_kernels::mesh::cell_record::CellRecord;

/// How the expected mass of stars becomes stars of at least a least mass.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct StarMasses<R> {
    /// Least mass of a star.
    pub least: R,
    /// Largest share of the gas of a cell, at most 0.5.
    pub most_of_cell: R,
    /// Random numbers.
    pub stream: Stream,
}

/// A star that forms in a cell.
#[device]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FormingStar<R: Real> {
    /// Factor by which all conserved quantities of the gas decrease, at least 0.5.
    pub kept: R,
    /// Density that the gas loses: the difference of its densities before and after, without rounding.
    pub taken: R,
    /// Velocity of the gas.
    pub velocity: [R; 3],
    /// Mass fraction of metals.
    pub metallicity: R,
}

/// Samples the star that forms in a cell in this step, for an expected stellar mass (stochastic star formation).
///
/// If the expected mass is below the least mass, a star of the least mass, or of the largest mass that the cell allows, forms with the
/// probability that gives the expected mean.
#[device]
pub fn form_star<R: Real>(
    gas: Conserved<R>,
    metallicity: R,
    expected: R,
    at: &Place<R>,
    p: &StarMasses<R>,
) -> CellRecord<FormingStar<R>> {
    let mass = gas.density * (at.width[0] * at.width[1] * at.width[2]);
    let most = p.most_of_cell * mass;
    let mut star = expected.min(most);
    if expected < p.least {
        star = p.least.min(most);
        let [draw, _] = uniforms::<R>(in_cell(&p.stream, at, 0));
        if draw * star >= expected {
            star = 0.0;
        }
    }
    let kept = 1.0 - star / mass;
    let left = gas.density * kept;
    let [x, y, z] = gas.momentum;
    CellRecord::<FormingStar<R>> {
        found: left < gas.density,
        record: FormingStar::<R> {
            kept,
            taken: gas.density - left,
            velocity: [x / gas.density, y / gas.density, z / gas.density],
            metallicity,
        },
    }
}

/// Parameters of the star formation law of Schmidt (1959).
#[device]
#[derive(Clone, Copy, Debug)]
pub(super) struct SchmidtRule<R> {
    /// Lowest density of the gas.
    pub density: R,
    /// Highest temperature.
    pub temperature_k: R,
    /// Stars per gas and free-fall time.
    pub efficiency: R,
    /// Free-fall time times the square root of the density.
    pub fall_time: R,
    /// Jeans mass over the cube of the sound speed, times the square root of the density; 0: off.
    pub jeans_mass: R,
    /// Coarsest level.
    pub min_level: R,
    pub velocity: VelocityRule<R>,
    pub masses: StarMasses<R>,
}

/// Stars that form in a step. The numbers are temperature, condition, metallicity and sound speed.
#[device]
pub(super) fn schmidt_stars<R: Real>(
    u: (Conserved<R>, [R; 4]),
    at: &Place<R>,
    p: &SchmidtRule<R>,
) -> CellRecord<FormingStar<R>> {
    let (gas, [temperature, condition, metallicity, sound_speed]) = u;
    let root = gas.density.sqrt();
    let mass = gas.density * (at.width[0] * at.width[1] * at.width[2]);
    let jeans = p.jeans_mass * (sound_speed * sound_speed * sound_speed) / root;
    let may_form = gas.density >= p.density
        && temperature < p.temperature_k
        && (condition > 0.0 || condition < 0.0)
        && mass > jeans
        && R::from_f64(at.level as f64) >= p.min_level;
    let mut expected = 0.0;
    if may_form {
        expected = p.efficiency * mass * (at.dt * root / p.fall_time);
    }
    form_star(gas, metallicity, expected, at, &p.masses)
}

/// Conditions for the velocity around a cell.
#[device]
#[derive(Clone, Copy, Debug)]
pub(super) struct VelocityRule<R> {
    /// Lowest density of the gas.
    pub density: R,
    /// Above 0: the gas converges.
    pub converging: R,
    /// Upper limit of the squares of divergence and curl of the velocity, over the density.
    pub most_motion: R,
}

/// Squares of divergence and curl of the velocity, where dense gas meets the conditions.
#[device]
pub(super) fn gathering_gas<R: Real>(
    u: &Stencil<R, Conserved<R>>,
    at: &Place<R>,
    p: &VelocityRule<R>,
) -> CellRecord<R> {
    let mut gradient = [[R::from_f64(0.0f64); 3]; 3];
    for axis in 0..3 {
        let mut step = [0i32; 3];
        step[axis] = 1i32;
        let above = u.at(step[0], step[1], step[2]);
        let below = u.at(-step[0], -step[1], -step[2]);
        for n in 0..3 {
            let change = above.momentum[n] / above.density - below.momentum[n] / below.density;
            gradient[axis][n] = change / (2.0 * at.width[axis]);
        }
    }
    let divergence = gradient[0][0] + gradient[1][1] + gradient[2][2];
    let mut squares = divergence * divergence;
    for axis in 0..3 {
        let (b, c) = ((axis + 1) % 3, (axis + 2) % 3);
        let curl = gradient[b][c] - gradient[c][b];
        squares += curl * curl;
    }
    let density = u.at(0, 0, 0).density;
    let is_gathering = p.converging <= 0.0 || divergence < 0.0;
    CellRecord::<R> {
        found: density >= p.density && is_gathering && squares < p.most_motion * density,
        record: squares,
    }
}
