//! The homogeneous universe: scale factor, age and growing mode as functions of the comoving time.
//!
//! The comoving time tau is defined by `d tau = H0 dt / a^2` (Martel & Shapiro 1998, MNRAS 297, 467). All functions come from one table
//! with steps of 1/64 in the logarithm of the scale factor; between its entries the integrals are evaluated by Gauss-Legendre
//! quadrature, so that no time step enters.

use nestar_device::math::{exp, ln, pow, sqrt};

/// Density parameters today, and the equation of state of dark energy `w = w0 + wa (1 - a)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DensityParameters {
    /// Matter.
    pub matter: f64,
    /// Dark energy.
    pub dark_energy: f64,
    /// Radiation.
    pub radiation: f64,
    /// Equation of state of dark energy today.
    pub w0: f64,
    /// Its derivative by the scale factor, with the opposite sign.
    pub wa: f64,
}

impl DensityParameters {
    /// Returns the square of the Hubble rate over its value today. It may be negative where the universe has never been.
    #[must_use]
    pub fn hubble_squared(&self, a: f64) -> f64 {
        let curvature = 1.0 - self.matter - self.dark_energy - self.radiation;
        let (per_area, per_volume) = (1.0 / (a * a), 1.0 / (a * a * a));
        let exponent = -3.0 * (1.0 + self.w0 + self.wa);
        let mut dark = self.dark_energy;
        if exponent != 0.0 {
            dark *= pow(a, exponent);
        }
        if self.wa != 0.0 {
            dark *= exp(-3.0 * self.wa * (1.0 - a));
        }
        self.radiation * per_area * per_area
            + self.matter * per_volume
            + curvature * per_area
            + dark
    }

    /// Returns the age at an early time, when matter and radiation dominate, in Hubble times.
    fn early_age(&self, a: f64) -> f64 {
        let (m, r) = (self.matter, self.radiation);
        let root = sqrt(m * a + r);
        2.0 / (3.0 * m * m) * ((m * a - 2.0 * r) * root + 2.0 * r * sqrt(r))
    }
}

/// An entry of the table.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// Logarithm of the scale factor.
    x: f64,
    /// Comoving time since the start.
    tau: f64,
    /// Age in Hubble times.
    age: f64,
    /// Growing mode of matter over the scale factor.
    growth: f64,
    /// Logarithmic derivative of the growing mode by the scale factor.
    slope: f64,
    /// Growth of the second order over the square of the growing mode.
    second: f64,
    /// Derivative of this ratio by the logarithm of the scale factor.
    second_slope: f64,
}

/// Scale factor, age and growing mode as functions of the comoving time since the start.
#[derive(Clone, Debug)]
pub struct Background {
    parameters: DensityParameters,
    nodes: Vec<Node>,
}

/// Step of the table in the logarithm of the scale factor.
const STEP: f64 = 1.0 / 64.0;
/// Logarithm of the scale factor at the begin of the table, about 1e-6.
const EARLIEST: f64 = -13.8;
/// The table ends by this much later than the run and than today, in the logarithm of the scale factor.
const BEYOND: f64 = 0.25;
/// Steps of the growing mode between two entries.
const GROWTH_STEPS: usize = 8;
/// Growth of the second order over the square of the growing mode while matter dominates.
const EARLY_SECOND: f64 = -3.0 / 7.0;

/// Positive abscissas and weights of the Gauss-Legendre quadrature with eight points.
const GAUSS: [[f64; 2]; 4] = [
    [0.183_434_642_495_649_8, 0.362_683_783_378_362],
    [0.525_532_409_916_329, 0.313_706_645_877_887_3],
    [0.796_666_477_413_626_7, 0.222_381_034_453_374_48],
    [0.960_289_856_497_536_3, 0.101_228_536_290_376_26],
];

/// Returns the integral of `f` from `from` to `to`.
pub(super) fn integral(from: f64, to: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
    let pairs = GAUSS.map(|[x, weight]| weight * (f(middle - half * x) + f(middle + half * x)));
    half * pairs.into_iter().sum::<f64>()
}

