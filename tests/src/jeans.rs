//! Sound waves in a uniform gas that attracts itself, without its mean density (Jeans 1902): linear waves in a periodic box.

use std::f64::consts::PI;

/// How a wave is in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// At rest at time 0, where it is largest: a standing wave, or one whose growth begins.
    FromRest,
    /// Runs along the wave vector if it is stable, and grows as exp(rate t) if it is not.
    Running,
}

/// A wave of small amplitude.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jeans {
    /// Newton's constant.
    pub gravity: f64,
    /// Mean density.
    pub density: f64,
    /// Speed of sound.
    pub sound: f64,
    /// Ratio of specific heats.
    pub gamma: f64,
    /// Wave vector, radians a length.
    pub wave: [f64; 3],
    /// Relative amplitude of the density at time 0.
    pub amplitude: f64,
    /// How it begins.
    pub motion: Motion,
}

/// The state at a place and time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JeansState {
    /// Density.
    pub density: f64,
    /// Velocity.
    pub velocity: [f64; 3],
    /// Pressure.
    pub pressure: f64,
    /// Gravitational potential, of mean 0.
    pub potential: f64,
    /// Gravitational acceleration.
    pub acceleration: [f64; 3],
}

/// Wave vector with `waves` wavelengths along the sides of a periodic box; oblique where more than one of them is not 0.
#[must_use]
pub fn wave_vector(waves: [i32; 3], lengths: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|a| 2.0 * PI * f64::from(waves[a]) / lengths[a])
}

/// Minus the eigenvalue of the Laplacian with seven points, for cells of the widths `width`: sum of (2 sin(k h/2)/h)^2, next to k^2.
#[must_use]
pub fn laplacian(wave: [f64; 3], width: [f64; 3]) -> f64 {
    let along = |a: usize| (2.0 / width[a] * (0.5 * wave[a] * width[a]).sin()).powi(2);
    along(0) + along(1) + along(2)
}

/// What a central difference of order 2 (two points) or 4 (four points) makes of a wave in place of its wave vector: sin(k h)/h, and
/// (8 sin(k h) - sin(2 k h))/(6 h).
///
/// # Panics
/// If the order is neither.
#[must_use]
pub fn gradient(wave: [f64; 3], width: [f64; 3], order: u8) -> [f64; 3] {
    std::array::from_fn(|a| {
        let (angle, h) = (wave[a] * width[a], width[a]);
        match order {
            2 => angle.sin() / h,
            4 => (8.0 * angle.sin() - (2.0 * angle).sin()) / (6.0 * h),
            _ => panic!("central differences have order 2 or 4 here, not {order}"),
        }
    })
}

/// What the mean over a cell leaves of a wave: the product of sin(k h/2)/(k h/2).
#[must_use]
pub fn mean_factor(wave: [f64; 3], width: [f64; 3]) -> f64 {
    let along = |a: usize| {
        let half = 0.5 * wave[a] * width[a];
        if half == 0.0 { 1.0 } else { half.sin() / half }
    };
    along(0) * along(1) * along(2)
}

impl Jeans {
    /// Square of the wave vector.
    #[must_use]
    pub fn wave_square(&self) -> f64 {
        self.wave.iter().map(|k| k * k).sum()
    }

    /// Square of the frequency, c^2 k^2 - 4 pi G rho; below 0 the wave grows with the rate `sqrt(-square)`.
    #[must_use]
    pub fn square(&self) -> f64 {
        self.sound.powi(2) * self.wave_square() - 4.0 * PI * self.gravity * self.density
    }

    /// The same where gravity alone is of differences: the potential by the Laplacian with seven points, its slope by central
    /// differences of order 2 or 4, on cells of the widths `width`. Both act on means over cells as on values, and the part of the
    /// acceleration across the wave moves no mass: c^2 k^2 - 4 pi G rho (k . D)/L with D of [`gradient`] and L of [`laplacian`].
    #[must_use]
    pub fn square_of_differences(&self, width: [f64; 3], order: u8) -> f64 {
        let differences = gradient(self.wave, width, order);
        let along: f64 = (0..3).map(|a| self.wave[a] * differences[a]).sum();
        let pull = 4.0 * PI * self.gravity * self.density * along / laplacian(self.wave, width);
        self.sound.powi(2) * self.wave_square() - pull
    }

