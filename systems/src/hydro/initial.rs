//! Initial states: primitive variables at points, averaged over cells to conserved variables.

use super::extremes::{Extremes, LANES};
pub use super::primitive::Primitive;
pub(super) use super::primitive::is_physical;
use crate::fields::{GAS_COMPONENTS, Gas, GasModel};
use bevy_ecs::prelude::*;
use nestar_device::Real;
use nestar_engine::data::Element;
use nestar_engine::mesh::{NewRows, Topology, parallel};
use nestar_engine::step::Write;
use nestar_engine::{Error, in_precision};
use nestar_kernels::mesh::{CellBlock, StateFunctions, StateRules};
use nestar_kernels::{CELLS, PATCH};
use std::ops::Range;

/// Points and the states there, column by column.
#[derive(Clone, Debug, Default)]
pub struct PrimitiveColumns {
    /// Level of the cells that contain the points.
    pub level: usize,
    /// Index on the level of the first cell along x, y, z; the cells are a layer of a patch, x fastest.
    pub first_cell: [i32; 3],
    /// Number of consecutive points that are in the same cell.
    pub samples: usize,
    /// Coordinates x, y, z of the points.
    pub points: [Vec<f64>; 3],
    /// States at the points.
    pub states: Vec<Primitive>,
    /// Magnetic field along x, y, z at the points; without points if the gas has none.
    pub magnetic: [Vec<f64>; 3],
    /// Mass fraction of each passive scalar at the points.
    pub scalars: Vec<Vec<f64>>,
}

