//! Initial states: primitive variables at points, averaged over cells to conserved variables, and their range.

use crate::fields::{GAS_COMPONENTS, Gas, GasModel};
use bevy_ecs::prelude::*;
use nestar_device::math::sum3;
use nestar_device::{Real, device};
use nestar_engine::data::Element;
use nestar_engine::mesh::{NewRows, Topology, parallel};
use nestar_engine::step::{Magnitude, Write, require_range as require};
use nestar_engine::{Error, in_precision};
use nestar_kernels::hydro::eos::conserved_from_primitive;
use nestar_kernels::mesh::{CellBlock, StateFunctions, StateRules};
use nestar_kernels::{CELLS, PATCH};
use std::ops::Range;

/// A gas state at a point, in code units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Primitive {
    /// Mass density, positive.
    pub density: f64,
    /// Velocity.
    pub velocity: [f64; 3],
    /// Pressure, positive.
    pub pressure: f64,
}

impl Primitive {
    /// Writes density, momentum and total energy density to `out[0..5]`.
    pub fn conserved(&self, gamma: f64, out: &mut [f64]) {
        out[..GAS_COMPONENTS].copy_from_slice(&conserved_from_primitive(&self.array(), gamma));
    }

    /// Returns the internal energy density.
    pub(super) fn internal_energy(&self, gamma: f64) -> f64 {
        self.pressure * (1.0 / (gamma - 1.0))
    }

    /// Density, velocity x y z, pressure.
    fn array(&self) -> [f64; GAS_COMPONENTS] {
        let [x, y, z] = self.velocity;
        [self.density, x, y, z, self.pressure]
    }

    pub(super) fn is_physical(&self) -> bool {
        is_physical(&self.array())
    }
}

/// Returns `true` if density and pressure are positive and all values are finite.
#[device]
pub(super) fn is_physical<R: Real>(w: &[R; 5]) -> bool {
    let finite = w[1].is_finite() && w[2].is_finite() && w[3].is_finite();
    finite && w[0] > 0.0 && w[0].is_finite() && w[4] > 0.0 && w[4].is_finite()
}

/// Points and the states there, column by column.
#[derive(Clone, Debug, Default)]
pub struct PrimitiveColumns {
    /// Level of the cells that contain the points.
    pub level: usize,
    /// Coordinates x, y, z of the points.
    pub points: [Vec<f64>; 3],
    /// States at the points.
    pub states: Vec<Primitive>,
    /// Mass fraction of each passive scalar at the points.
    pub scalars: Vec<Vec<f64>>,
}

impl PrimitiveColumns {
    /// Returns the number of points.
    #[must_use]
    pub fn len(&self) -> usize {
        self.points[0].len()
    }

    /// Returns `true` if there are no points.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.points[0].is_empty()
    }

    /// Returns `true` if the states and scalars in a range are, bit for bit, those in the range before it.
    fn repeats(&self, range: &Range<usize>) -> bool {
        let before = range.len();
        let is_same = |n: usize| {
            self.states[n].array().map(f64::to_bits)
                == self.states[n - before].array().map(f64::to_bits)
        };
        let scalar_is_same =
            |values: &[f64], n: usize| values[n].to_bits() == values[n - before].to_bits();
        range.clone().all(is_same)
            && (self.scalars.iter()).all(|values| range.clone().all(|n| scalar_is_same(values, n)))
    }

    /// Returns point `n`.
    #[must_use]
    pub fn point(&self, n: usize) -> [f64; 3] {
        std::array::from_fn(|a| self.points[a][n])
    }
}

