//! Whether all that a snapshot has is what was written.

use crate::checksums::{FILE, ROOT, check, lines};
use crate::reader::Snapshot;
use crate::{Result, SnapshotError};

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
