//! Items in snapshots: one behind the other by level, by the patch's place along the level's Hilbert curve and by identity. What a rank has of a
//! level is a stretch of them, and a shard is stored by the rank that has its first item; others send theirs there.

mod order;
mod read;
mod write;

pub(super) use read::{check, restore};
pub(super) use write::ParticleShare;
