//! Reader of Zarr arrays of other programs: uniform grids (initial states) and tables (such as particles).

use crate::zarr::{Plain, read_plain};
use crate::{Result, SnapshotError, files};
use serde_json::Value;
use std::collections::BTreeMap;
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
fn node_kind(path: &Path) -> Result<NodeKind> {
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

/// A column: a one-dimensional array, or a component of an array of shape `[row, 3]`.
struct TableColumn {
    name: String,
    array: PathBuf,
    component: usize,
    components: usize,
}

/// Returns the shape of an array of Zarr version 2 or 3.
fn shape(path: &Path) -> Vec<u64> {
    let text = ["zarr.json", ".zarray"].map(|name| std::fs::read_to_string(path.join(name)));
    let text = text.into_iter().find_map(std::result::Result::ok);
    let document: Value = serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default();
    let shape = document["shape"].as_array().into_iter().flatten();
    shape.filter_map(Value::as_u64).collect()
}

/// Returns the columns of the group at `path`, at least one, by ascending array name.
fn columns(path: &Path) -> Result<Vec<TableColumn>> {
    let refuse = |detail: String| {
        Err(SnapshotError::Uniform {
            path: path.to_path_buf(),
            detail,
        })
    };
    if node_kind(path)? == NodeKind::Array {
        return refuse("it is an array; a table is a group of arrays".to_string());
    }
    let mut entries = files::entries(path)?;
    entries.sort();
    let (mut columns, mut others) = (Vec::new(), Vec::new());
    for array in entries {
        let name = array.file_name().unwrap_or_default().to_string_lossy();
        if !matches!(node_kind(&array), Ok(NodeKind::Array)) {
            continue;
        }
        let shape = shape(&array);
        let endings: &[&str] = match shape[..] {
            [_] => &[""],
            [_, 3] => &["_x", "_y", "_z"],
            _ => &[],
        };
        if endings.is_empty() {
            others.push(format!("{name} of shape {shape:?}"));
        }
        let column = |(component, ending): (usize, &&str)| TableColumn {
            name: format!("{name}{ending}"),
            array: array.clone(),
            component,
            components: endings.len(),
        };
        columns.extend(endings.iter().enumerate().map(column));
    }
    if columns.is_empty() {
        return refuse(no_columns(&others));
    }
    Ok(columns)
}

/// Describes why a group with these arrays has no columns.
fn no_columns(others: &[String]) -> String {
    let found = match others.is_empty() {
        true => "no arrays".to_string(),
        false => others.join(", "),
    };
    format!(
        "a table has a one-dimensional array for each column, or an array of shape [rows, 3] for three columns; \
         the group has {found}"
    )
}

/// Returns the column names of the Zarr group at `path` (version 3, or version 2 with supported codecs).
/// One-dimensional arrays are columns; an array `NAME` of shape `[row, 3]` has `NAME_x`, `NAME_y` and
/// `NAME_z`. Reads no values.
///
/// # Errors
/// [`SnapshotError::Uniform`] if `path` is no group of arrays or has no columns, with the shapes of its
/// arrays; [`SnapshotError::Io`].
pub fn column_names(path: &Path) -> Result<Vec<String>> {
    let columns = columns(path)?.into_iter();
    Ok(columns.map(|column| column.name).collect())
}

/// Reads columns of the Zarr group at `path`, named as by [`column_names`]; all have the same length.
/// Integers above 2^53 are rounded.
///
/// # Errors
/// [`SnapshotError::Missing`] with the existing columns; [`SnapshotError::Uniform`] for different lengths,
/// values that are not finite, and unreadable arrays; [`SnapshotError::Corrupt`].
pub fn read_columns(path: &Path, names: &[&str]) -> Result<Vec<Vec<f64>>> {
    let known = columns(path)?;
    let mut arrays: BTreeMap<&Path, Plain> = BTreeMap::new();
    let mut found: Vec<Vec<f64>> = Vec::with_capacity(names.len());
    for name in names {
        let Some(column) = known.iter().find(|column| column.name == *name) else {
            return Err(SnapshotError::Missing {
                path: path.to_path_buf(),
                wanted: format!("column {name:?}"),
                known: known.iter().map(|column| column.name.clone()).collect(),
            });
        };
        if !arrays.contains_key(&*column.array) {
            arrays.insert(&column.array, read_plain(&column.array)?);
        }
        let values = &arrays[&*column.array].values;
        let values = values
            .iter()
            .skip(column.component)
            .step_by(column.components);
        let values: Vec<f64> = values.copied().collect();
        let refuse = |detail: String| {
            Err(SnapshotError::Uniform {
                path: column.array.clone(),
                detail,
            })
        };
        if let Some(row) = values.iter().position(|value| !value.is_finite()) {
            return refuse(format!("its value in row {} is {}", row + 1, values[row]));
        }
        if let Some(first) = found.first().filter(|first| first.len() != values.len()) {
            let (rows, other) = (values.len(), first.len());
            return refuse(format!("it has {rows} rows, {} has {other}", names[0]));
        }
        found.push(values);
    }
    Ok(found)
}
