//! Exact solutions for comparisons, independent of the product's own.

/// Density, velocity, pressure on one side of a shock tube.
pub type Side = [f64; 3];

/// A wave of a shock tube: what the pressure behind it does to the velocity (Toro 2009, eqs. 4.6 and 4.7), and the
/// derivative by the pressure (eq. 4.37).
fn wave(p: f64, [rho, _, p_side]: Side, gamma: f64) -> (f64, f64) {
    let c = (gamma * p_side / rho).sqrt();
    if p > p_side {
        let a = 2.0 / ((gamma + 1.0) * rho);
        let b = (gamma - 1.0) / (gamma + 1.0) * p_side;
        let root = (a / (p + b)).sqrt();
        (
            (p - p_side) * root,
            root * (1.0 - 0.5 * (p - p_side) / (p + b)),
        )
    } else {
        let ratio = p / p_side;
        let power = (gamma - 1.0) / (2.0 * gamma);
        let f = 2.0 * c / (gamma - 1.0) * (ratio.powf(power) - 1.0);
        (f, ratio.powf(-(gamma + 1.0) / (2.0 * gamma)) / (rho * c))
    }
}

/// Pressure and velocity between the two outer waves.
fn middle(left: Side, right: Side, gamma: f64) -> (f64, f64) {
    let mut p = (0.5 * (left[2] + right[2])).max(1e-12);
    for _ in 0..100 {
        let ((f_l, d_l), (f_r, d_r)) = (wave(p, left, gamma), wave(p, right, gamma));
        let next = (p - (f_l + f_r + right[1] - left[1]) / (d_l + d_r)).max(1e-3 * p);
        let change = (next - p).abs();
        p = next;
        if change < 1e-15 * p {
            break;
        }
    }
    let velocity = 0.5 * (left[1] + right[1] + wave(p, right, gamma).0 - wave(p, left, gamma).0);
    (p, velocity)
}

/// The state at `xi` = (x - jump)/t of the wave that runs into `side`, seen as if that side were the left one.
fn into_left(xi: f64, side: Side, (p, u): (f64, f64), gamma: f64) -> Side {
    let [rho, v, p_side] = side;
    let c = (gamma * p_side / rho).sqrt();
    let ratio = p / p_side;
    let quotient = (gamma - 1.0) / (gamma + 1.0);
    if p > p_side {
        let shock =
            v - c * ((gamma + 1.0) / (2.0 * gamma) * ratio + (gamma - 1.0) / (2.0 * gamma)).sqrt();
        let behind = rho * (ratio + quotient) / (quotient * ratio + 1.0);
        return if xi < shock { side } else { [behind, u, p] };
    }
    let c_behind = c * ratio.powf((gamma - 1.0) / (2.0 * gamma));
    if xi < v - c {
        return side;
    }
    if xi > u - c_behind {
        return [rho * ratio.powf(1.0 / gamma), u, p];
    }
    let relative = 2.0 / (gamma + 1.0) + quotient / c * (v - xi);
    let speed = 2.0 / (gamma + 1.0) * (c + 0.5 * (gamma - 1.0) * v + xi);
    let pressure = p_side * relative.powf(2.0 * gamma / (gamma - 1.0));
    [rho * relative.powf(2.0 / (gamma - 1.0)), speed, pressure]
}

/// The shock tube's state at `xi` = (x - jump)/t (Toro 2009, section 4.5).
#[must_use]
pub fn shock_tube(xi: f64, left: Side, right: Side, gamma: f64) -> Side {
    let (p, u) = middle(left, right, gamma);
    if xi < u {
        return into_left(xi, left, (p, u), gamma);
    }
    let mirrored = |[rho, v, p]: Side| [rho, -v, p];
    mirrored(into_left(-xi, mirrored(right), (p, -u), gamma))
}

