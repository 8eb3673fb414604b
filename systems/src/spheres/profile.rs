//! Density profiles, remainders of the total mass, and the total mass of a component and the mass that attracts it.

use super::density_table::DensityTable;
use super::entropy::{Entropy, EntropyGas};
use super::error::{SphereError, in_range, positive};
use super::radial_function::{CELLS, LocalDensity, Radial, RadialFunction, RadialGrid};
use nestar_device::math::{exp, ln};
use std::f64::consts::PI;

/// Outer limit of profiles with a power-law tail, in scale radii.
const FAR: f64 = 1e5;
/// Outer limit of tabulated profiles, in units of the last radius.
const FAR_TABLE: f64 = 1e3;
/// Default decay length, relative to the radius of the cut.
const DECAY: f64 = 0.3;
/// Fraction of the mass within the core.
const CORE: f64 = 1e-12;
/// Intervals of the tabulated mass beyond a cut.
const TAIL_CELLS: usize = 1024;

/// Density as a function of radius, with its derivatives and the enclosed mass.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    shape: ProfileKind,
    cut: Option<Cut>,
    /// Factor of all densities.
    factor: f64,
}

/// Kinds of profiles; `density` is the scale density.
#[derive(Clone, Debug, PartialEq)]
enum ProfileKind {
    Plummer { density: f64, radius: f64 },
    Hernquist { density: f64, radius: f64 },
    Nfw { density: f64, radius: f64 },
    Table(Box<DensityTable>),
    Entropy(Box<EntropyGas<Profile>>),
    Rest(Box<Remainder<Profile>>),
}

/// Exponential decay of the density beyond a radius. It continues as `(r/radius)^power exp(-(r -
/// radius)/decay)` with the same value and slope (Springel & White, MNRAS 307, 162 (1999), equations 4 and
/// 5).
#[derive(Clone, Debug, PartialEq)]
struct Cut {
    radius: f64,
    decay: f64,
    /// Density at the radius.
    density: f64,
    power: f64,
    mass: RadialFunction,
}

impl Profile {
    /// Plummer sphere (MNRAS 71, 460 (1911)): density `3 mass/(4 pi radius^3) (1 + r^2/radius^2)^(-5/2)`.
    ///
    /// # Errors
    /// A parameter is outside 1e-60 to 1e60.
    pub fn plummer(mass: f64, radius: f64) -> Result<Self, SphereError> {
        let (mass, radius) = (in_range("mass", mass)?, in_range("radius", radius)?);
        Ok(Self::whole(ProfileKind::Plummer {
            density: 3.0 * mass / (4.0 * PI * radius * radius * radius),
            radius,
        }))
    }

    /// Hernquist sphere (ApJ 356, 359 (1990), equation 2): density `mass radius/(2 pi r (r + radius)^3)`.
    ///
    /// # Errors
    /// A parameter is outside 1e-60 to 1e60.
    pub fn hernquist(mass: f64, radius: f64) -> Result<Self, SphereError> {
        let (mass, radius) = (in_range("mass", mass)?, in_range("radius", radius)?);
        Ok(Self::whole(ProfileKind::Hernquist {
            density: mass / (2.0 * PI * radius * radius * radius),
            radius,
        }))
    }

    /// Navarro-Frenk-White halo (ApJ 490, 493 (1997)) with the mass `m200` within `r200`. The density is
    /// proportional to `1/(s (1 + s)^2)` with `s = r concentration/r200`. Beyond `r200` it decays
    /// exponentially with the length `decay`, by default 0.3 `r200`. A much shorter decay has no equilibrium.
    ///
    /// # Errors
    /// A parameter is outside 1e-60 to 1e60.
    pub fn nfw(
        m200: f64,
        r200: f64,
        concentration: f64,
        decay: Option<f64>,
    ) -> Result<Self, SphereError> {
        let mass = in_range("m200", m200)?;
        let cut = in_range("r200", r200)?;
        let concentration = in_range("concentration", concentration)?;
        let radius = cut / concentration;
        let volume = 4.0 * PI * radius * radius * radius;
        let density = mass / (volume * nfw_mass(concentration));
        Self::whole(ProfileKind::Nfw { density, radius }).cut("r200", cut, decay)
    }