/// An initial state. Any closure from a point to a [`Primitive`] is one (without scalars).
pub trait InitialState: Send + Sync + 'static {
    /// Fills `columns.states` at `columns.points`, and those of `columns.scalars` that it defines; they hold default
    /// values before.
    fn fill(&self, columns: &mut PrimitiveColumns);

    /// Returns the indices of the scalars that it defines; `None` if it cannot tell.
    fn scalars_given(&self) -> Option<Vec<usize>> {
        None
    }

    /// Returns the number of Gauss-Legendre points per axis and cell, 1 to 4; 1 is the cell centre.
    fn samples(&self) -> usize {
        1
    }

    /// Returns the energy that the state injects, if any, for a check of the finished hierarchy.
    fn injection(&self) -> Option<Injection> {
        None
    }
}

impl<F: Fn([f64; 3]) -> Primitive + Send + Sync + 'static> InitialState for F {
    fn fill(&self, columns: &mut PrimitiveColumns) {
        for n in 0..columns.len() {
            columns.states[n] = self(columns.point(n));
        }
    }

    fn scalars_given(&self) -> Option<Vec<usize>> {
        Some(Vec::new())
    }
}

/// Energy that an initial state injects into a part of the domain.
pub struct Injection {
    /// Injected energy.
    pub energy: f64,
    /// Key of the deck that sets it.
    pub key: &'static str,
    /// Returns `true` for points of the injection region.
    pub within: Box<dyn Fn([f64; 3]) -> bool + Send + Sync>,
    /// Advice if the energy on the mesh differs.
    pub remedy: String,
}

/// Initial state of the run.
#[derive(Resource)]
pub struct InitialGas(pub Box<dyn InitialState>);

/// Fills new patches with cell averages of the initial state.
pub fn fill_initial_gas(
    initial: Res<InitialGas>,
    model: Res<GasModel>,
    topology: Res<Topology>,
    new: Res<NewRows>,
    mut extremes: ResMut<Extremes>,
    mut gas: Write<Gas>,
) -> Result<(), Error> {
    let fill = InitialFill::new(&initial, &model, &topology);
    let found = in_precision!(gas.precision(), R => fill.rows::<R>(&new.rows, &mut gas))?;
    *extremes = extremes.joined(found);
    Ok(())
}

/// Number of rows that are filled on the host before they go to the pool.
const ROWS_AT_A_TIME: usize = 256;

/// Data for filling patches.
pub(super) struct InitialFill<'a> {
    initial: &'a dyn InitialState,
    model: &'a GasModel,
    topology: &'a Topology,
    rule: Rule,
    states: StateRules,
}

impl<'a> InitialFill<'a> {
    /// Collects the data for patches of a hierarchy.
    pub fn new(initial: &'a InitialGas, model: &'a GasModel, topology: &'a Topology) -> Self {
        Self {
            initial: &*initial.0,
            model,
            topology,
            rule: Rule::new(initial.0.samples()),
            states: model.states(),
        }
    }

    /// Returns the number of values of a row.
    pub fn row_length(&self) -> usize {
        (self.model.first_scalar() + self.model.scalars.len()) * CELLS
    }

    fn rows<R: Element>(&self, new: &[u32], gas: &mut Write<Gas>) -> Result<Extremes, Error> {
        let length = self.row_length();
        let mut values = vec![R::lit(0.0); new.len().min(ROWS_AT_A_TIME) * length];
        let mut extremes = Extremes::default();
        for rows in new.chunks(ROWS_AT_A_TIME) {
            let values = &mut values[..rows.len() * length];
            let mut patches: Vec<_> = values.chunks_mut(length).collect();
            let filled = parallel::map_mut(&mut patches, |n, out| fill_patch(self, rows[n], out));
            for of_patch in filled {
                extremes = extremes.joined(of_patch.map_err(Error::Setup)?);
            }
            gas.store(rows, values)?;
        }
        Ok(extremes)
    }
}

