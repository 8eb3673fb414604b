//! Reader of initial states: Zarr arrays on a uniform grid, written by any program.

use crate::layout::Plain;
use crate::zarr::read_plain;
use crate::{Result, SnapshotError};
use std::path::{Path, PathBuf};

/// One array on a uniform grid.
#[derive(Clone, Debug, PartialEq)]
pub struct UniformArray {
    /// Requested name.
    pub name: String,
    /// Cells along z, y, x.
    pub shape: [usize; 3],
    /// Values, x fastest: shape `[z][y][x]`.
    pub values: Vec<f64>,
}

impl UniformArray {
    /// Checks an array: three dimensions in the order z, y, x (or unnamed), all values finite.
    fn new(path: &Path, name: &str, plain: Plain) -> Result<Self> {
        let Plain {
            shape,
            dimensions,
            values,
        } = plain;
        let refuse = |detail: String| {
            Err(SnapshotError::Uniform {
                path: path.to_path_buf(),
                detail,
            })
        };
        let [z, y, x] = shape[..] else {
            return refuse(format!(
                "its shape is {shape:?}; three dimensions [z, y, x] are needed"
            ));
        };
        let mut named = dimensions.iter().flatten().zip(["z", "y", "x"]);
        if named.any(|(found, wanted)| !found.is_empty() && found != wanted) {
            let found = dimensions.unwrap_or_default().join(", ");
            return refuse(format!(
                "its dimensions are {found}; transpose it to z, y, x"
            ));
        }
        if let Some(bad) = values.iter().position(|value| !value.is_finite()) {
            let (row, column) = (bad as u64 / x, bad as u64 % x);
            let at = format!("[{}, {}, {column}]", row / y, row % y);
            return refuse(format!("its value at [z, y, x] = {at} is {}", values[bad]));
        }
        let shape = [z as usize, y as usize, x as usize];
        Ok(Self {
            name: name.to_string(),
            shape,
            values,
        })
    }
}

/// Reads arrays of equal shape from the Zarr group at `path` (version 3, or version 2 with supported codecs).
/// If one name is requested, `path` may be the array itself.
///
/// # Errors
/// [`SnapshotError::Uniform`] with the reason; [`SnapshotError::Missing`] with the existing names;
/// [`SnapshotError::Corrupt`].
pub fn read_uniform(path: &Path, names: &[&str]) -> Result<Vec<UniformArray>> {
    let kind = node_kind(path)?;
    if kind == NodeKind::Array && names.len() != 1 {
        let detail = format!(
            "it is one array, and {} are needed: {}",
            names.len(),
            names.join(", ")
        );
        return Err(SnapshotError::Uniform {
            path: path.to_path_buf(),
            detail,
        });
    }
    let mut arrays: Vec<UniformArray> = Vec::with_capacity(names.len());
    for name in names {
        let place = if kind == NodeKind::Array {
            path.to_path_buf()
        } else {
            member(path, name)?
        };
        let array = UniformArray::new(&place, name, read_plain(&place)?)?;
        if let Some(first) = arrays.first().filter(|first| first.shape != array.shape) {
            let detail = format!(
                "its shape is {:?}, that of {} is {:?}",
                array.shape, first.name, first.shape
            );
            return Err(SnapshotError::Uniform {
                path: place,
                detail,
            });
        }
        arrays.push(array);
    }
    Ok(arrays)
}

/// An array of any shape.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainArray {
    /// Lengths of the dimensions.
    pub shape: Vec<u64>,
    /// Values, the last dimension fastest; all finite.
    pub values: Vec<f64>,
}

/// Reads the array `name` of the Zarr group at `path` (version 3, or version 2 with supported codecs).
///
/// # Errors
/// [`SnapshotError::Missing`] with the existing names; [`SnapshotError::Uniform`] for values that are not
/// finite and unreadable arrays; [`SnapshotError::Corrupt`].
pub fn read_array(path: &Path, name: &str) -> Result<PlainArray> {
    node_kind(path)?;
    let place = member(path, name)?;
    let Plain { shape, values, .. } = read_plain(&place)?;
    if let Some(bad) = values.iter().position(|value| !value.is_finite()) {
        return Err(SnapshotError::Uniform {
            path: place,
            detail: format!("its value {bad} is {}", values[bad]),
        });
    }
    Ok(PlainArray { shape, values })
}

/// Kind of a Zarr directory.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum NodeKind {
    /// Contains other directories.
    Group,
    /// Contains values.
    Array,
}

/// Returns the kind of a Zarr directory of version 2 or 3.
pub(crate) fn node_kind(path: &Path) -> Result<NodeKind> {
    let refuse = |detail: &str| {
        Err(SnapshotError::Uniform {
            path: path.to_path_buf(),
            detail: detail.to_string(),
        })
    };
    let text = std::fs::read_to_string(path.join("zarr.json")).unwrap_or_default();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    if document["node_type"] == "array" || path.join(".zarray").is_file() {
        Ok(NodeKind::Array)
    } else if document["node_type"] == "group" || path.join(".zgroup").is_file() {
        Ok(NodeKind::Group)
    } else if !path.exists() {
        refuse("there is nothing with this name")
    } else {
        refuse(
            "it is no Zarr group or array: there is no zarr.json (version 3) and no .zgroup or .zarray (version 2)",
        )
    }
}

/// Returns the directory of the array `name` in the group at `path`.
fn member(path: &Path, name: &str) -> Result<PathBuf> {
    let place = path.join(name);
    if matches!(node_kind(&place), Ok(NodeKind::Array)) {
        return Ok(place);
    }
    let entries = crate::files::entries(path)?.into_iter();
    let arrays = entries.filter(|entry| matches!(node_kind(entry), Ok(NodeKind::Array)));
    let mut known: Vec<String> = arrays
        .filter_map(|entry| Some(entry.file_name()?.to_string_lossy().into_owned()))
        .collect();
    known.sort();
    Err(SnapshotError::Missing {
        path: path.to_path_buf(),
        wanted: format!("array {name:?}"),
        known,
    })
}
