//! Gas with a power law of entropy in hydrostatic equilibrium in a given potential.

use super::error::{SphereError, in_range, positive};
use super::radial_function::{CELLS, LocalDensity, Radial, RadialFunction, RadialGrid};
use nestar_device::math::{exp, ln, pow};
use std::f64::consts::PI;

/// Most steps of the secant method for the entropy scale; about ten are enough.
const STEPS: usize = 60;
/// Rate at which the gas fraction becomes constant beyond the end of the gas, per unit of ln radius.
const SETTLE: f64 = 4.0;

/// Parameters of the gas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entropy {
    /// Radius of the power law, length, above 0: `P/density^gamma` is proportional to `core +
    /// (r/radius)^slope`.
    pub radius: f64,
    /// Exponent, not negative.
    pub slope: f64,
    /// Value at the centre, not negative.
    pub core: f64,
    /// Gas mass over total mass, both within `radius`; between 0 and 1.
    pub share: f64,
    /// Ratio of specific heats, above 1.
    pub gamma: f64,
}

/// Gas with this entropy (ZuHone, ApJ 728, 54 (2011), section 2.1).
///
/// With `u = P^((gamma - 1)/gamma)` hydrostatic equilibrium, `dP/dr = -density g`, becomes `du/dr = -(gamma -
/// 1)/gamma K^(-1/gamma) g`, which is integrated. The scale of the entropy `K` follows from the gas mass.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EntropyGas<P> {
    total: P,
    gravity: f64,
    law: Entropy,
    /// Radius within which the mass is negligible.
    core: f64,
    /// Radius at which the gas ends.
    end: f64,
    /// `K^(-1/gamma)` relative to the power law.
    scale: f64,
    /// The function `u`.
    state: RadialFunction,
    mass: RadialFunction,
    /// At the end: ln radius, ln gas fraction of the density, and the derivative of the latter by the former.
    tail: [f64; 3],
}

impl<P: Radial + Clone> EntropyGas<P> {
    /// Creates the gas in the potential of the mass `total`, with the pressure `pressure` at the radius
    /// `end`. `gravity` is Newton's constant.
    ///
    /// # Errors
    /// A parameter is out of range, or the search for the entropy scale fails.
    pub fn new(
        total: &P,
        law: Entropy,
        gravity: f64,
        [end, pressure]: [f64; 2],
    ) -> Result<Self, SphereError> {
        check(&law, end)?;
        let pressure = positive("ambient.pressure", pressure)?;
        let core = total.core();
        let grid = RadialGrid::new(core, end, CELLS);
        let outer = pow(pressure, (law.gamma - 1.0) / law.gamma);
        let mut gas = Self {
            total: total.clone(),
            gravity: in_range("gravity", gravity)?,
            law,
            core,
            end,
            scale: 1.0,
            state: RadialFunction::through(RadialGrid::new(1.0, 2.0, 1), |_| [1.0, 0.0]),
            mass: RadialFunction::through(RadialGrid::new(1.0, 2.0, 1), |_| [1.0, 0.0]),
            tail: [ln(end), 0.0, 0.0],
        };
        gas.find_scale(grid, outer)?;
        gas.state = gas.states(grid, outer);
        let local = gas.within(end);
        let all = total.local(end);
        let rise = all.steepness - local.steepness;
        gas.tail = [ln(end), ln(local.density / all.density), rise];
        let reach = total.reach().max(end);
        gas.mass = gas.masses(RadialGrid::new(core, reach, 2 * CELLS));
        Ok(gas)
    }

    /// Finds the scale that gives the wanted gas mass. The secant method works on the logarithms of scale and
    /// mass, whose slope is between 1 and `gamma/(gamma - 1)`.
    fn find_scale(&mut self, grid: RadialGrid, outer: f64) -> Result<(), SphereError> {
        let mut slope = self.law.gamma / (self.law.gamma - 1.0);
        let radius = self.law.radius;
        let wanted = ln(self.law.share * self.total.mass(radius));
        let within = RadialGrid::new(grid.radius(0), radius, CELLS);
        let mut excess = |place: f64| {
            self.scale = exp(place);
            self.state = self.states(grid, outer);
            ln(self.masses(within).value(CELLS)) - wanted
        };
        let mut place = 0.0;
        let mut error = excess(place);
        for _ in 0..STEPS {
            let step = -error / slope;
            place += step;
            let next = excess(place);
            if step.abs() < 1e-14 * place.abs().max(1.0) || next == error {
                break;
            }
            // ignore slopes dominated by round-off
            let found = (next - error) / step;
            if found.is_finite() && found >= 0.5 {
                slope = found;
            }
            error = next;
        }
        if error.abs() < 1e-9 {
            return Ok(());
        }
        let why = "cannot be reached: choose units in which masses and radii are closer to 1";
        Err(SphereError::parameter("entropy.share", why))
    }

