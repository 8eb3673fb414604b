//! Snapshot store of Nestar: Zarr version 3, written in the background and renamed when complete.
//!
//! A snapshot is a directory `RUN/snapshots/NNNNNN.zarr`. Its root group has the [`Attributes`]. Each
//! refinement level is a group (`level_0`, …) with a [`LevelHeader`] and one array per field. The first
//! dimension of an array is the patch, in the same order in all arrays. Every level has the arrays [`ORIGIN`]
//! and [`LEAF`].
//!
//! Each kind of particles ([`ParticlesPlan`]) is a group of arrays whose first dimension is the particle. A
//! [`Blob`] is a byte array besides the fields: the state of a plugin, or a component of patches.
//!
//! * [`SnapshotWriter`] writes a snapshot in the background; [`SnapshotPlan`] offers the single steps.
//! * [`Snapshot`] reads one; [`latest`] finds the newest of a run.
//! * [`SnapshotData`] is a snapshot in memory.
//! * [`Series`] is a group of arrays that grow along the time, and [`SeriesReader`] reads its entries.
//! * [`digest`] returns a digest of the content, [`summary`] a description.
//! * [`read_uniform`], [`read_columns`] and [`read_array`] read Zarr arrays of other programs.

mod blobs;
mod bounds;
mod checksums;
mod digest;
mod entries;
mod error;
mod files;
mod groups;
mod header;
mod memory;
mod queue;
mod reader;
mod series;
mod series_reader;
mod series_writer;
mod store;
mod summary;
mod uniform;
mod values;
mod worker;
mod writer;
mod zarr;

pub use blobs::{Blob, BlobHeader};
pub use digest::digest;
pub use error::{Result, SnapshotError};
pub use files::{clean_partials, complete_path};
pub use groups::SHARD_PATCHES;
pub use header::{
    Attributes, BLOB_GROUPS, CgsUnits, DataType, FieldHeader, LEAF, LevelHeader, LevelPlan, ORIGIN,
    PATCH_SIZE, ParticlesHeader, ParticlesPlan, StoredPrecision,
};
pub use memory::{SnapshotData, write_file};
pub use queue::WrittenSnapshot;
pub use reader::{Snapshot, latest, list_complete};
pub use series::{Series, SeriesArray, SeriesList, SeriesPlan};
pub use series_reader::SeriesReader;
pub use series_writer::SeriesWriter;
pub use store::SnapshotPlan;
pub use summary::{ChooseUnit, SummaryUnit, summary, summary_in};
pub use uniform::{PlainArray, UniformArray, column_names, read_array, read_columns, read_uniform};
pub use values::Values;
pub use worker::{Role, WriterThreads};
pub use writer::{PendingSnapshot, SnapshotTarget, SnapshotWriter, WriterAbort};

/// Newest format version that this crate reads; it writes it for snapshots with particles and version 1 otherwise.
pub const FORMAT_VERSION: u64 = 2;
