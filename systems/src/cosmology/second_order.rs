//! Perturbations of second order in the linear density contrast (2LPT; Bouchet et al. 1995, A&A 296, 575).
//!
//! Matter that begins at `q` is at `x = q + psi1 + psi2`. The linear displacement has the divergence `-delta`, and that of second order
//! `ratio*invariant`, where `invariant` is the sum of the second principal minors of the derivatives of `psi1`, and `ratio` is -3/7 while
//! matter dominates. As `psi1` is a gradient, two products are sufficient: the invariant and `energy = |psi1|^2/2`. At a place `x` that does not
//! move, the density contrast is `delta + laplacian(energy) + (1 - ratio)*invariant`, and the velocity is that of the matter minus
//! `rate*gradient(energy)`.

use crate::fields::PerturbedMatter;
use crate::spectral::{BoxModes, box_of_modes};
use nestar_device::math::sqrt;
use std::f64::consts::PI;
use std::sync::OnceLock;

/// A box of numbers of the perturbations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Density contrast as a function of the present place (Eulerian).
    Density,
    /// Displacement along an axis as a function of the initial place (Lagrangian).
    Displacement(usize),
    /// Velocity as a function of the initial place (Lagrangian).
    Velocity(usize),
    /// Velocity as a function of the present place (Eulerian).
    Flow(usize),
}

impl Part {
    /// Number of boxes.
    pub const COUNT: usize = 10;

    /// Returns the matter that a part describes.
    pub fn matter(self) -> PerturbedMatter {
        match self {
            Part::Density | Part::Flow(_) => PerturbedMatter::Gas,
            Part::Displacement(_) | Part::Velocity(_) => PerturbedMatter::Particles,
        }
    }

    /// Returns the number of the box.
    pub fn number(self) -> usize {
        match self {
            Part::Density => 0,
            Part::Displacement(axis) => 1 + axis,
            Part::Velocity(axis) => 4 + axis,
            Part::Flow(axis) => 7 + axis,
        }
    }
}

/// Cells and edges of a periodic box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Grid {
    pub cells: [usize; 3],
    pub edges: [f64; 3],
}

impl Grid {
    /// Returns the wave vector of signed wave numbers.
    pub fn wave_vector(&self, wave: [i64; 3]) -> [f64; 3] {
        [0, 1, 2].map(|a| 2.0 * PI * wave[a] as f64 / self.edges[a])
    }

    /// Returns `true` for waves, except the mean, below the Nyquist frequency of each axis.
    pub fn contains(&self, wave: [i64; 3]) -> bool {
        let is_below = (0..3).all(|a| 2 * (wave[a].unsigned_abs() as usize) < self.cells[a]);
        is_below && wave != [0; 3]
    }

    /// Returns the smallest and the largest length of the wave vectors that the grid contains.
    pub fn wave_numbers(&self) -> [f64; 2] {
        let longest = self.edges.into_iter().fold(0.0, f64::max);
        let most = self.cells.map(|n| n.saturating_sub(1) as i64 / 2);
        let [x, y, z] = self.wave_vector(most);
        [2.0 * PI / longest, sqrt(x * x + y * y + z * z)]
    }

    /// Returns the displacement along `axis` whose divergence is minus the mode of a density contrast.
    pub fn displacement(&self, wave: [i64; 3], [re, im]: [f64; 2], axis: usize) -> [f64; 2] {
        let k = self.wave_vector(wave);
        let square = k[0] * k[0] + k[1] * k[1] + k[2] * k[2];
        match square > 0.0 {
            true => [-im * k[axis] / square, re * k[axis] / square],
            false => [0.0; 2],
        }
    }

    /// Returns the numbers of cells along the axes on which products of two modes of the box have all modes of the box (Orszag's rule).
    fn padded(&self) -> [usize; 3] {
        self.cells.map(|cells| (3 * cells).div_ceil(2))
    }
}