impl Background {
    /// Computes the table for a run between two scale factors. It contains today, at which spectra are given.
    ///
    /// # Errors
    /// Returns the scale factor at which the universe stops expanding (turnaround), if that is not after `end`.
    pub fn new(parameters: DensityParameters, start: f64, end: f64) -> Result<Self, f64> {
        let first = ln(start);
        let before = ((first - EARLIEST) / STEP).ceil().max(1.0) as i32;
        let last = ln(end).max(0.0) + BEYOND;
        let after = ((last - first) / STEP).ceil() as i32;
        let mut nodes: Vec<Node> = Vec::new();
        for n in -before..=after {
            let x = first + f64::from(n) * STEP;
            let a = exp(x);
            if parameters.hubble_squared(a) <= 0.0 {
                if a <= end * (1.0 + STEP) {
                    return Err(a);
                }
                break;
            }
            nodes.push(Node {
                x,
                tau: 0.0,
                age: 0.0,
                growth: 0.0,
                slope: 0.0,
                second: 0.0,
                second_slope: 0.0,
            });
        }
        let mut table = Self { parameters, nodes };
        table.integrate_times(before as usize);
        table.integrate_growth();
        Ok(table)
    }

    /// Computes times; entry `start` has the comoving time 0.
    fn integrate_times(&mut self, start: usize) {
        let tau = |from: f64, to: f64| integral(from, to, |x| self.per_tau(x));
        let steps: Vec<f64> = (self.nodes.windows(2))
            .map(|pair| tau(pair[0].x, pair[1].x))
            .collect();
        let ages: Vec<f64> = (self.nodes.windows(2))
            .map(|pair| integral(pair[0].x, pair[1].x, |x| self.per_age(x)))
            .collect();
        for n in (0..start).rev() {
            self.nodes[n].tau = self.nodes[n + 1].tau - steps[n];
        }
        for n in start..steps.len() {
            self.nodes[n + 1].tau = self.nodes[n].tau + steps[n];
        }
        self.nodes[0].age = self.parameters.early_age(exp(self.nodes[0].x));
        for (n, step) in ages.into_iter().enumerate() {
            self.nodes[n + 1].age = self.nodes[n].age + step;
        }
    }

    /// Integrates the growing mode `D'' = 3/2 Omega_m a D` and the growth of the second order `D2'' = 3/2 Omega_m a (D2 - D^2)` by the
    /// Runge-Kutta method of fourth order; the prime is the derivative by the comoving time. The growing mode begins with the solution
    /// for matter and radiation (Meszaros 1974), which is `a` without radiation, and `D2/D^2` with its value in matter, -3/7.
    fn integrate_growth(&mut self) {
        let DensityParameters {
            matter, radiation, ..
        } = self.parameters;
        let a = exp(self.nodes[0].x);
        let mut mode = [
            a + 2.0 / 3.0 * radiation / matter,
            a / self.per_tau(self.nodes[0].x),
            EARLY_SECOND,
            0.0,
        ];
        self.nodes[0].growth = mode[0] / a;
        self.nodes[0].slope = mode[1] * self.per_tau(self.nodes[0].x) / mode[0];
        self.nodes[0].second = EARLY_SECOND;
        for n in 1..self.nodes.len() {
            let h = STEP / GROWTH_STEPS as f64;
            for step in 0..GROWTH_STEPS {
                mode = self.grown(mode, self.nodes[n - 1].x + h * step as f64, h);
            }
            let x = self.nodes[n].x;
            self.nodes[n].growth = mode[0] / exp(x);
            self.nodes[n].slope = mode[1] * self.per_tau(x) / mode[0];
            self.nodes[n].second = mode[2];
            self.nodes[n].second_slope = mode[3] * self.per_tau(x);
        }
    }

    /// Advances the growing mode `D`, the ratio `D2/D^2` and their derivatives by the comoving time, `[D, D', ratio, ratio']`, over a step
    /// in the logarithm of the scale factor. The ratio follows from both equations, and is constant while matter dominates.
    fn grown(&self, mode: [f64; 4], x: f64, h: f64) -> [f64; 4] {
        let rate = |x: f64, [value, slope, ratio, change]: [f64; 4]| {
            let per_tau = self.per_tau(x);
            let strength = 1.5 * self.parameters.matter * exp(x);
            let force = strength * value;
            let log_slope = slope / value;
            let second = -strength * (1.0 + ratio)
                - 2.0 * ratio * log_slope * log_slope
                - 4.0 * log_slope * change;
            [slope, force, change, second].map(|rate| rate * per_tau)
        };
        let moved = |by: [f64; 4], h: f64| [0, 1, 2, 3].map(|n| mode[n] + h * by[n]);
        let k1 = rate(x, mode);
        let k2 = rate(x + 0.5 * h, moved(k1, 0.5 * h));
        let k3 = rate(x + 0.5 * h, moved(k2, 0.5 * h));
        let k4 = rate(x + h, moved(k3, h));
        [0, 1, 2, 3].map(|n| mode[n] + h / 6.0 * (k1[n] + 2.0 * k2[n] + 2.0 * k3[n] + k4[n]))
    }

