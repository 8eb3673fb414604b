//! Replay of sub-cycled functions in single cells.

use super::error::Error;
use bevy_ecs::prelude::*;
use nestar_engine_data::level::geometry;
use nestar_engine_data::{
    CellCallResult, CellCase, CellSubcycle, Components, DerivedInputs, Field, Pool, Stores,
};
use nestar_engine_mesh::Topology;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Replays a function in one cell.
type Replay = dyn Fn(&World, &CellCase) -> Vec<CellCallResult> + Send + Sync;

/// Holds the sub-cycled functions that can be replayed in a [`CellCase`], by path.
#[derive(Resource, Default)]
pub struct Replays(BTreeMap<String, Box<Replay>>);

impl Replays {
    /// Registers function `M` on field `F` for replay. It stores the components and numbers that `M` reads,
    /// its largest number of calls and its parameters.
    pub fn add<F: Field, M: CellSubcycle>(
        world: &mut World,
        (chosen, numbers): (Components, Option<Arc<DerivedInputs>>),
        calls: usize,
        given: Arc<M::Parameters>,
    ) where
        M::Parameters: Send + Sync,
    {
        let replay = move |world: &World, case: &CellCase| {
            let domain = &world.resource::<Topology>().domain;
            let geometry = geometry(domain, case.level, [case.time, case.dt]);
            let (pool, read) = (Pool::<F>::of(world), (chosen, numbers.as_deref()));
            pool.replay_case::<M>(case, (&geometry, calls), read, &given)
        };
        let mut all = world.resource_mut::<Self>();
        all.0.insert(M::ITEM.path(), Box::new(replay));
    }

    /// Returns `true` if the function of a case can be replayed.
    pub fn contains(&self, case: &CellCase) -> bool {
        self.0.contains_key(&case.function)
    }

    /// Reads a case from a file.
    ///
    /// # Errors
    /// The file cannot be read, is no case, or is damaged.
    pub fn read(path: &Path) -> Result<CellCase, Error> {
        let text = std::fs::read_to_string(path).map_err(Error::file("cannot read", path))?;
        let path = path.display();
        CellCase::parse(&text)
            .map_err(|why| Error::Setup(format!("{path} is no captured cell: {why}")))
    }

    /// Replays a case on the host, in the simulation of its deck.
    ///
    /// # Errors
    /// The simulation has no such function, or its field has other components.
    pub fn replay(world: &World, case: &CellCase) -> Result<Vec<CellCallResult>, Error> {
        let wrong = |why: &str| Error::Setup(format!("the cell cannot be replayed: {why}"));
        let replay = world.resource::<Self>().0.get(&case.function);
        let replay = replay.ok_or_else(|| {
            let function = &case.function;
            wrong(&format!(
                "this program and deck have no sub-cycled function `{function}`"
            ))
        })?;
        let fields = world.resource::<Stores>().all();
        let field = fields
            .into_iter()
            .find(|field| field.of(world).name() == case.field);
        let names = field.map(|field| field.of(world).spec().components.clone());
        let names = names.unwrap_or_default().into_iter().map(|c| c.name);
        match names.eq(case.components.iter().cloned()) {
            true => Ok(replay(world, case)),
            false => Err(wrong("the components of the field have changed")),
        }
    }
}
