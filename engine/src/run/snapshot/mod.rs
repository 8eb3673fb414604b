//! Snapshots: numbering of rows, shards, transfer from devices, particles, derived fields and headers.

pub(in crate::run) mod derived;
pub(in crate::run) mod headers;
pub(in crate::run) mod offsets;
pub(in crate::run) mod particles;
pub(in crate::run) mod shard_writer;
pub(in crate::run) mod sink;
pub(in crate::run) mod transfer;
