//! Verification of a snapshot against its checksums.

use crate::checksums::{FILE, ROOT, check, lines};
use crate::reader::Snapshot;
use crate::{Result, SnapshotError};

impl Snapshot {
    /// Reads everything and compares it with its checksums; `progress` receives the name of each array before it
    /// is read.
    ///
    /// # Errors
    /// [`SnapshotError::Corrupt`] for missing, truncated or altered data; [`SnapshotError::Io`].
    pub fn verify(&self, mut progress: impl FnMut(&str)) -> Result<()> {
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
        for group in self.groups() {
            for name in group.arrays.keys() {
                progress(&format!("{}/{name}", group.path));
                for range in group.row_ranges() {
                    self.read_rows(&group.path, group.arrays, name, range)?;
                }
            }
        }
        for part in self.blobs() {
            progress(&part.path);
            self.read_blob(&part.path)?;
        }
        Ok(())
    }

    /// Rejects documents without a checksum.
    fn require_all_listed(&self, lines: &str) -> Result<()> {
        let listed = |name: &str| {
            lines
                .lines()
                .any(|line| line.ends_with(&format!("  {name}")))
        };
        let mut names = vec![ROOT.to_string()];
        for group in self.groups() {
            let path = group.path;
            names.push(format!("{path}/{ROOT}"));
            let arrays = group.arrays.keys();
            names.extend(arrays.map(|array| format!("{path}/{array}/{ROOT}")));
        }
        names.extend(self.blobs().map(|part| format!("{}/{ROOT}", part.path)));
        match names.iter().find(|name| !listed(name)) {
            Some(name) => {
                let text = format!("it has no line for {name}");
                Err(SnapshotError::corrupt(&self.path().join(FILE), text))
            }
            None => Ok(()),
        }
    }
}