/// Mean of the conserved state of a shock tube over the cell from `low` to `high` at time `t`: density, momentum along
/// the tube, energy. Midpoints of 64 parts.
#[must_use]
pub fn shock_tube_mean(
    low: f64,
    high: f64,
    t: f64,
    left: Side,
    right: Side,
    gamma: f64,
) -> [f64; 3] {
    let parts = 64;
    let mut mean = [0.0; 3];
    for n in 0..parts {
        let x = low + (high - low) * (f64::from(n) + 0.5) / f64::from(parts);
        let [rho, v, p] = shock_tube(x / t, left, right, gamma);
        let u = [rho, rho * v, p / (gamma - 1.0) + 0.5 * rho * v * v];
        for (sum, value) in mean.iter_mut().zip(u) {
            *sum += value / f64::from(parts);
        }
    }
    mean
}

/// Returns the density at distance `r` from the centre of a point explosion whose shock has the radius `shock`, for gamma = 1.4 in a medium
/// of density 1 (Landau & Lifshitz, Fluid Mechanics, section 106).
pub fn sedov_density(r: f64, shock: f64) -> f64 {
    if r > shock {
        return 1.0;
    }
    let g = 1.4_f64;
    let nu_1 = -(13.0 * g * g - 7.0 * g + 12.0) / ((3.0 * g - 1.0) * (2.0 * g + 1.0));
    // radius (to the fifth power) and density as functions of the scaled velocity v
    let at = |v: f64| {
        let a = (g + 1.0) / (7.0 - g) * (5.0 - (3.0 * g - 1.0) * v);
        let b = (g + 1.0) / (g - 1.0) * (g * v - 1.0);
        let c = (g + 1.0) / (g - 1.0) * (1.0 - v);
        let radius = (0.5 * (g + 1.0) * v).powi(-2)
            * a.powf(nu_1)
            * b.powf(5.0 * (g - 1.0) / (2.0 * g + 1.0));
        let density =
            b.powf(3.0 / (2.0 * g + 1.0)) * a.powf(-nu_1 / (2.0 - g)) * c.powf(-2.0 / (2.0 - g));
        [radius, (g + 1.0) / (g - 1.0) * density]
    };
    let (mut low, mut high) = (1.0 / g, 2.0 / (g + 1.0));
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if at(middle)[0] < (r / shock).powi(5) {
            low = middle;
        } else {
            high = middle;
        }
    }
    at(high)[1]
}

/// Radius of the shock of a point explosion of energy `energy` (Sedov 1959) in a medium of density `density` for
/// gamma = 1.4.
#[must_use]
pub fn sedov_radius(energy: f64, density: f64, t: f64) -> f64 {
    1.032_78 * (energy * t * t / density).powf(0.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_density_of_a_point_explosion_has_its_limits_and_its_mass() {
        assert!((sedov_density(1.0, 1.0) - 6.0).abs() < 1e-9);
        assert!(sedov_density(1e-2, 1.0) < 1e-6);
        let cells = 4000;
        let shell = |n| {
            let r = (f64::from(n) + 0.5) / f64::from(cells);
            3.0 * r * r * sedov_density(r, 1.0) / f64::from(cells)
        };
        let mass: f64 = (0..cells).map(shell).sum();
        assert!((mass - 1.0).abs() < 1e-3, "{mass}");
    }

    /// Star pressures and velocities of Toro 2009, table 4.3, tests 1, 2, 3 and 5.
    #[test]
    fn star_values_are_toros() {
        let cases = [
            ([1.0, 0.0, 1.0], [0.125, 0.0, 0.1], 0.30313, 0.92745),
            ([1.0, -2.0, 0.4], [1.0, 2.0, 0.4], 0.00189, 0.0),
            ([1.0, 0.0, 1000.0], [1.0, 0.0, 0.01], 460.894, 19.5975),
            (
                [5.99924, 19.5975, 460.894],
                [5.99242, -6.19633, 46.0950],
                1691.64,
                8.68975,
            ),
        ];
        for (left, right, p, u) in cases {
            let (pressure, velocity) = middle(left, right, 1.4);
            assert!((pressure - p).abs() <= 1e-4 * p + 5e-6, "{pressure} {p}");
            assert!(
                (velocity - u).abs() <= 1e-5 * u.abs() + 1e-5,
                "{velocity} {u}"
            );
        }
    }
}
