//! Reader of tables: Zarr arrays in one group, written by any program, such as the particles of a snapshot.

use crate::layout::Plain;
use crate::uniform::{NodeKind, node_kind};
use crate::zarr::read_plain;
use crate::{Result, SnapshotError, files};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
