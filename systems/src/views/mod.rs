//! Quantities of the views `[[output.view]]`: all fields, derived fields, coordinates, and formulas of them.
//!
//! There are no `config.rs`, `systems.rs` and `diagnostics.rs`: the engine reads the views and writes them.

mod spectrum;

use crate::fields::quantities::{compile, stored_component, vocabulary};
use crate::fields::{Gas, GasModel};
use nestar_deck::TableSchema;
use nestar_engine::data::criteria::NamedQuantity;
use nestar_engine::data::{DerivedFields, Field, Stores};
use nestar_engine::run::views::{ViewKinds, ViewQuantities, ViewQuantity, prepare, table};
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
        sim.world.insert_resource(kinds);
        Ok(())
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.defer_setup(|sim| {
            let names = quantities(sim);
            sim.world.insert_resource(ViewQuantities { names, compile });
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
        let [units, long_name] = described(sim, &name);
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

/// Returns unit and description of a quantity of the gas.
pub(crate) fn described(sim: &Engine, name: &str) -> [String; 2] {
    let derived = sim.world.resource::<DerivedFields>().all();
    let mut derived = derived.filter(|(_, own)| own.name == name);
    if let Some((_, own)) = derived.next() {
        return [own.units.clone(), own.long_name.clone()];
    }
    for store in sim.world.resource::<Stores>().all() {
        let mut components = store.of(&sim.world).spec().components.iter();
        if let Some(own) = components.find(|own| own.name == name) {
            return [own.units.clone(), own.long_name.clone()];
        }
    }
    let (units, long_name) = match name {
        "x" | "y" | "z" => ("length", format!("{name} of the cell centre")),
        "r" => (
            "length",
            "distance of the cell centre from the origin".into(),
        ),
        "t" => ("time", "simulation time".into()),
        "width" | "cell_width" => ("length", "smallest width of the cell".into()),
        _ => ("1", name.into()),
    };
    [units.into(), long_name]
}
