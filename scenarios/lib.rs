//! What users run: initial conditions, each a scenario with its own table in the deck.
//!
//! A scenario is one file: a struct of parameters (its table), and a function that makes the initial gas of them.

use nestar_deck::{Deck, DeckError, TableSchema};
use nestar_engine::step::config::BoundaryKind;
use nestar_engine::{Engine, Error, Plugin};
use nestar_systems::fields::GasModel;
use nestar_systems::hydro::formulas::{StateConfig, StateFormulas};
use nestar_systems::hydro::initial::{InitialGas, InitialState, fill_new};
use nestar_systems::hydro::injection::require_injection;
use nestar_systems::order::Initialise;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

mod acoustic_wave;
mod blast;
mod cloud_crushing;
mod direction;
pub mod exact;
mod gresho;
mod implosion;
mod isentropic_vortex;
mod kelvin_helmholtz;
mod noise;
mod sedov;
mod sod;
mod state;
mod toro;
mod zarr;

pub use acoustic_wave::{AcousticWave, WaveWord};
pub use cloud_crushing::CloudCrushing;
pub use direction::Direction;
pub use isentropic_vortex::IsentropicVortex;
pub use toro::Toro;

/// What a scenario knows when it makes its initial state.
pub struct Setting<'a> {
    /// The deck, for errors that point into it.
    pub deck: &'a Deck,
    /// The gas.
    pub model: GasModel,
    /// Lower and upper edge of the domain.
    pub edges: [[f64; 3]; 2],
    /// Cells of level 0 along x, y, z.
    pub cells: [usize; 3],
    /// Which faces reflect, `[axis][side]`.
    pub mirrors: [[bool; 2]; 3],
    /// Width of a root cell.
    pub root_width: [f64; 3],
    /// Finest level of the run.
    pub max_level: usize,
}

impl Setting<'_> {
    /// The centre that a table names, code length, or the middle of the domain.
    #[must_use]
    pub fn centre<const N: usize>(&self, named: Option<[f64; N]>) -> [f64; N] {
        centre(named, self.edges)
    }
}

/// As [`Setting::centre`], of a domain from `left` to `right`.
fn centre<const N: usize>(named: Option<[f64; N]>, [left, right]: [[f64; 3]; 2]) -> [f64; N] {
    named.unwrap_or_else(|| std::array::from_fn(|a| 0.5 * left[a] + 0.5 * right[a]))
}

/// Parameters of a scenario, which make its initial state.
pub trait Parameters: Serialize + DeserializeOwned + JsonSchema + Default {
    /// The initial state.
    ///
    /// # Errors
    /// Parameters that do not fit the deck.
    fn initial(self, setting: &Setting) -> Result<Box<dyn InitialState>, DeckError>;
}

type Make = fn(&mut Engine, &str) -> Result<Box<dyn InitialState>, Error>;

/// A registered scenario.
pub struct Scenario {
    /// Name in the deck.
    pub name: &'static str,
    /// A sentence about it.
    pub doc: &'static str,
    /// Its table.
    pub table: TableSchema,
    make: Make,
}

fn scenario<P: Parameters>(name: &'static str, doc: &'static str) -> Scenario {
    Scenario {
        name,
        doc,
        table: TableSchema::of::<P>(name),
        make: make::<P>,
    }
}

fn make<P: Parameters>(sim: &mut Engine, name: &str) -> Result<Box<dyn InitialState>, Error> {
    let parameters: P = sim.deck.table(name)?;
    let domain = sim.settings.domain.clone();
    let edges = [domain.left_edge, domain.right_edge];
    let root_width =
        std::array::from_fn(|a| (edges[1][a] - edges[0][a]) / f64::from(domain.cells[a]));
    let model = sim.world.resource::<GasModel>().clone();
    let max_level = sim.settings.mesh.max_level;
    Ok(parameters.initial(&Setting {
        deck: &sim.deck,
        model,
        edges,
        cells: domain.cells.map(|n| n as usize),
        mirrors: (domain.boundary.faces())
            .map(|sides| sides.map(|s| s == BoundaryKind::Reflecting)),
        root_width,
        max_level,
    })?)
}

fn formula(sim: &mut Engine, _: &str) -> Result<Box<dyn InitialState>, Error> {
    let scalars = sim.world.resource::<GasModel>().scalars.clone();
    Ok(Box::new(StateFormulas::take(
        &mut sim.deck,
        "initial",
        &scalars,
    )?))
}

/// All scenarios, by name.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let formula = Scenario {
        name: "formula",
        doc: "The state is given by formulas of x, y, z and r in the table [initial].",
        table: TableSchema::of::<StateConfig>("initial"),
        make: formula,
    };
    let mut all = with_parameters();
    all.push(formula);
    all.sort_by_key(|scenario| scenario.name);
    all
}

/// The scenarios that have a table of their own name.
fn with_parameters() -> Vec<Scenario> {
    vec![
        scenario::<AcousticWave>(
            "acoustic-wave",
            "A linear sound or entropy wave in a periodic box, along an axis or the diagonal.",
        ),
        scenario::<blast::Blast>("blast", "A hot sphere in a uniform medium."),
        scenario::<CloudCrushing>(
            "cloud-crushing",
            "A plane shock that runs over a dense cloud.",
        ),
        scenario::<gresho::Gresho>(
            "gresho",
            "A stationary vortex with a triangular rotation curve.",
        ),
        scenario::<implosion::Implosion>(
            "implosion",
            "Shocks in the corner of a reflecting box, symmetric about its diagonal.",
        ),
        scenario::<IsentropicVortex>(
            "isentropic-vortex",
            "A smooth vortex that a uniform flow carries through a periodic box.",
        ),
        scenario::<kelvin_helmholtz::KelvinHelmholtz>(
            "kelvin-helmholtz",
            "Two shear layers that break up into vortices.",
        ),
        scenario::<sedov::Sedov>("sedov", "A point explosion in a uniform medium."),
        scenario::<sod::Sod>(
            "sod",
            "A shock tube between two uniform states, along any axis or the diagonal.",
        ),
        scenario::<Toro>("toro", "One of Toro's five shock tubes."),
        scenario::<zarr::Zarr>(
            "zarr",
            "The state is read from Zarr arrays on a uniform grid.",
        ),
    ]
}

/// The plugin that sets the initial state of the scenario that the deck names. Add it behind the gas.
pub struct InitialCondition {
    /// Name of the scenario.
    pub scenario: String,
}

impl Plugin for InitialCondition {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let all = scenarios();
        let names: Vec<&str> = all.iter().map(|s| s.name).collect();
        let Some(found) = all.iter().find(|s| s.name == self.scenario) else {
            return Err(sim
                .deck
                .unknown_word_at("scenario", &self.scenario, &names)
                .into());
        };
        let state = (found.make)(sim, found.name)?;
        sim.world.insert_resource(InitialGas(state));
        sim.system_in(Initialise::State, fill_new);
        sim.check_initial(require_injection);
        Ok(())
    }
}
