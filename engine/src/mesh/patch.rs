//! A patch as an entity: its components, all small. Cell data lives in pools of fields, never in a component.
//!
//! Every patch that a rank owns has [`Level`], [`PatchIndex`], [`PatchRow`] and [`Owner`], and [`Parent`] where the parent is on
//! the same rank. Systems find patches by queries, `Query<(&Level, &PatchIndex, &PatchRow)>`, in any order: what is added up goes
//! through the rows of [`Topology`](crate::mesh::Topology), which are in Hilbert order. Anyone may attach further components, by
//! `Commands`; those of [`obeyed`](crate::mesh::obeyed) tell the engine something. Copies of other ranks' patches are no entities.

use bevy_ecs::prelude::*;

pub use nestar_kernels::{CELLS, PATCH};

/// Refinement level of a patch, 0 for the root grid.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(pub u8);

/// Position of a patch on its level, in units of patches.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchIndex(pub [i32; 3]);

/// Row of a patch in every pool and in the topology tables.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchRow(pub u32);

/// The patch that this one refines; absent on level 0.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent(pub Entity);

/// The rank that advances a patch.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(pub u32);
