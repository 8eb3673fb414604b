//! Zarr arrays; the only file that uses the `zarrs` crate.
//!
//! It encodes and decodes chunks and describes arrays. [`crate::store`] writes the files, because the crate's
//! file store syncs every chunk and truncates in place.

use crate::bounds::{bytes, may_hold, require_stored, row_bytes};
use crate::files::{open, read_at, tree_bytes};
use crate::{DataType, Result, SnapshotError, Values};
use rayon::prelude::*;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zarrs::array::codec::{Crc32cCodec, ShardingCodecBuilder, ZstdCodec};
use zarrs::array::{
    Array, ArrayBuilder, ArrayBytes, ArrayMetadata, ArrayToBytesCodecTraits, ChunkKeySeparator,
    CodecChain, CodecOptions, FillValue,
};
use zarrs::filesystem::FilesystemStore;
use zarrs::metadata::v3::MetadataV3;

/// zstd level: the fastest one; smooth fields still shrink.
const ZSTD_LEVEL: i32 = 1;
/// Bytes that the `crc32c` codec appends.
const CHECKSUM_BYTES: u64 = 4;

/// Options for one thread: the caller controls parallelism.
fn options() -> CodecOptions {
    CodecOptions::default().with_concurrent_target(1)
}

/// Returns a builder with the shape, type and fill value of the array: NaN for floats, 0 for integers.
fn builder(layout: &ArrayLayout, shard: &[u64]) -> ArrayBuilder {
    let (shape, name) = (layout.shape.clone(), layout.data_type.name());
    match layout.data_type {
        DataType::F32 => ArrayBuilder::new(shape, shard, name, f32::NAN),
        DataType::F64 => ArrayBuilder::new(shape, shard, name, f64::NAN),
        DataType::I32 => ArrayBuilder::new(shape, shard, name, 0i32),
        DataType::U8 => ArrayBuilder::new(shape, shard, name, 0u8),
        DataType::U32 => ArrayBuilder::new(shape, shard, name, 0u32),
        DataType::U64 => ArrayBuilder::new(shape, shard, name, 0u64),
    }
}

/// Encodes patches as shards of one array.
pub(crate) struct Encoder {
    array: Array<()>,
    shard_shape: Vec<NonZeroU64>,
}

impl Encoder {
    /// Prepares the codecs of `layout`; errors are texts because no file is involved.
    pub fn new(layout: &ArrayLayout) -> std::result::Result<Self, String> {
        let shard_shape = chunk_shape(&layout.shape, layout.shard);
        let inner_shape = non_zero(&chunk_shape(&layout.shape, layout.inner));
        let mut builder = builder(layout, &shard_shape);
        let data_type =
            zarrs::array::DataType::from_metadata(&MetadataV3::new(layout.data_type.name()))
                .map_err(|error| error.to_string())?;
        let mut sharding = ShardingCodecBuilder::new(inner_shape, &data_type);
        sharding.bytes_to_bytes_codecs(vec![
            Arc::new(ZstdCodec::new(ZSTD_LEVEL, false)),
            Arc::new(Crc32cCodec::new()),
        ]);
        let array = builder
            .array_to_bytes_codec(sharding.build_arc())
            // One file name per shard, instead of nested directories that each need a sync.
            .chunk_key_encoding_default_separator(ChunkKeySeparator::Dot)
            .dimension_names(Some(layout.dimensions.iter().map(String::as_str)))
            .attributes(layout.attributes.clone())
            .build(Arc::new(()), &format!("/{}", layout.path))
            .map_err(|error| error.to_string())?;
        let shard_shape = non_zero(&shard_shape);
        Ok(Self { array, shard_shape })
    }

    /// Returns the array's metadata document, `zarr.json`.
    pub fn metadata(&self) -> std::result::Result<Value, String> {
        serde_json::to_value(self.array.metadata()).map_err(|error| error.to_string())
    }

    /// Returns the path of shard `shard` in the snapshot.
    pub fn shard_path(&self, shard: u64) -> PathBuf {
        let mut indices = vec![0; self.shard_shape.len()];
        indices[0] = shard;
        PathBuf::from(self.array.chunk_key(&indices).as_str())
    }

    /// Returns the number of values of a row.
    pub fn row_length(&self) -> u64 {
        self.shard_shape[1..].iter().map(|n| n.get()).product()
    }