    /// Tabulated densities: a cubic spline of `ln density` over `ln radius`. Beyond the last radius the
    /// density is a power law; within the first radius its slope tends to that of a core or a cusp.
    ///
    /// # Errors
    /// There are fewer than 4 radii or another number of densities, or values are not finite and positive.
    /// Radii do not increase, or the slope is -2.5 or steeper at the first radius or -3 or shallower at the
    /// last.
    pub fn table(radius: &[f64], density: &[f64]) -> Result<Self, SphereError> {
        let table = DensityTable::new(radius, density)?;
        Ok(Self::whole(ProfileKind::Table(Box::new(table))))
    }

    /// Gas with the entropy `law` in hydrostatic equilibrium in the potential of `total`, with the pressure
    /// `pressure` at its outer radius `end`. Beyond it the gas fraction of the density continues with the
    /// same slope and becomes constant. `gravity` is Newton's constant.
    ///
    /// # Errors
    /// A parameter is out of range.
    pub fn entropy(
        total: &Profile,
        law: Entropy,
        gravity: f64,
        [end, pressure]: [f64; 2],
    ) -> Result<Self, SphereError> {
        let gas = EntropyGas::new(total, law, gravity, [end, pressure])?;
        Ok(Self::whole(ProfileKind::Entropy(Box::new(gas))))
    }

    /// The density `total` minus that of `parts`.
    ///
    /// # Errors
    /// The parts reach or exceed the total density somewhere.
    pub fn rest(total: &Profile, parts: &[Profile]) -> Result<Self, SphereError> {
        let rest = Remainder::new(total, parts)?;
        Ok(Self::whole(ProfileKind::Rest(Box::new(rest))))
    }

    fn whole(shape: ProfileKind) -> Self {
        Self {
            shape,
            cut: None,
            factor: 1.0,
        }
    }

    /// Cuts the profile at a radius. Beyond it the density decays exponentially with the length `decay`, by
    /// default 0.3 `radius`; value and slope are continuous. `key` names the radius in errors.
    ///
    /// # Errors
    /// A radius or decay length is outside 1e-60 to 1e60.
    pub fn cut(mut self, key: &str, radius: f64, decay: Option<f64>) -> Result<Self, SphereError> {
        let radius = in_range(key, radius)?;
        let decay = in_range("decay", decay.unwrap_or(DECAY * radius))?;
        let local = self.shape.local(radius);
        let power = radius / decay - local.steepness;
        // there the density has fallen by at least e^60
        let far = 3.0 * radius + 60.0 * decay;
        let mut cut = Cut {
            radius,
            decay,
            density: local.density,
            power,
            mass: RadialFunction::through(RadialGrid::new(radius, far, 1), |_| [1.0, 0.0]),
        };
        let shell = |r: f64| 4.0 * PI * r * r * r * cut.local(r).density;
        let grid = RadialGrid::new(radius, far, TAIL_CELLS);
        cut.mass = RadialFunction::outwards(grid, self.shape.mass(radius), shell);
        self.cut = Some(cut);
        Ok(self)
    }

    /// Multiplies all densities by a factor, for example for gas that follows dark matter.
    ///
    /// # Errors
    /// The factor is not positive and finite.
    pub fn scaled(mut self, factor: f64) -> Result<Self, SphereError> {
        self.factor *= positive("factor", factor)?;
        Ok(self)
    }

    /// Returns the density at a radius above 0, mass/length^3.
    #[must_use]
    pub fn density(&self, r: f64) -> f64 {
        self.factor
            * match &self.cut {
                Some(cut) if r > cut.radius => cut.local(r).density,
                _ => self.shape.density(r),
            }
    }

    /// Returns the density at a radius above 0 and its first and second derivative by radius.
    #[must_use]
    pub fn derivatives(&self, r: f64) -> [f64; 3] {
        let LocalDensity {
            density,
            steepness: n,
            steepening,
        } = self.local(r);
        let second = density / (r * r) * (n * n + n - steepening);
        [density, -n * density / r, second]
    }

    /// Returns the mass within a radius, from 0.
    #[must_use]
    pub fn mass(&self, r: f64) -> f64 {
        if r <= 0.0 {
            return 0.0;
        }
        self.factor
            * match &self.cut {
                Some(cut) if r > cut.radius => cut.mass.at(ln(r)),
                _ => self.shape.mass(r),
            }
    }

    /// Returns the density and its logarithmic slopes.
    pub(super) fn local(&self, r: f64) -> LocalDensity {
        let local = match &self.cut {
            Some(cut) if r > cut.radius => cut.local(r),
            _ => self.shape.local(r),
        };
        LocalDensity {
            density: self.factor * local.density,
            ..local
        }
    }