/// Averages the state over the cells of one patch.
pub(super) fn fill_patch<R: Element>(
    fill: &InitialFill,
    row: u32,
    out: &mut [R],
) -> Result<Extremes, String> {
    let (model, topology, rule) = (fill.model, fill.topology, &fill.rule);
    let states = R::states(&fill.states);
    let level = topology.level(row).ok_or("a free row cannot be filled")?;
    let width = topology.domain.cell_width(level);
    let block = block_of(topology, row, level);
    let samples = rule.places.len().pow(3);
    let mut columns = sample_points(&block, width, rule, &model.initial);
    columns.level = level;
    fill.initial.fill(&mut columns);
    normalise_sets(&mut columns, model)?;
    let gas = |state: &Primitive| conserved_from_primitive(&state.array(), model.gamma);
    let gas: Vec<_> = columns.states.iter().map(gas).collect();
    let mut terms = vec![0.0; samples];
    for cell in 0..CELLS {
        let range = cell * samples..(cell + 1) * samples;
        if cell > 0 && columns.repeats(&range) {
            for component in out.chunks_mut(CELLS) {
                component[cell] = component[cell - 1];
            }
            continue;
        }
        for n in range.clone() {
            check(&columns, n, level)?;
        }
        for (c, value) in out.iter_mut().skip(cell).step_by(CELLS).enumerate() {
            for (term, n) in terms.iter_mut().zip(range.clone()) {
                let value = component(&columns, &gas, model, n, c);
                *term = rule.weights[n - range.start] * value;
            }
            *value = R::lit(symmetric_sum(&mut terms));
        }
        make_consistent(out, cell, &states);
        check_stored(out, cell, states.physical, &columns, cell * samples)?;
    }
    Ok(Extremes::of(
        columns.states.iter().map(Primitive::array),
        model.gamma,
    ))
}

/// Makes the stored components of a cell consistent.
fn make_consistent<R: Element>(row: &mut [R], cell: usize, states: &StateFunctions<R>) {
    let Some(dependents) = &states.dependents else {
        return;
    };
    let mut state: Vec<R> = row.iter().skip(cell).step_by(CELLS).copied().collect();
    dependents.reconcile(&mut state);
    let row = row.iter_mut().skip(cell).step_by(CELLS);
    row.zip(state).for_each(|(value, settled)| *value = settled);
}

/// Checks scalars, and normalises the fractions of each set, whose sum is 1 up to round-off.
fn normalise_sets(columns: &mut PrimitiveColumns, model: &GasModel) -> Result<(), String> {
    let has_sets = model.scalar_sets().next().is_some();
    for n in 0..columns.len() {
        let is_checked =
            |values: &Vec<f64>| n > 0 && values[n].to_bits() == values[n - 1].to_bits();
        if !has_sets && columns.scalars.iter().all(is_checked) {
            continue;
        }
        if let Some(why) = model.invalid_scalar("initial", |s| columns.scalars[s][n]) {
            let (place, level) = (columns.point(n), columns.level);
            return Err(format!(
                "the initial state at (x, y, z) = {place:?} (level {level}): {why}"
            ));
        }
        for scalars in model.scalar_sets() {
            let sum: f64 = scalars.clone().map(|s| columns.scalars[s][n]).sum();
            scalars.for_each(|s| columns.scalars[s][n] /= sum);
        }
    }
    Ok(())
}

pub(super) fn block_of(topology: &Topology, row: u32, level: usize) -> CellBlock {
    let domain = &topology.domain;
    CellBlock {
        n: PATCH,
        level: level as i32,
        origin: topology.origin(row),
        domain_cells: domain.cells(level),
        left_edge: domain.left_edge,
        right_edge: domain.right_edge,
    }
}

/// Checks a cell in the precision of the run: the pressure may be lost in the round-off of the total energy.
fn check_stored<R: Element>(
    row: &[R],
    cell: usize,
    physical: fn(&[R], usize) -> bool,
    columns: &PrimitiveColumns,
    n: usize,
) -> Result<(), String> {
    let state: Vec<R> = row.iter().skip(cell).step_by(CELLS).copied().collect();
    if physical(&state, 1) {
        return Ok(());
    }
    let (place, level, given) = (columns.point(n), columns.level, &columns.states[n]);
    Err(format!(
        "the initial state near (x, y, z) = {place:?} (level {level}) is lost in round-off: density {}, velocity {:?}, \
         pressure {} give no positive pressure after conversion to total energy; raise the pressure, lower the velocity \
         or set run.precision = \"double\"",
        given.density, given.velocity, given.pressure
    ))
}