    /// Encodes one shard; the last one of an array may be shorter.
    pub fn encode(&self, values: &Values) -> std::result::Result<Vec<u8>, String> {
        let fill = self.array.fill_value();
        let elements: u64 = self.shard_shape.iter().map(|n| n.get()).product();
        let mut bytes = std::borrow::Cow::Borrowed(values.bytes());
        let missing = elements as usize - values.len();
        if missing > 0 {
            let padding = fill.as_ne_bytes().repeat(missing);
            bytes.to_mut().extend_from_slice(&padding);
        }
        let encoded = self.array.codecs().encode(
            ArrayBytes::new_flen(bytes),
            &self.shard_shape,
            self.array.data_type(),
            fill,
            &options(),
        );
        encoded
            .map(|bytes| bytes.into_owned())
            .map_err(|error| error.to_string())
    }
}

/// Reads patches of one array.
///
/// It opens shards and decodes whole inner chunks itself, because the crate's partial decoding skips
/// checksums and reads missing shards as fill values.
pub(crate) struct Decoder {
    codecs: CodecChain,
    index_codecs: CodecChain,
    zarr_type: zarrs::array::DataType,
    fill: FillValue,
    data_type: DataType,
    inner: u64,
    shard: u64,
    inner_shape: Vec<NonZeroU64>,
    /// Bytes of one patch.
    row: usize,
    keys: Array<()>,
    root: PathBuf,
}

/// An open shard, with the offset and length of each inner chunk.
struct OpenShard {
    path: PathBuf,
    file: File,
    index: Vec<u64>,
}

/// Rows that are read from one inner chunk.
struct Task<'a> {
    shard: &'a OpenShard,
    patches: &'a [u64],
    output: &'a mut [u8],
}

impl Decoder {
    /// Opens the array `path` of the snapshot in `root` with the metadata document `metadata`.
    pub fn open(root: &Path, path: &str, metadata: &Value) -> Result<Self> {
        let broken = |detail: String| SnapshotError::corrupt(&root.join(path), detail);
        let sharding = &metadata["codecs"][0]["configuration"];
        let patches = |shape: &Value| shape[0].as_u64().filter(|&n| n > 0);
        let inner = patches(&sharding["chunk_shape"]);
        let shard = patches(&metadata["chunk_grid"]["configuration"]["chunk_shape"]);
        let (Some(inner), Some(shard)) = (inner, shard) else {
            return Err(broken("its metadata describe no shards".to_string()));
        };
        let chain = |key: &str| {
            let codecs: Vec<MetadataV3> =
                serde_json::from_value(sharding[key].clone()).map_err(|e| e.to_string())?;
            CodecChain::from_metadata(&codecs).map_err(|error| error.to_string())
        };
        let document: ArrayMetadata =
            serde_json::from_value(metadata.clone()).map_err(|e| broken(e.to_string()))?;
        let keys = Array::new_with_metadata(Arc::new(()), &format!("/{path}"), document);
        let keys = keys.map_err(|error| broken(error.to_string()))?;
        let data_type = metadata["data_type"].as_str().and_then(DataType::from_name);
        let data_type = data_type.ok_or_else(|| broken("unknown data type".to_string()))?;
        let row = keys
            .shape()
            .get(1..)
            .and_then(|shape| row_bytes(shape, data_type.size()));
        Ok(Self {
            codecs: chain("codecs").map_err(broken)?,
            index_codecs: chain("index_codecs").map_err(broken)?,
            zarr_type: keys.data_type().clone(),
            fill: keys.fill_value().clone(),
            data_type,
            row: row.ok_or_else(|| broken("its metadata have no valid shape".to_string()))?,
            inner,
            shard,
            inner_shape: non_zero(&chunk_shape(keys.shape(), inner)),
            keys,
            root: root.to_path_buf(),
        })
    }

    /// Returns the path of a shard.
    fn shard_path(&self, number: u64) -> PathBuf {
        let mut indices = vec![0; self.inner_shape.len()];
        indices[0] = number;
        self.root.join(self.keys.chunk_key(&indices).as_str())
    }

    /// Rejects patches that the files cannot contain, before memory is allocated.
    pub fn require(&self, patches: &Range<u64>) -> Result<()> {
        let shards = patches.start / self.shard..patches.end.div_ceil(self.shard);
        let files = shards.map(|number| self.shard_path(number));
        require_stored(files, [patches.end - patches.start, self.inner], self.row)
    }

