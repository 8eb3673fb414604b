//! What registered functions read besides their fields.

use nestar_device::CellFn;
use nestar_engine::Engine;
use nestar_engine::data::{Components, DerivedInputs};
use nestar_engine::step::FunctionFields;
use std::sync::Arc;

/// A simulation with the components and derived inputs that functions read; see
/// [`Register::with_scalars`](crate::register::Register::with_scalars).
pub struct StateSelection<'a> {
    /// Simulation.
    pub sim: &'a mut Engine,
    /// Components of the first field that form the first state, for [`LevelRows::choose`](nestar_engine::data::LevelRows::choose).
    pub components: Components,
    /// Derived inputs that form the second state.
    pub numbers: Option<Arc<DerivedInputs>>,
}

impl StateSelection<'_> {
    /// Checks, once all plugins are built, that a function can read the fields and the derived inputs.
    pub(crate) fn check<F: FunctionFields, M: CellFn>(&mut self) {
        let (components, numbers) = (self.components, self.numbers.clone());
        self.sim
            .check_fields::<F>(M::ITEM.name, move |field, others| {
                field.fits::<M>(&components, &others.with_numbers(numbers.as_deref()))
            });
    }
}
