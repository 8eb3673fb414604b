//! Finds places at which sinks form.

use super::accretion::Threshold;
use super::rules::{FormingSink, SinkRule};
use super::volumes::{CellIndex, Neighbourhood, Point, Volume, length};
use crate::fields::GasModel;

/// A cell in which a sink may form.
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Candidate {
    pub cell: CellIndex,
    /// Fills the structure to whole numbers of 8 bytes.
    pub unused: u32,
    pub potential: f64,
}

/// What the formation of sinks depends on.
pub(super) struct Formation<'a> {
    pub rule: &'a SinkRule,
    pub model: &'a GasModel,
    pub around: &'a Neighbourhood<'a>,
    pub gravity: f64,
    pub threshold: &'a Threshold,
    /// Least mass of a sink.
    pub least_mass: f64,
}

impl Formation<'_> {
    /// Returns the numbers of the candidates in which sinks form, in ascending order. A candidate with a lower potential comes first and excludes
    /// others within the accretion radius. The last value of each cell is the potential.
    pub fn choose(&self, candidates: &[Candidate], volumes: &[Volume]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        let key = |n: usize| candidates[n];
        order.sort_by(|&a, &b| {
            let (a, b) = (key(a), key(b));
            let index = |one: &Candidate| [one.cell[2], one.cell[1], one.cell[0]];
            let by_potential = a.potential.total_cmp(&b.potential);
            by_potential.then_with(|| index(&a).cmp(&index(&b)))
        });
        let mut chosen: Vec<usize> = Vec::new();
        for n in order {
            let here = Point::centre_of(candidates[n].cell);
            let is_near = |other: &usize| {
                let there = Point::centre_of(candidates[*other].cell);
                self.around.are_near(here, there)
            };
            if !chosen.iter().any(is_near) && self.forms(candidates[n].cell, &volumes[n]) {
                chosen.push(n);
            }
        }
        chosen.sort_unstable();
        chosen
    }

    /// Returns `true` if the gas of a cell exceeds the threshold density.
    pub fn is_dense(&self, state: &[f64]) -> bool {
        let [density, .., pressure] = self.model.primitive_of_all(state);
        let excess = density - self.threshold.at(density, pressure);
        excess * self.cell_volume() >= self.least_mass
    }

    /// Returns `true` if a sink forms in a cell.
    fn forms(&self, cell: CellIndex, volume: &Volume) -> bool {
        let Some(own) = volume.find(cell) else {
            return false;
        };
        self.is_dense(own)
            && volume.is_complete()
            && (self.rule.forms)(&self.sums(cell, own, volume))
    }

    /// Returns the sums over the gas around a cell.
    fn sums(&self, cell: CellIndex, own: &[f64], volume: &Volume) -> FormingSink {
        let cell_volume = self.cell_volume();
        let mut sums = FormingSink {
            is_converging: self.is_converging(cell, volume),
            is_minimum: true,
            ..FormingSink::default()
        };
        let lowest = own.last();
        let mut momentum = [0.0; 3];
        for (_, state) in volume.cells() {
            let [density, vx, vy, vz, pressure] = self.model.primitive_of_all(state);
            let mass = density * cell_volume;
            sums.mass += mass;
            for (momentum, velocity) in momentum.iter_mut().zip([vx, vy, vz]) {
                *momentum += mass * velocity;
            }
            sums.kinetic_energy += 0.5 * mass * (vx * vx + vy * vy + vz * vz);
            sums.thermal_energy += 1.5 * pressure * cell_volume;
            if let Some(first) = self.model.magnetic_field() {
                let square: f64 = state[first..first + 3].iter().map(|b| b * b).sum();
                sums.magnetic_energy += 0.5 * square * cell_volume;
            }
            sums.is_minimum &= state.last() >= lowest;
        }
        let square: f64 = momentum.iter().map(|p| p * p).sum();
        sums.kinetic_energy = (sums.kinetic_energy - 0.5 * square / sums.mass).max(0.0);
        sums.gravitational_energy = -self.gravity * self.pairs(volume, cell_volume);
        sums
    }

    fn cell_volume(&self) -> f64 {
        self.around.width.iter().product()
    }

    /// Returns the mean velocity of the gas, weighted by mass.
    pub fn mean_velocity(&self, volume: &Volume) -> [f64; 3] {
        let (mut mass, mut momentum) = (0.0, [0.0; 3]);
        for (_, state) in volume.cells() {
            mass += state[0];
            for axis in 0..3 {
                momentum[axis] += state[1 + axis];
            }
        }
        momentum.map(|sum| sum / mass)
    }

    /// Returns the sum of products of masses over distances, over all pairs of cells.
    fn pairs(&self, volume: &Volume, cell_volume: f64) -> f64 {
        let cells: Vec<([f64; 3], f64)> = volume
            .cells()
            .map(|(near, state)| (near.offset, state[0] * cell_volume))
            .collect();
        let mut sum = 0.0;
        for (n, (at, mass)) in cells.iter().enumerate() {
            for (other, other_mass) in &cells[..n] {
                let apart = [0, 1, 2].map(|axis| at[axis] - other[axis]);
                sum += mass * other_mass / length(apart);
            }
        }
        sum
    }

    /// Returns `true` if the velocity converges along each axis at a cell, by central differences.
    fn is_converging(&self, cell: CellIndex, volume: &Volume) -> bool {
        (0..3).all(|axis| {
            let beside = |step: i32| {
                let mut index = cell;
                index[axis] += step;
                if self.around.topology.domain.periodic[axis] {
                    let cells = self.around.topology.domain.cells(self.around.level);
                    index[axis] = index[axis].rem_euclid(cells[axis]);
                }
                let state = volume.find(index)?;
                Some(self.model.primitive_of_all(state)[1 + axis])
            };
            let below_and_above = beside(-1).zip(beside(1));
            below_and_above.is_some_and(|(below, above)| above < below)
        })
    }
}