    /// Reads strictly ascending patches of the array; decodes in parallel.
    pub fn read(&self, patches: &[u64]) -> Result<Values> {
        let row = self.row;
        let shard_of = |patch: u64| patch / self.shard;
        let by_shard: Vec<&[u64]> = patches
            .chunk_by(|&a, &b| shard_of(a) == shard_of(b))
            .collect();
        let files = by_shard.iter().map(|s| self.shard_path(shard_of(s[0])));
        require_stored(files, [patches.len() as u64, self.inner], row)?;
        let mut values = Values::zeros(self.data_type, patches.len() * row / self.data_type.size());
        let shards: Vec<OpenShard> = by_shard
            .iter()
            .map(|rows| self.open_shard(shard_of(rows[0])))
            .collect::<Result<_>>()?;
        let mut tasks = Vec::new();
        let mut output = values.bytes_mut();
        for (rows, shard) in by_shard.iter().zip(&shards) {
            for group in rows.chunk_by(|a, b| a / self.inner == b / self.inner) {
                let (head, tail) = output.split_at_mut(group.len() * row);
                output = tail;
                tasks.push(Task {
                    shard,
                    patches: group,
                    output: head,
                });
            }
        }
        tasks
            .into_par_iter()
            .try_for_each(|task| self.read_chunk(task))?;
        Ok(values)
    }

    /// Opens a shard and reads its index, which is at the end.
    fn open_shard(&self, number: u64) -> Result<OpenShard> {
        let path = self.shard_path(number);
        let file = open(&path)?;
        let shape = non_zero(&[self.shard / self.inner, 2]);
        let index_bytes = (self.shard / self.inner).saturating_mul(16);
        let index_bytes = index_bytes.saturating_add(CHECKSUM_BYTES);
        let length = file
            .metadata()
            .map_err(|error| SnapshotError::io("read", &path, &error))?
            .len();
        let Some(start) = length.checked_sub(index_bytes) else {
            return Err(SnapshotError::corrupt(
                &path,
                format!("it is truncated to {length} bytes"),
            ));
        };
        let bytes = read_at(&file, &path, start, index_bytes)?;
        let (index_type, fill) = (zarrs::array::data_type::uint64(), FillValue::from(u64::MAX));
        let index = self
            .index_codecs
            .decode(bytes.into(), &shape, &index_type, &fill, &options());
        let index = index.map_err(|error| error.to_string()).and_then(fixed);
        let index =
            index.map_err(|error| SnapshotError::corrupt(&path, format!("its index: {error}")))?;
        let index = index
            .chunks_exact(8)
            .map(|b| u64::from_le_bytes(std::array::from_fn(|i| b[i])))
            .collect();
        Ok(OpenShard { path, file, index })
    }

    /// Decodes one inner chunk with its checksum and copies the requested rows.
    fn read_chunk(&self, task: Task) -> Result<()> {
        let shard = task.shard;
        let slot = (task.patches[0] % self.shard / self.inner) as usize;
        let (offset, length) = (shard.index[2 * slot], shard.index[2 * slot + 1]);
        if offset == u64::MAX && length == u64::MAX {
            // Chunks that contain only the fill value are not stored.
            for element in task.output.chunks_exact_mut(self.data_type.size()) {
                element.copy_from_slice(self.fill.as_ne_bytes());
            }
            return Ok(());
        }
        let encoded = read_at(&shard.file, &shard.path, offset, length)?;
        let decoded = self.codecs.decode(
            encoded.into(),
            &self.inner_shape,
            &self.zarr_type,
            &self.fill,
            &options(),
        );
        let decoded = decoded.map_err(|error| error.to_string()).and_then(fixed);
        let decoded = decoded.map_err(|error| {
            let last = task.patches[task.patches.len() - 1];
            let text = format!(
                "patches {} to {last} cannot be read: {error}",
                task.patches[0]
            );
            SnapshotError::corrupt(&shard.path, text)
        })?;
        let row = self.row;
        if decoded.len() as u64 != self.inner * row as u64 {
            let text = format!("a chunk has {} bytes", decoded.len());
            return Err(SnapshotError::corrupt(&shard.path, text));
        }
        for (row_out, patch) in task.output.chunks_exact_mut(row).zip(task.patches) {
            let start = (patch % self.inner) as usize * row;
            row_out.copy_from_slice(&decoded[start..start + row]);
        }
        Ok(())
    }
}