/// Growth at the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Growth {
    /// Logarithmic derivative of the growing mode by the comoving time.
    pub rate: f64,
    /// Growth of the second order over the square of the growing mode.
    pub ratio: f64,
    /// Logarithmic derivative of the growth of the second order by the comoving time.
    pub second_rate: f64,
}

/// Perturbations to second order. Products of modes are made when they are first needed.
pub(super) struct SecondOrder {
    grid: Grid,
    growth: Growth,
    invariant: OnceLock<BoxModes>,
    energy: OnceLock<BoxModes>,
}

impl SecondOrder {
    /// Creates the perturbations of a box.
    pub fn new(grid: Grid, growth: Growth) -> Self {
        Self {
            grid,
            growth,
            invariant: OnceLock::new(),
            energy: OnceLock::new(),
        }
    }

    /// Returns the modes of a part to second order, by those of the linear density contrast. The latter are 0 from the Nyquist frequency on.
    pub fn modes<'a>(
        &'a self,
        part: Part,
        linear: &'a (impl Fn([i64; 3]) -> [f64; 2] + Sync),
    ) -> impl Fn([i64; 3]) -> [f64; 2] + Sync + 'a {
        let Growth {
            rate,
            ratio,
            second_rate,
        } = self.growth;
        let invariant = self.invariant.get_or_init(|| self.invariant(linear));
        let energy = matches!(part, Part::Density | Part::Flow(_))
            .then(|| self.energy.get_or_init(|| self.energy(linear)));
        move |wave| {
            if !self.grid.contains(wave) {
                return [0.0; 2];
            }
            let (linear, invariant) = (linear(wave), invariant.at(wave));
            let [re, im] = energy.map_or([0.0; 2], |energy| energy.at(wave));
            let k = self.grid.wave_vector(wave);
            // of the displacement whose divergence is minus this density contrast
            let moved = |first: f64, second: f64, axis: usize| {
                let sum = [0, 1].map(|n| first * linear[n] - second * ratio * invariant[n]);
                self.grid.displacement(wave, sum, axis)
            };
            match part {
                Part::Density => {
                    let square = k[0] * k[0] + k[1] * k[1] + k[2] * k[2];
                    let own = |n: usize, energy: f64| {
                        linear[n] - square * energy + (1.0 - ratio) * invariant[n]
                    };
                    [own(0, re), own(1, im)]
                }
                Part::Displacement(axis) => moved(1.0, 1.0, axis),
                Part::Velocity(axis) => moved(rate, second_rate, axis),
                Part::Flow(axis) => {
                    let [x, y] = moved(rate, second_rate, axis);
                    [x + rate * k[axis] * im, y - rate * k[axis] * re]
                }
            }
        }
    }

    /// Returns the modes of the sum of the second principal minors of the derivatives of the linear displacement.
    fn invariant(&self, linear: &(impl Fn([i64; 3]) -> [f64; 2] + Sync)) -> BoxModes {
        let mut sum = Squares::new(self.grid.padded());
        sum.add(0.5, linear);
        for a in 0..3 {
            for b in a..3 {
                let weight = if a == b { -0.5 } else { -1.0 };
                sum.add(weight, |wave| {
                    let k = self.grid.wave_vector(wave);
                    let square = k[0] * k[0] + k[1] * k[1] + k[2] * k[2];
                    match square > 0.0 {
                        true => linear(wave).map(|part| part * (k[a] * k[b] / square)),
                        false => [0.0; 2],
                    }
                });
            }
        }
        sum.modes().restricted(self.grid.cells)
    }

    /// Returns the modes of half the square of the linear displacement.
    fn energy(&self, linear: &(impl Fn([i64; 3]) -> [f64; 2] + Sync)) -> BoxModes {
        let mut sum = Squares::new(self.grid.padded());
        for axis in 0..3 {
            sum.add(0.5, |wave| self.grid.displacement(wave, linear(wave), axis));
        }
        sum.modes().restricted(self.grid.cells)
    }
}

