//! Names for programs with sub-cycled sources, their energy budgets and their load balance.

pub use nestar_engine::data::Patches;
pub use nestar_engine::mesh::Cost;
pub use nestar_engine::step::{BudgetId, Budgets};
pub use nestar_kernels::mesh::subcycle::{CONTINUE, DONE, FAILED, Outcome, RETRY, Subcycle};
pub use nestar_systems::subcycling::Subcycling;
