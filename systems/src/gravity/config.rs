//! Defines the table `[gravity]`.

use nestar_deck::{Deck, DeckError, deck};

/// How the levels of the hierarchy are coupled in Poisson's equation.
#[deck]
pub enum Coupling {
    /// Poisson's equation is solved on all levels together: the potential of coarse levels includes the contribution of
    /// finer levels.
    TwoWay,
    /// A finer level takes boundary values from the coarser one, without an effect on it: cheaper, but less accurate.
    OneWay,
}

/// Boundary condition of the potential.
#[deck]
pub enum GravityBoundary {
    /// As `domain.boundary`: periodic along periodic axes, with mirror images of the matter beyond reflecting faces, and
    /// vacuum beyond the others. Either no face has a vacuum beyond it, or at least one face of each axis.
    Auto,
    /// Periodic. Only the deviation from the mean density attracts.
    Periodic,
    /// Vacuum outside the domain, also beyond reflecting faces, whose mirror images do not attract. Finer levels may touch the faces of the domain, but outside it only the root-level
    /// potential is known. A body within two root cells of such a face therefore acts on itself, which matters for
    /// single bodies.
    Isolated,
}

/// Solver of the root level.
#[deck]
pub enum RootMethod {
    /// Multigrid for a domain without isolated faces of at least 128^3 root cells that are nearly cubes, Fourier transforms
    /// otherwise.
    /// The choice is the same on all devices. The log and `nestar check` name it.
    Auto,
    /// Direct solution by Fourier transforms on the host. Matter may be anywhere in an isolated domain.
    Fft,
    /// Multigrid cycles on the host or on the GPU: faster than transforms on a GPU, slower on a CPU. Each solve starts
    /// from the previous potential and ends when its error is below a tenth of the truncation error. An isolated
    /// domain takes its boundary potential from a multipole expansion about the centre of mass. The expansion is poor
    /// for matter near the faces.
    Multigrid,
}

/// How gravity changes the energy of the gas.
#[deck]
pub enum GravityEnergy {
    /// By mass fluxes: the gas gains what its gravitational energy loses, from the mass flux through each cell face and
    /// the potentials on both sides. On a uniform mesh the sum of both energies is conserved to round-off; at level
    /// boundaries there is a small error. The difference between this gain and the change of the kinetic energy goes to
    /// the internal energy, which loses at most half of its value in a step. "kicks" is used instead for gas whose internal energy is below
    /// a thousandth of its kinetic energy. With `force = "gradient"` it is also used in steps that had to be shortened.
    Fluxes,
    /// By kicks: the gas gains the change of its kinetic energy, and the internal energy stays constant.
    Kicks,
}

/// How gravity changes the momentum of the gas.
#[deck]
pub enum GravityForce {
    /// By the gradient of the potential. The total momentum drifts if a level boundary cuts through dense matter.
    Gradient,
    /// By the divergence of the gravitational stress, from the gradients of the potential before and after a step. The
    /// total momentum is conserved to round-off, also on several levels: in a periodic domain, and in an isolated one
    /// with `root = "fft"` if no finer level touches the faces. The gas must be the only matter that attracts.
    /// Do not change this key at a restart: the first step after it would have a wrong kick. The method is of second
    /// order, and of first order in cells at level boundaries; `order` applies only to the predicted kick within a step.
    /// Truncation errors, the residual of Poisson's equation and, in single precision, round-off act as forces that do
    /// not scale with the density. They accelerate gas with less than a hundredth of the density of the attracting
    /// matter until the time step vanishes; use "gradient" for such gas.
    Stress,
}

