//! State that plugins keep beside the fields: in every snapshot, and restored from it bit for bit.

use super::Error;
use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::*;
use std::collections::BTreeMap;

/// What a plugin needs beside the fields to continue: the position in a random sequence, phases of a driving force, a
/// counter. Register it with [`Engine::state`](crate::Engine::state); systems take it as `Res` and `ResMut`.
///
/// The state is that of the run, not of a rank: systems change it alike on all ranks.
pub trait PluginState: Resource<Mutability = Mutable> + Sized {
    /// Version of the bytes; count it up when they change their meaning.
    const VERSION: u32;

    /// The state as bytes, every bit of it, on any machine the same.
    fn save(&self) -> Vec<u8>;

    /// Takes what [`PluginState::save`] gave under the same version. What the deck says stays as it is.
    ///
    /// # Errors
    /// Why these bytes are no state.
    fn load(&mut self, bytes: &[u8]) -> Result<(), String>;
}

/// How the engine reaches one registered state.
#[derive(Clone, Copy)]
pub(crate) struct StateOperations {
    /// [`PluginState::VERSION`].
    pub version: u32,
    /// [`PluginState::save`].
    pub save: fn(&World) -> Vec<u8>,
    /// [`PluginState::load`].
    pub load: fn(&mut World, &[u8]) -> Result<(), String>,
}

/// The registered states by name.
#[derive(Resource, Clone, Default)]
pub(crate) struct StateRegistry(BTreeMap<String, StateOperations>);

impl StateRegistry {
    /// The states, by ascending name.
    pub fn each(&self) -> impl Iterator<Item = (&str, StateOperations)> {
        self.0.iter().map(|(name, state)| (name.as_str(), *state))
    }

    /// Adds a state.
    ///
    /// # Errors
    /// The name is taken, or no name.
    pub fn add<S: PluginState>(&mut self, name: &str) -> Result<(), Error> {
        require_name(name, "state")?;
        let state = StateOperations {
            version: S::VERSION,
            save: |world| world.resource::<S>().save(),
            load: |world, bytes| world.resource_mut::<S>().load(bytes),
        };
        match self.0.insert(name.into(), state) {
            None => Ok(()),
            Some(_) => Err(Error::Setup(format!(
                "two plugins register the state `{name}`: give each its own name"
            ))),
        }
    }
}

/// Refuses names that a snapshot has no room for.
pub(crate) fn require_name(name: &str, kind: &str) -> Result<(), Error> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    match !name.is_empty() && name.bytes().all(fits) {
        true => Ok(()),
        false => Err(Error::Setup(format!(
            "the {kind} `{name}`: a name has letters, digits and `_` only"
        ))),
    }
}
