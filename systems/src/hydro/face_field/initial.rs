//! Initial values of the field: means over faces, and the curl of a vector potential.

use super::cells::{ROW, ROWS_AT_A_TIME, change_rows, is_near_refined, is_refined, mean};
use crate::fields::{GAS_COMPONENTS, Gas, GasModel, MagneticFaces};
use crate::hydro::extremes::Extremes;
use crate::hydro::initial::{InitialGas, InitialState, PrimitiveColumns, Rule, symmetric_sum};
use bevy_ecs::prelude::*;
use nestar_device::Real;
use nestar_engine::data::Element;
use nestar_engine::mesh::{LevelClock, NewRows, Topology, parallel};
use nestar_engine::step::Write;
use nestar_engine::{Error, in_precision};
use nestar_kernels::mesh::circulations::{circulated, step_beside};
use nestar_kernels::mesh::means::mean2;
use nestar_kernels::mesh::{Centring, direction};
use nestar_kernels::{CELLS, PATCH};

/// Fills the faces of new patches with the initial field, and their cells with its means.
pub(super) fn fill_faces(
    initial: Res<InitialGas>,
    model: Res<GasModel>,
    topology: Res<Topology>,
    new: Res<NewRows>,
    mut extremes: ResMut<Extremes>,
    mut gas: Write<Gas>,
    mut field: Write<MagneticFaces>,
) -> Result<(), Error> {
    let fill = FaceFill::new(&*initial.0, &model, &topology, new.level);
    let most = in_precision!(gas.precision(), R =>
        fill.rows::<R>(&new.rows, &mut gas, &mut field))?;
    let of_field = Extremes::default().with_field(&[vec![most], vec![0.0], vec![0.0]]);
    *extremes = extremes.joined(of_field);
    Ok(())
}

/// Fills the faces of leaf patches beside refined ones of the initial hierarchy again: the edges of fine patches are known only now.
pub(super) fn fill_faces_beside_refined(
    initial: Res<InitialGas>,
    model: Res<GasModel>,
    clock: Res<LevelClock>,
    topology: Res<Topology>,
    mut gas: Write<Gas>,
    mut field: Write<MagneticFaces>,
) -> Result<(), Error> {
    // the initial hierarchy is synchronised without a step
    if clock.dt > 0.0 {
        return Ok(());
    }
    let rows = topology.rows(clock.level).iter().copied();
    let beside = |row: &u32| topology.is_leaf(*row) && is_near_refined(&topology, *row);
    let rows: Vec<u32> = rows.filter(beside).collect();
    let fill = FaceFill::new(&*initial.0, &model, &topology, clock.level);
    in_precision!(gas.precision(), R => fill.rows::<R>(&rows, &mut gas, &mut field))?;
    Ok(())
}

/// Data for filling the faces of patches of a level.
pub(super) struct FaceFill<'a> {
    initial: &'a dyn InitialState,
    model: &'a GasModel,
    topology: &'a Topology,
    level: usize,
    /// Cells that are added to all places, by axis.
    beyond: [i32; 3],
    /// Samples across a face.
    rule: Rule,
    /// Samples along an edge.
    along: Rule,
}

/// Number of Gauss-Legendre points on an edge.
const EDGE_POINTS: usize = 3;

impl<'a> FaceFill<'a> {
    /// Collects the data for patches of a level.
    pub fn new(
        initial: &'a dyn InitialState,
        model: &'a GasModel,
        topology: &'a Topology,
        level: usize,
    ) -> Self {
        Self {
            initial,
            model,
            topology,
            level,
            beyond: [0; 3],
            rule: Rule::new(initial.samples()),
            along: Rule::new(EDGE_POINTS),
        }
    }

    /// Returns the same with all places one width of the domain above along an axis.
    pub fn one_period_above(&self, axis: usize) -> Self {
        let mut above = Self::new(self.initial, self.model, self.topology, self.level);
        above.beyond[axis] = self.topology.domain.cells(self.level)[axis];
        above
    }