    /// Returns the radius beyond which the mass is negligible.
    pub(super) fn reach(&self) -> f64 {
        match (&self.cut, &self.shape) {
            (Some(cut), _) => 3.0 * cut.radius + 60.0 * cut.decay,
            (None, ProfileKind::Table(table)) => FAR_TABLE * table.last(),
            (None, ProfileKind::Entropy(gas)) => gas.reach(),
            (None, ProfileKind::Rest(rest)) => rest.reach(),
            (
                None,
                ProfileKind::Plummer { radius, .. }
                | ProfileKind::Hernquist { radius, .. }
                | ProfileKind::Nfw { radius, .. },
            ) => FAR * radius,
        }
    }

    /// Returns the radius that contains 1e-12 of the mass.
    pub(super) fn core(&self) -> f64 {
        let reach = self.reach();
        let mass = CORE * self.mass(reach);
        let (mut low, mut high) = (ln(reach) - 120.0, ln(reach));
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.mass(exp(middle)) < mass {
                low = middle;
            } else {
                high = middle;
            }
        }
        exp(low)
    }
}

impl Radial for Profile {
    fn local(&self, r: f64) -> LocalDensity {
        self.local(r)
    }

    fn density(&self, r: f64) -> f64 {
        self.density(r)
    }

    fn mass(&self, r: f64) -> f64 {
        self.mass(r)
    }

    fn core(&self) -> f64 {
        self.core()
    }

    fn reach(&self) -> f64 {
        self.reach()
    }
}

impl ProfileKind {
    fn density(&self, r: f64) -> f64 {
        match self {
            Self::Entropy(gas) => gas.density(r),
            _ => self.local(r).density,
        }
    }

    fn local(&self, r: f64) -> LocalDensity {
        match *self {
            Self::Plummer { density, radius } => {
                let square = r * r / (radius * radius);
                let sum = 1.0 + square;
                LocalDensity {
                    density: density / (sum * sum * sum.sqrt()),
                    steepness: 5.0 * square / sum,
                    steepening: 10.0 * square / (sum * sum),
                }
            }
            Self::Hernquist { density, radius } => {
                let s = r / radius;
                let sum = 1.0 + s;
                LocalDensity {
                    density: density / (s * sum * sum * sum),
                    steepness: 1.0 + 3.0 * s / sum,
                    steepening: 3.0 * s / (sum * sum),
                }
            }
            Self::Nfw { density, radius } => {
                let s = r / radius;
                let sum = 1.0 + s;
                LocalDensity {
                    density: density / (s * sum * sum),
                    steepness: 1.0 + 2.0 * s / sum,
                    steepening: 2.0 * s / (sum * sum),
                }
            }
            Self::Table(ref table) => table.local(r),
            Self::Entropy(ref gas) => gas.local(r),
            Self::Rest(ref rest) => rest.local(r),
        }
    }

    fn mass(&self, r: f64) -> f64 {
        match *self {
            Self::Plummer { density, radius } => {
                let square = r * r / (radius * radius);
                let share = square / (1.0 + square);
                4.0 * PI / 3.0 * density * radius * radius * radius * share * share.sqrt()
            }
            Self::Hernquist { density, radius } => {
                let share = r / (r + radius);
                2.0 * PI * density * radius * radius * radius * share * share
            }
            Self::Nfw { density, radius } => {
                4.0 * PI * density * radius * radius * radius * nfw_mass(r / radius)
            }
            Self::Table(ref table) => table.mass(r),
            Self::Entropy(ref gas) => gas.mass(r),
            Self::Rest(ref rest) => rest.mass(r),
        }
    }
}

impl Cut {
    fn local(&self, r: f64) -> LocalDensity {
        // a single exponential, since separate factors may overflow and underflow
        let change = self.power * ln(r / self.radius) - (r - self.radius) / self.decay;
        LocalDensity {
            density: self.density * exp(change),
            steepness: r / self.decay - self.power,
            steepening: r / self.decay,
        }
    }
}

/// Returns `ln(1 + s) - s/(1 + s)`, accurate also for small `s`, where the terms nearly cancel.
fn nfw_mass(s: f64) -> f64 {
    if s > 0.02 {
        return ln(1.0 + s) - s / (1.0 + s);
    }
    // alternating series: the sum over k from 2 of (k - 1)/k s^k, by Horner's rule
    let sum = (2..=12).rev().fold(0.0, |sum, k: i32| {
        let k = f64::from(k);
        (k - 1.0) / k - s * sum
    });
    s * s * sum
}

