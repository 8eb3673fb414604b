//! Decides what sinks take from the gas, and which sinks merge.

use super::rules::{SinkCell, SinkRule, SinkState};
use super::volumes::{CellIndex, Neighbourhood, Point, Volume, length};
use crate::fields::GasModel;
use std::collections::BTreeMap;
use std::f64::consts::PI;

/// Largest share of the gas of a cell that sinks take in a step.
const MOST_OF_CELL: f64 = 0.9;

/// A sink of the finest level.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sink {
    /// Identity; `None` for one that forms in this step.
    pub id: Option<u64>,
    /// Position, in cells of the finest level.
    pub position: [f64; 3],
    pub velocity: [f64; 3],
    pub mass: f64,
    /// Angular momentum about the position.
    pub spin: [f64; 3],
    /// Masses of the scalars of the gas that it has accreted.
    pub scalars: Vec<f64>,
}

impl Sink {
    /// Returns the sink as rules see it.
    fn state(&self) -> SinkState {
        SinkState {
            velocity: self.velocity,
            mass: self.mass,
            is_new: self.id.is_none(),
        }
    }

    /// Returns the position.
    pub fn point(&self) -> Point {
        Point(self.position)
    }

    /// Returns the velocity after a gain.
    pub fn velocity_with(&self, gain: &Gain) -> [f64; 3] {
        let mass = self.mass + gain.mass;
        [0, 1, 2].map(|axis| {
            let gained = gain.momentum[axis] - gain.mass * self.velocity[axis];
            self.velocity[axis] + gained / mass
        })
    }
}

/// Threshold density.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threshold {
    /// Least density.
    pub density: f64,
    /// Density over the square of the sound speed; 0: off.
    pub jeans: f64,
    /// Ratio of specific heats.
    pub gamma: f64,
}

impl Threshold {
    /// Creates the threshold from the least density and the least Jeans length, if they are given.
    pub fn new(density: Option<f64>, length: Option<f64>, gravity: f64, gamma: f64) -> Self {
        Self {
            density: density.unwrap_or(0.0),
            jeans: length.map_or(0.0, |length| PI / (gravity * length * length)),
            gamma,
        }
    }

    /// Returns the threshold for gas of a density and a pressure.
    pub fn at(&self, density: f64, pressure: f64) -> f64 {
        self.density
            .max(self.jeans * self.gamma * pressure / density)
    }
}

/// What a sink gains in a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Gain {
    pub mass: f64,
    pub momentum: [f64; 3],
    /// Angular momentum about the sink.
    pub spin: [f64; 3],
    /// Masses of the scalars of the gas.
    pub scalars: Vec<f64>,
}

impl Gain {
    fn add(&mut self, offset: [f64; 3], mass: f64, momentum: [f64; 3], scalars: &[f64]) {
        self.mass += mass;
        for axis in 0..3 {
            let [next, last] = [(axis + 1) % 3, (axis + 2) % 3];
            self.momentum[axis] += momentum[axis];
            self.spin[axis] += offset[next] * momentum[last] - offset[last] * momentum[next];
        }
        self.scalars.resize(scalars.len(), 0.0);
        for (sum, scalar) in self.scalars.iter_mut().zip(scalars) {
            *sum += scalar;
        }
    }

    /// Adds a sink with what it gains in the step. `apart` points to its position.
    fn add_sink(&mut self, apart: [f64; 3], sink: &Sink, given: &Gain) {
        let momentum = [0, 1, 2].map(|n| sink.mass * sink.velocity[n] + given.momentum[n]);
        let more = given.scalars.iter().copied().chain(std::iter::repeat(0.0));
        let scalars: Vec<f64> = sink.scalars.iter().zip(more).map(|(a, b)| a + b).collect();
        self.add(apart, sink.mass + given.mass, momentum, &scalars);
        for axis in 0..3 {
            self.spin[axis] += sink.spin[axis] + given.spin[axis];
        }
    }
}

/// A cell that loses gas, with the factor by which its gas decreases.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Taken {
    sink: usize,
    energy: f64,
    kept: f64,
}

/// What sinks take in a step.
#[derive(Default)]
pub(super) struct Accretion {
    cells: BTreeMap<CellIndex, Taken>,
    /// For each sink.
    pub gains: Vec<Gain>,
}

/// What accretion depends on.
pub(super) struct AccretionRule<'a> {
    pub rule: &'a SinkRule,
    pub model: &'a GasModel,
    pub around: &'a Neighbourhood<'a>,
    pub threshold: &'a Threshold,
    pub gravity: f64,
    /// Least mass of a sink.
    pub least_mass: f64,
    /// Rounds a number to the precision of the gas.
    pub round: fn(f64) -> f64,
}

impl Accretion {
    /// Returns the cells that lose gas, with the factor by which it decreases.
    pub fn kept(&self) -> impl Iterator<Item = (CellIndex, f64)> {
        self.cells.iter().map(|(index, taken)| (*index, taken.kept))
    }
}

