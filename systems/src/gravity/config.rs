//! The table `[gravity]`.

use nestar_deck::{Deck, DeckError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How levels hear of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Coupling {
    /// The potential of all levels together solves the equation: coarse levels feel what the finer ones resolve.
    TwoWay,
    /// A finer level takes its border from the coarser one, which does not hear of it: cheaper, and less accurate.
    OneWay,
}

/// What surrounds the domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Surroundings {
    /// As the gas: periodic where all faces of the domain are, else isolated.
    Auto,
    /// The domain again; only what differs from the mean density attracts.
    Periodic,
    /// Empty space. Finer levels may touch the faces of the domain, beyond which they know the potential of the root level alone: what lies within
    /// two root cells of such a face feels itself as wide as a root cell, which matters for single bodies.
    Isolated,
}

/// Who solves the root level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RootMethod {
    /// Fourier transforms on the host, exactly. In an isolated domain matter may be anywhere.
    Fft,
    /// Multigrid cycles, where the data is: on a GPU the faster choice for a large periodic root. Around an isolated domain the potential is
    /// that of a multipole expansion about the centre of mass: it wants matter that keeps away from the faces, and is poor for matter that
    /// fills the domain.
    Multigrid,
}

/// What the energy of gas gains as it falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Energy {
    /// What its gravitational energy loses: by the mass through the faces of cells and the potentials on their two sides. On a uniform mesh
    /// the sum of both energies stays to round-off; where levels meet a little is lost. What differs from the change of the kinetic
    /// energy goes to the internal one, of which no more than half is taken in a step. Gas whose internal energy is below a
    /// thousandth of its kinetic one gains as with "kicks", and so do steps that had to be shortened where `force` is "gradient".
    Fluxes,
    /// What its kinetic energy gains by the kicks: the internal energy stays.
    Kicks,
}

/// How gas gets the momentum that gravity gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Force {
    /// By the slope of the potential. Where a border between levels cuts through dense matter, the total momentum drifts.
    Gradient,
    /// By what flows through the faces of cells, made of the slopes of the potential before and after a step: the total momentum stays to
    /// round-off, with levels too, in a periodic domain, and in an isolated one with `root = "fft"` where no finer level touches the faces. A
    /// run keeps its force: a restart with another one gives the first step after it too much or too little. It is of second order for any
    /// `order`, which then is that of the slopes that gas feels in the course of a step alone, and of first order in cells where levels meet.
    /// What is missing there and in the residual of the equation are forces of their own, which do not scale with the density: gas much thinner
    /// than a hundredth of what attracts it is driven about, in single precision by round-off too, until a run ends for want of a step;
    /// "gradient" serves it better. Gas must be all that attracts.
    Stress,
}

/// Self-gravity: a table `[gravity]` switches it on. The potential of all matter follows from Poisson's equation on the whole
/// hierarchy, once a step of each level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GravityConfig {
    /// Newton's constant in code units; absent in a deck with a table `[units]`: that of nature.
    #[schemars(range(min = 0.0), extend("unit" = "length**3/(mass*time**2)"))]
    pub constant: f64,
    /// How levels hear of each other.
    pub coupling: Coupling,
    /// What surrounds the domain.
    pub boundary: Surroundings,
    /// Who solves the root level.
    pub root: RootMethod,
    /// Only with `root = "multigrid"`: cycles at each solve of the root level, which begins with the potential before (the first one takes
    /// eight, and in an isolated domain one for the same matter as before half of them); they relax as often as `sweeps_aligned` says.
    #[schemars(range(min = 1, max = 100))]
    pub root_cycles: usize,
    /// Only with `root = "multigrid"` in an isolated domain: order of the multipole expansion. Where matter is farther from the centre of mass than a
    /// face is, as in long boxes, a higher order is worse; a run stops if the highest ones are as much as the mass itself.
    #[schemars(range(min = 1, max = 12))]
    pub multipole_order: usize,
    /// Order of the slopes that accelerate: 2 or 4.
    pub order: u8,
    /// How gas gets the momentum that gravity gives it.
    pub force: Force,
    /// What the energy of gas gains as it falls.
    pub energy: Energy,
    /// Most widths of a cell through which gas may be accelerated in a step, |a| dt^2 <= limit * width; 0: no limit.
    #[schemars(range(min = 0.0))]
    pub limit: f64,
    /// Cycles at each step of a level; absent: 1, or 4 where something asks for accelerations at points, as particles do, which feel what is left
    /// of their own pull.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 20))]
    pub cycles: Option<usize>,
    /// Relaxations before and after the coarser grids of a level in each cycle; absent: 1, or 2 with accelerations at points.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8))]
    pub sweeps: Option<usize>,
    /// Such relaxations where levels meet and after changes of the mesh.
    #[schemars(range(min = 1, max = 8))]
    pub sweeps_aligned: usize,
    /// Cycles over all levels before the first step.
    #[schemars(range(min = 1, max = 100))]
    pub initial_cycles: usize,
}

/// How a level is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Cycles.
    pub cycles: usize,
    /// Relaxations before and after the coarser grids in each.
    pub sweeps: usize,
}

impl Default for GravityConfig {
    fn default() -> Self {
        Self {
            constant: 1.0,
            coupling: Coupling::TwoWay,
            boundary: Surroundings::Auto,
            root: RootMethod::Fft,
            root_cycles: 2,
            multipole_order: 8,
            order: 4,
            force: Force::Gradient,
            energy: Energy::Fluxes,
            limit: 0.5,
            cycles: None,
            sweeps: None,
            sweeps_aligned: 2,
            initial_cycles: 4,
        }
    }
}

impl GravityConfig {
    /// How a level is solved at each of its steps; `points`: something feels the potential at points.
    #[must_use]
    pub fn effort(&self, points: bool) -> Effort {
        let (cycles, sweeps) = if points { (4, 2) } else { (1, 1) };
        Effort {
            cycles: self.cycles.unwrap_or(cycles),
            sweeps: self.sweeps.unwrap_or(sweeps),
        }
    }

    /// Refuses what the range of a key lets pass.
    ///
    /// # Errors
    /// The key and what it may be.
    pub fn check(&self, deck: &Deck) -> Result<(), DeckError> {
        match self.order {
            2 | 4 => Ok(()),
            _ => Err(deck.error_at("gravity.order", "slopes are of order 2 or 4")),
        }
    }
}