/// A weighted sum of squares of boxes.
struct Squares {
    cells: [usize; 3],
    sum: Vec<f64>,
}

impl Squares {
    fn new(cells: [usize; 3]) -> Self {
        // rows along x have an even length
        let cells = [cells[0].next_multiple_of(2), cells[1], cells[2]];
        Self {
            cells,
            sum: vec![0.0; cells.into_iter().product()],
        }
    }

    /// Adds the square of the box with these modes.
    fn add(&mut self, weight: f64, mode: impl Fn([i64; 3]) -> [f64; 2] + Sync) {
        let values = box_of_modes(self.cells, mode);
        for (sum, value) in self.sum.iter_mut().zip(values) {
            *sum += weight * (value * value);
        }
    }

    fn modes(self) -> BoxModes {
        BoxModes::of(&self.sum, self.cells)
    }
}

#[cfg(test)]
mod tests {
    use super::{Grid, Growth, Part, SecondOrder};
    use crate::spectral::box_of_modes;
    use std::f64::consts::TAU;

    /// Modes by their wave numbers; the box has edges of 1.
    type Waves = Vec<([i64; 3], [f64; 2])>;

    const CELLS: [usize; 3] = [16, 12, 10];
    /// Growth while matter dominates, where the scale factor is 1.
    const MATTER: Growth = Growth {
        rate: 1.0,
        ratio: -3.0 / 7.0,
        second_rate: 2.0,
    };

    fn waves(size: f64) -> Waves {
        [
            ([1, 0, 0], [0.9, 0.2]),
            ([0, 1, 0], [-0.5, 0.6]),
            ([1, 1, -1], [0.3, -0.7]),
            ([2, -1, 1], [-0.2, 0.4]),
        ]
        .map(|(wave, mode)| (wave, mode.map(|part| size * part)))
        .to_vec()
    }

    fn linear(waves: &Waves) -> impl Fn([i64; 3]) -> [f64; 2] + Sync {
        move |wave| {
            let opposite = wave.map(|n| -n);
            let own = waves.iter().find(|(own, _)| *own == wave);
            let other = waves.iter().find(|(own, _)| *own == opposite);
            match (own, other) {
                (Some((_, mode)), _) => *mode,
                (_, Some((_, [re, im]))) => [*re, -im],
                _ => [0.0; 2],
            }
        }
    }

    /// All modes of a part that are not 0, with wave numbers along x from 0 on.
    fn modes(waves: &Waves, cells: [usize; 3], part: Part) -> Waves {
        let grid = Grid {
            cells,
            edges: [1.0; 3],
        };
        let (second, linear) = (SecondOrder::new(grid, MATTER), linear(waves));
        let mode = second.modes(part, &linear);
        let half = cells.map(|n| n as i64 / 2);
        let mut all = Waves::new();
        for x in 0..=half[0] {
            for y in -half[1]..=half[1] {
                for z in -half[2]..=half[2] {
                    all.push(([x, y, z], mode([x, y, z])));
                }
            }
        }
        all.retain(|(_, mode)| *mode != [0.0; 2]);
        all
    }

    /// The sum of modes at a point, and its derivatives.
    fn sum(modes: &Waves, point: [f64; 3]) -> [f64; 4] {
        let mut sum = [0.0; 4];
        for (wave, [re, im]) in modes {
            let count = if wave[0] == 0 { 1.0 } else { 2.0 };
            let phase = TAU * (0..3).map(|a| wave[a] as f64 * point[a]).sum::<f64>();
            let (sin, cos) = phase.sin_cos();
            sum[0] += count * (re * cos - im * sin);
            for a in 0..3 {
                sum[1 + a] -= count * TAU * wave[a] as f64 * (re * sin + im * cos);
            }
        }
        sum
    }

    fn points() -> impl Iterator<Item = [f64; 3]> {
        (0..20).map(|n| [0.37, 0.61, 0.83].map(|by| (f64::from(n) * by + 0.123).fract()))
    }

