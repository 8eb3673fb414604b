//! A patch as an entity with small components. Cell data is stored in the pools of fields, never in a component.
//!
//! Every patch on a rank has [`Level`], [`PatchIndex`], [`PatchRow`] and [`Owner`], and [`Parent`] if the parent is on
//! the same rank. `Patches<&PatchIndex>` visits those of a level in Hilbert order, a plain `Query` visits all in any
//! order. Systems may attach further components by `Commands`; those of [`patch_controls`](crate::patch_controls) control
//! the engine. Halo patches are not entities.

use bevy_ecs::prelude::*;
pub use nestar_kernels::{CELLS, PATCH};

/// Refinement level of a patch, 0 for the root grid.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(pub u8);

/// Position of a patch on its level, in units of patches.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchIndex(pub [i32; 3]);

/// Row of a patch in all pools and topology tables.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchRow(pub u32);

/// The patch refined by this one; absent on level 0.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent(pub Entity);

/// The rank that owns the patch.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(pub u32);
