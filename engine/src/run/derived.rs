//! Arrays of derived fields in snapshots: made on the host of the values that a snapshot takes anyway, shard by shard and in double
//! precision, so that they have the same bits on any number of ranks and devices, and need no room beside the state.

use crate::data::level::geometry;
use crate::data::{DerivedField, DerivedFields, Precision, StoreRef};
use crate::mesh::{Levels, PATCH, Topology};
use crate::step::Engine;
use nestar_kernels::CELLS;
use nestar_kernels::mesh::block::LevelGeometry;
use nestar_snapshot::{ORIGIN, Values};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// A shard: its level and its first patch.
type ShardKey = (usize, usize);

/// What a snapshot holds beside the state.
pub(super) struct DerivedArrays {
    sources: Vec<DerivedInputs>,
    /// Of the levels.
    geometries: Vec<LevelGeometry>,
    /// Origins of the patches of shards on their way.
    origins: BTreeMap<ShardKey, Vec<[i32; 3]>>,
    precision: Precision,
}

/// A field and what is made of it.
struct DerivedInputs {
    /// Components of the field.
    components: usize,
    /// Those that are read, with the names of their arrays.
    read: Vec<(usize, String)>,
    fields: Vec<DerivedField>,
    /// Shards of which not all arrays are there yet.
    held: BTreeMap<ShardKey, Vec<(usize, Vec<f64>)>>,
}

impl DerivedInputs {
    /// What the deck asks for of a field; `None` if that is nothing.
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

    /// Takes a shard of an array; those of all that are read, when this is the last one.
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

    /// The values of a derived field in patches with these origins.
    fn made(
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
        // a thread of the run waits for the others; one beside it leaves them to the run
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
    /// What the deck asks for, of a snapshot of the present state of `fields`.
    pub fn new(sim: &Engine, fields: &[StoreRef]) -> Self {
        let topology = sim.world.resource::<Topology>();
        let geometry = |level: usize| {
            let clock = sim.world.resource::<Levels>().clock(level);
            geometry(&topology.domain, level, [clock.time, clock.dt])
        };
        let sources = fields
            .iter()
            .filter_map(|field| DerivedInputs::of(sim, *field));
        Self {
            sources: sources.collect(),
            geometries: (0..=topology.finest()).map(geometry).collect(),
            origins: BTreeMap::new(),
            precision: sim.precision(),
        }
    }

    /// What there is, in the order of the fields and of the deck.
    pub fn fields(&self) -> impl Iterator<Item = &DerivedField> {
        self.sources.iter().flat_map(|source| &source.fields)
    }

    /// Takes a whole shard of an array; shards of arrays that can be made when this one is there. Origins come before values.
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
                let made = source.made(own, &read, origins, geometry);
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