    /// The state at `x` and time `t`, to first order in the amplitude.
    #[must_use]
    pub fn state(&self, x: [f64; 3], t: f64) -> JeansState {
        self.state_with(1.0, x, t)
    }

    /// Means of the state over the cell around `x`.
    #[must_use]
    pub fn mean(&self, x: [f64; 3], width: [f64; 3], t: f64) -> JeansState {
        self.state_with(mean_factor(self.wave, width), x, t)
    }

    fn state_with(&self, factor: f64, x: [f64; 3], t: f64) -> JeansState {
        let phase = self.wave[0] * x[0] + self.wave[1] * x[1] + self.wave[2] * x[2];
        let (k_square, size) = (self.wave_square(), factor * self.amplitude);
        let [contrast, slope, flow] = self.course(self.square(), phase, t);
        let velocity = flow * size / k_square;
        let pull = 4.0 * PI * self.gravity * self.density * size / k_square;
        let pressure = self.sound.powi(2) * self.density / self.gamma;
        JeansState {
            density: self.density * (1.0 + size * contrast),
            velocity: self.wave.map(|k| k * velocity),
            pressure: pressure * (1.0 + self.gamma * size * contrast),
            potential: -pull * contrast,
            acceleration: self.wave.map(|k| k * pull * slope),
        }
    }

