//! The checksums of a snapshot's metadata: the file `checksums` beside the root's `zarr.json`. The chunks of arrays carry their
//! own.

use crate::error::{Result, SnapshotError};
use serde_json::Value;
use std::path::Path;

/// Name of the file: a line for each metadata document, as `b3sum` writes and checks them.
pub(crate) const FILE: &str = "checksums";
/// The root's attribute that says that there is the file, and of which kind.
pub(crate) const ATTRIBUTE: (&str, &str) = ("checksums", "blake3");
/// The root's metadata document.
pub(crate) const ROOT: &str = "zarr.json";

/// The line of a document.
pub(crate) fn line(name: &str, bytes: &[u8]) -> String {
    format!("{}  {name}\n", blake3::hash(bytes).to_hex())
}

/// The lines of the snapshot at `path`; none where it was written without.
pub(crate) fn lines(path: &Path) -> Result<Option<String>> {
    let file = path.join(FILE);
    if !file.exists() {
        return Ok(None);
    }
    let text = std::fs::read(&file).map_err(|error| SnapshotError::io("read", &file, &error))?;
    let text = String::from_utf8(text);
    text.map(Some)
        .map_err(|_| SnapshotError::corrupt(&file, "it is no text".to_string()))
}

/// Refuses the root's document where its bytes are others than those that were written.
pub(crate) fn check_root(path: &Path, bytes: &[u8]) -> Result<()> {
    match lines(path)? {
        Some(lines) => check(path, &lines, ROOT, bytes),
        None => Ok(()),
    }
}

/// Refuses a document that says that there are checksums where there are none.
pub(crate) fn require(path: &Path, attributes: &Value) -> Result<()> {
    let (name, kind) = ATTRIBUTE;
    if attributes[name] == kind && !path.join(FILE).exists() {
        let text = "it is missing, so that nobody knows whether the metadata are whole";
        return Err(SnapshotError::corrupt(&path.join(FILE), text.to_string()));
    }
    Ok(())
}

/// Refuses a document that has no line, or another.
pub(crate) fn check(path: &Path, lines: &str, name: &str, bytes: &[u8]) -> Result<()> {
    let wanted = line(name, bytes);
    if lines.split_inclusive('\n').any(|line| line == wanted) {
        return Ok(());
    }
    let text =
        format!("its checksum is not the one in the file `{FILE}`: one of the two is damaged");
    Err(SnapshotError::corrupt(&path.join(name), text))
}