impl PrimitiveColumns {
    /// Creates columns at points in no cells, with undefined states, no magnetic field and the default fractions of the scalars.
    pub(super) fn at(points: [Vec<f64>; 3], model: &GasModel) -> Self {
        let total = points[0].len();
        let nothing = Primitive {
            density: f64::NAN,
            velocity: [f64::NAN; 3],
            pressure: f64::NAN,
        };
        Self {
            points,
            states: vec![nothing; total],
            magnetic: [(); 3].map(|()| vec![0.0; model.magnetic.map_or(0, |_| total)]),
            scalars: (model.initial.iter())
                .map(|&value| vec![value; total])
                .collect(),
            ..Self::default()
        }
    }

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
            && (self.scalars.iter())
                .chain(self.magnetic.iter().filter(|values| !values.is_empty()))
                .all(|values| range.clone().all(|n| scalar_is_same(values, n)))
    }

    /// Returns the index on the level of the cell that contains point `n`.
    #[must_use]
    pub fn cell(&self, n: usize) -> [i32; 3] {
        let cell = n / self.samples.max(1);
        let [i, j, k] = self.first_cell;
        [i + (cell % PATCH) as i32, j + (cell / PATCH) as i32, k]
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

    /// Returns the vector potential along `axis` at points, given by their coordinates; `None` without one. Its curl is added to the magnetic
    /// field.
    fn vector_potential(&self, _axis: usize, _points: &[Vec<f64>; 3]) -> Option<Vec<f64>> {
        None
    }

    /// Returns the number of Gauss-Legendre points per axis and cell, 1 to 4; 1 is the cell centre.
    fn samples(&self) -> usize {
        1
    }

    /// Returns `true` if the state and the scalars have the same bits at all points between two corners. It saves time and need not be
    /// known.
    fn is_uniform(&self, _low: [f64; 3], _high: [f64; 3]) -> bool {
        false
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

/// Averages the state over the cells of one patch, layer by layer, so that the samples of a layer stay in the cache.
pub(super) fn fill_patch<R: Element>(
    fill: &InitialFill,
    row: u32,
    out: &mut [R],
) -> Result<Extremes, String> {
    let topology = fill.topology;
    let level = topology.level(row).ok_or("a free row cannot be filled")?;
    let block = block_of(topology, row, level);
    let points = SamplePoints::of(&block, topology.domain.cell_width(level), &fill.rule);
    let states = R::states(&fill.states);
    let mut extremes = Extremes::default();
    for layer in 0..PATCH {
        let cells = points.cells_to_evaluate(fill.initial, layer);
        let samples = LayerSamples::of(fill, &points, (layer, cells))?;
        samples.average(out, &states);
        extremes = extremes.joined(samples.extremes());
    }
    if !(states.physical)(out, CELLS) {
        for layer in 0..PATCH {
            let samples = LayerSamples::of(fill, &points, (layer, LAYER))?;
            samples.check_stored(out, states.physical)?;
        }
    }
    Ok(extremes)
}

/// Number of cells in a layer of a patch.
const LAYER: usize = PATCH * PATCH;

/// Samples in the first cells of a layer of a patch; the others have the same.
struct LayerSamples<'a> {
    fill: &'a InitialFill<'a>,
    layer: usize,
    /// Number of cells with samples: all of the layer, or a row of a uniform layer.
    cells: usize,
    columns: PrimitiveColumns,
    gas: Vec<[f64; GAS_COMPONENTS]>,
}

impl<'a> LayerSamples<'a> {
    /// Evaluates the initial state in the first `cells` cells of a layer.
    fn of(
        fill: &'a InitialFill<'a>,
        points: &SamplePoints,
        (layer, cells): (usize, usize),
    ) -> Result<Self, String> {
        let model = fill.model;
        let mut columns = points.in_layer((layer, cells), model);
        fill.initial.fill(&mut columns);
        set_pressure(&mut columns, model);
        normalise_sets(&mut columns, model)?;
        (0..columns.len()).try_for_each(|n| check(&columns, n))?;
        let gas = |state: &Primitive| state.conserved_array(model.gamma);
        let gas = columns.states.iter().map(gas).collect();
        Ok(Self {
            fill,
            layer,
            cells,
            columns,
            gas,
        })
    }

    fn extremes(&self) -> Extremes {
        let extremes = Extremes::of(&self.columns.states, self.fill.model.gamma)
            .with_field(&self.columns.magnetic);
        match self.fill.model.equation.has_energy() {
            true => extremes,
            false => extremes.without_energy(),
        }
    }

    /// Returns the first cell of the layer in its patch.
    fn first_cell(&self) -> usize {
        self.layer * LAYER
    }

    /// Stores the averages of all components in the cells of the layer.
    fn average<R: Element>(&self, out: &mut [R], states: &StateFunctions<R>) {
        let rule = &self.fill.rule;
        let samples = rule.weights.len();
        let repeats: Vec<bool> = (0..self.cells)
            .map(|cell| {
                cell > 0
                    && self
                        .columns
                        .repeats(&(cell * samples..(cell + 1) * samples))
            })
            .collect();
        let (columns, model) = (&self.columns, self.fill.model);
        for (c, component) in out.chunks_mut(CELLS).enumerate() {
            let cells = &mut component[self.first_cell()..][..self.cells];
            let of_field = model
                .magnetic_field()
                .and_then(|first| c.checked_sub(first));
            if let Some(field) = of_field.filter(|n| *n < model.field_components()) {
                // the cleaning variable begins at 0
                let values = columns.magnetic.get(field);
                rule.store_means(cells, &repeats, |n| values.map_or(0.0, |values| values[n]));
            } else if model.internal_energy() == Some(c) {
                let energy = |n: usize| columns.states[n].internal_energy(model.gamma);
                rule.store_means(cells, &repeats, energy);
            } else if let Some(scalar) = c.checked_sub(model.first_scalar()) {
                let fractions = &columns.scalars[scalar];
                let density = |n: usize| fractions[n] * columns.states[n].density;
                rule.store_means(cells, &repeats, density);
            } else {
                rule.store_means(cells, &repeats, |n| self.gas[n][c]);
            }
        }
        let repeats = repeats.into_iter().chain(std::iter::repeat(true));
        for (cell, repeats) in (self.first_cell()..).take(LAYER).zip(repeats) {
            match repeats {
                true => out
                    .chunks_mut(CELLS)
                    .for_each(|component| component[cell] = component[cell - 1]),
                false => make_consistent(out, cell, states),
            }
        }
    }

    /// Checks the cells in the precision of the run: the pressure may be lost in the round-off of the total energy.
    fn check_stored<R: Element>(
        &self,
        out: &[R],
        physical: fn(&[R], usize) -> bool,
    ) -> Result<(), String> {
        for cell in 0..LAYER {
            let state = out.iter().skip(self.first_cell() + cell).step_by(CELLS);
            if physical(&state.copied().collect::<Vec<R>>(), 1) {
                continue;
            }
            let n = cell * self.fill.rule.weights.len();
            let (columns, given) = (&self.columns, &self.columns.states[n]);
            return Err(format!(
                "the initial state near (x, y, z) = {:?} (level {}) is lost in round-off: density {}, velocity {:?}, \
                 pressure {} give no positive pressure after conversion to total energy; raise the pressure, lower the velocity \
                 or set run.precision = \"double\"",
                columns.point(n),
                columns.level,
                given.density,
                given.velocity,
                given.pressure
            ));
        }
        Ok(())
    }
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

/// Sets the pressure of gas whose pressure follows from the density.
fn set_pressure(columns: &mut PrimitiveColumns, model: &GasModel) {
    if model.equation.has_energy() {
        return;
    }
    for state in &mut columns.states {
        let [pressure, _] = model.equation.thermal(state.density, 0.0, model.law);
        state.pressure = pressure;
    }
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

fn check(columns: &PrimitiveColumns, n: usize) -> Result<(), String> {
    let state = &columns.states[n];
    let scalars_finite = columns.scalars.iter().all(|s| s[n].is_finite());
    let field: Vec<f64> = (columns.magnetic.iter())
        .filter_map(|along| along.get(n).copied())
        .collect();
    if !field.iter().all(|b| b.is_finite()) {
        return Err(format!(
            "the initial magnetic field at (x, y, z) = {:?} (level {}) is {field:?}; it must be finite",
            columns.point(n),
            columns.level
        ));
    }
    if state.is_physical() && scalars_finite {
        return Ok(());
    }
    Err(format!(
        "the initial state is unphysical at (x, y, z) = {:?} (level {}): density {}, velocity {:?}, pressure {}{}; \
         density and pressure must be positive and all values finite",
        columns.point(n),
        columns.level,
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

/// Coordinates of the samples in the cells of a patch, by axis.
struct SamplePoints {
    level: usize,
    /// Index of the first cell of the patch on the level.
    origin: [i32; 3],
    /// Centres of the cells.
    centres: [[f64; PATCH]; 3],
    /// Widths of a cell.
    width: [f64; 3],
    /// Positions of the samples of a cell relative to its centre.
    offsets: [Vec<f64>; 3],
}

impl SamplePoints {
    fn of(block: &CellBlock, width: [f64; 3], rule: &Rule) -> Self {
        let s = rule.places.len();
        let offset = |axis: usize, n: usize| {
            let place = [n % s, n / s % s, n / (s * s)][axis];
            rule.places[place] * width[axis]
        };
        let offsets = |axis: usize| (0..s * s * s).map(|n| offset(axis, n)).collect();
        let centres = |axis: usize| std::array::from_fn(|n| block.centre([n; 3])[axis]);
        Self {
            level: block.level as usize,
            origin: block.origin,
            centres: [0, 1, 2].map(centres),
            width,
            offsets: [0, 1, 2].map(offsets),
        }
    }

    /// Returns the number of cells of a layer whose samples are necessary: a row if the state is uniform in the layer.
    fn cells_to_evaluate(&self, initial: &dyn InitialState, layer: usize) -> usize {
        let ends = |axis: usize| match axis {
            2 => [layer; 2],
            _ => [0, PATCH - 1],
        };
        let low = std::array::from_fn(|a| self.centres[a][ends(a)[0]] - 0.5 * self.width[a]);
        let high = std::array::from_fn(|a| self.centres[a][ends(a)[1]] + 0.5 * self.width[a]);
        match initial.is_uniform(low, high) {
            true => LANES,
            false => LAYER,
        }
    }

    /// Returns the samples in the first `cells` cells of a layer, cell by cell, with undefined states, no magnetic field and the default
    /// fractions of the scalars.
    fn in_layer(&self, (layer, cells): (usize, usize), model: &GasModel) -> PrimitiveColumns {
        let total = cells * self.offsets[0].len();
        let [i, j, k] = self.origin;
        let along = |axis: usize| {
            let mut points = Vec::with_capacity(total);
            for cell in 0..cells {
                let centre = self.centres[axis][[cell % PATCH, cell / PATCH, layer][axis]];
                points.extend(self.offsets[axis].iter().map(|offset| centre + offset));
            }
            points
        };
        PrimitiveColumns {
            level: self.level,
            first_cell: [i, j, k + layer as i32],
            samples: self.offsets[0].len(),
            ..PrimitiveColumns::at([0, 1, 2].map(along), model)
        }
    }
}

/// Sums terms independently of their order, so that symmetric states stay exactly symmetric.
pub(super) fn symmetric_sum(terms: &mut [f64]) -> f64 {
    if terms.len() == 1 {
        return terms[0];
    }
    terms.sort_unstable_by(f64::total_cmp);
    let (low, high) = terms.split_at(terms.len() / 2);
    let middle = if terms.len() % 2 == 1 { high[0] } else { 0.0 };
    let pairs = low.iter().zip(high.iter().rev());
    pairs.map(|(a, b)| a + b).sum::<f64>() + middle
}

/// Puts two terms of each lane in ascending order.
#[inline(always)]
fn exchange(terms: &mut [[f64; LANES]; 8], low: usize, high: usize) {
    let (a, b) = (terms[low], terms[high]);
    for lane in 0..LANES {
        let is_ascending = a[lane] <= b[lane];
        terms[low][lane] = if is_ascending { a[lane] } else { b[lane] };
        terms[high][lane] = if is_ascending { b[lane] } else { a[lane] };
    }
}

/// Returns [`symmetric_sum`] of 8 terms in each lane, bit for bit, with vector instructions. The terms go through the smallest
/// network that sorts 8 values (Knuth, The Art of Computer Programming 3, 5.3.4).
fn symmetric_sums(mut terms: [[f64; LANES]; 8]) -> [f64; LANES] {
    for (low, high) in [(0, 2), (1, 3), (4, 6), (5, 7)] {
        exchange(&mut terms, low, high);
    }
    for (low, high) in [(0, 4), (1, 5), (2, 6), (3, 7)] {
        exchange(&mut terms, low, high);
    }
    for (low, high) in [(0, 1), (2, 3), (4, 5), (6, 7)] {
        exchange(&mut terms, low, high);
    }
    for (low, high) in [(2, 4), (3, 5)] {
        exchange(&mut terms, low, high);
    }
    for (low, high) in [(1, 4), (3, 6)] {
        exchange(&mut terms, low, high);
    }
    for (low, high) in [(1, 2), (3, 4), (5, 6)] {
        exchange(&mut terms, low, high);
    }
    let mut sums = [0.0; LANES];
    for n in 0..4 {
        for lane in 0..LANES {
            sums[lane] += terms[n][lane] + terms[7 - n][lane];
        }
    }
    sums
}

/// Gauss-Legendre quadrature over a cell of width 1 around 0.
pub(super) struct Rule {
    /// Coordinates of the points along an axis.
    pub places: Vec<f64>,
    /// Weights of the points of a cell, x fastest.
    pub weights: Vec<f64>,
    /// Weights of the points along an axis.
    pub weights_along: Vec<f64>,
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
            weights_along: weights,
            places,
        }
    }

    /// Stores the means of a value in cells, whose samples follow each other. Groups of cells that repeat the one before
    /// are left out.
    fn store_means<R: Real>(
        &self,
        cells: &mut [R],
        repeats: &[bool],
        value: impl Fn(usize) -> f64,
    ) {
        let samples = self.weights.len();
        let groups = cells.chunks_mut(LANES).zip(repeats.chunks(LANES));
        for (group, (cells, repeats)) in groups.enumerate() {
            if repeats.iter().all(|repeats| *repeats) {
                continue;
            }
            let first = group * LANES * samples;
            let means = match samples {
                8 => self.means_of_eight(|n| value(first + n)),
                _ => self.means(|n| value(first + n)),
            };
            for (cell, mean) in cells.iter_mut().zip(means) {
                *cell = R::lit(mean);
            }
        }
    }

    #[inline(always)]
    fn means_of_eight(&self, value: impl Fn(usize) -> f64) -> [f64; LANES] {
        let mut terms = [[0.0; LANES]; 8];
        for lane in 0..LANES {
            for (n, weight) in self.weights.iter().take(8).enumerate() {
                terms[n][lane] = weight * value(8 * lane + n);
            }
        }
        symmetric_sums(terms)
    }

    fn means(&self, value: impl Fn(usize) -> f64) -> [f64; LANES] {
        let mut means = [0.0; LANES];
        for (lane, mean) in means.iter_mut().enumerate() {
            let first = lane * self.weights.len();
            let terms = self.weights.iter().enumerate();
            let mut terms: Vec<f64> = terms.map(|(n, weight)| weight * value(first + n)).collect();
            *mean = symmetric_sum(&mut terms);
        }
        means
    }
}

/// Returns the points ±p/2 in ascending order.
fn half(positive: &[f64]) -> Vec<f64> {
    let below = positive.iter().rev().map(|p| -0.5 * p);
    below.chain(positive.iter().map(|p| 0.5 * p)).collect()
}

#[cfg(test)]
mod tests {
    use super::{LANES, symmetric_sum, symmetric_sums};

    /// A network that sorts all sequences of zeros and ones sorts all sequences (Knuth).
    #[test]
    fn sums_of_lanes_are_those_of_sorted_terms() {
        let mut terms = [[0.0; LANES]; 8];
        for bits in 0..256_usize {
            for lane in 0..LANES {
                for (n, term) in terms.iter_mut().enumerate() {
                    let one = if bits >> n & 1 == 1 { 1e16 } else { -1.0 };
                    let spread = ((bits * 37 + n * 11 + lane * 5) % 97) as f64;
                    term[lane] = one * (1.0 + if lane % 2 == 0 { 0.0 } else { spread });
                }
            }
            let sums = symmetric_sums(terms);
            for (lane, sum) in sums.into_iter().enumerate() {
                let mut own = terms.map(|term| term[lane]);
                assert_eq!(sum.to_bits(), symmetric_sum(&mut own).to_bits(), "{own:?}");
            }
        }
        for zeros in [[0.0; LANES], [-0.0; LANES]] {
            let sum = symmetric_sums([zeros; 8])[0];
            assert_eq!(sum.to_bits(), symmetric_sum(&mut [zeros[0]; 8]).to_bits());
        }
    }
}
