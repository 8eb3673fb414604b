//! Physics of Nestar: one folder per plugin, each made of systems that call kernels.
//!
//! [`DefaultPlugins`] lists all plugins. They do not import each other. They share these modules:
//!
//! * [`fields`]: fields and resources,
//! * [`order`]: the order of a step,
//! * [`declare`]: scalars and derived fields,
//! * [`register`] and [`subcycling`]: registration of cell functions,
//! * [`births`]: particles that are created and removed during a run,
//! * [`units`]: code units,
//! * [`word`]: words for numerical choices,
//! * [`spectral`] and [`spheres`]: Fourier transforms and equilibrium spheres.

pub mod acceleration;
pub mod births;
pub mod chemistry;
pub mod cooling;
pub mod cosmology;
pub mod deck_columns;
pub mod declare;
pub mod diffusion;
pub mod external;
pub mod feedback;
pub mod fields;
pub mod floors;
pub mod gravity;
pub mod hydro;
pub mod order;
pub mod particles;
pub mod refinement;
pub mod register;
pub mod sinks;
pub mod sources;
pub mod spectral;
pub mod spheres;
pub mod star_formation;
pub mod subcycling;
pub mod time;
pub mod units;
pub mod views;
pub mod word;

use diffusion::{ConductionConfig, ViscosityConfig};
use nestar_deck::TableSchema;
use nestar_engine::Plugin;
use refinement::MeshConfig;
use schemars::JsonSchema;
use time::TimeConfig;

/// A built-in plugin with its deck tables.
pub struct BuiltInPlugin {
    /// The plugin.
    pub plugin: Box<dyn Plugin>,
    /// Tables with a default for every key.
    pub tables: Vec<TableSchema>,
    /// Tables with required keys, which are checked only if the deck has them.
    pub optional_tables: Vec<TableSchema>,
}

impl BuiltInPlugin {
    /// Wraps a plugin without tables.
    #[must_use]
    pub fn new(plugin: impl Plugin + 'static) -> Self {
        Self {
            plugin: Box::new(plugin),
            tables: Vec::new(),
            optional_tables: Vec::new(),
        }
    }

    /// Adds a table with a default for every key.
    #[must_use]
    pub fn table<T: JsonSchema>(mut self, name: &str) -> Self {
        self.tables.push(TableSchema::of::<T>(name));
        self
    }

    /// Adds variants of the elements of a list of another table.
    #[must_use]
    pub fn variants(mut self, variants: Vec<TableSchema>) -> Self {
        self.tables.extend(variants);
        self
    }

    /// Adds a table with required keys.
    #[must_use]
    pub fn optional_table<T: JsonSchema>(mut self, name: &str) -> Self {
        self.optional_tables.push(TableSchema::of::<T>(name));
        self
    }
}

/// The built-in plugins with their deck tables.
///
/// Their declarations run in the order of the list. They are built in this order as well, except that each comes after
/// those that [`Plugin::after`] names.
pub struct DefaultPlugins(pub Vec<BuiltInPlugin>);

impl DefaultPlugins {
    /// Lists the plugins for these tables of a deck. A new built-in plugin is a folder with its `mod` line, and a line here.
    #[must_use]
    pub fn new(mesh: &MeshConfig, time: &TimeConfig) -> Self {
        let refinement = refinement::Refinement {
            config: mesh.clone(),
        };
        let hydro = hydro::Hydro {
            prolongation: mesh.prolongation.into(),
            courant: time.courant,
        };
        let diffusion = diffusion::Diffusion {
            courant: time.courant,
        };
        let spheres = BuiltInPlugin::new(spheres::Spheres)
            .table::<spheres::SpheresConfig>("spheres")
            .optional_table::<spheres::EncounterConfig>("encounter");
        Self(vec![
            BuiltInPlugin::new(refinement).table::<MeshConfig>("mesh"),
            BuiltInPlugin::new(hydro)
                .table::<hydro::HydroConfig>("hydro")
                .optional_table::<hydro::MhdConfig>("mhd"),
            BuiltInPlugin::new(sources::Sources).table::<sources::SourcesConfig>("sources"),
            BuiltInPlugin::new(acceleration::Accelerations),
            BuiltInPlugin::new(diffusion)
                .optional_table::<ViscosityConfig>("viscosity")
                .optional_table::<ConductionConfig>("conduction"),
            BuiltInPlugin::new(external::ExternalForces)
                .table::<external::ExternalConfig>("external"),
            BuiltInPlugin::new(gravity::SelfGravity).table::<gravity::GravityConfig>("gravity"),
            BuiltInPlugin::new(floors::Floors).table::<floors::FloorsConfig>("floors"),
            BuiltInPlugin::new(chemistry::Chemistry)
                .table::<chemistry::ChemistryConfig>("chemistry"),
            BuiltInPlugin::new(cooling::Cooling).table::<cooling::CoolingConfig>("cooling"),
            BuiltInPlugin::new(particles::Particles)
                .table::<particles::ParticlesConfig>("particles"),
            spheres,
            BuiltInPlugin::new(cosmology::Cosmology)
                .optional_table::<cosmology::CosmologyConfig>("cosmology")
                .optional_table::<cosmology::PerturbationsConfig>("perturbations"),
            BuiltInPlugin::new(star_formation::StarFormation)
                .optional_table::<star_formation::StarFormationConfig>("star_formation"),
            BuiltInPlugin::new(feedback::Feedback)
                .optional_table::<feedback::FeedbackConfig>("feedback"),
            BuiltInPlugin::new(sinks::Sinks).optional_table::<sinks::SinksConfig>("sinks"),
            BuiltInPlugin::new(deck_columns::DeckColumns),
            BuiltInPlugin::new(views::OutputViews).variants(views::tables()),
        ])
    }
}

impl Default for DefaultPlugins {
    fn default() -> Self {
        Self::new(&MeshConfig::default(), &TimeConfig::default())
    }
}