    /// Fills rows, and returns the largest field on their faces.
    fn rows<R: Element>(
        &self,
        rows: &[u32],
        gas: &mut Write<Gas>,
        field: &mut Write<MagneticFaces>,
    ) -> Result<f64, Error> {
        field.change_rows_on(self.level, rows);
        let mut most = 0.0f64;
        for rows in rows.chunks(ROWS_AT_A_TIME) {
            let mut faces = vec![R::lit(0.0); rows.len() * ROW];
            let mut patches: Vec<_> = faces.chunks_exact_mut(ROW).collect();
            let filled = parallel::map_mut(&mut patches, |n, out| self.row(rows[n], out));
            let filled = filled.into_iter().collect::<Result<(), _>>();
            filled.map_err(Error::Setup)?;
            most = faces
                .iter()
                .fold(most, |most, b| most.max(b.to_f64().abs()));
            field.store_on(self.level, rows, &faces)?;
        }
        // the energy of the gas does not depend on the field
        let set = |gas: &mut [R], faces: &[R]| {
            for (c, cell) in (0..3).flat_map(|c| (0..CELLS).map(move |cell| (c, cell))) {
                gas[(GAS_COMPONENTS + c) * CELLS + cell] = mean(faces, c, cell);
            }
        };
        change_rows::<R, ()>((self.level, rows), gas, &field.own_on(self.level), set)?;
        Ok(most)
    }

    /// Computes the faces of a patch.
    fn row<R: Real>(&self, row: u32, out: &mut [R]) -> Result<(), String> {
        let potential = self.potential(row)?;
        for (c, out) in out.chunks_exact_mut(Centring::Face.values()).enumerate() {
            for (value, b) in out.iter_mut().zip(self.component(row, c, &potential)) {
                *value = R::lit(b);
            }
        }
        Ok(())
    }

    /// Returns component `c` of the field on the faces of a patch with a potential on its edges.
    pub fn component(&self, row: u32, c: usize, potential: &[Vec<f64>; 3]) -> Vec<f64> {
        let width = self.topology.domain.cell_width(self.level);
        let [a, b] = [(c + 1) % 3, (c + 2) % 3];
        let rates = [-1.0 / width[a], -1.0 / width[b]];
        let edge = |axis: usize, at: [usize; 3]| {
            let along = potential[axis].get(Centring::Edge.index(axis, at));
            along.copied().unwrap_or(0.0)
        };
        let face = |(n, own): (usize, f64)| {
            let at = place(Centring::Face, c, n);
            let both = |axis: usize, across: usize| {
                let mut above = at;
                above[across] += 1;
                [edge(axis, at), edge(axis, above)]
            };
            circulated(own, &both(a, b), &both(b, a), &rates)
        };
        let means = self.means(row, c).into_iter();
        means.enumerate().map(face).collect()
    }

    /// Returns the means of the vector potential over the edges of a patch, by axis; empty for components that are 0.
    ///
    /// # Errors
    /// A value is not finite.
    pub fn potential(&self, row: u32) -> Result<[Vec<f64>; 3], String> {
        Ok([
            self.edges(row, 0)?,
            self.edges(row, 1)?,
            self.edges(row, 2)?,
        ])
    }

