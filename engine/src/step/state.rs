//! State that plugins keep beside the fields: in every snapshot, and restored from it bit for bit.

use super::Error;
use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a plugin needs beside the fields to continue: the position in a random sequence, phases of a driving force, a
/// counter. Register it with [`Engine::register_state`](crate::Engine::register_state); systems take it as `Res` and `ResMut`.
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

/// Gives a state as bytes.
type SaveState = Arc<dyn Fn(&World) -> Vec<u8> + Send + Sync>;
/// Takes a state from bytes.
type LoadState = Arc<dyn Fn(&mut World, &[u8]) -> Result<(), String> + Send + Sync>;

/// How the engine reaches one registered state.
#[derive(Clone)]
pub(crate) struct StateOperations {
    /// [`PluginState::VERSION`].
    pub version: u32,
    /// [`PluginState::save`].
    pub save: SaveState,
    /// [`PluginState::load`].
    pub load: LoadState,
}

impl StateOperations {
    /// Of a resource.
    pub fn of<S: PluginState>() -> Self {
        Self {
            version: S::VERSION,
            save: Arc::new(|world| world.resource::<S>().save()),
            load: Arc::new(|world, bytes| world.resource_mut::<S>().load(bytes)),
        }
    }
}

/// The registered states by name.
#[derive(Resource, Clone, Default)]
pub(crate) struct StateRegistry(BTreeMap<String, StateOperations>);

impl StateRegistry {
    /// The states, by ascending name.
    pub fn each(&self) -> impl Iterator<Item = (&str, &StateOperations)> {
        self.0.iter().map(|(name, state)| (name.as_str(), state))
    }

    /// Adds a state.
    ///
    /// # Errors
    /// The name is taken, or no name.
    pub fn add(&mut self, name: &str, state: StateOperations) -> Result<(), Error> {
        require_name(name, "state")?;
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
