//! Attributes and array headers of snapshots, and derived fields. These are computed on the host, shard by shard and
//! in double precision, from the values that are written anyway. The bits do not depend on the number of ranks and
//! devices.

use crate::diagnostics::Diagnostics;
use crate::restart_state::state;
use crate::snapshot::PatchOffsets;
use nestar_deck::CodeUnits;
use nestar_engine_data::level::geometry;
use nestar_engine_data::{
    Component, DerivedField, DerivedFields, FieldSpec, ParticleColumn, Precision, StoreRef, Stores,
};
use nestar_engine_mesh::{Levels, PATCH, Topology};
use nestar_engine_step::{Engine, Error, RunFacts};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::Centring;
use nestar_kernels::mesh::block::LevelGeometry;
use nestar_snapshot as store;
use nestar_snapshot::{ORIGIN, Values};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Returns the attributes of a snapshot of the present state. Collective; complete on the first rank.
///
/// # Errors
/// A device fails; another rank has failed.
pub(crate) fn attributes(
    sim: &Engine,
    diagnostics: &Diagnostics,
    offsets: &PatchOffsets,
) -> Result<store::Attributes, Error> {
    Ok(store::Attributes {
        restart: state(sim, &diagnostics.initial, offsets)?,
        ..described(sim)
    })
}

/// Returns the attributes without those of a restart; complete on the first rank.
pub(crate) fn described(sim: &Engine) -> store::Attributes {
    let settings = &sim.settings;
    let clock = sim.world.resource::<Levels>().clock(0);
    let units = sim.units_at(clock.time);
    let is_changing = units.are_changing();
    let faces = settings.domain.boundary.faces();
    let boundary: serde_json::Map<String, serde_json::Value> = ["x", "y", "z"]
        .into_iter()
        .zip(faces)
        .map(|(axis, sides)| (axis.to_string(), serde_json::json!(sides)))
        .collect();
    store::Attributes {
        time: clock.time,
        step: clock.steps,
        domain_left_edge: settings.domain.left_edge,
        domain_right_edge: settings.domain.right_edge,
        root_cells: settings.domain.cells.map(u64::from),
        boundary: boundary.into(),
        precision: stored_precision(sim),
        units: store::CgsUnits {
            length_cgs: units.length_cgs,
            mass_cgs: units.mass_cgs,
            time_cgs: units.time_cgs,
            name: units.name,
            is_changing,
        },
        facts: sim.world.resource::<RunFacts>().at(clock.time),
        config: sim.deck.stored(),
        view: None,
        restart: serde_json::Map::new(),
    }
}

/// Returns the precision of the run's fields.
pub(crate) fn stored_precision(sim: &Engine) -> store::StoredPrecision {
    match sim.precision() {
        Precision::Single => store::StoredPrecision::Single,
        Precision::Double => store::StoredPrecision::Double,
    }
}

/// Returns the headers of all stored fields with one value per cell.
pub(crate) fn cell_fields(sim: &Engine) -> Vec<store::FieldHeader> {
    let data_type = match sim.precision() {
        Precision::Single => store::DataType::F32,
        Precision::Double => store::DataType::F64,
    };
    let stores = Stores::of(&sim.world, |spec| spec.stored);
    let specs = stores.iter().map(|store| store.of(&sim.world).spec());
    let cells = specs.filter(|spec| spec.centring == Centring::Cell && spec.side == PATCH);
    let components = cells.flat_map(|spec| &spec.components);
    let units = sim.present_units();
    let header = |own| cell_header(&units, own, data_type);
    components.map(header).collect()
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
    // only the text tells the scale factor of changing units
    let factor = match component.dimension == [0; 3] || units.are_changing() {
        true => units.cgs_factor(&component.units),
        false => {
            units.length_cgs.powi(length) * units.mass_cgs.powi(mass) * units.time_cgs.powi(time)
        }
    };
    let header = store::FieldHeader::cells(
        &component.name,
        data_type,
        &component.units,
        factor,
        &component.long_name,
    );
    in_cgs(header, units)
}

