//! Temporary folders.

use crate::report::print_message;
use nestar_engine::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A temporary folder that is removed on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Creates an empty folder.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn new() -> Result<Self, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("nestar-{process}-{count}"));
        std::fs::create_dir_all(&path)
            .map_err(|e| Error::Setup(format!("cannot create {}: {e}", path.display())))?;
        Ok(Self(path))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            print_message(&format!(
                "note: cannot remove {}: {error}",
                self.0.display()
            ));
        }
    }
}
