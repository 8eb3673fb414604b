//! Compiled kernels on disk, so that a source is compiled once for a device and not once a run.
//!
//! The cache only saves time: a folder that cannot be written and a damaged file are as good as none. A file is the
//! compiler's output followed by its 32-byte BLAKE3 digest; it is written beside its place and renamed, so that runs that
//! start together do not disturb each other.

use super::DeviceError;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the digest behind the contents of a file.
const DIGEST: usize = 32;

/// The folder of compiled kernels.
pub(super) struct Cache {
    folder: PathBuf,
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
    /// `$NESTAR_CACHE`, else `nestar` in `$XDG_CACHE_HOME`, `$HOME/.cache` or the folder for temporary files.
    pub(super) fn open() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let folder = set("NESTAR_CACHE").map_or_else(
            || {
                let caches = set("XDG_CACHE_HOME").map(PathBuf::from);
                let caches =
                    caches.or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".cache")));
                caches.unwrap_or_else(std::env::temp_dir).join("nestar")
            },
            PathBuf::from,
        );
        Self { folder }
    }

    /// A cache in a folder of one's own choice.
    #[cfg(test)]
    pub(super) fn at(folder: PathBuf) -> Self {
        Self { folder }
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

    /// Path of a file, whether it exists or not.
    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    /// The contents of a file, if it is there and whole.
    pub(super) fn load(&self, file: &str) -> Option<Vec<u8>> {
        let mut contents = fs::read(self.path(file)).ok()?;
        let end = contents.len().checked_sub(DIGEST)?;
        let whole = blake3::hash(&contents[..end]).as_bytes()[..] == contents[end..];
        contents.truncate(end);
        whole.then_some(contents)
    }

    /// Stores contents with their digest; the path, unless the folder cannot be written.
    pub(super) fn store(&self, file: &str, contents: &[u8]) -> Option<PathBuf> {
        let mut bytes = contents.to_vec();
        bytes.extend_from_slice(blake3::hash(contents).as_bytes());
        self.write(file, &bytes)
    }

    /// Writes a file as it is, for people to look at; the path, unless the folder cannot be written.
    pub(super) fn write(&self, file: &str, bytes: &[u8]) -> Option<PathBuf> {
        fs::create_dir_all(&self.folder).ok()?;
        let path = self.path(file);
        let mut beside: OsString = path.clone().into_os_string();
        beside.push(format!(".{}", unique()));
        let written = fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, &path));
        if written.is_err() {
            // a full disk leaves a part behind; what cannot be removed does no harm
            let _ = fs::remove_file(&beside);
            return None;
        }
        Some(path)
    }
}

/// A folder for temporary files of this process alone, removed on drop.
pub(super) struct Workplace(PathBuf);

impl Workplace {
    /// A new folder.
    pub(super) fn new() -> Result<Self, DeviceError> {
        let folder = std::env::temp_dir().join(format!("nestar-{}", unique()));
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::DirBuilderExt;
            builder.mode(0o700);
        }
        // an existing folder is an error, so nobody else has put files into it
        builder
            .create(&folder)
            .map_err(|e| DeviceError::failed(format!("cannot create {}", folder.display()), e))?;
        Ok(Self(folder))
    }

    /// The folder.
    pub(super) fn folder(&self) -> &Path {
        &self.0
    }
}

impl Drop for Workplace {
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