    /// Returns `core + (r/radius)^slope` and its logarithmic slope.
    fn entropy(&self, r: f64) -> [f64; 2] {
        let power = pow(r / self.law.radius, self.law.slope);
        let sum = self.law.core + power;
        [sum, self.law.slope * power / sum]
    }

    /// Returns `-du/d ln r`.
    fn rate(&self, r: f64) -> f64 {
        let gamma = self.law.gamma;
        let [entropy, _] = self.entropy(r);
        let pull = self.gravity * self.total.mass(r) / r;
        (gamma - 1.0) / gamma * self.scale * pow(entropy, -1.0 / gamma) * pull
    }

    fn states(&self, grid: RadialGrid, outer: f64) -> RadialFunction {
        RadialFunction::inwards(grid, outer, |r| self.rate(r))
    }

    fn masses(&self, grid: RadialGrid) -> RadialFunction {
        let shell = |r: f64| 4.0 * PI * r * r * r * self.local(r).density;
        let inner = grid.radius(0);
        let within = shell(inner) / (3.0 - self.local(inner).steepness);
        RadialFunction::outwards(grid, within, shell)
    }

    /// Returns the density from `u` and the entropy relative to the power law, within the end.
    fn density_of(&self, u: f64, entropy: f64) -> f64 {
        let gamma = self.law.gamma;
        self.scale * pow(u, 1.0 / (gamma - 1.0)) * pow(entropy, -1.0 / gamma)
    }

    /// Returns the density alone, faster than [`EntropyGas::local`].
    pub fn density(&self, r: f64) -> f64 {
        if r <= self.end {
            let [entropy, _] = self.entropy(r);
            return self.density_of(self.state.at(ln(r)), entropy);
        }
        self.local(r).density
    }

    /// Returns the density within the end and its slopes.
    fn within(&self, r: f64) -> LocalDensity {
        let gamma = self.law.gamma;
        let ([entropy, slope], u) = (self.entropy(r), self.state.at(ln(r)));
        let change = self.rate(r) / u;
        let shell = 4.0 * PI * r * r * r * self.total.density(r) / self.total.mass(r);
        let bend = change * (shell - 1.0 - slope / gamma + change) / (gamma - 1.0);
        let power = 1.0 / (gamma - 1.0);
        LocalDensity {
            density: self.density_of(u, entropy),
            steepness: power * change + slope / gamma,
            steepening: bend + slope * (self.law.slope - slope) / gamma,
        }
    }

    /// Returns the density and its slopes. Beyond the end its fraction of the total density becomes constant.
    pub fn local(&self, r: f64) -> LocalDensity {
        if r <= self.end {
            return self.within(r);
        }
        let [end, share, rise] = self.tail;
        let left = exp(SETTLE * (end - ln(r)));
        let all = self.total.local(r);
        LocalDensity {
            density: all.density * exp(share + rise / SETTLE * (1.0 - left)),
            steepness: all.steepness - rise * left,
            steepening: all.steepening + rise * SETTLE * left,
        }
    }

    /// Returns the mass within a radius.
    pub fn mass(&self, r: f64) -> f64 {
        if r < self.core {
            let local = self.within(r);
            return 4.0 * PI * r * r * r * local.density / (3.0 - local.steepness);
        }
        self.mass.at(ln(r))
    }

    /// Returns the radius beyond which the mass is negligible.
    pub fn reach(&self) -> f64 {
        self.total.reach()
    }
}

/// Checks the ranges of the parameters.
fn check(law: &Entropy, end: f64) -> Result<(), SphereError> {
    let refuse = |key: &str, why: String| Err(SphereError::parameter(key, why));
    in_range("entropy.radius", law.radius)?;
    for (key, value) in [("entropy.slope", law.slope), ("entropy.core", law.core)] {
        if !value.is_finite() || value < 0.0 {
            return refuse(key, format!("must be finite and not negative, not {value}"));
        }
    }
    if law.slope >= law.gamma && law.core == 0.0 {
        let (slope, gamma) = (law.slope, law.gamma);
        let why = format!(
            "must be below gamma ({gamma}), not {slope}; a steeper slope needs `entropy.core`"
        );
        return refuse("entropy.slope", why);
    }
    if !(law.share > 0.0 && law.share < 1.0) {
        let why = format!("must be above 0 and below 1, not {}", law.share);
        return refuse("entropy.share", why);
    }
    let end = in_range("radius", end)?;
    if end < law.radius {
        let why = format!(
            "must not be below `entropy.radius` ({}), within which the gas fraction is given; it is {end}",
            law.radius
        );
        return refuse("radius", why);
    }
    if law.gamma > 1.0 {
        return Ok(());
    }
    refuse("gamma", format!("must be above 1, not {}", law.gamma))
}
