//! Exact solution of the Riemann problem of an ideal gas (Toro 2009, ch. 4), at points and averaged over cells, and
//! the jump conditions of a shock.

use super::integral;
use nestar_device::math::pow;
use nestar_kernels::hydro::riemann::exact;
use nestar_kernels::hydro::sound_speed;
use nestar_systems::hydro::Primitive;

/// Two uniform states separated by a discontinuity at 0 at time 0; a state is `[density, velocity, pressure]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RiemannProblem {
    /// State below 0.
    pub left: [f64; 3],
    /// State above 0.
    pub right: [f64; 3],
    /// Ratio of specific heats.
    pub gamma: f64,
}

/// A shock tube from 0 to 1 with gamma = 1.4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tube {
    /// State below `position`.
    pub left: [f64; 3],
    /// State above `position`.
    pub right: [f64; 3],
    /// Position of the discontinuity.
    pub position: f64,
    /// Time of the published figures.
    pub end: f64,
}

const fn tube(left: [f64; 3], right: [f64; 3], position: f64, end: f64) -> Tube {
    Tube {
        left,
        right,
        position,
        end,
    }
}

/// Toro's tests (2009, table 6.2; 6 and 7: section 10.8, contacts at rest and in slow motion).
pub const TORO: [Tube; 7] = [
    tube([1.0, 0.75, 1.0], [0.125, 0.0, 0.1], 0.3, 0.2),
    tube([1.0, -2.0, 0.4], [1.0, 2.0, 0.4], 0.5, 0.15),
    tube([1.0, 0.0, 1000.0], [1.0, 0.0, 0.01], 0.5, 0.012),
    tube(
        [5.99924, 19.5975, 460.894],
        [5.99242, -6.19633, 46.0950],
        0.4,
        0.035,
    ),
    tube([1.0, -19.59745, 1000.0], [1.0, -19.59745, 0.01], 0.8, 0.012),
    tube([1.4, 0.0, 1.0], [1.0, 0.0, 1.0], 0.5, 2.0),
    tube([1.4, 0.1, 1.0], [1.0, 0.1, 1.0], 0.5, 2.0),
];

impl RiemannProblem {
    /// Returns the state at position `x` and time `t`; for `t <= 0`, the initial state.
    #[must_use]
    pub fn at(&self, x: f64, t: f64) -> [f64; 3] {
        if t <= 0.0 {
            return if x < 0.0 { self.left } else { self.right };
        }
        exact::sample(&self.left, &self.right, x / t, self.gamma).0
    }

    /// Returns density, momentum and total energy at `x` and `t`.
    #[must_use]
    pub fn conserved(&self, x: f64, t: f64) -> [f64; 3] {
        let [density, velocity, pressure] = self.at(x, t);
        let energy = pressure / (self.gamma - 1.0) + 0.5 * density * velocity * velocity;
        [density, density * velocity, energy]
    }

    /// Returns the averages of density, momentum and total energy from `a` to `b` at time `t`. The interval is split at
    /// the waves, so each integrand is smooth.
    #[must_use]
    pub fn average(&self, a: f64, b: f64, t: f64) -> [f64; 3] {
        let mut breakpoints = vec![a, b];
        breakpoints.extend(
            self.waves()
                .iter()
                .map(|s| s * t)
                .filter(|x| (a..b).contains(x)),
        );
        breakpoints.sort_unstable_by(f64::total_cmp);
        let mut sum = [0.0; 3];
        for pair in breakpoints.windows(2) {
            let part = integral(pair[0], pair[1], |x| self.conserved(x, t));
            for (s, p) in sum.iter_mut().zip(part) {
                *s += p / (b - a);
            }
        }
        sum
    }

    /// Returns the speeds of all waves in ascending order: left shock, or head and tail of the left rarefaction; contact;
    /// the same on the right. If a vacuum forms, its two edges replace the contact.
    #[must_use]
    pub fn waves(&self) -> Vec<f64> {
        let g = self.gamma;
        let (l, r) = (&self.left, &self.right);
        let (c_l, c_r) = (sound_speed(l[0], l[2], g), sound_speed(r[0], r[2], g));
        if 2.0 * (c_l + c_r) / (g - 1.0) <= r[1] - l[1] {
            let edges = [l[1] + 2.0 * c_l / (g - 1.0), r[1] - 2.0 * c_r / (g - 1.0)];
            return vec![l[1] - c_l, edges[0], edges[1], r[1] + c_r];
        }
        let (p, u) = exact::star(l, r, g);
        let mut speeds = left_wave(l, c_l, p, u, g);
        speeds.push(u);
        let mirrored = [r[0], -r[1], r[2]];
        speeds.extend(left_wave(&mirrored, c_r, p, -u, g).iter().rev().map(|s| -s));
        speeds
    }
}

/// Returns the speeds of the left wave, between the state `w` and the star region.
fn left_wave(w: &[f64; 3], c: f64, p: f64, u: f64, g: f64) -> Vec<f64> {
    let ratio = p / w[2];
    if p > w[2] {
        let root = ((g + 1.0) / (2.0 * g) * ratio + (g - 1.0) / (2.0 * g)).sqrt();
        vec![w[1] - c * root]
    } else {
        vec![w[1] - c, u - c * pow(ratio, (g - 1.0) / (2.0 * g))]
    }
}