    /// Of amplitude 1: the relative density, its derivative by the phase, and the velocity times k, whose derivative by the phase is minus
    /// the density's by time.
    fn course(&self, square: f64, phase: f64, t: f64) -> [f64; 3] {
        let (sin, cos) = phase.sin_cos();
        let rate = square.abs().sqrt();
        let angle = rate * t;
        match (self.motion, square >= 0.0) {
            (Motion::FromRest, true) => {
                let now = angle.cos();
                [now * cos, -now * sin, rate * angle.sin() * sin]
            }
            (Motion::FromRest, false) => {
                let now = angle.cosh();
                [now * cos, -now * sin, -rate * angle.sinh() * sin]
            }
            (Motion::Running, true) => {
                let (sin, cos) = (phase - angle).sin_cos();
                [cos, -sin, rate * cos]
            }
            (Motion::Running, false) => {
                let now = angle.exp();
                [now * cos, -now * sin, -rate * now * sin]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A turned wave whose square of the frequency is 12.1 or, with a slow sound, -10.5.
    fn wave(sound: f64, motion: Motion) -> Jeans {
        Jeans {
            gravity: 0.7,
            density: 1.3,
            sound,
            gamma: 1.4,
            wave: wave_vector([2, -1, 1], [3.0, 2.0, 4.0]),
            amplitude: 1e-3,
            motion,
        }
    }

    fn waves() -> [Jeans; 4] {
        let both = [Motion::FromRest, Motion::Running];
        let [a, b] = both.map(|motion| wave(0.9, motion));
        let [c, d] = both.map(|motion| wave(0.2, motion));
        assert!(
            a.square() > 1.0 && c.square() < -1.0,
            "{} {}",
            a.square(),
            c.square()
        );
        [a, b, c, d]
    }

    /// The derivative of `f` at 0.
    fn slope(f: impl Fn(f64) -> f64) -> f64 {
        let h = 1e-3;
        (8.0 * (f(h) - f(-h)) - f(2.0 * h) + f(-2.0 * h)) / (12.0 * h)
    }

    fn shifted(mut x: [f64; 3], axis: usize, d: f64) -> [f64; 3] {
        x[axis] += d;
        x
    }

    /// Continuity, Euler's and Poisson's equation, to first order in the amplitude.
    #[test]
    fn the_linear_equations_hold() {
        let (x, t) = ([0.3, 0.8, -0.4], 0.37);
        for wave in waves() {
            let here = wave.state(x, t);
            let along = |axis: usize, of: &dyn Fn(JeansState) -> f64| {
                slope(|d| of(wave.state(shifted(x, axis, d), t)))
            };
            let flow: f64 = (0..3).map(|a| along(a, &|s| s.velocity[a])).sum();
            let change = slope(|d| wave.state(x, t + d).density);
            let scale = wave.amplitude * 10.0;
            assert!(
                (change + wave.density * flow).abs() < 1e-8 * scale,
                "{wave:?}"
            );
            let mut laplacian = 0.0;
            for a in 0..3 {
                let change = slope(|d| wave.state(x, t + d).velocity[a]);
                let push = -along(a, &|s| s.pressure) / wave.density + here.acceleration[a];
                assert!((change - push).abs() < 1e-8 * scale, "{wave:?}");
                assert!((here.acceleration[a] + along(a, &|s| s.potential)).abs() < 1e-8 * scale);
                laplacian -= along(a, &|s| s.acceleration[a]);
            }
            let source = 4.0 * PI * wave.gravity * (here.density - wave.density);
            assert!(
                (laplacian - source).abs() < 1e-8 * scale,
                "{wave:?} {laplacian} {source}"
            );
            assert!(
                (here.pressure / here.density.powf(wave.gamma) * wave.density.powf(wave.gamma)
                    / (wave.sound.powi(2) * wave.density / wave.gamma)
                    - 1.0)
                    .abs()
                    < 10.0 * wave.amplitude.powi(2)
            );
        }
    }

    /// Differences of a wave on a grid of cells are what the factors say.
    #[test]
    fn differences_have_their_factors() {
        let wave = wave(0.9, Motion::Running);
        let (width, x) = ([0.15, 0.1, 0.2], [0.31, 0.77, -0.2]);
        let at = |shift: [f64; 3]| {
            wave.mean(
                std::array::from_fn(|a| x[a] + shift[a] * width[a]),
                width,
                0.2,
            )
        };
        let here = at([0.0; 3]);
        let step = |axis: usize, n: f64| at(shifted([0.0; 3], axis, n)).potential;
        let mut sum = 0.0;
        for a in 0..3 {
            sum += (step(a, 1.0) + step(a, -1.0) - 2.0 * here.potential) / width[a].powi(2);
            let two = (step(a, 1.0) - step(a, -1.0)) / (2.0 * width[a]);
            let four = (8.0 * (step(a, 1.0) - step(a, -1.0)) - step(a, 2.0) + step(a, -2.0))
                / (12.0 * width[a]);
            for (order, found) in [(2, two), (4, four)] {
                let exact =
                    -here.acceleration[a] * gradient(wave.wave, width, order)[a] / wave.wave[a];
                assert!((found - exact).abs() < 1e-12, "{order} {a} {found} {exact}");
            }
        }
        let exact = -laplacian(wave.wave, width) * here.potential;
        assert!((sum - exact).abs() < 1e-12, "{sum} {exact}");
    }

    /// Means over cells are those of values inside: three points of Gauss and Legendre along each axis.
    #[test]
    fn means_are_means() {
        let rule = crate::gauss::legendre(3);
        let (width, x) = ([0.15, 0.1, 0.2], [0.31, 0.77, -0.2]);
        for wave in waves() {
            let mut mean = 0.0;
            for (a, b, c) in (0..27).map(|n| (rule[n % 3], rule[n / 3 % 3], rule[n / 9])) {
                let place = [a.0, b.0, c.0];
                let place = std::array::from_fn(|a| x[a] + 0.5 * width[a] * place[a]);
                mean += a.1 * b.1 * c.1 / 8.0 * wave.state(place, 0.3).density;
            }
            let found = wave.mean(x, width, 0.3).density;
            assert!(
                (mean - found).abs() < 1e-9 && (found - wave.state(x, 0.3).density).abs() > 1e-7
            );
        }
    }

    /// Both orders tend to the exact frequency with their own order, the Laplacian's second one.
    #[test]
    fn the_frequency_of_differences_converges() {
        for wave in waves() {
            let error =
                |order: u8, h: f64| wave.square_of_differences([h; 3], order) - wave.square();
            for order in [2, 4] {
                let ratio = error(order, 0.02) / error(order, 0.01);
                assert!((ratio - 4.0).abs() < 0.05, "{order} {ratio}");
            }
            // (1 - (k h)^2/6)/(1 - (k h)^2/12) against 1/(1 - (k h)^2/12): as far off, one above and one below
            let ratio = error(2, 0.01) / error(4, 0.01);
            assert!((ratio + 1.0).abs() < 0.02, "{ratio}");
        }
    }
}
