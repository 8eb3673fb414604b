//! Fields that registered functions read besides the first one.

use super::Read;
use bevy_ecs::prelude::*;
use bevy_ecs::system::{StaticSystemParam, SystemParam, SystemParamItem};
use nestar_engine_data::{CellSource, Field, FieldList, InputList, PoolResource};

/// A tuple of fields whose present states a registered function reads.
pub trait OtherFields: 'static {
    /// Handles of the fields as a system parameter.
    type Handles: SystemParam + 'static;

    /// Returns the fields of a system as inputs of a function.
    fn read<'a>(handles: &'a SystemParamItem<'_, '_, Self::Handles>) -> InputList<'a>;

    /// Returns the fields of a world as inputs of a function.
    ///
    /// # Errors
    /// The name of a field that no plugin registers.
    fn of(world: &World) -> Result<InputList<'_>, &'static str>;
}

fn pool<F: Field>(world: &World) -> Result<Option<&dyn CellSource>, &'static str> {
    let pool = world.get_resource::<PoolResource<F>>().ok_or(F::NAME)?;
    Ok(Some(&pool.0))
}

impl OtherFields for () {
    type Handles = ();

    fn read((): &()) -> InputList<'_> {
        InputList::default()
    }

    fn of(_: &World) -> Result<InputList<'_>, &'static str> {
        Ok(InputList::default())
    }
}

impl<A: Field> OtherFields for (A,) {
    type Handles = Read<'static, 'static, A>;

    fn read<'a>(handle: &'a Read<'_, '_, A>) -> InputList<'a> {
        InputList::of_fields([Some(handle), None, None])
    }

    fn of(world: &World) -> Result<InputList<'_>, &'static str> {
        Ok(InputList::of_fields([pool::<A>(world)?, None, None]))
    }
}

impl<A: Field, B: Field> OtherFields for (A, B) {
    type Handles = (Read<'static, 'static, A>, Read<'static, 'static, B>);

    fn read<'a>((a, b): &'a (Read<'_, '_, A>, Read<'_, '_, B>)) -> InputList<'a> {
        InputList::of_fields([Some(a), Some(b), None])
    }

    fn of(world: &World) -> Result<InputList<'_>, &'static str> {
        let (a, b) = (pool::<A>(world)?, pool::<B>(world)?);
        Ok(InputList::of_fields([a, b, None]))
    }
}

/// A list of fields on which functions are registered.
pub trait FunctionFields: FieldList<Others: OtherFields> {}

impl<L: FieldList<Others: OtherFields>> FunctionFields for L {}

/// System parameter with the handles of all fields of a list but the first.
pub type OtherHandles<'w, 's, L> =
    StaticSystemParam<'w, 's, <<L as FieldList>::Others as OtherFields>::Handles>;
