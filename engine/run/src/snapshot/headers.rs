//! Attributes and array headers of snapshots.

use crate::diagnostics::Diagnostics;
use crate::restart_state::state;
use crate::snapshot::PatchOffsets;
use crate::snapshot::derived::DerivedArrays;
use nestar_deck::{CodeUnits, Formula};
use nestar_engine_data::{Component, DerivedField, FieldSpec, ParticleColumn, StoreRef};
use nestar_engine_mesh::{Levels, Topology};
use nestar_engine_step::{Engine, Error, RunFacts};
use nestar_snapshot as store;

/// Returns the attributes of a snapshot of the present state. Collective; complete on the first rank.
///
/// # Errors
/// A device fails; another rank has failed.
pub(crate) fn attributes(
    sim: &Engine,
    diagnostics: &Diagnostics,
    offsets: &PatchOffsets,
) -> Result<store::Attributes, Error> {
    let settings = &sim.settings;
    let clock = sim.world.resource::<Levels>().clock(0);
    let faces = settings.domain.boundary.faces();
    let boundary: serde_json::Map<String, serde_json::Value> = ["x", "y", "z"]
        .into_iter()
        .zip(faces)
        .map(|(axis, sides)| (axis.to_string(), serde_json::json!(sides)))
        .collect();
    Ok(store::Attributes {
        time: clock.time,
        step: clock.steps,
        domain_left_edge: settings.domain.left_edge,
        domain_right_edge: settings.domain.right_edge,
        root_cells: settings.domain.cells.map(u64::from),
        boundary: boundary.into(),
        precision: match sim.precision() {
            nestar_engine_data::Precision::Single => store::StoredPrecision::Single,
            nestar_engine_data::Precision::Double => store::StoredPrecision::Double,
        },
        units: store::CgsUnits {
            length_cgs: settings.units.length_cgs,
            mass_cgs: settings.units.mass_cgs,
            time_cgs: settings.units.time_cgs,
            name: settings.units.name.clone(),
        },
        facts: sim.world.resource::<RunFacts>().0.clone(),
        config: sim.deck.resolved(),
        restart: state(sim, &diagnostics.initial, offsets)?,
    })
}

/// The header of an array with a value of a component in each cell.
#[allow(
    clippy::disallowed_methods,
    reason = "unit factors are metadata: no run depends on their last bit"
)]
fn cell_header(
    units: &CodeUnits,
    component: &Component,
    data_type: store::DataType,
) -> store::FieldHeader {
    let [length, mass, time] = component.dimension;
    let factor =
        units.length_cgs.powi(length) * units.mass_cgs.powi(mass) * units.time_cgs.powi(time);
    let Component {
        name,
        units,
        long_name,
        ..
    } = component;
    store::FieldHeader::cells(name, data_type, units, factor, long_name)
}

/// Returns the header of a particle array.
pub(crate) fn particle_header(units: &CodeUnits, column: &ParticleColumn) -> store::FieldHeader {
    let along = column.along.into_iter();
    store::FieldHeader {
        dimensions: along.clone().map(|(name, _)| name.into()).collect(),
        shape: along.map(|(_, length)| length as u64).collect(),
        ..cell_header(units, &column.what, column.data_type)
    }
}

/// Returns the cgs value of a unit. Words other than length, mass and time count as 1, and so does a text
/// that is no product.
fn factor(units: &str, code: &CodeUnits) -> f64 {
    let sizes = [
        ("length", code.length_cgs),
        ("mass", code.mass_cgs),
        ("time", code.time_cgs),
    ];
    let words = units.split(|c: char| !c.is_ascii_alphabetic());
    let others =
        words.filter(|word| !word.is_empty() && sizes.iter().all(|(name, _)| name != word));
    let all: Vec<(&str, f64)> = others.map(|word| (word, 1.0)).chain(sizes).collect();
    let (names, values): (Vec<&str>, Vec<f64>) = all.into_iter().unzip();
    let product = Formula::parse(&units.replace("**", "^"), &names);
    let factor = product.map_or(1.0, |product| product.eval(&values));
    if factor.is_finite() { factor } else { 1.0 }
}

/// Returns the header of a derived field.
fn derived_header(
    code: &CodeUnits,
    derived: &DerivedField,
    data_type: store::DataType,
) -> store::FieldHeader {
    let DerivedField {
        name,
        units,
        long_name,
        ..
    } = derived;
    let factor = factor(units, code);
    store::FieldHeader::cells(name, data_type, units, factor, long_name).derived()
}

/// Returns the levels of a snapshot of the present state.
pub(crate) fn levels(
    sim: &Engine,
    fields: &[StoreRef],
    derived: &DerivedArrays,
) -> Vec<store::LevelPlan> {
    let topology = sim.world.resource::<Topology>();
    let data_type = match sim.precision() {
        nestar_engine_data::Precision::Single => store::DataType::F32,
        nestar_engine_data::Precision::Double => store::DataType::F64,
    };
    let header = |(component, side, staggered): Shaped| {
        let header = cell_header(&sim.settings.units, component, data_type);
        header.of_side(side as u64).on_sides(staggered)
    };
    let components = fields.iter().map(|field| field.of(&sim.world).spec());
    let mut headers: Vec<store::FieldHeader> =
        components.flat_map(components_of).map(header).collect();
    let units = &sim.settings.units;
    headers.extend((derived.fields()).map(|own| derived_header(units, own, data_type)));
    (0..=topology.finest())
        .map(|level| {
            let clock = sim.world.resource::<Levels>().clock(level);
            store::LevelPlan {
                header: store::LevelHeader {
                    level: level as u8,
                    time: clock.time,
                    dt: clock.dt,
                    cell_width: topology.domain.cell_width(level),
                    patches: topology.count(level) as u64,
                },
                fields: headers.clone(),
            }
        })
        .collect()
}

/// A component, the cells of its rows along an axis, and the axes along which it is staggered.
type Shaped<'a> = (&'a Component, usize, [bool; 3]);

/// Returns the components of a store.
fn components_of(spec: &FieldSpec) -> impl Iterator<Item = Shaped<'_>> {
    let staggered = |c| [0, 1, 2].map(|axis| spec.centring.staggered(c, axis) == 1);
    let components = spec.components.iter().enumerate();
    components.map(move |(c, component)| (component, spec.side, staggered(c)))
}
