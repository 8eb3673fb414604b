//! A patch as an entity: its components, all small. Cell data lives in pools of fields, never in a component.

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
