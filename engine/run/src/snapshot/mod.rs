//! Snapshots: numbering of rows, shards, transfer from devices, particles, derived fields and headers.

pub(crate) mod derived;
pub(crate) mod headers;
pub(crate) mod offsets;
pub(crate) mod particles;
pub(crate) mod shard_writer;
pub(crate) mod sink;
pub(crate) mod transfer;
