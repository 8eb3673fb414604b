//! Cache of compiled kernels on disk: each source is compiled once per device, not once per run.
//!
//! The cache only saves time. A folder that is not writable and a damaged file are ignored. A file holds the output of
//! the compiler and its 32-byte BLAKE3 digest. It is written under a temporary name and renamed, so that concurrent
//! runs do not interfere.
//!
//! Loaded code has the rights of the user. So the folder must belong to the user, and nobody else may write it. The
//! verified bytes are the ones that are loaded.

use super::DeviceError;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Length of the digest at the end of a file, bytes.
const DIGEST: usize = 32;

/// Folder of compiled kernels, or the reason why there is none.
pub(super) struct Cache {
    folder: Result<PathBuf, String>,
}

/// Writes a source to the folder named by `NESTAR_KERNEL_SOURCES`, if that is set.
pub(super) fn keep_source(name: &str, source: &str) -> Result<(), DeviceError> {
    let folder = std::env::var_os("NESTAR_KERNEL_SOURCES").filter(|value| !value.is_empty());
    let Some(folder) = folder.map(PathBuf::from) else {
        return Ok(());
    };
    let path = folder.join(Cache::file(name, &[source], "cu"));
    fs::write(&path, source).map_err(|e| DeviceError::Failed {
        doing: format!("writing {}", path.display()),
        why: format!("{e}; NESTAR_KERNEL_SOURCES must name a writable folder"),
    })
}

impl Cache {
    /// Opens the folder `$NESTAR_CACHE`, or else `nestar` in `$XDG_CACHE_HOME` or in `$HOME/.cache`.
    pub(super) fn open() -> Self {
        let set = |name: &str| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let caches = || set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
        let folder = set("NESTAR_CACHE").or_else(|| Some(caches()?.join("nestar")));
        let none = || "neither $NESTAR_CACHE, $XDG_CACHE_HOME nor $HOME names a folder".into();
        Self {
            folder: folder.ok_or_else(none).and_then(trusted),
        }
    }

    /// Opens a cache in a given folder.
    #[cfg(test)]
    pub(super) fn at(folder: PathBuf) -> Self {
        Self {
            folder: trusted(folder),
        }
    }

    /// Returns why compiled kernels are not cached, as a suffix of the device description; empty if they are cached.
    pub(super) fn described(&self) -> String {
        let why = self.folder.as_ref().err();
        why.map_or_else(String::new, |why| {
            format!("; compiled kernels are not cached: {why}")
        })
    }

    /// Returns the file name for a compilation with all `parts` as inputs.
    pub(super) fn file(name: &str, parts: &[&str], extension: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let key = &hasher.finalize().to_hex()[..24];
        format!("{name}-{key}.{extension}")
    }

    /// Reads a file, if it exists and its digest is correct.
    pub(super) fn load(&self, file: &str) -> Option<Vec<u8>> {
        let mut contents = fs::read(self.folder.as_ref().ok()?.join(file)).ok()?;
        let end = contents.len().checked_sub(DIGEST)?;
        let whole = blake3::hash(&contents[..end]).as_bytes()[..] == contents[end..];
        contents.truncate(end);
        whole.then_some(contents)
    }

    /// Writes contents with their digest, if the folder is writable.
    pub(super) fn store(&self, file: &str, contents: &[u8]) {
        let digest = blake3::hash(contents);
        self.write(file, &[contents, digest.as_bytes()].concat());
    }

    /// Writes a file without a digest and returns its path, or `None` if the folder is not writable.
    pub(super) fn write(&self, file: &str, bytes: &[u8]) -> Option<PathBuf> {
        let folder = self.folder.as_ref().ok()?;
        let path = folder.join(file);
        let beside = folder.join(format!("{file}.{}", unique()));
        let written = create_new(&beside, bytes).and_then(|()| fs::rename(&beside, &path));
        if written.is_err() {
            // A full disk leaves a partial file; failing to remove it does no harm.
            let _ = fs::remove_file(&beside);
            return None;
        }
        Some(path)
    }

    /// Creates private folders: a temporary one, and one in the cache folder, from which code may be executed.
    ///
    /// # Errors
    /// No folder can be created.
    pub(super) fn private_folders(&self) -> Result<Vec<PrivateFolder>, DeviceError> {
        let temporary = PrivateFolder::within(&std::env::temp_dir())?;
        // Temporary files may be on a file system that is mounted without execution.
        let own = self.folder.as_ref().ok();
        let own = own.and_then(|folder| PrivateFolder::within(folder).ok());
        Ok([Some(temporary), own].into_iter().flatten().collect())
    }
}

/// Creates the folder if needed and checks that it belongs to the user and that nobody else may write it. Returns the
/// reason if not.
fn trusted(folder: PathBuf) -> Result<PathBuf, String> {
    let shown = folder.display();
    let unusable = |error: std::io::Error| format!("{shown} cannot be used: {error}");
    private()
        .recursive(true)
        .create(&folder)
        .map_err(unusable)?;
    // New folders belong to the effective user of this process.
    let own = PrivateFolder::within(&folder).map_err(|error| error.to_string())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let found = fs::metadata(&folder).map_err(unusable)?;
        if found.uid() != fs::metadata(own.folder()).map_err(unusable)?.uid() {
            return Err(format!("{shown} belongs to another user"));
        }
        if found.mode() & 0o022 != 0 {
            return Err(format!("others may write to {shown} (chmod go-w fixes it)"));
        }
    }
    drop(own);
    Ok(folder)
}

/// Returns a builder of folders that only the user may enter.
fn private() -> fs::DirBuilder {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "no file modes"))]
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder
}

/// Writes a file that must not exist yet; does not follow links.
fn create_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path);
    file.and_then(|mut file| file.write_all(bytes))
}

/// A folder for temporary files of this process, removed on drop.
pub(super) struct PrivateFolder(PathBuf);

impl PrivateFolder {
    /// Creates a new folder in `place`.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub(super) fn within(place: &Path) -> Result<Self, DeviceError> {
        let folder = place.join(format!("nestar-{}", unique()));
        // An existing folder is an error, so nobody else can have put files into it.
        private()
            .create(&folder)
            .map_err(|e| DeviceError::failed(format!("cannot create {}", folder.display()), e))?;
        Ok(Self(folder))
    }

    /// Writes a file into the folder and returns its path.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn put(&self, file: &str, bytes: &[u8]) -> Result<PathBuf, DeviceError> {
        let path = self.0.join(file);
        create_new(&path, bytes)
            .map_err(|e| DeviceError::failed(format!("cannot write {}", path.display()), e))?;
        Ok(path)
    }

    /// Returns the path of the folder.
    pub(super) fn folder(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // Files that cannot be removed are left to the system.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns a string that is unique among all calls of all processes.
fn unique() -> String {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let time = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    format!("{}-{call}-{:x}", std::process::id(), time.as_nanos())
}