/// Returns component `c` of the conserved state at point `n`; the gas components are `gas[n]`.
fn component(
    columns: &PrimitiveColumns,
    gas: &[[f64; GAS_COMPONENTS]],
    model: &GasModel,
    n: usize,
    c: usize,
) -> f64 {
    if model.internal_energy() == Some(c) {
        return columns.states[n].internal_energy(model.gamma);
    }
    if let Some(scalar) = c.checked_sub(model.first_scalar()) {
        return columns.scalars[scalar][n] * columns.states[n].density;
    }
    gas[n][c]
}

fn check(columns: &PrimitiveColumns, n: usize, level: usize) -> Result<(), String> {
    let state = &columns.states[n];
    let scalars_finite = columns.scalars.iter().all(|s| s[n].is_finite());
    if state.is_physical() && scalars_finite {
        return Ok(());
    }
    Err(format!(
        "the initial state is unphysical at (x, y, z) = {:?} (level {level}): density {}, velocity {:?}, pressure {}{}; \
         density and pressure must be positive and all values finite",
        columns.point(n),
        state.density,
        state.velocity,
        state.pressure,
        if scalars_finite {
            ""
        } else {
            ", a scalar is not finite"
        },
    ))
}

/// Returns the sample points of a patch, cell by cell.
fn sample_points(
    block: &CellBlock,
    width: [f64; 3],
    rule: &Rule,
    scalars: &[f64],
) -> PrimitiveColumns {
    let s = rule.places.len();
    let total = CELLS * s * s * s;
    let mut points = [const { Vec::new() }; 3].map(|_: Vec<f64>| Vec::with_capacity(total));
    let mut offsets = [const { Vec::new() }; 3];
    for n in 0..s * s * s {
        for (a, place) in [n % s, n / s % s, n / (s * s)].into_iter().enumerate() {
            offsets[a].push(rule.places[place] * width[a]);
        }
    }
    for cell in 0..CELLS {
        let centre = block.centre([cell % PATCH, cell / PATCH % PATCH, cell / (PATCH * PATCH)]);
        for a in 0..3 {
            points[a].extend(offsets[a].iter().map(|offset| centre[a] + offset));
        }
    }
    let nothing = Primitive {
        density: f64::NAN,
        velocity: [f64::NAN; 3],
        pressure: f64::NAN,
    };
    PrimitiveColumns {
        level: 0,
        points,
        states: vec![nothing; total],
        scalars: scalars.iter().map(|&value| vec![value; total]).collect(),
    }
}

/// Quantities that a step computes, with their powers of length, mass and time. Wave speeds take products of two
/// densities and squares of velocities, energy fluxes the cube of a velocity.
const QUANTITIES: [(&str, [i32; 3]); 5] = [
    ("the square of the density", [-6, 2, 0]),
    ("the pressure", [-1, 1, -2]),
    ("the square of the sound speed", [2, 0, -2]),
    ("the flux of energy", [0, 1, -3]),
    ("the square of the velocity", [2, 0, -2]),
];

/// Smallest and largest value of each quantity in the initial states.
#[derive(Resource, Clone, Copy, Debug, PartialEq)]
pub struct Extremes([[f64; 2]; QUANTITIES.len()]);

impl Default for Extremes {
    fn default() -> Self {
        Self([[f64::INFINITY, 0.0]; QUANTITIES.len()])
    }
}

impl Extremes {
    /// Returns the range over states (density, velocity, pressure) of a gas with adiabatic index `gamma`.
    #[must_use]
    pub fn of(states: impl Iterator<Item = [f64; 5]>, gamma: f64) -> Self {
        let of_state = |found: Self, state| found.joined(Self::of_state(state, gamma));
        states.fold(Self::default(), of_state)
    }

