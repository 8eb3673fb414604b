//! Quantities of the views `[[output.view]]`: all fields, derived fields, coordinates, and formulas of them.
//!
//! There are no `config.rs`, `systems.rs` and `diagnostics.rs`: the engine reads the views and writes them.

mod halos;
mod matter;
mod matter_spectrum;
mod overdensity;
mod points;
mod spectrum;

use crate::fields::quantities::{compile, described_in, stored_component, vocabulary};
use crate::fields::{Gas, GasModel};
use halos::HalosConfig;
use nestar_deck::{CELL_VARIABLES, TableSchema};
use nestar_device::{Place, Real, device};
use nestar_engine::data::criteria::{NamedQuantity, QuantityFn};
use nestar_engine::data::{DerivedFields, Field, ParticleKinds, Stores};
use nestar_engine::run::views::{
    DEPOSITS, ViewDeposit, ViewKinds, ViewQuantities, ViewQuantity, prepare, table,
};
use nestar_engine::{Engine, Error, Plugin};
use nestar_kernels::PATCH;
use nestar_kernels::mesh::Centring;
use spectrum::SpectrumConfig;

/// Plugin that names the quantities of views.
pub struct OutputViews;

impl Plugin for OutputViews {
    fn name(&self) -> &str {
        "views"
    }

    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        let mut kinds = ViewKinds::built_in();
        kinds.add::<SpectrumConfig>();
        kinds.add::<HalosConfig>();
        sim.world.insert_resource(kinds);
        Ok(())
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.defer_setup(|sim| {
            let mut names = quantities(sim);
            let deposits = deposits(sim, &mut names);
            names.extend(indices());
            sim.world.insert_resource(ViewQuantities {
                names,
                deposits,
                compile,
            });
            prepare(sim)
        });
        Ok(())
    }
}

/// Returns the schemas of all kinds of views.
#[must_use]
pub fn tables() -> Vec<TableSchema> {
    let mut tables = nestar_engine::run::views::tables();
    tables.push(table::<SpectrumConfig>());
    tables.push(table::<HalosConfig>());
    tables
}

/// Returns all quantities, without repeated names.
fn quantities(sim: &Engine) -> Vec<ViewQuantity> {
    let mut all: Vec<ViewQuantity> = Vec::new();
    let mut add = |own: ViewQuantity| {
        if !all.iter().any(|known| known.name == own.name) {
            all.push(own);
        }
    };
    let gas = sim.world.get_resource::<GasModel>().map(vocabulary);
    for (name, number) in gas.into_iter().flatten() {
        let [units, long_name] = described_in(sim, &name);
        add(ViewQuantity {
            name,
            units,
            long_name,
            store: Gas::NAME,
            number,
        });
    }
    for store in sim.world.resource::<Stores>().all() {
        let spec = store.of(&sim.world).spec();
        if spec.centring != Centring::Cell || spec.side != PATCH || spec.working {
            continue;
        }
        for (c, component) in spec.components.iter().enumerate() {
            add(ViewQuantity {
                name: component.name.clone(),
                units: component.units.clone(),
                long_name: component.long_name.clone(),
                store: store.name,
                number: stored_component(c),
            });
        }
    }
    for (store, own) in sim.world.resource::<DerivedFields>().all() {
        let number: NamedQuantity = own.number.clone();
        add(ViewQuantity {
            name: own.name.clone(),
            units: own.units.clone(),
            long_name: own.long_name.clone(),
            store,
            number,
        });
    }
    all
}

/// Adds mass and number of the particles of each species per volume, `particles_NAME_mass` and `particles_NAME_number`.
fn deposits(sim: &Engine, names: &mut Vec<ViewQuantity>) -> Vec<ViewDeposit> {
    let mut all = Vec::new();
    for kind in sim.world.resource::<ParticleKinds>().all() {
        let columns = kind.of(&sim.world).columns();
        let has = |name: &str| columns.iter().any(|own| own.what.name == name);
        if !has("position") {
            continue;
        }
        let sums = [
            ("mass", "mass/length**3", has("mass")),
            ("number", "1/length**3", true),
        ];
        for (what, units, _) in sums.into_iter().filter(|(.., known)| *known) {
            names.push(ViewQuantity {
                name: format!("{}_{what}", kind.path.replace('/', "_")),
                units: units.into(),
                long_name: format!("{what} of {} per volume", kind.path),
                store: DEPOSITS,
                number: stored_component(all.len()),
            });
            all.push(ViewDeposit {
                path: kind.path.clone(),
                column: (what == "mass").then(|| what.into()),
            });
        }
    }
    all
}

/// Refinement level of the cell.
#[device]
fn level_of_cell<R: Real>(at: &Place<R>) -> R {
    R::from_i32(at.level)
}

/// Index of the cell along x on its level.
#[device]
fn index_x<R: Real>(at: &Place<R>) -> R {
    R::from_i32(at.index[0])
}

/// Index of the cell along y on its level.
#[device]
fn index_y<R: Real>(at: &Place<R>) -> R {
    R::from_i32(at.index[1])
}

/// Index of the cell along z on its level.
#[device]
fn index_z<R: Real>(at: &Place<R>) -> R {
    R::from_i32(at.index[2])
}

/// Returns level and index of a cell, the arguments of random numbers. Formulas cannot name them.
fn indices() -> impl Iterator<Item = ViewQuantity> {
    let functions = [
        QuantityFn::of::<level_of_cell>(),
        QuantityFn::of::<index_x>(),
        QuantityFn::of::<index_y>(),
        QuantityFn::of::<index_z>(),
    ];
    let named = CELL_VARIABLES.into_iter().zip(functions);
    named.map(|(name, function)| ViewQuantity {
        name: name.into(),
        units: "1".into(),
        long_name: name.into(),
        store: Gas::NAME,
        number: NamedQuantity {
            function,
            components: Vec::new(),
            parameters: Vec::new(),
        },
    })
}
