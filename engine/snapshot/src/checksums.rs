//! Checksums of a snapshot's metadata, in the file `checksums` beside the root's `zarr.json`. Chunks of
//! arrays have their own checksums.

use crate::error::{Result, SnapshotError};
use serde_json::Value;
use std::path::Path;

/// Name of the file; it has a line per metadata document in the format of `b3sum`.
pub(crate) const FILE: &str = "checksums";
/// Root attribute that declares the file and its kind.
pub(crate) const ATTRIBUTE: (&str, &str) = ("checksums", "blake3");
/// Name of the root's metadata document.
pub(crate) const ROOT: &str = "zarr.json";

/// Returns the line of a document.
pub(crate) fn line(name: &str, bytes: &[u8]) -> String {
    format!("{}  {name}\n", blake3::hash(bytes).to_hex())
}

/// Reads the lines of the snapshot at `path`; `None` if it was written without checksums.
pub(crate) fn lines(path: &Path) -> Result<Option<String>> {
    let file = path.join(FILE);
    if !file.exists() {
        return Ok(None);
    }
    let text = std::fs::read(&file).map_err(|error| SnapshotError::io("read", &file, &error))?;
    let text = String::from_utf8(text);
    text.map(Some)
        .map_err(|_| SnapshotError::corrupt(&file, "it is not a text file".to_string()))
}

/// Rejects the root document if its checksum differs.
pub(crate) fn check_root(path: &Path, bytes: &[u8]) -> Result<()> {
    match lines(path)? {
        Some(lines) => check(path, &lines, ROOT, bytes),
        None => Ok(()),
    }
}

/// Rejects a document that declares a missing checksum file.
pub(crate) fn require(path: &Path, attributes: &Value) -> Result<()> {
    let (name, kind) = ATTRIBUTE;
    if attributes[name] == kind && !path.join(FILE).exists() {
        let text = "it is missing, so the metadata cannot be verified";
        return Err(SnapshotError::corrupt(&path.join(FILE), text.to_string()));
    }
    Ok(())
}

/// Rejects a document without a line or with a different checksum.
pub(crate) fn check(path: &Path, lines: &str, name: &str, bytes: &[u8]) -> Result<()> {
    let wanted = line(name, bytes);
    if lines.split_inclusive('\n').any(|line| line == wanted) {
        return Ok(());
    }
    let text =
        format!("its checksum is not the one in the file `{FILE}`: one of the two is damaged");
    Err(SnapshotError::corrupt(&path.join(name), text))
}
