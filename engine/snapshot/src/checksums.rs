//! The checksums of a snapshot's metadata: the file `checksums` beside the root's `zarr.json`. The chunks of arrays carry their
//! own.

use crate::{Result, Snapshot, SnapshotError};
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
fn lines(path: &Path) -> Result<Option<String>> {
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

fn check(path: &Path, lines: &str, name: &str, bytes: &[u8]) -> Result<()> {
    let wanted = line(name, bytes);
    if lines.split_inclusive('\n').any(|line| line == wanted) {
        return Ok(());
    }
    let text =
        format!("its checksum is not the one in the file `{FILE}`: one of the two is damaged");
    Err(SnapshotError::corrupt(&path.join(name), text))
}

impl Snapshot {
    /// Reads everything that the snapshot has and compares it with its checksums; `tell` is called with the name of each array
    /// before it is read.
    ///
    /// # Errors
    /// [`SnapshotError::Corrupt`] for whatever is missing, cut short or altered; [`SnapshotError::Io`].
    pub fn verify(&self, mut tell: impl FnMut(&str)) -> Result<()> {
        if let Some(lines) = lines(self.path())? {
            for line in lines.lines() {
                let name = line.split_once("  ").map_or(line, |(_, name)| name);
                let file = self.path().join(name);
                let bytes = std::fs::read(&file)
                    .map_err(|error| SnapshotError::corrupt(&file, error.to_string()))?;
                check(self.path(), &lines, name, &bytes)?;
            }
            self.require_all_listed(&lines)?;
        }
        for level in self.levels() {
            for array in self.arrays(level.level)? {
                tell(&format!("level_{}/{}", level.level, array.name));
                let step = Self::shard_patches(level.patches as usize) as u64;
                for first in (0..level.patches).step_by(step as usize) {
                    let range = first..(first + step).min(level.patches);
                    self.read_patches(level.level, &array.name, range)?;
                }
            }
        }
        for part in self.parts() {
            tell(&part.path);
            self.read_part(&part.path)?;
        }
        Ok(())
    }

    /// Refuses documents without a checksum.
    fn require_all_listed(&self, lines: &str) -> Result<()> {
        let listed = |name: &str| {
            lines
                .lines()
                .any(|line| line.ends_with(&format!("  {name}")))
        };
        let mut names = vec![ROOT.to_string()];
        for level in self.levels() {
            names.push(format!("level_{}/{ROOT}", level.level));
            let arrays = self.arrays(level.level)?.into_iter();
            names.extend(arrays.map(|a| format!("level_{}/{}/{ROOT}", level.level, a.name)));
        }
        names.extend(self.parts().map(|part| format!("{}/{ROOT}", part.path)));
        match names.iter().find(|name| !listed(name)) {
            Some(name) => {
                let text = format!("it has no line for {name}");
                Err(SnapshotError::corrupt(&self.path().join(FILE), text))
            }
            None => Ok(()),
        }
    }
}
