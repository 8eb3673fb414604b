//! Compiled kernels on disk, so that a source is compiled once for a device and not once a run.
//!
//! The cache only saves time: a folder that cannot be written and a damaged file are as good as none. A file is the
//! compiler's output followed by its 32-byte BLAKE3 digest; it is written beside its place and renamed, so that runs that
//! start together do not disturb each other. What is loaded runs with the user's rights: only a folder that belongs to the
//! user and that nobody else may write is used, and the bytes that were checked are the ones that are loaded.

use super::DeviceError;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the digest behind the contents of a file.
const DIGEST: usize = 32;

/// The folder of compiled kernels, or why there is none.
pub(super) struct Cache {
    folder: Result<PathBuf, String>,
}

/// Writes a source to the folder that `NESTAR_KERNEL_SOURCES` names, if it names one.
pub(super) fn keep_source(name: &str, source: &str) -> Result<(), DeviceError> {
    let folder = std::env::var_os("NESTAR_KERNEL_SOURCES").filter(|value| !value.is_empty());
    let Some(folder) = folder.map(PathBuf::from) else {
        return Ok(());
    };
    let path = folder.join(Cache::file(name, &[source], "cu"));
    fs::write(&path, source).map_err(|e| DeviceError::Failed {
        doing: format!("writing {}", path.display()),
        why: format!("{e}; NESTAR_KERNEL_SOURCES must name a folder that can be written"),
    })
}

impl Cache {
    /// `$NESTAR_CACHE`, else `nestar` in `$XDG_CACHE_HOME` or in `$HOME/.cache`.
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

    /// A cache in a folder of one's own choice.
    #[cfg(test)]
    pub(super) fn at(folder: PathBuf) -> Self {
        Self {
            folder: trusted(folder),
        }
    }

    /// What people are told about it behind the device's name: why compiled kernels are not kept, if they are not.
    pub(super) fn described(&self) -> String {
        let why = self.folder.as_ref().err();
        why.map_or_else(String::new, |why| {
            format!("; compiled kernels are not kept: {why}")
        })
    }

    /// File name of what is made of all `parts`.
    pub(super) fn file(name: &str, parts: &[&str], extension: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let key = &hasher.finalize().to_hex()[..24];
        format!("{name}-{key}.{extension}")
    }

    /// The contents of a file, if it is there and whole.
    pub(super) fn load(&self, file: &str) -> Option<Vec<u8>> {
        let mut contents = fs::read(self.folder.as_ref().ok()?.join(file)).ok()?;
        let end = contents.len().checked_sub(DIGEST)?;
        let whole = blake3::hash(&contents[..end]).as_bytes()[..] == contents[end..];
        contents.truncate(end);
        whole.then_some(contents)
    }

    /// Stores contents with their digest, where the folder can be written.
    pub(super) fn store(&self, file: &str, contents: &[u8]) {
        let digest = blake3::hash(contents);
        self.write(file, &[contents, digest.as_bytes()].concat());
    }

    /// Writes a file as it is, for people to look at; the path, unless the folder cannot be written.
    pub(super) fn write(&self, file: &str, bytes: &[u8]) -> Option<PathBuf> {
        let folder = self.folder.as_ref().ok()?;
        let path = folder.join(file);
        let beside = folder.join(format!("{file}.{}", unique()));
        let written = create_new(&beside, bytes).and_then(|()| fs::rename(&beside, &path));
        if written.is_err() {
            // a full disk leaves a part behind; what cannot be removed does no harm
            let _ = fs::remove_file(&beside);
            return None;
        }
        Some(path)
    }

    /// Folders of this process alone: a temporary one, and one from which programs may be run where that is not.
    ///
    /// # Errors
    /// There is no place for one.
    pub(super) fn private_folders(&self) -> Result<Vec<PrivateFolder>, DeviceError> {
        let temporary = PrivateFolder::within(&std::env::temp_dir())?;
        // temporary files may be on a disk from which nothing may be run
        let own = self.folder.as_ref().ok();
        let own = own.and_then(|folder| PrivateFolder::within(folder).ok());
        Ok([Some(temporary), own].into_iter().flatten().collect())
    }
}

/// The folder, made where it is missing, if it belongs to the user and nobody else may write it; else the reason.
fn trusted(folder: PathBuf) -> Result<PathBuf, String> {
    let shown = folder.display();
    let unusable = |error: std::io::Error| format!("{shown} cannot be used: {error}");
    private()
        .recursive(true)
        .create(&folder)
        .map_err(unusable)?;
    // what this process makes belongs to the user that it runs as
    let own = PrivateFolder::within(&folder).map_err(|error| error.to_string())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let found = fs::metadata(&folder).map_err(unusable)?;
        if found.uid() != fs::metadata(own.folder()).map_err(unusable)?.uid() {
            return Err(format!("{shown} belongs to another user"));
        }
        if found.mode() & 0o022 != 0 {
            return Err(format!("others may write {shown} (chmod go-w mends it)"));
        }
    }
    drop(own);
    Ok(folder)
}

/// Makes folders that nobody else may enter.
fn private() -> fs::DirBuilder {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there are no modes"))]
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder
}

/// Writes a file that was not there, through no link.
fn create_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path);
    file.and_then(|mut file| file.write_all(bytes))
}

/// A folder for temporary files of this process alone, removed on drop.
pub(super) struct PrivateFolder(PathBuf);

impl PrivateFolder {
    /// A new folder in `place`.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn within(place: &Path) -> Result<Self, DeviceError> {
        let folder = place.join(format!("nestar-{}", unique()));
        // an existing folder is an error, so nobody else has put files into it
        private()
            .create(&folder)
            .map_err(|e| DeviceError::failed(format!("cannot create {}", folder.display()), e))?;
        Ok(Self(folder))
    }

    /// Writes a file into the folder; its path.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn put(&self, file: &str, bytes: &[u8]) -> Result<PathBuf, DeviceError> {
        let path = self.0.join(file);
        create_new(&path, bytes)
            .map_err(|e| DeviceError::failed(format!("cannot write {}", path.display()), e))?;
        Ok(path)
    }

    /// The folder.
    pub(super) fn folder(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // what cannot be removed stays for the system's own clearing
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A text that no other call of any process has.
fn unique() -> String {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let time = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    format!("{}-{call}-{:x}", std::process::id(), time.as_nanos())
}