/// Returns the bytes of decoded elements of fixed size.
fn fixed(bytes: ArrayBytes<'_>) -> std::result::Result<Vec<u8>, String> {
    bytes
        .into_fixed()
        .map(|bytes| bytes.into_owned())
        .map_err(|error| error.to_string())
}

/// Returns the name of the first missing chunk: a lost chunk cannot be distinguished from one that was not
/// written.
fn missing_chunk<S: ?Sized>(path: &Path, array: &Array<S>) -> Option<String> {
    let grid = array.chunk_grid_shape().to_vec();
    let chunks: u64 = grid.iter().product();
    let key = |n: u64| array.chunk_key(&indices(n, &grid)).as_str().to_string();
    (0..chunks).map(key).find(|key| !path.join(key).is_file())
}

/// Rejects array shapes that the files cannot contain.
fn require_held<S: ?Sized>(path: &Path, array: &Array<S>) -> std::result::Result<(), String> {
    let chunk = array.chunk_shape(&vec![0; array.shape().len()]);
    let chunk = chunk.map_err(|error| error.to_string())?;
    let chunk: Vec<u64> = chunk.iter().map(|n| n.get()).collect();
    let stored = tree_bytes(path).map_err(|error| error.to_string())?;
    let held = |shape: &[u64]| may_hold(stored, bytes(shape, 8));
    match held(array.shape()) && held(&chunk) {
        true => Ok(()),
        false => Err(format!(
            "its shape is {:?} in chunks of {chunk:?}, which cannot be in {stored} bytes",
            array.shape()
        )),
    }
}

/// Opens an array of any program. Codecs that zarr-python takes from numcodecs (`zarr.codecs.numcodecs`) are those of Zarr with other
/// names and settings, which do not matter to readers.
fn open_foreign(path: &Path) -> std::result::Result<Array<FilesystemStore>, String> {
    let store = FilesystemStore::new(path).map_err(|error| error.to_string())?;
    let text = std::fs::read(path.join("zarr.json")).unwrap_or_default();
    let mut metadata: Value = serde_json::from_slice(&text).unwrap_or_default();
    let mut renamed = false;
    for codec in metadata["codecs"].as_array_mut().into_iter().flatten() {
        let plain = match codec["name"].as_str() {
            Some("numcodecs.zlib") => {
                json!({"name": "numcodecs.zlib", "configuration": {"level": 1}})
            }
            Some("numcodecs.gzip") => json!({"name": "gzip", "configuration": {"level": 1}}),
            Some("numcodecs.zstd") => {
                json!({"name": "zstd", "configuration": {"level": 1, "checksum": false}})
            }
            Some("numcodecs.blosc") => json!({"name": "blosc", "configuration": {
                "cname": "lz4", "clevel": 1, "shuffle": "noshuffle", "blocksize": 0,
            }}),
            _ => continue,
        };
        (*codec, renamed) = (plain, true);
    }
    if !renamed {
        return Array::open(Arc::new(store), "/").map_err(|error| error.to_string());
    }
    let metadata = serde_json::from_value(metadata).map_err(|error| error.to_string())?;
    Array::new_with_metadata(Arc::new(store), "/", metadata).map_err(|error| error.to_string())
}

/// Reads a whole array of any program as f64.
pub(crate) fn read_plain(path: &Path) -> Result<Plain> {
    let foreign = |detail: String| SnapshotError::Uniform {
        path: path.to_path_buf(),
        detail,
    };
    let array = open_foreign(path).map_err(|error| {
        foreign(format!(
            "{error}; write it with zstd, blosc, gzip, zlib or without compression"
        ))
    })?;
    require_held(path, &array).map_err(foreign)?;
    if let Some(missing) = missing_chunk(path, &array) {
        return Err(foreign(format!(
            "its chunk {missing} is missing and would be read as {}; write all chunks (in zarr-python with \
             write_empty_chunks = True), also those that contain only the fill value",
            fill_number(&array)
        )));
    }
    let names = array.dimension_names().as_ref();
    let dimensions = names.map(|names| names.iter().cloned().map(Option::unwrap_or_default));
    Ok(Plain {
        shape: array.shape().to_vec(),
        dimensions: dimensions.map(Iterator::collect),
        values: plain_values(path, &array)?,
    })
}