/// Adds what the units of a header are in cgs, and how they change.
pub(crate) fn in_cgs(header: store::FieldHeader, code: &CodeUnits) -> store::FieldHeader {
    store::FieldHeader {
        cgs_units: code.cgs_units(&header.units),
        scale_factor_exponent: code.scale_factor_exponent(&header.units),
        ..header
    }
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
    let factor = code.cgs_factor(units);
    let header = store::FieldHeader::cells(name, data_type, units, factor, long_name);
    in_cgs(header, code).derived()
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
    let code = sim.present_units();
    let header = |(component, side, staggered): Shaped| {
        let header = cell_header(&code, component, data_type);
        header.of_side(side as u64).on_sides(staggered)
    };
    let components = fields.iter().map(|field| field.of(&sim.world).spec());
    let mut headers: Vec<store::FieldHeader> =
        components.flat_map(components_of).map(header).collect();
    headers.extend((derived.fields()).map(|own| derived_header(&code, own, data_type)));
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

/// Identifies a shard by its level and first patch.
type ShardKey = (usize, usize);

/// Computes the derived fields of a snapshot.
pub(crate) struct DerivedArrays {
    sources: Vec<DerivedFieldInputs>,
    /// Geometry of each level.
    geometries: Vec<LevelGeometry>,
    /// Patch origins of shards in transfer.
    origins: BTreeMap<ShardKey, Vec<[i32; 3]>>,
    precision: Precision,
}

/// Collects the components of a field from which derived fields are computed.
struct DerivedFieldInputs {
    /// Number of components of the field.
    components: usize,
    /// Components that are read, with the names of their arrays.
    read: Vec<(usize, String)>,
    fields: Vec<DerivedField>,
    /// Shards whose arrays are incomplete.
    held: BTreeMap<ShardKey, Vec<(usize, Vec<f64>)>>,
}

impl DerivedFieldInputs {
    /// Returns the inputs that the deck requests from a field; `None` without requests.
    fn of(sim: &Engine, field: StoreRef) -> Option<Self> {
        let known = sim.world.resource::<DerivedFields>();
        let asked = known.named(&sim.settings.output.derived);
        let own = asked.filter(|(of, _)| *of == field.name);
        let fields: Vec<DerivedField> = own.map(|(_, own)| own.clone()).collect();
        let mut read: Vec<usize> = fields.iter().flat_map(|own| own.components()).collect();
        read.sort_unstable();
        read.dedup();
        let components = &field.of(&sim.world).spec().components;
        let named = |c: usize| (c, components[c].name.clone());
        (!fields.is_empty()).then(|| Self {
            components: components.len(),
            read: read.into_iter().map(named).collect(),
            fields,
            held: BTreeMap::new(),
        })
    }

    /// Adds a shard of an array; returns all inputs of the shard when they are complete.
    fn take(
        &mut self,
        place: ShardKey,
        array: &str,
        values: &Values,
    ) -> Option<Vec<(usize, Vec<f64>)>> {
        let (component, _) = self.read.iter().find(|(_, name)| name == array)?;
        let held = self.held.entry(place).or_default();
        held.push((*component, values.to_f64()));
        match held.len() == self.read.len() {
            true => self.held.remove(&place),
            false => None,
        }
    }

    /// Computes a derived field in patches with these origins.
    fn compute(
        &self,
        own: &DerivedField,
        read: &[(usize, Vec<f64>)],
        origins: &[[i32; 3]],
        geometry: &LevelGeometry,
    ) -> Vec<f64> {
        let mut made = vec![0.0; origins.len() * CELLS];
        let of_patch = |state: &mut Vec<f64>, n: usize, out: &mut [f64]| {
            state.resize(self.components * CELLS, 0.0);
            for (c, values) in read {
                state[c * CELLS..][..CELLS].copy_from_slice(&values[n * CELLS..][..CELLS]);
            }
            let patch = origins[n].map(|cell| cell.div_euclid(PATCH as i32));
            own.fill(state, patch, geometry, out);
        };
        // threads of the run use the pool; the transfer thread leaves it to the run
        if rayon::current_thread_index().is_some() {
            let patches = made.par_chunks_mut(CELLS).enumerate();
            patches.for_each_init(Vec::new, |state, (n, out)| of_patch(state, n, out));
        } else {
            let mut state = Vec::new();
            let patches = made.chunks_mut(CELLS).enumerate();
            patches.for_each(|(n, out)| of_patch(&mut state, n, out));
        }
        made
    }
}

impl DerivedArrays {
    /// Prepares the derived fields that the deck requests from `fields`.
    pub fn new(sim: &Engine, fields: &[StoreRef]) -> Self {
        let topology = sim.world.resource::<Topology>();
        let geometry = |level: usize| {
            let levels = sim.world.resource::<Levels>();
            let clock = levels.clock(level);
            let numbers = levels.numbers_at(clock.time);
            geometry(&topology.domain, level, [clock.time, clock.dt], numbers)
        };
        let sources = fields
            .iter()
            .filter_map(|field| DerivedFieldInputs::of(sim, *field));
        Self {
            sources: sources.collect(),
            geometries: (0..=topology.finest()).map(geometry).collect(),
            origins: BTreeMap::new(),
            precision: sim.precision(),
        }
    }

    /// Returns the derived fields in the order of fields and deck.
    pub fn fields(&self) -> impl Iterator<Item = &DerivedField> {
        self.sources.iter().flat_map(|source| &source.fields)
    }

    /// Adds a shard of an array; returns the derived arrays that are complete with it. Origins come before
    /// values.
    pub fn take(&mut self, place: ShardKey, array: &str, values: &Values) -> Vec<(String, Values)> {
        let mut all = Vec::new();
        if let (true, Values::I32(cells)) = (array == ORIGIN, values) {
            self.origins.insert(place, cells.as_chunks().0.to_vec());
        }
        for source in &mut self.sources {
            let Some(read) = source.take(place, array, values) else {
                continue;
            };
            let (origins, geometry) = (&self.origins[&place], &self.geometries[place.0]);
            for own in &source.fields {
                let made = source.compute(own, &read, origins, geometry);
                let values = match self.precision {
                    Precision::Double => Values::F64(made),
                    Precision::Single => Values::F32(made.iter().map(|&x| x as f32).collect()),
                };
                all.push((own.name.clone(), values));
            }
        }
        all
    }
}