impl AccretionRule<'_> {
    /// Decides what each sink takes from the cells around it.
    pub fn apply(&self, sinks: &[Sink], volumes: &[Volume]) -> Accretion {
        let mut accretion = Accretion {
            gains: vec![Gain::default(); sinks.len()],
            ..Accretion::default()
        };
        for (number, (sink, volume)) in sinks.iter().zip(volumes).enumerate() {
            self.claim(number, sink, volume, &mut accretion.cells);
        }
        for (number, (sink, volume)) in sinks.iter().zip(volumes).enumerate() {
            let gain = self.gain(number, volume, &accretion);
            if sink.id.is_none() && gain.mass < self.least_mass {
                accretion.cells.retain(|_, taken| taken.sink != number);
            } else {
                accretion.gains[number] = gain;
            }
        }
        accretion
    }

    /// Returns what a sink gains from the cells that it takes gas from.
    fn gain(&self, number: usize, volume: &Volume, accretion: &Accretion) -> Gain {
        let cell_volume: f64 = self.around.width.iter().product();
        let first = self.model.first_scalar();
        let mut gain = Gain::default();
        for (near, state) in volume.cells() {
            let taken = accretion.cells.get(&near.index);
            let Some(taken) = taken.filter(|taken| taken.sink == number) else {
                continue;
            };
            let lost = |n: usize| (state[n] - (self.round)(state[n] * taken.kept)) * cell_volume;
            let scalars = (0..self.model.scalars.len()).map(|n| lost(first + n));
            let scalars: Vec<f64> = scalars.collect();
            gain.add(near.offset, lost(0), [lost(1), lost(2), lost(3)], &scalars);
        }
        gain
    }

    /// Notes the cells from which a sink takes gas, unless another sink has them with a lower energy.
    fn claim(
        &self,
        number: usize,
        sink: &Sink,
        volume: &Volume,
        cells: &mut BTreeMap<CellIndex, Taken>,
    ) {
        let cell_volume: f64 = self.around.width.iter().product();
        let state = sink.state();
        for (index, cell) in self.gas_around(sink, volume) {
            let mass = cell.density * cell_volume;
            if cell.excess <= 0.0 {
                continue;
            }
            let wanted = (self.rule.accretes)(&state, &cell);
            if wanted.is_nan() || wanted <= 0.0 {
                continue;
            }
            let taken = wanted.min(MOST_OF_CELL * mass);
            let taken = Taken {
                sink: number,
                energy: cell.energy,
                kept: 1.0 - taken / mass,
            };
            let best = cells.entry(index).or_insert(taken);
            if taken.energy < best.energy {
                *best = taken;
            }
        }
    }

    /// Returns the gas of the cells around a sink.
    fn gas_around(&self, sink: &Sink, volume: &Volume) -> Vec<(CellIndex, SinkCell)> {
        let cell_volume: f64 = self.around.width.iter().product();
        let least = 0.5
            * self
                .around
                .width
                .iter()
                .copied()
                .fold(f64::INFINITY, f64::min);
        let mut cells: Vec<(CellIndex, SinkCell)> = volume
            .cells()
            .map(|(near, state)| {
                let [density, vx, vy, vz, pressure] = self.model.primitive_of_all(state);
                let [x, y, z] = sink.velocity;
                let threshold = self.threshold.at(density, pressure);
                let cell = SinkCell {
                    offset: near.offset,
                    velocity: [vx - x, vy - y, vz - z],
                    density,
                    pressure,
                    excess: (density - threshold) * cell_volume,
                    energy: 0.0,
                    is_central: (0..3)
                        .all(|axis| near.offset[axis].abs() < self.around.width[axis]),
                };
                (near.index, cell)
            })
            .collect();
        cells.sort_by(|(_, a), (_, b)| length(a.offset).total_cmp(&length(b.offset)));
        let mut inside = sink.mass;
        // cells at equal distances are alike
        let shells = cells.chunk_by_mut(|(_, a), (_, b)| length(a.offset) == length(b.offset));
        for shell in shells {
            let densities: f64 = shell.iter().map(|(_, cell)| cell.density).sum();
            inside += densities * cell_volume;
            self.set_energies(shell, inside, least);
        }
        cells
    }

    /// Sets the energies of cells by the mass inside their distance, which is at least `least`.
    fn set_energies(&self, cells: &mut [(CellIndex, SinkCell)], inside: f64, least: f64) {
        for (_, cell) in cells {
            let square: f64 = cell.velocity.iter().map(|v| v * v).sum();
            cell.energy = 0.5 * square - self.gravity * inside / length(cell.offset).max(least);
        }
    }

    /// Merges sinks that are bound to each other and closer than the accretion radius. Returns the numbers of the sinks that end; their mass,
    /// momentum and angular momentum go to `gains` of the others.
    pub fn merge(&self, sinks: &[Sink], gains: &mut [Gain]) -> Vec<usize> {
        let mut ended = Vec::new();
        let old = |n: &usize| sinks[*n].id.is_some();
        for second in (0..sinks.len()).filter(old) {
            for first in (0..second).filter(old) {
                if ended.contains(&first) || ended.contains(&second) {
                    continue;
                }
                let is_first_heavier = sinks[first].mass >= sinks[second].mass;
                let [to, from] = match is_first_heavier {
                    true => [first, second],
                    false => [second, first],
                };
                if self.are_bound(&sinks[to], &sinks[from]) {
                    let given = std::mem::take(&mut gains[from]);
                    let apart = self.around.between(sinks[to].point(), sinks[from].point());
                    gains[to].add_sink(apart, &sinks[from], &given);
                    ended.push(from);
                }
            }
        }
        ended
    }

    fn are_bound(&self, a: &Sink, b: &Sink) -> bool {
        let distance = length(self.around.between(a.point(), b.point()));
        let square: f64 = (0..3)
            .map(|n| a.velocity[n] - b.velocity[n])
            .map(|v| v * v)
            .sum();
        let least = self
            .around
            .width
            .iter()
            .copied()
            .fold(f64::INFINITY, f64::min);
        let gravity = self.gravity * (a.mass + b.mass);
        distance <= self.around.radius && 0.5 * square < gravity / distance.max(0.5 * least)
    }
}
