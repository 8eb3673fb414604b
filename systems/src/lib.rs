//! Physics of Nestar: one folder per plugin, each made of systems that call kernels.
//!
//! [`DefaultPlugins`] lists all plugins. They do not import each other. They share [`fields`] (fields and resources),
//! [`order`] (the order of a step), [`units`] (code units) and [`register`] (registration of cell functions).

pub mod acceleration;
mod built_in;
pub mod chemistry;
pub mod cooling;
pub mod declare;
pub mod external;
pub mod fields;
pub mod gravity;
pub mod hydro;
pub mod order;
pub mod particles;
pub mod refinement;
pub mod register;
pub mod sources;
pub mod spectral;
pub mod spheres;
pub mod state_selection;
pub mod subcycling;
pub mod time;
pub mod units;

pub use built_in::BuiltIn;

use acceleration::Accelerations;
use chemistry::{Chemistry, ChemistryConfig};
use cooling::{Cooling, CoolingConfig};
use external::{ExternalConfig, ExternalForces};
use gravity::{GravityConfig, SelfGravity};
use hydro::{Hydro, HydroConfig};
use particles::{Particles, ParticlesConfig};
use refinement::{MeshConfig, Refinement};
use sources::{Sources, SourcesConfig};
use spheres::{EncounterConfig, Spheres, SpheresConfig};
use time::TimeConfig;

/// The built-in plugins with their deck tables.
///
/// Their declarations run in the order of the list. They are built in this order as well, except that each comes after
/// those that [`Plugin::after`](nestar_engine::Plugin::after) names.
pub struct DefaultPlugins(pub Vec<BuiltIn>);

impl DefaultPlugins {
    /// Lists the plugins for these tables of a deck. A new built-in plugin is a folder and a line here.
    #[must_use]
    pub fn new(mesh: &MeshConfig, time: &TimeConfig) -> Self {
        let refinement = Refinement {
            config: mesh.clone(),
        };
        let hydro = Hydro {
            prolongation: mesh.prolongation.into(),
            courant: time.courant,
        };
        let spheres = BuiltIn::new(Spheres).table::<SpheresConfig>("spheres");
        Self(vec![
            BuiltIn::new(refinement).table::<MeshConfig>("mesh"),
            BuiltIn::new(hydro).table::<HydroConfig>("hydro"),
            BuiltIn::new(Sources).table::<SourcesConfig>("sources"),
            BuiltIn::new(Accelerations),
            BuiltIn::new(ExternalForces).table::<ExternalConfig>("external"),
            BuiltIn::new(SelfGravity).table::<GravityConfig>("gravity"),
            BuiltIn::new(Chemistry).table::<ChemistryConfig>("chemistry"),
            BuiltIn::new(Cooling).table::<CoolingConfig>("cooling"),
            BuiltIn::new(Particles).table::<ParticlesConfig>("particles"),
            spheres.optional_table::<EncounterConfig>("encounter"),
        ])
    }
}

impl Default for DefaultPlugins {
    fn default() -> Self {
        Self::new(&MeshConfig::default(), &TimeConfig::default())
    }
}