/// Self-gravity; the table `[gravity]` switches it on. Each step of a level solves Poisson's equation for the potential
/// of all matter.
#[deck]
pub struct GravityConfig {
    /// Gravitational constant in code units. Default with a table `[units]`: the physical value.
    #[key(default = 1.0, unit = "length**3/(mass*time**2)", min = 0.0)]
    pub constant: f64,
    /// Coupling of the levels.
    #[key(default = Coupling::TwoWay)]
    pub coupling: Coupling,
    /// Boundary condition of the potential.
    #[key(default = GravityBoundary::Auto)]
    pub boundary: GravityBoundary,
    /// Solver of the root level.
    #[key(default = RootMethod::Auto)]
    pub root: RootMethod,
    /// Largest number of multigrid cycles per solve of the root level. A cycle has one relaxation sweep before and one
    /// after the coarser grids. Two to five cycles suffice for most solves.
    #[key(default = 20, min = 1, max = 100)]
    pub root_cycles: usize,
    /// Order of the multipole expansion in an isolated domain (only with `root = "multigrid"`). Higher orders are less
    /// accurate if matter is farther from the centre of mass than a face is, as in long boxes. The run stops if the highest
    /// orders are as large as the monopole.
    #[key(default = 8, min = 1, max = 12)]
    pub multipole_order: usize,
    /// Order of the finite differences for the acceleration: 2 or 4.
    #[key(default = 4)]
    pub order: u8,
    /// How gravity changes the momentum of the gas.
    #[key(default = GravityForce::Gradient)]
    pub force: GravityForce,
    /// How gravity changes the energy of the gas.
    #[key(default = GravityEnergy::Fluxes)]
    pub energy: GravityEnergy,
    /// Largest number of cell widths across which gas may be accelerated in a step, |a| dt^2 <= limit * width; 0: no
    /// limit.
    #[key(default = 0.5, zero_or = 1e-12)]
    pub limit: f64,
    /// Number of multigrid cycles per step of a level. Default: 1, or 3 if particles are present, because a residual of
    /// their own potential exerts a force on them.
    #[key(min = 1, max = 20)]
    pub cycles: Option<usize>,
    /// Number of relaxation sweeps before and after the coarser grids of a level in each cycle.
    #[key(default = 1, min = 1, max = 8)]
    pub sweeps: usize,
    /// Number of relaxation sweeps in each cycle when levels are synchronised, and after a regrid.
    #[key(default = 2, min = 1, max = 8)]
    pub sweeps_aligned: usize,
    /// Number of cycles over all levels before the first step.
    #[key(default = 4, min = 1, max = 100)]
    pub initial_cycles: usize,
}

/// Over-relaxation factor on grids of 8^3, 4^3 and 2^3 cells per patch. It halves the number of sweeps for the same error: Yavneh
/// (1996, SIAM Journal on Scientific Computing 17, 180).
pub(super) const OVER_RELAXATION: f64 = 1.2;

/// Number of cycles and sweeps per solve of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleSettings {
    /// Number of cycles.
    pub cycles: usize,
    /// Relaxation sweeps before and after the coarser grids in each cycle.
    pub sweeps: usize,
}

impl CycleSettings {
    /// Returns the number of cycles for the outer potential of pairs, whose first guess has the change of the potential of all
    /// levels.
    pub fn for_outer_potential(self) -> usize {
        self.cycles.div_ceil(2)
    }

    /// Returns the number of cycles for the inner potential of pairs, with such a guess. Half the cycles would double the force of a
    /// particle on itself.
    pub fn for_inner_potential(self) -> usize {
        (3 * self.cycles).div_ceil(4)
    }
}

impl GravityConfig {
    /// Returns the settings for the steps of a level; `points` is `true` if accelerations at points are needed.
    #[must_use]
    pub fn cycle_settings(&self, points: bool) -> CycleSettings {
        let cycles = if points { 3 } else { 1 };
        CycleSettings {
            cycles: self.cycles.unwrap_or(cycles),
            sweeps: self.sweeps,
        }
    }

    /// Checks the keys whose range a schema cannot express.
    ///
    /// # Errors
    /// Names the key and its allowed values.
    pub fn check(&self, deck: &Deck) -> Result<(), DeckError> {
        match self.order {
            2 | 4 => Ok(()),
            _ => Err(deck.error_at("gravity.order", "the order must be 2 or 4")),
        }
    }
}
