//! Particles in snapshots, sorted by level, by the Hilbert order of patches and by identity. Each rank owns a
//! contiguous part of a level. The rank that owns the first particle of a shard stores it; the others send it
//! theirs.

mod order;
mod read;
mod write;

pub(super) use read::{check, restore};
pub(super) use write::ParticleShare;