/// Returns the name of the type of the values. A type is shown as "float64" or, with another name in Zarr version 2, "float64 / <f8".
fn type_name(array: &Array<FilesystemStore>) -> String {
    let shown = array.data_type().to_string();
    shown.split(' ').next().unwrap_or_default().to_owned()
}

/// Returns the fill value of a numeric array as text.
fn fill_number(array: &Array<FilesystemStore>) -> String {
    let bytes = array.fill_value().as_ne_bytes();
    macro_rules! number {
        ($number:ty) => {
            bytes
                .try_into()
                .map(|bytes| <$number>::from_ne_bytes(bytes).to_string())
        };
    }
    let text = match &*type_name(array) {
        "float64" => number!(f64),
        "float32" => number!(f32),
        "float16" => number!(half::f16),
        "int8" => number!(i8),
        "int16" => number!(i16),
        "int32" => number!(i32),
        "int64" => number!(i64),
        "uint8" => number!(u8),
        "uint16" => number!(u16),
        "uint32" => number!(u32),
        "uint64" => number!(u64),
        _ => Ok("its fill value".to_owned()),
    };
    text.unwrap_or_else(|_| "its fill value".to_owned())
}

/// Reads all values of a numeric array as f64.
fn plain_values(path: &Path, array: &Array<FilesystemStore>) -> Result<Vec<f64>> {
    macro_rules! read {
        ($number:ty) => {
            array
                .retrieve_array_subset::<Vec<$number>>(&array.subset_all())
                .map(|values| values.into_iter().map(|n| n as f64).collect())
        };
    }
    let shown = type_name(array);
    let read = match &*shown {
        "float64" => array.retrieve_array_subset(&array.subset_all()),
        "float16" => array
            .retrieve_array_subset::<Vec<half::f16>>(&array.subset_all())
            .map(|values| values.into_iter().map(half::f16::to_f64).collect()),
        "float32" => read!(f32),
        "int8" => read!(i8),
        "int16" => read!(i16),
        "int32" => read!(i32),
        "int64" => read!(i64),
        "uint8" => read!(u8),
        "uint16" => read!(u16),
        "uint32" => read!(u32),
        "uint64" => read!(u64),
        _ => {
            let detail = format!(
                "data type {shown}; integers of 1 to 8 bytes or floating-point numbers of 2 to 8 bytes are required"
            );
            let path = path.to_path_buf();
            return Err(SnapshotError::Uniform { path, detail });
        }
    };
    read.map_err(|error| SnapshotError::corrupt(path, error.to_string()))
}

/// Describes how an array is stored.
pub(crate) struct ArrayLayout {
    /// Path in the snapshot, such as `level_0/origin`.
    pub path: String,
    /// Element type.
    pub data_type: DataType,
    /// Shape of the whole array; the first dimension is the patch or the particle.
    pub shape: Vec<u64>,
    /// Patches or particles per shard, a multiple of `inner`.
    pub shard: u64,
    /// Patches or particles per inner chunk.
    pub inner: u64,
    /// Names of all dimensions.
    pub dimensions: Vec<String>,
    /// Attributes of the array.
    pub attributes: Map<String, Value>,
}

/// An array of any program, read completely.
pub(crate) struct Plain {
    pub shape: Vec<u64>,
    /// Names of the dimensions, if any.
    pub dimensions: Option<Vec<String>>,
    pub values: Vec<f64>,
}

/// Returns `shape` with the first dimension replaced by `patches`.
fn chunk_shape(shape: &[u64], patches: u64) -> Vec<u64> {
    std::iter::once(patches)
        .chain(shape[1..].iter().copied())
        .collect()
}

/// Returns `shape` as the codecs need it; every dimension is at least 1.
fn non_zero(shape: &[u64]) -> Vec<NonZeroU64> {
    shape
        .iter()
        .map(|&n| NonZeroU64::new(n).unwrap_or(NonZeroU64::MIN))
        .collect()
}

/// Returns the indices of chunk `number` in a grid of chunks; the last dimension varies fastest.
fn indices(mut number: u64, grid: &[u64]) -> Vec<u64> {
    let mut indices = vec![0; grid.len()];
    for (index, length) in indices.iter_mut().zip(grid).rev() {
        *index = number % length;
        number /= length;
    }
    indices
}
