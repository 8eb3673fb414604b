//! Where the world keeps pools: out of the reach of systems' signatures.

use super::pool::{Field, Pool};
use bevy_ecs::prelude::*;

/// A pool as the world keeps it. No signature but those of the engine's handles can name it:
///
/// ```compile_fail,E0277
/// # use bevy_ecs::prelude::*;
/// # use nestar_engine::data::{Field, Pool};
/// # struct Dust;
/// # impl Field for Dust { const NAME: &'static str = "dust"; }
/// fn peek(dust: Res<Pool<Dust>>) {}
/// ```
#[derive(Resource)]
pub(crate) struct PoolResource<F: Field>(pub(crate) Pool<F>);

impl<F: Field> Pool<F> {
    /// The pool in `world`.
    ///
    /// # Panics
    /// If the field is not registered.
    #[must_use]
    pub fn of(world: &World) -> &Self {
        &world.resource::<PoolResource<F>>().0
    }

    /// The pool in `world`, for changing.
    ///
    /// # Panics
    /// As [`Pool::of`].
    #[must_use]
    pub fn of_mut(world: &mut World) -> &mut Self {
        &mut world.resource_mut::<PoolResource<F>>().into_inner().0
    }
}
