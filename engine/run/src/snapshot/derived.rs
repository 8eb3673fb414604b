//! Derived fields in snapshots. They are computed on the host, shard by shard and in double precision, from
//! the values that are written anyway. The bits do not depend on the number of ranks and devices.

use nestar_engine_data::level::geometry;
use nestar_engine_data::{DerivedField, DerivedFields, Precision, StoreRef};
use nestar_engine_mesh::{Levels, PATCH, Topology};
use nestar_engine_step::Engine;
use nestar_kernels::CELLS;
use nestar_kernels::mesh::block::LevelGeometry;
use nestar_snapshot::{ORIGIN, Values};
use rayon::prelude::*;
use std::collections::BTreeMap;

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
            let clock = sim.world.resource::<Levels>().clock(level);
            geometry(&topology.domain, level, [clock.time, clock.dt])
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