    fn of_state([rho, a, b, c, p]: [f64; 5], gamma: f64) -> Self {
        let (sound, speed) = (gamma * p / rho, sum3(a * a, b * b, c * c));
        let flux = (gamma / (gamma - 1.0) * p + 0.5 * rho * speed) * (sound.sqrt() + speed.sqrt());
        Self([rho * rho, p, sound, flux, speed].map(|value| [value, value]))
    }

    /// Returns the union of two ranges.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        let pairs = |n: usize| (self.0[n], other.0[n]);
        Self(std::array::from_fn(|n| {
            let (a, b) = pairs(n);
            [a[0].min(b[0]), a[1].max(b[1])]
        }))
    }

    /// Converts to the magnitudes of the engine. The smallest velocity is ignored, because gas may be at rest.
    fn magnitudes(self) -> Vec<Magnitude> {
        let mut ranges = self.0;
        let [.., velocity] = &mut ranges;
        velocity[0] = f64::INFINITY;
        let named = QUANTITIES.into_iter().zip(ranges);
        let named = named.map(|((name, dimension), range)| Magnitude {
            name,
            dimension,
            range,
        });
        named.collect()
    }
}

/// Checks that the precision of the run can represent the initial gas.
///
/// # Errors
/// Names the quantity that is out of range and suitable units; another rank has failed.
pub fn require_range(world: &World) -> Result<(), Error> {
    require(world, &world.resource::<Extremes>().magnitudes())
}

/// Sums terms independently of their order, so that symmetric states stay exactly symmetric.
fn symmetric_sum(terms: &mut [f64]) -> f64 {
    if terms.len() == 1 {
        return terms[0];
    }
    terms.sort_unstable_by(f64::total_cmp);
    let (low, high) = terms.split_at(terms.len() / 2);
    let middle = if terms.len() % 2 == 1 { high[0] } else { 0.0 };
    low.iter()
        .zip(high.iter().rev())
        .map(|(a, b)| a + b)
        .sum::<f64>()
        + middle
}

/// Gauss-Legendre quadrature over a cell of width 1 around 0.
pub(super) struct Rule {
    /// Coordinates of the points along an axis.
    pub places: Vec<f64>,
    /// Weights of the points of a cell, x fastest.
    pub weights: Vec<f64>,
}

impl Rule {
    /// Builds the rule with `samples` points per axis, at most 4.
    pub fn new(samples: usize) -> Self {
        let (places, weights): (Vec<f64>, Vec<f64>) = match samples {
            0 | 1 => (vec![0.0], vec![1.0]),
            2 => (half(&[0.577_350_269_189_625_8]), vec![0.5; 2]),
            3 => (
                vec![-0.387_298_334_620_741_7, 0.0, 0.387_298_334_620_741_7],
                vec![5.0 / 18.0, 8.0 / 18.0, 5.0 / 18.0],
            ),
            _ => {
                let (inner, outer) = (0.339_981_043_584_856_26, 0.861_136_311_594_052_6);
                let (w_inner, w_outer) = (0.326_072_577_431_273_07, 0.173_927_422_568_726_93);
                (
                    half(&[inner, outer]),
                    vec![w_outer, w_inner, w_inner, w_outer],
                )
            }
        };
        let s = places.len();
        let weight = |n: usize| {
            let mut w = [weights[n % s], weights[n / s % s], weights[n / (s * s)]];
            w.sort_unstable_by(f64::total_cmp);
            w[0] * w[1] * w[2]
        };
        Self {
            weights: (0..s * s * s).map(weight).collect(),
            places,
        }
    }
}

/// Returns the points ±p/2 in ascending order.
fn half(positive: &[f64]) -> Vec<f64> {
    let below = positive.iter().rev().map(|p| -0.5 * p);
    below.chain(positive.iter().map(|p| 0.5 * p)).collect()
}
