//! Mesh operations on 8^3 patches: ghost gathering, physical boundaries, prolongation, restriction and flux correction.
//!
//! All operations are gathers: the owner of a patch reads what it needs in a fixed order. Results therefore do not depend on how patches
//! are distributed over threads.
//!
//! Layout of a patch row: `[component][k][j][i]` with `i` (x) fastest, 512 cells per component, or as many values as its [`Centring`] has.

pub mod block;
pub mod boundary;
pub mod cell_record;
pub mod circulations;
pub mod coarse_faces;
pub mod columns;
pub mod device;
pub mod exact_sum;
pub mod face_ghosts;
pub mod fine_faces;
pub mod fluxes;
pub mod gather;
pub mod means;
pub mod order;
pub mod parameters;
pub mod prolong;
pub mod restrict;
pub mod rows;
pub mod rule;
pub mod shape;
pub mod shared_values;
pub mod staggered;
pub mod states;
pub mod subcycle;

pub use block::{CellBlock, cell_centre};
pub use boundary::{Boundaries, FaceRule};
pub use face_ghosts::gather_faces;
pub use gather::{GatherScratch, GhostView, gather};
pub use rows::{MissingRow, Rows};
pub use rule::{CellRule, FAULT_WORDS, GhostCell, InnerStates, RuleFault, RuleText, fault_place};
pub use shape::{Centring, RowShape};
/// Returns 0: the initial value of fields without initial conditions.
#[nestar_device::device]
pub fn nothing<R: nestar_device::Real>(_present: R) -> R {
    0.0
}

pub use states::{
    DependentComponents, MAX_COMPONENTS, ShareSets, StateFunctions, StateItems, StateRules, States,
    keep_remainder,
};

/// Returns all device items of the mesh operations.
#[must_use]
pub fn device_items() -> Vec<&'static nestar_device::Item> {
    let mut items = parameters::items();
    items.extend([
        block::cell_centre::ITEM,
        block::face_position::ITEM,
        block::cell_place::ITEM,
        block::place_of::ITEM,
        boundary::mean_of_rules::ITEM,
        order::order_key::ITEM,
        fluxes::with_kept_remainder::ITEM,
        order::sum_of_lanes::ITEM,
        prolong::limited_slope::ITEM,
        prolong::monotonic_factor::ITEM,
        prolong::unlimited_offsets::ITEM,
        prolong::fine_offsets::ITEM,
        prolong::fine_value::ITEM,
        prolong::between::ITEM,
        prolong::scalar_limit_factor::ITEM,
        means::mean8::ITEM,
        subcycle::FAILED::ITEM,
        subcycle::CONTINUE::ITEM,
        subcycle::RETRY::ITEM,
        subcycle::SHARED_SUM_BYTES::ITEM,
        means::mean2::ITEM,
        shared_values::owner_priority::ITEM,
        circulations::circulated::ITEM,
        circulations::index_on_surface::ITEM,
        circulations::touches_edges::ITEM,
        circulations::step_beside::ITEM,
        circulations::edge_in_child::ITEM,
        fine_faces::width_ratio::ITEM,
        fine_faces::inner_face::ITEM,
        fluxes::mean4::ITEM,
        fluxes::flux_mismatch::ITEM,
        fluxes::advanced::ITEM,
        fluxes::staged::ITEM,
        fluxes::with_share::ITEM,
    ]);
    items
}

/// Code in a neighbour table: no patch of this level, but one of the next coarser level.
pub const COARSER: i32 = -1;
/// Code in a neighbour table: outside a non-periodic face of the domain.
pub const OUTSIDE: i32 = -2;
/// Code in the tables of a rank that holds part of the hierarchy: the patch exists on another rank. Kernels never see it.
pub const MISSING: i32 = -3;
/// Position of the patch itself in a table of 27.
pub const SELF: usize = 13;

/// Returns the index in a table of 27 of the neighbour in direction `d`, each component -1, 0 or 1.
#[must_use]
pub const fn direction(d: [i32; 3]) -> usize {
    ((d[2] + 1) * 9 + (d[1] + 1) * 3 + d[0] + 1) as usize
}

/// Returns the index in a table of 27 of the neighbour through face `f` (x-, x+, y-, y+, z-, z+).
#[must_use]
pub const fn face_direction(f: usize) -> usize {
    [12, 14, 10, 16, 4, 22][f]
}
