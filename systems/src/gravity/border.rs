//! Where the border of a level comes from: the potential of the coarser level, whichever potential is solved for.

use super::beyond::ExteriorPotential;
use crate::fields::{OwnPotential, Potential};
use bevy_ecs::prelude::*;
use bevy_ecs::system::{SystemParam, SystemParamItem};
use nestar_engine::data::Field;
use nestar_engine::step::Read;

/// A field that the equation is solved for.
pub trait Unknowns: Field {
    /// Whether what finer levels add to the right-hand side counts.
    const USES_TAU: bool;
    /// What borders come from, if not from the unknowns: `()` or [`Coarser`].
    type Coarser: SystemParam + 'static;

    /// The same of what a system has.
    fn coarser<'a, 'w, 's>(
        given: &'a SystemParamItem<'w, 's, Self::Coarser>,
    ) -> Option<&'a Coarser<'w, 's>>;
}

/// The potential of all levels together.
#[derive(SystemParam)]
pub struct Coarser<'w, 's> {
    pub(super) potential: Read<'w, 's, Potential, 2>,
    pub(super) beyond: Res<'w, ExteriorPotential>,
}

impl Unknowns for Potential {
    const USES_TAU: bool = true;
    type Coarser = ();

    fn coarser<'w, 's>((): &()) -> Option<&Coarser<'w, 's>> {
        None
    }
}

impl Unknowns for OwnPotential {
    const USES_TAU: bool = false;
    type Coarser = Coarser<'static, 'static>;

    fn coarser<'a, 'w, 's>(
        given: &'a SystemParamItem<'w, 's, Self::Coarser>,
    ) -> Option<&'a Coarser<'w, 's>> {
        Some(given)
    }
}
