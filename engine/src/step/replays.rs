//! Attempts that can be called again in single cells.

use super::error::Error;
use crate::data::level::geometry;
use crate::data::{
    CellCallResult, CellCase, CellSubcycle, Components, DerivedInputs, Field, Pool, Stores,
};
use crate::mesh::Topology;
use bevy_ecs::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Calls a function in a cell again.
type Replay = dyn Fn(&World, &CellCase) -> Vec<CellCallResult> + Send + Sync;

/// The attempts that can be called again in a [`CellCase`], by their paths.
#[derive(Resource, Default)]
pub struct Replays(BTreeMap<String, Box<Replay>>);

impl Replays {
    /// Lets attempts by `M` on field `F` be called again: with the components and numbers that they read, so many calls at most, and their
    /// parameters.
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

    /// Whether the function of a case can be called again.
    pub(crate) fn contains(&self, case: &CellCase) -> bool {
        self.0.contains_key(&case.function)
    }

    /// The case in a file.
    ///
    /// # Errors
    /// The file cannot be read, is none that a run has written, or is damaged.
    pub fn read(path: &Path) -> Result<CellCase, Error> {
        let text = std::fs::read_to_string(path).map_err(Error::file("cannot read", path))?;
        let path = path.display();
        CellCase::parse(&text)
            .map_err(|why| Error::Setup(format!("{path} holds no cell of a run: {why}")))
    }

    /// The calls of a case on the host, in the simulation of its deck.
    ///
    /// # Errors
    /// The simulation has no such function, or its fields are others.
    pub fn replay(world: &World, case: &CellCase) -> Result<Vec<CellCallResult>, Error> {
        let wrong = |why: &str| Error::Setup(format!("the cell cannot be called again: {why}"));
        let replay = world.resource::<Self>().0.get(&case.function);
        let replay = replay.ok_or_else(|| {
            let function = &case.function;
            wrong(&format!(
                "`{function}` is no function of this program and deck that is called again in cells"
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
            false => Err(wrong("the field has other components now")),
        }
    }
}