    /// Modes of a vector of matter by its initial place.
    fn vector(waves: &Waves, part: fn(usize) -> Part) -> [Waves; 3] {
        [0, 1, 2].map(|axis| modes(waves, CELLS, part(axis)))
    }

    /// Modes of the linear displacement.
    fn linear_vector(waves: &Waves) -> [Waves; 3] {
        let (grid, linear) = (
            Grid {
                cells: CELLS,
                edges: [1.0; 3],
            },
            linear(waves),
        );
        let opposite = waves.iter().filter(|(wave, _)| wave[0] == 0);
        let opposite = opposite.map(|(wave, _)| wave.map(|n| -n));
        let all: Vec<[i64; 3]> = waves
            .iter()
            .map(|(wave, _)| *wave)
            .chain(opposite)
            .collect();
        let along = |axis: usize| {
            let mode = |wave: &[i64; 3]| (*wave, grid.displacement(*wave, linear(*wave), axis));
            all.iter().map(mode).collect()
        };
        [0, 1, 2].map(along)
    }

    /// Largest residual of the equation of motion in matter, `sum(cof_ij a_ij) = 1.5 (J - 1)`: `a_ij` are the derivatives of the
    /// acceleration, `J` the determinant of those of the place, and `cof_ij` its cofactors. For linear displacements and for both orders.
    fn residuals(size: f64) -> [f64; 2] {
        let waves = waves(size);
        let fields = [linear_vector(&waves), vector(&waves, Part::Displacement)];
        let mut worst = [0.0_f64; 2];
        for point in points() {
            let at = |field: &[Waves; 3]| [0, 1, 2].map(|axis| sum(&field[axis], point));
            let [first, both] = [at(&fields[0]), at(&fields[1])];
            for (n, place) in [first, both].into_iter().enumerate() {
                // the second derivatives by the comoving time of a and a^2 are 1.5 and 5 at a = 1
                let at = |i: usize, j: usize| place[i][1 + j] + f64::from(u8::from(i == j));
                let pull = |i: usize, j: usize| {
                    let linear = first[i][1 + j];
                    1.5 * linear + 5.0 * (place[i][1 + j] - linear)
                };
                let (mut force, mut volume) = (0.0, 0.0);
                for i in 0..3 {
                    for j in 0..3 {
                        let (a, b) = ((i + 1) % 3, (i + 2) % 3);
                        let (c, d) = ((j + 1) % 3, (j + 2) % 3);
                        let cofactor = at(a, c) * at(b, d) - at(a, d) * at(b, c);
                        force += cofactor * pull(i, j);
                        volume += cofactor * at(i, j) / 3.0;
                    }
                }
                worst[n] = worst[n].max((force - 1.5 * (volume - 1.0)).abs());
            }
        }
        worst
    }

    #[test]
    fn the_residual_of_the_equation_of_motion_is_of_third_order() {
        let [coarse, fine] = [0.02, 0.01].map(residuals);
        let [zeldovich, both] = [0, 1].map(|n| (coarse[n] / fine[n]).log2());
        println!("residuals {coarse:?} {fine:?}, orders {zeldovich} {both}");
        assert!((zeldovich - 2.0).abs() < 0.1, "{zeldovich}");
        assert!((both - 3.0).abs() < 0.1, "{both}");
    }

    /// Largest differences of density and flow at places from those of the matter that has moved there.
    fn differences(size: f64) -> [f64; 2] {
        let waves = waves(size);
        let density = modes(&waves, CELLS, Part::Density);
        let flow = vector(&waves, Part::Flow);
        let moved = vector(&waves, Part::Displacement);
        let speed = vector(&waves, Part::Velocity);
        let mut worst = [0.0_f64; 2];
        for q in points() {
            let by = [0, 1, 2].map(|axis| sum(&moved[axis], q));
            let velocity = [0, 1, 2].map(|axis| sum(&speed[axis], q));
            let x = [0, 1, 2].map(|a| q[a] + by[a][0]);
            let d = |i: usize, j: usize| by[i][1 + j] + f64::from(u8::from(i == j));
            let volume = d(0, 0) * (d(1, 1) * d(2, 2) - d(1, 2) * d(2, 1))
                - d(0, 1) * (d(1, 0) * d(2, 2) - d(1, 2) * d(2, 0))
                + d(0, 2) * (d(1, 0) * d(2, 1) - d(1, 1) * d(2, 0));
            let contrast = sum(&density, x)[0];
            worst[0] = worst[0].max((1.0 + contrast - 1.0 / volume).abs());
            for a in 0..3 {
                worst[1] = worst[1].max((sum(&flow[a], x)[0] - velocity[a][0]).abs());
            }
        }
        worst
    }

