//! The snapshot store of Nestar: Zarr version 3, written beside the run and renamed when whole.
//!
//! A snapshot is a directory `RUN/snapshots/NNNNNN.zarr`: a root group with the [`Attributes`], one group per
//! refinement level (`level_0`, …) with its [`LevelHeader`], and in it one array per field, whose first dimension is
//! the patch, in the same order in all arrays. Every level has the arrays [`ORIGIN`] and [`LEAF`].
//!
//! [`ParticlesPlan`] lie in patches in any number, such as the particles of a species: a group of arrays for each kind, whose first dimension is the
//! item. [`Blob`]s are bytes beside the fields: the state of plugins, the components of patches.
//!
//! * [`SnapshotWriter`] writes one while the run goes on, alone or as one of several writers; [`SnapshotPlan`] has its steps one by one.
//! * [`Snapshot`] reads one; [`latest`] finds the newest of a run.
//! * [`digest`] names the content in 64 hexadecimal digits, [`summary`] describes it for people.
//! * [`read_uniform`] reads initial states that anyone wrote as Zarr arrays on a uniform grid, [`read_columns`] tables, [`read_array`] one array.

mod bounds;
mod checksums;
mod digest;
mod entries;
mod error;
mod files;
mod groups;
mod header;
mod items;
mod layout;
mod parts;
mod queue;
mod reader;
mod store;
mod summary;
mod table;
mod uniform;
mod values;
mod verify;
mod worker;
mod writer;
mod zarr;

pub use digest::digest;
pub use error::{Result, SnapshotError};
pub use files::{clean_partials, complete_path};
pub use groups::SHARD_PATCHES;
pub use header::{
    Attributes, CgsUnits, Cosmology, DataType, FieldHeader, LEAF, LevelHeader, LevelPlan, ORIGIN,
    PATCH_SIZE, StoredPrecision,
};
pub use items::{ParticlesHeader, ParticlesPlan};
pub use parts::{BLOB_GROUPS, Blob, BlobHeader};
pub use queue::WrittenSnapshot;
pub use reader::{Snapshot, latest, list_complete};
pub use store::SnapshotPlan;
pub use summary::summary;
pub use table::{column_names, read_columns};
pub use uniform::{PlainArray, UniformArray, read_array, read_uniform};
pub use values::Values;
pub use worker::Role;
pub use writer::{PendingSnapshot, SnapshotTarget, SnapshotWriter, WriterAbort};

/// The newest version of the format that this crate reads, and the one in which it writes items; without any it writes version 1.
pub const FORMAT_VERSION: u64 = 2;
