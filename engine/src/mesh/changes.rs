//! Changes of the hierarchy, as they are asked for and as they were made.

use bevy_ecs::prelude::Resource;

/// What a regrid of one level does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Rows that get children, in Hilbert order.
    pub refine: Vec<u32>,
    /// Rows whose children go, in Hilbert order.
    pub coarsen: Vec<u32>,
}

/// The rows that the latest change of the hierarchy created, in Hilbert order of their level; none after a regrid that has changed nothing.
#[derive(Resource, Default)]
pub struct NewRows {
    /// Level of the new patches.
    pub level: usize,
    /// Their rows.
    pub rows: Vec<u32>,
    /// Per row 1 where the patch is new, those of other ranks included, where a field lies on faces.
    pub marks: Vec<u8>,
}