    /// Returns the derivative of the comoving time by the logarithm of the scale factor.
    fn per_tau(&self, x: f64) -> f64 {
        let a = exp(x);
        1.0 / (a * a * sqrt(self.parameters.hubble_squared(a)))
    }

    /// Returns the derivative of the age by the logarithm of the scale factor.
    fn per_age(&self, x: f64) -> f64 {
        1.0 / sqrt(self.parameters.hubble_squared(exp(x)))
    }

    /// Returns the last entry that `is_before`, or the first one.
    fn node(&self, is_before: impl Fn(&Node) -> bool) -> &Node {
        let after = self.nodes.partition_point(is_before);
        &self.nodes[after.saturating_sub(1)]
    }

    /// Returns the comoving time since the start at the scale factor `a`, or at the end of the table, which is later than the run.
    #[must_use]
    pub fn time_of(&self, a: f64) -> f64 {
        let last = self.nodes.last().map_or(0.0, |node| node.x);
        let x = ln(a).min(last);
        let node = self.node(|node| node.x <= x);
        node.tau + integral(node.x, x, |x| self.per_tau(x))
    }

    /// Returns the logarithm of the scale factor at the comoving time `tau` since the start, by Newton's method.
    fn log_scale_factor(&self, tau: f64) -> f64 {
        let node = self.node(|node| node.tau <= tau);
        let mut x = node.x;
        for _ in 0..20 {
            let missing = tau - node.tau - integral(node.x, x, |x| self.per_tau(x));
            let by = missing / self.per_tau(x);
            x += by;
            if by.abs() < 1e-15 {
                break;
            }
        }
        x
    }

    /// Returns the scale factor at the comoving time `tau` since the start.
    #[must_use]
    pub fn scale_factor(&self, tau: f64) -> f64 {
        exp(self.log_scale_factor(tau))
    }

    /// Returns scale factor and age, in Hubble times, at the comoving time `tau` since the start.
    #[must_use]
    pub fn scale_factor_and_age(&self, tau: f64) -> [f64; 2] {
        let x = self.log_scale_factor(tau);
        let node = self.node(|node| node.x <= x);
        let age = node.age + integral(node.x, x, |x| self.per_age(x));
        [exp(x), age]
    }

    /// Returns the Hubble rate over its value today at the scale factor `a`.
    #[must_use]
    pub fn hubble(&self, a: f64) -> f64 {
        sqrt(self.parameters.hubble_squared(a))
    }

    /// Returns the critical density at the scale factor `a` in units of the mean density of matter at that time.
    #[must_use]
    pub fn critical_density(&self, a: f64) -> f64 {
        self.parameters.hubble_squared(a) * (a * a * a) / self.parameters.matter
    }

    /// Returns the growing mode of matter at the scale factor `a`: it equals `a` while matter dominates. Between the
    /// entries of the table, its ratio to `a` is interpolated by cubic polynomials.
    #[must_use]
    pub fn growth(&self, a: f64) -> f64 {
        a * self.interpolated(ln(a), |node| node.growth)
    }

    /// Returns the logarithmic derivative of the growing mode by the comoving time at the scale factor `a`.
    #[must_use]
    pub fn growth_rate(&self, a: f64) -> f64 {
        let x = ln(a);
        self.interpolated(x, |node| node.slope) / self.per_tau(x)
    }

    /// Returns the growth of the second order over the square of the growing mode at the scale factor `a` (Bouchet et al. 1995, A&A 296,
    /// 575): -3/7 while matter dominates.
    #[must_use]
    pub fn second_growth(&self, a: f64) -> f64 {
        self.interpolated(ln(a), |node| node.second)
    }

    /// Returns the logarithmic derivative of the growth of the second order by the comoving time at the scale factor `a`.
    #[must_use]
    pub fn second_growth_rate(&self, a: f64) -> f64 {
        let x = ln(a);
        let of_ratio = self.interpolated(x, |node| node.second_slope / node.second);
        2.0 * self.growth_rate(a) + of_ratio / self.per_tau(x)
    }

    /// Interpolates numbers of the table at the logarithm of a scale factor, by cubic polynomials.
    fn interpolated(&self, x: f64, number: impl Fn(&Node) -> f64) -> f64 {
        let after = self.nodes.partition_point(|node| node.x <= x);
        let first = after.saturating_sub(2).min(self.nodes.len() - 4);
        let near = &self.nodes[first..first + 4];
        let weight = |n: usize| {
            let others = (0..4).filter(|&m| m != n);
            let factors = others.map(|m| (x - near[m].x) / (near[n].x - near[m].x));
            factors.product::<f64>()
        };
        (0..4).map(|n| weight(n) * number(&near[n])).sum()
    }
}