/// A plane shock that moves along x into gas at rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shock {
    /// Upstream density.
    pub density: f64,
    /// Upstream pressure.
    pub pressure: f64,
    /// Mach number, at least 1.
    pub mach: f64,
    /// Ratio of specific heats.
    pub gamma: f64,
}

impl Shock {
    /// Returns the speed of the shock.
    #[must_use]
    pub fn speed(&self) -> f64 {
        self.mach * (self.gamma * self.pressure / self.density).sqrt()
    }

    /// Returns the state upstream of the shock.
    #[must_use]
    pub fn ambient(&self) -> Primitive {
        Primitive {
            density: self.density,
            velocity: [0.0; 3],
            pressure: self.pressure,
        }
    }

    /// Returns the postshock state from the Rankine-Hugoniot conditions (Toro 2009, eqs. 3.57-3.60).
    #[must_use]
    pub fn postshock(&self) -> Primitive {
        let (g, square) = (self.gamma, self.mach * self.mach);
        let compression = (g + 1.0) * square / ((g - 1.0) * square + 2.0);
        Primitive {
            density: self.density * compression,
            velocity: [self.speed() * (1.0 - 1.0 / compression), 0.0, 0.0],
            pressure: self.pressure * (2.0 * g * square - (g - 1.0)) / (g + 1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Toro 2009, tables 4.1 and 4.2: left state, right state, and pressure, velocity and two densities of the star region.
    const TABLE: [([f64; 3], [f64; 3], [f64; 4]); 5] = [
        (
            [1.0, 0.0, 1.0],
            [0.125, 0.0, 0.1],
            [0.30313, 0.92745, 0.42632, 0.26557],
        ),
        (
            TORO[1].left,
            TORO[1].right,
            [0.00189, 0.0, 0.02185, 0.02185],
        ),
        (
            TORO[2].left,
            TORO[2].right,
            [460.894, 19.5975, 0.57506, 5.99924],
        ),
        (
            [1.0, 0.0, 0.01],
            [1.0, 0.0, 100.0],
            [46.0950, -6.19633, 5.99242, 0.57511],
        ),
        (
            TORO[3].left,
            TORO[3].right,
            [1691.64, 8.68975, 14.2823, 31.0426],
        ),
    ];

    #[test]
    fn star_states_are_those_of_toros_table() {
        for (n, (left, right, [p, u, below, above])) in TABLE.into_iter().enumerate() {
            let problem = RiemannProblem {
                left,
                right,
                gamma: 1.4,
            };
            let (w, v) = (problem.at(u - 1e-3, 1.0), problem.at(u + 1e-3, 1.0));
            let near = |a: f64, b: f64| (a - b).abs() <= 6e-6 * b.abs().max(1.0);
            assert!(near(w[2], p), "test {}: {w:?}", n + 1);
            // test 2 has a fan whose velocity changes through the contact's neighbourhood
            assert!(near(w[1], u) || n == 1, "test {}: {w:?}", n + 1);
            assert!(
                near(w[0], below) && near(v[0], above),
                "test {}: {w:?} {v:?}",
                n + 1
            );
        }
    }

    #[test]
    fn averages_obey_the_conservation_laws() {
        for n in 0..TORO.len() {
            let problem = RiemannProblem {
                left: TORO[n].left,
                right: TORO[n].right,
                gamma: 1.4,
            };
            let (t, reach) = (0.01, 1.0);
            let found = problem.average(-reach, reach, t);
            let flux = |w: [f64; 3]| {
                let energy = w[2] / 0.4 + 0.5 * w[0] * w[1] * w[1];
                [
                    w[0] * w[1],
                    w[0] * w[1] * w[1] + w[2],
                    w[1] * (energy + w[2]),
                ]
            };
            let (below, above) = (problem.conserved(-1.0, 0.0), problem.conserved(1.0, 0.0));
            let (inflow, outflow) = (flux(problem.left), flux(problem.right));
            for c in 0..3 {
                let wanted =
                    0.5 * (below[c] + above[c]) + (inflow[c] - outflow[c]) * t / (2.0 * reach);
                let scale = below[c].abs() + above[c].abs() + 1.0;
                assert!(
                    (found[c] - wanted).abs() < 1e-6 * scale,
                    "test {}: {c}",
                    n + 1
                );
            }
        }
    }

    #[test]
    fn the_postshock_state_at_mach_10_is_that_of_the_double_mach_reflection() {
        let shock = Shock {
            density: 1.4,
            pressure: 1.0,
            mach: 10.0,
            gamma: 1.4,
        };
        let postshock = shock.postshock();
        assert!((postshock.density - 8.0).abs() < 1e-13);
        assert!((postshock.velocity[0] - 8.25).abs() < 1e-13);
        assert!((postshock.pressure - 116.5).abs() < 1e-12);
        assert_eq!(shock.speed(), 10.0);
    }
}
