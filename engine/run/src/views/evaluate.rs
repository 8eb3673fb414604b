//! Evaluates the quantities of a view on the host and combines the accumulators of all ranks.
//!
//! Only components that the view reads are copied from the stores, only of patches that it uses, and all values are computed in
//! double precision: the bits do not depend on the number of ranks, threads and devices.

use super::{Accumulator, PatchCells, Quantity, View};
use nestar_engine_comm::{Message, Ranks, RanksError};
use nestar_engine_data::level::geometry;
use nestar_engine_data::{StoreRef, Stores};
use nestar_engine_mesh::{Levels, Topology};
use nestar_engine_step::error::agreed;
use nestar_engine_step::{Engine, Error};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::block::LevelGeometry;
use rayon::prelude::*;

/// Patches that are evaluated together.
const BATCH: usize = 256;

/// Returns the values of the arrays of a view at the present time on the first rank. Collective.
///
/// # Errors
/// The device or another rank has failed.
pub(super) fn collect(sim: &Engine, view: &dyn View) -> Result<Option<Vec<Vec<f64>>>, Error> {
    let ranks = sim.world.resource::<Ranks>();
    let mut accumulator = view.accumulator();
    let added = add_levels(sim, view, &mut *accumulator);
    agreed(ranks, added)?;
    if ranks.is_single() {
        return Ok(Some(accumulator.values()));
    }
    let own = match ranks.rank() {
        0 => Vec::new(),
        _ => vec![Message {
            peer: 0,
            bytes: accumulator.pack(),
        }],
    };
    let received = ranks.communicator().exchange(own)?;
    if ranks.rank() > 0 {
        return Ok(None);
    }
    for message in received {
        let joined = accumulator.join(&message.bytes);
        joined.ok_or_else(|| {
            let peer = message.peer;
            RanksError::Transport(format!("the part of a view from rank {peer} is damaged"))
        })?;
    }
    Ok(Some(accumulator.values()))
}

/// Adds the own cells of all levels.
fn add_levels(
    sim: &Engine,
    view: &dyn View,
    accumulator: &mut dyn Accumulator,
) -> Result<(), Error> {
    let topology = sim.world.resource::<Topology>();
    let inputs = ViewInputs::new(sim, view.quantities())?;
    for level in 0..=topology.finest().min(view.finest()) {
        let clock = sim.world.resource::<Levels>().clock(level);
        let geometry = geometry(&topology.domain, level, [clock.time, clock.dt]);
        let used = |&row: &u32| {
            let whole = level == view.finest() || topology.is_leaf(row);
            whole && view.uses(&geometry, topology.index(row))
        };
        let rows: Vec<u32> = topology.rows(level).iter().copied().filter(used).collect();
        for rows in rows.chunks(BATCH) {
            let values = inputs.evaluate(sim, level, rows, &geometry)?;
            for (values, &row) in values.iter().zip(rows) {
                accumulator.add(&PatchCells {
                    level,
                    patch: topology.index(row),
                    geometry: &geometry,
                    values,
                });
            }
        }
    }
    Ok(())
}

/// Components that the quantities of a view read.
struct ViewInputs<'a> {
    quantities: &'a [Quantity],
    components: Vec<(StoreRef, usize)>,
    /// Places of the inputs of each quantity among the components.
    places: Vec<Vec<usize>>,
}

impl<'a> ViewInputs<'a> {
    fn new(sim: &Engine, quantities: &'a [Quantity]) -> Result<Self, Error> {
        let stores = sim.world.resource::<Stores>().all();
        let mut inputs = Self {
            quantities,
            components: Vec::new(),
            places: Vec::new(),
        };
        for quantity in quantities {
            let mut places = Vec::new();
            for (name, component) in &quantity.inputs {
                let store = stores.iter().find(|store| store.name == *name);
                let missing = || Error::Setup(format!("no plugin registers the field `{name}`"));
                places.push(inputs.place(*store.ok_or_else(missing)?, *component));
            }
            inputs.places.push(places);
        }
        Ok(inputs)
    }

    /// Returns the place of a component, adding it if necessary.
    fn place(&mut self, store: StoreRef, component: usize) -> usize {
        let mut known = self.components.iter();
        let found = known.position(|(own, c)| own.name == store.name && *c == component);
        found.unwrap_or_else(|| {
            self.components.push((store, component));
            self.components.len() - 1
        })
    }

    /// Returns the quantities in some patches of a level, `[quantity][512]` for each patch.
    fn evaluate(
        &self,
        sim: &Engine,
        level: usize,
        rows: &[u32],
        geometry: &LevelGeometry,
    ) -> Result<Vec<Vec<f64>>, Error> {
        let topology = sim.world.resource::<Topology>();
        let mut read = Vec::with_capacity(self.components.len());
        for (store, component) in &self.components {
            let values = store.of(&sim.world).save(level, *component, rows)?;
            read.push(values.into_f64());
        }
        let of_patch = |state: &mut Vec<f64>, (n, &row): (usize, &u32)| {
            let patch = topology.index(row);
            let mut made = vec![0.0; self.quantities.len() * CELLS];
            let parts = self.quantities.iter().zip(&self.places);
            for ((quantity, places), out) in parts.zip(made.chunks_mut(CELLS)) {
                state.clear();
                for &place in places {
                    state.extend_from_slice(&read[place][n * CELLS..][..CELLS]);
                }
                quantity.number.fill_patch(state, patch, geometry, out);
            }
            made
        };
        let patches = rows.par_iter().enumerate();
        Ok(patches.map_init(Vec::new, of_patch).collect())
    }
}