    #[test]
    fn density_and_flow_at_places_are_those_of_the_moved_matter() {
        let [coarse, fine] = [0.02, 0.01].map(differences);
        let orders = [0, 1].map(|n| (coarse[n] / fine[n]).log2());
        println!("differences {coarse:?} {fine:?}, orders {orders:?}");
        assert!(orders.iter().all(|o| (o - 3.0).abs() < 0.1), "{orders:?}");
    }

    /// Two crossed waves `a cos(kx) + b cos(ky)` of the density contrast have the invariant `a b cos(kx) cos(ky)`.
    #[test]
    fn crossed_waves_have_their_closed_form() {
        let (a, b) = (0.3, 0.2);
        let waves = vec![([1, 0, 0], [0.5 * a, 0.0]), ([0, 1, 0], [0.5 * b, 0.0])];
        let found = modes(&waves, CELLS, Part::Displacement(0));
        for point in points() {
            let [x, y] = [point[0], point[1]].map(|x| (TAU * x).sin_cos());
            let linear = -a / TAU * x.0;
            let second = -3.0 / 7.0 * a * b / (2.0 * TAU) * x.0 * y.1;
            let found = sum(&found, point)[0];
            assert!((found - linear - second).abs() < 1e-15, "{found:e}");
        }
    }

    /// The linear displacement of a plane wave is exact.
    #[test]
    fn a_plane_wave_has_no_displacement_of_second_order() {
        for wave in [[3, 0, 0], [0, 2, 0], [0, 0, 1]] {
            let waves = vec![(wave, [0.3, -0.4])];
            let axis = wave.iter().position(|n| *n != 0).unwrap_or(0);
            let found = modes(&waves, CELLS, Part::Displacement(axis));
            let grid = Grid {
                cells: CELLS,
                edges: [1.0; 3],
            };
            for (own, mode) in found {
                let mode_of = linear(&waves)(own);
                assert_eq!(mode, grid.displacement(own, mode_of, axis), "{own:?}");
            }
        }
    }

    /// The same waves on more cells have the same products, except for round-off.
    #[test]
    fn products_do_not_depend_on_the_cells() {
        let waves = waves(0.1);
        for part in [Part::Density, Part::Velocity(1), Part::Flow(2)] {
            let fine = modes(&waves, [32, 24, 32], part);
            for (wave, mode) in modes(&waves, CELLS, part) {
                let same = fine.iter().find(|(own, _)| *own == wave);
                let same = same.map_or([0.0; 2], |(_, mode)| *mode);
                let near = (0..2).all(|n| (mode[n] - same[n]).abs() < 1e-15);
                assert!(near, "{part:?} {wave:?}: {mode:?} {same:?}");
            }
        }
    }

    /// Values on the cells of a box are real and have the mean 0.
    #[test]
    fn the_mean_density_does_not_change() {
        let waves = waves(0.1);
        let grid = Grid {
            cells: CELLS,
            edges: [1.0; 3],
        };
        let (second, linear) = (SecondOrder::new(grid, MATTER), linear(&waves));
        let values = box_of_modes(CELLS, second.modes(Part::Density, &linear));
        let sum: f64 = values.iter().sum();
        assert!(sum.abs() < 1e-12, "{sum:e}");
    }
}
