//! Fields of plots that plugins derive from the state.

use bevy_ecs::prelude::World;
use nestar_device::math::pow;
use nestar_engine::data::{DerivedFields, Stores};
use nestar_kernels::hydro::eos;
use nestar_plot::{CustomField, FieldFunction};
use nestar_snapshot::Snapshot;
use nestar_systems::fields::quantities::WITH_UNITS;
use nestar_systems::fields::{GAS_COMPONENTS, GasUnits};
use nestar_systems::units::Units;
use std::sync::Arc;

/// Returns the derived fields that the plugins of a simulation have registered.
pub(crate) fn derived(world: &World) -> Vec<CustomField> {
    let stores = world.resource::<Stores>().all();
    let derived = world.resource::<DerivedFields>().all();
    let own = derived.filter_map(|(of, derived)| {
        let store = stores.iter().find(|store| store.name == of)?;
        let components = &store.of(world).spec().components;
        let number = derived.number.clone();
        Some(CustomField {
            name: derived.name.clone(),
            units: derived.units.clone(),
            arrays: components.iter().map(|c| c.name.clone()).collect(),
            value: Arc::new(move |state| number.of_state(state)),
        })
    });
    own.collect()
}

/// Returns temperature and number density of the gas, if the snapshot has units.
pub(crate) fn with_units(snapshot: &Snapshot) -> Vec<CustomField> {
    let attributes = snapshot.attributes();
    let units = nestar_plot::code_units(snapshot);
    let fact = |name: &str| attributes.facts.get(name).copied();
    let (Some(units), Some(gamma)) = (units.if_dimensional(), fact("gamma")) else {
        return Vec::new();
    };
    // without this number the mean molecular weight is not constant
    let Some(weight) = fact("mean_molecular_weight") else {
        return Vec::new();
    };
    let physical = GasUnits::of(&Units::from(units), weight);
    let field = |name: &str, units: &str, arrays: &[&str], value: FieldFunction| CustomField {
        name: name.into(),
        units: units.into(),
        arrays: arrays.iter().map(ToString::to_string).collect(),
        value,
    };
    let [hot, many] = WITH_UNITS;
    let constant = fact("polytropic_constant");
    let kelvins = move |state: &[f64]| {
        if let Some(constant) = constant {
            return constant * pow(state[0], gamma - 1.0) * physical.kelvin;
        }
        let state = std::array::from_fn(|c| state[c]);
        let [density, .., pressure] = eos::primitive_from_conserved(&state, gamma);
        pressure / density * physical.kelvin
    };
    let number = move |state: &[f64]| state[0] * physical.number_density;
    // gas without energy has a temperature by its density alone
    let arrays = if constant.is_some() { &GAS[..1] } else { &GAS };
    vec![
        field(hot, "K", arrays, Arc::new(kelvins)),
        field(many, "cm**-3", &GAS[..1], Arc::new(number)),
    ]
}

/// Arrays of the gas.
const GAS: [&str; GAS_COMPONENTS] = [
    "density",
    "momentum_x",
    "momentum_y",
    "momentum_z",
    "energy",
];
