//! State of plugins besides fields, stored in snapshots and restored exactly.

use super::Error;
use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// State that a plugin needs besides fields to continue, such as a counter or the phases of a driving force.
/// Register it with [`Engine::register_state`](crate::Engine::register_state); systems take it as `Res` or
/// `ResMut`.
///
/// All ranks hold the same state and must change it identically.
pub trait PluginState: Resource<Mutability = Mutable> + Sized {
    /// Version of the encoding; increase it when the meaning of the bytes changes.
    const VERSION: u32;

    /// Encodes the state exactly and independently of the machine.
    fn save(&self) -> Vec<u8>;

    /// Decodes bytes that [`PluginState::save`] wrote with the same version. Settings of the deck stay
    /// unchanged.
    ///
    /// # Errors
    /// The reason why the bytes are invalid.
    fn load(&mut self, bytes: &[u8]) -> Result<(), String>;
}

/// Encodes a state.
type SaveState = Arc<dyn Fn(&World) -> Vec<u8> + Send + Sync>;
/// Decodes a state.
type LoadState = Arc<dyn Fn(&mut World, &[u8]) -> Result<(), String> + Send + Sync>;

/// Operations on one registered state.
#[derive(Clone)]
pub struct StateOperations {
    /// [`PluginState::VERSION`].
    pub version: u32,
    /// [`PluginState::save`].
    pub save: SaveState,
    /// [`PluginState::load`].
    pub load: LoadState,
}

impl StateOperations {
    /// Returns the operations of a resource.
    pub fn of<S: PluginState>() -> Self {
        Self {
            version: S::VERSION,
            save: Arc::new(|world| world.resource::<S>().save()),
            load: Arc::new(|world, bytes| world.resource_mut::<S>().load(bytes)),
        }
    }
}

/// Holds the registered states by name.
#[derive(Resource, Clone, Default)]
pub struct StateRegistry(BTreeMap<String, StateOperations>);

impl StateRegistry {
    /// Returns the states in ascending order of names.
    pub fn each(&self) -> impl Iterator<Item = (&str, &StateOperations)> {
        self.0.iter().map(|(name, state)| (name.as_str(), state))
    }

    /// Adds a state.
    ///
    /// # Errors
    /// The name is used already, or invalid.
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

/// Rejects names that snapshots cannot store.
pub(crate) fn require_name(name: &str, kind: &str) -> Result<(), Error> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    match !name.is_empty() && name.bytes().all(fits) {
        true => Ok(()),
        false => Err(Error::Setup(format!(
            "the {kind} `{name}`: a name has letters, digits and `_` only"
        ))),
    }
}