    /// Returns the means of the field of the initial state over the faces of component `c`.
    fn means(&self, row: u32, c: usize) -> Vec<f64> {
        let (places, weights) = (&self.rule.places, &self.rule.weights_along);
        let s = places.len();
        let samples = s * s;
        let values = Centring::Face.values();
        let mut points: [Vec<f64>; 3] = std::array::from_fn(|_| Vec::new());
        for n in 0..values * samples {
            let (at, sample) = (place(Centring::Face, c, n / samples), n % samples);
            let within = [sample % s, sample / s];
            for axis in 0..3 {
                let offset = match (axis + 3 - c) % 3 {
                    0 => 0.0,
                    across => 0.5 + places[within[across - 1]],
                };
                points[axis].push(self.coordinate(row, axis, at[axis] as f64 + offset));
            }
        }
        let mut columns = PrimitiveColumns::at(points, self.model);
        columns.level = self.level;
        self.initial.fill(&mut columns);
        let mean = |face: &[f64]| {
            let weight = |n: usize| weights[n % s] * weights[n / s];
            let mut terms: Vec<f64> = (0..samples).map(|n| weight(n) * face[n]).collect();
            symmetric_sum(&mut terms)
        };
        columns.magnetic[c]
            .chunks_exact(samples)
            .map(mean)
            .collect()
    }

    /// Returns the means of the vector potential over the edges along axis `c`; empty if that component is 0. An edge that a refined patch
    /// touches has the mean of the fine edges.
    fn edges(&self, row: u32, c: usize) -> Result<Vec<f64>, String> {
        let count = Centring::Edge.values();
        let s = self.along.places.len();
        let mut points: [Vec<f64>; 3] = std::array::from_fn(|_| Vec::new());
        let mut parts = Vec::with_capacity(count);
        for n in 0..count {
            let at = place(Centring::Edge, c, n);
            let halves = if self.touches_refined(row, c, at) {
                2
            } else {
                1
            };
            parts.push(halves);
            for (half, sample) in (0..halves).flat_map(|h| (0..s).map(move |sample| (h, sample))) {
                let middle = (f64::from(half) + 0.5) / f64::from(halves);
                let along = middle + self.along.places[sample] / f64::from(halves);
                for axis in 0..3 {
                    let offset = if axis == c { along } else { 0.0 };
                    points[axis].push(self.coordinate(row, axis, at[axis] as f64 + offset));
                }
            }
        }
        let Some(values) = self.initial.vector_potential(c, &points) else {
            return Ok(Vec::new());
        };
        if let Some(n) = values.iter().position(|a| !a.is_finite()) {
            let (axis, at) = (["x", "y", "z"][c], points.map(|along| along[n]));
            return Err(format!(
                "the initial vector potential along {axis} at (x, y, z) = {at:?} (level {}) is {}; it must be finite",
                self.level, values[n]
            ));
        }
        let mut values = values.chunks_exact(s);
        let mut mean = || {
            let samples = values.next().unwrap_or_default().iter();
            let terms = samples
                .zip(&self.along.weights_along)
                .map(|(a, weight)| weight * a);
            symmetric_sum(&mut terms.collect::<Vec<_>>())
        };
        let edge = |halves: i32| match halves {
            1 => mean(),
            _ => mean2(mean(), mean()),
        };
        Ok(parts.into_iter().map(edge).collect())
    }

    /// Returns a coordinate, by its distance in cells from the lower end of a patch.
    fn coordinate(&self, row: u32, axis: usize, cells: f64) -> f64 {
        let domain = &self.topology.domain;
        let origin = f64::from(self.topology.origin(row)[axis] + self.beyond[axis]);
        domain.left_edge[axis] + (origin + cells) * domain.cell_width(self.level)[axis]
    }

    /// Returns `true` if an edge of a patch along axis `c` is one of a refined patch, too.
    fn touches_refined(&self, row: u32, c: usize, at: [usize; 3]) -> bool {
        let (around, at) = (self.topology.neighbours(row), at.map(|i| i as i32));
        let steps = (0..3).map(|n| step_beside(n, c as i32, at));
        let mut beside = steps.filter(|step| *step != [0; 3]);
        beside.any(|step| is_refined(self.topology, around[direction(step)]))
    }
}

/// Returns the place of value `n` of component `c` of a row.
fn place(centring: Centring, c: usize, n: usize) -> [usize; 3] {
    let [x, y, _] = centring.lengths(c, [PATCH; 3]);
    [n % x, n / x % y, n / (x * y)]
}