/// Total mass minus other components.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Remainder<P> {
    total: P,
    parts: Vec<P>,
}

impl<P: Radial + Clone> Remainder<P> {
    /// Subtracts `parts` from `total`.
    ///
    /// # Errors
    /// The parts reach the total density somewhere.
    pub fn new(total: &P, parts: &[P]) -> Result<Self, SphereError> {
        let (total, parts) = (total.clone(), parts.to_vec());
        let grid = RadialGrid::new(total.core(), total.reach(), CELLS);
        let sum = |r: f64| parts.iter().map(|part| part.density(r)).sum::<f64>();
        // both may underflow at large radii
        let lacks = |r: &f64| sum(*r) >= total.density(*r) && total.density(*r) > 0.0;
        match grid.nodes().map(|n| grid.radius(n)).find(lacks) {
            Some(radius) => Err(SphereError::NothingLeft { radius }),
            None => Ok(Self { total, parts }),
        }
    }

    /// Returns the total and the parts with their signs.
    fn signed(&self) -> impl Iterator<Item = (f64, &P)> {
        let parts = self.parts.iter().map(|part| (-1.0, part));
        std::iter::once((1.0, &self.total)).chain(parts)
    }

    /// Returns the density and its logarithmic slopes, from sums of densities and derivatives.
    pub fn local(&self, r: f64) -> LocalDensity {
        let [mut density, mut first, mut second] = [0.0; 3];
        for (sign, part) in self.signed() {
            let local = part.local(r);
            let (own, n) = (sign * local.density, local.steepness);
            density += own;
            first += own * n;
            second += own * (local.steepening - n * n);
        }
        if density <= 0.0 {
            // everything has underflowed
            let all = self.total.local(r);
            return LocalDensity {
                density: 0.0,
                ..all
            };
        }
        let steepness = first / density;
        LocalDensity {
            density,
            steepness,
            steepening: second / density + steepness * steepness,
        }
    }

    /// Returns the mass within a radius.
    pub fn mass(&self, r: f64) -> f64 {
        self.signed().map(|(sign, part)| sign * part.mass(r)).sum()
    }

    /// Returns the radius beyond which the mass is negligible.
    pub fn reach(&self) -> f64 {
        self.total.reach()
    }
}

/// Intervals between the reach of a component and that of all mass.
const BEYOND: usize = 512;

/// A component and the other mass that attracts it.
#[derive(Clone, Copy, Debug)]
pub(super) struct MassModel<'a> {
    /// The component.
    pub own: &'a Profile,
    /// Other mass.
    pub others: &'a [Profile],
    /// Newton's constant.
    pub gravity: f64,
}

impl<'a> MassModel<'a> {
    /// Combines a component with other mass.
    pub fn new(own: &'a Profile, others: &'a [Profile], gravity: f64) -> Result<Self, SphereError> {
        let gravity = in_range("gravity", gravity)?;
        Ok(Self {
            own,
            others,
            gravity,
        })
    }

    fn sum(&self, of: impl Fn(&Profile) -> f64) -> f64 {
        self.others.iter().map(&of).sum::<f64>() + of(self.own)
    }

    /// Returns `G M/r` of all mass within a radius: the derivative of the potential by `ln r`.
    pub fn pull(&self, r: f64) -> f64 {
        self.gravity * self.sum(|part| part.mass(r)) / r
    }

    /// Returns the derivative of `ln M` by `ln r`.
    pub fn mass_slope(&self, r: f64) -> f64 {
        let shell = 4.0 * PI * r * r * r * self.sum(|part| part.density(r));
        shell / self.sum(|part| part.mass(r))
    }

    /// Returns the grid of the component between the radii that contain nearly all of its mass.
    pub fn grid(&self) -> RadialGrid {
        RadialGrid::new(self.own.core(), self.own.reach(), CELLS)
    }

    /// Returns minus the potential: the integral of `G M/r^2` from a radius to infinity.
    pub fn potential(&self, grid: RadialGrid) -> RadialFunction {
        let far = self.others.iter().fold(0.0, |r: f64, p| r.max(p.reach()));
        let (reach, pull) = (self.own.reach(), |r: f64| self.pull(r));
        let mut outer = pull(reach);
        if far > reach {
            let beyond =
                RadialFunction::inwards(RadialGrid::new(reach, far, BEYOND), pull(far), pull);
            outer = beyond.value(0);
        }
        RadialFunction::inwards(grid, outer, pull)
    }
}
