//! Scenarios: initial conditions, each with its own table in the deck.
//!
//! A scenario is one file with a struct of parameters (its table) and a function that returns the initial state.

use nestar_deck::{Deck, DeckError, TableSchema};
use nestar_engine::step::config::BoundaryKind;
use nestar_engine::{Engine, Error, Plugin};
use nestar_kernels::choice::Choice;
use nestar_systems::fields::{GasModel, InitialScalars};
use nestar_systems::hydro::formulas::{StateConfig, StateFormulas};
use nestar_systems::hydro::initial::{InitialGas, InitialState, fill_initial_gas};
use nestar_systems::hydro::require_injection;
use nestar_systems::order::Initialise;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

mod acoustic_wave;
mod blast;
mod cloud_crushing;
mod cosmological;
mod decks;
pub mod exact;
mod gresho;
mod implosion;
mod isentropic_vortex;
mod kelvin_helmholtz;
mod sedov;
mod sod;
mod spheres;
mod state;
mod toro;
mod zarr;

pub use acoustic_wave::{AcousticWave, WaveKind};
pub use cloud_crushing::CloudCrushing;
pub use decks::{DECKS, ShippedDeck};
pub use isentropic_vortex::IsentropicVortex;
pub use state::Direction;
pub use toro::Toro;

/// Inputs of a scenario's initial state: deck, gas and domain.
pub struct Setting<'a> {
    /// The deck; errors refer to its lines.
    pub deck: &'a Deck,
    /// Equation of state and scalars of the gas.
    pub model: GasModel,
    /// Lower and upper edge of the domain.
    pub edges: [[f64; 3]; 2],
    /// Cells of level 0 along x, y, z.
    pub cells: [usize; 3],
    /// `true` for each reflecting face, `[axis][side]`.
    pub mirrors: [[bool; 2]; 3],
    /// Width of a root cell.
    pub root_width: [f64; 3],
    /// Finest level of the run.
    pub max_level: usize,
}

impl Setting<'_> {
    /// Returns `named` (code length) if it is given, else the middle of the domain.
    #[must_use]
    pub fn centre<const N: usize>(&self, named: Option<[f64; N]>) -> [f64; N] {
        centre(named, self.edges)
    }
}

/// Returns `named` if it is given, else the middle of the domain from `left` to `right`.
fn centre<const N: usize>(named: Option<[f64; N]>, [left, right]: [[f64; 3]; 2]) -> [f64; N] {
    named.unwrap_or_else(|| std::array::from_fn(|a| 0.5 * left[a] + 0.5 * right[a]))
}

/// Parameters of a scenario: a table of the deck that defines an initial state.
pub trait Parameters: Serialize + DeserializeOwned + JsonSchema + Default {
    /// `true` if the state has a pressure that gas without energy, whose pressure follows from the density, cannot take.
    const GIVES_PRESSURE: bool = true;

    /// Returns the initial state.
    ///
    /// # Errors
    /// Fails if the parameters are inconsistent with each other or with the rest of the deck.
    fn initial(self, setting: &Setting) -> Result<Box<dyn InitialState>, DeckError>;
}

type InitialStateFactory = fn(&mut Engine, &str) -> Result<Box<dyn InitialState>, Error>;

/// A registered scenario.
pub struct Scenario {
    /// Name in the deck.
    pub name: &'static str,
    /// Schema of its table, with the description of the scenario.
    pub table: TableSchema,
    make: InitialStateFactory,
    /// See [`Parameters::GIVES_PRESSURE`].
    gives_pressure: bool,
}

impl Scenario {
    /// Creates the scenario with parameters `P`, read from the table called `name`.
    #[must_use]
    pub fn of<P: Parameters>(name: &'static str) -> Self {
        Self {
            name,
            table: TableSchema::of::<P>(name),
            make: make::<P>,
            gives_pressure: P::GIVES_PRESSURE,
        }
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
            .map(|sides| sides.map(|kind| kind == BoundaryKind::Reflecting)),
        root_width,
        max_level,
    })?)
}

fn formula(sim: &mut Engine, _: &str) -> Result<Box<dyn InitialState>, Error> {
    let model = sim.world.resource::<GasModel>().clone();
    Ok(Box::new(StateFormulas::from_deck(
        &mut sim.deck,
        "initial",
        &model,
    )?))
}

/// Returns all scenarios, sorted by name.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let formula = Scenario {
        name: "formula",
        table: TableSchema::of::<StateConfig>("initial"),
        make: formula,
        gives_pressure: false,
    };
    vec![
        Scenario::of::<AcousticWave>("acoustic-wave"),
        Scenario::of::<blast::Blast>("blast"),
        Scenario::of::<CloudCrushing>("cloud-crushing"),
        Scenario {
            name: "cosmological",
            table: TableSchema::of::<cosmological::Cosmological>("cosmological"),
            make: cosmological::gas,
            gives_pressure: true,
        },
        formula,
        Scenario::of::<gresho::Gresho>("gresho"),
        Scenario::of::<implosion::Implosion>("implosion"),
        Scenario::of::<IsentropicVortex>("isentropic-vortex"),
        Scenario::of::<kelvin_helmholtz::KelvinHelmholtz>("kelvin-helmholtz"),
        Scenario::of::<sedov::Sedov>("sedov"),
        Scenario::of::<sod::Sod>("sod"),
        Scenario {
            name: "spheres",
            table: TableSchema::of::<nestar_systems::spheres::Ambient>("ambient"),
            make: spheres::gas,
            gives_pressure: true,
        },
        Scenario::of::<Toro>("toro"),
        Scenario::of::<zarr::Zarr>("zarr"),
    ]
}

impl Plugin for &Scenario {
    fn name(&self) -> &str {
        "scenario"
    }

    fn after(&self) -> &[&str] {
        &["hydro", "spheres", "cosmology"]
    }

    /// Registers the initial state.
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let equation = sim.world.resource::<GasModel>().equation;
        if self.gives_pressure && !equation.has_energy() {
            let why = format!(
                "the scenario {:?} has a pressure of its own, but with hydro.eos = {:?} it follows from the density: use scenario = \"formula\"",
                self.name,
                equation.word()
            );
            return Err(sim.deck.error_at("scenario", why).into());
        }
        let state = (self.make)(sim, self.name)?;
        if let Some(given) = state.scalars_given() {
            sim.world.insert_resource(InitialScalars(given));
        }
        sim.world.insert_resource(InitialGas(state));
        sim.system_in(Initialise::State, fill_initial_gas);
        sim.check_initial(require_injection);
        Ok(())
    }
}
