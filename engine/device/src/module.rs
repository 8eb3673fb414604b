//! Compiled sources and their kernels, and their cache on disk: each source is compiled once per device, not once per
//! run.
//!
//! The cache only saves time. A folder that is not writable and a damaged file are ignored. A file holds the output of
//! the compiler and its 32-byte BLAKE3 digest. It is written under a temporary name and renamed, so that concurrent
//! runs do not interfere.
//!
//! Loaded code has the rights of the user. So the folder must belong to the user, and nobody else may write it. The
//! verified bytes are the ones that are loaded.

use super::backend::{BackendKernel, KernelInfo, LoadedCode};
use super::counters::AtomicKernelCounters;
use super::parallel::lock;
use super::{Device, DeviceError, LaunchShape};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread::JoinHandle;
use std::{fmt, fs};

/// Result of a compilation.
type Compiled = Result<Arc<dyn LoadedCode>, DeviceError>;

/// A source that a thread of its own compiles and loads, so that the compilations of a run overlap.
pub(super) struct Compilation {
    thread: Mutex<Option<JoinHandle<Compiled>>>,
    result: OnceLock<Compiled>,
    /// Kernels in use, by name. They are shared because the driver keeps attributes of each kernel.
    kernels: Mutex<BTreeMap<String, Weak<KernelHandle>>>,
}

impl Compilation {
    /// Starts to compile; without another thread, compiles at once.
    pub(super) fn start(compile: impl FnOnce() -> Compiled + Clone + Send + 'static) -> Arc<Self> {
        let thread = std::thread::Builder::new().name("nestar-compile".into());
        let (thread, result) = match thread.spawn(compile.clone()) {
            Ok(thread) => (Some(thread), OnceLock::new()),
            Err(_) => (None, OnceLock::from(compile())),
        };
        Arc::new(Self {
            thread: Mutex::new(thread),
            result,
            kernels: Mutex::default(),
        })
    }

    /// Returns `true` if the compilation has not ended.
    pub(super) fn is_running(&self) -> bool {
        let thread = lock(&self.thread);
        thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// The source does not compile or cannot be loaded.
    pub(super) fn wait(&self) -> Result<&Arc<dyn LoadedCode>, DeviceError> {
        let join = || {
            // the lock is free while this thread waits
            let thread = lock(&self.thread).take();
            match thread.map(JoinHandle::join) {
                Some(Ok(compiled)) => compiled,
                _ => Err(DeviceError::failed(
                    "compiling kernels",
                    "a thread panicked",
                )),
            }
        };
        self.result.get_or_init(join).as_ref().map_err(Clone::clone)
    }
}

impl Drop for Compilation {
    /// Waits for the thread, because the compiler must not run while the process ends.
    fn drop(&mut self) {
        let _ = self.wait();
    }
}

/// A source that is compiled for a device, or being compiled.
#[derive(Clone)]
pub struct Module {
    device: Device,
    code: Arc<Compilation>,
}

impl Module {
    pub(super) fn new(device: Device, code: Arc<Compilation>) -> Self {
        Self { device, code }
    }

    /// Returns a kernel by name. Its first use waits for the compilation and reports later errors.
    ///
    /// # Errors
    /// The source is already known not to compile.
    pub fn kernel(&self, name: &str) -> Result<Kernel, DeviceError> {
        if let Some(Err(error)) = self.code.result.get() {
            return Err(error.clone());
        }
        let mut kernels = lock(&self.code.kernels);
        if let Some(shared) = kernels.get(name).and_then(Weak::upgrade) {
            return Ok(Kernel(shared));
        }
        let handle = Arc::new(KernelHandle {
            counters: self.device.atomic_counters().kernel(name),
            code: self.code.clone(),
            loaded: OnceLock::new(),
            name: name.to_string(),
        });
        kernels.insert(name.to_string(), Arc::downgrade(&handle));
        Ok(Kernel(handle))
    }
}

/// A kernel that can be launched. It keeps its module alive.
#[derive(Clone)]
pub struct Kernel(Arc<KernelHandle>);

struct KernelHandle {
    name: String,
    counters: Arc<AtomicKernelCounters>,
    code: Arc<Compilation>,
    loaded: OnceLock<Result<LoadedKernel, DeviceError>>,
}

/// A kernel on the device.
struct LoadedKernel {
    info: KernelInfo,
    function: Box<dyn BackendKernel>,
}

impl Kernel {
    /// Returns the name in the source.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Waits for the compilation.
    fn loaded(&self) -> Result<&LoadedKernel, DeviceError> {
        let load = || {
            let function = self.0.code.wait()?.clone().function(&self.0.name)?;
            Ok(LoadedKernel {
                info: function.info(),
                function,
            })
        };
        self.0
            .loaded
            .get_or_init(load)
            .as_ref()
            .map_err(Clone::clone)
    }

    /// Returns the resources of the kernel.
    ///
    /// # Errors
    /// The source does not compile, or has no such kernel.
    pub fn info(&self) -> Result<KernelInfo, DeviceError> {
        Ok(self.loaded()?.info)
    }

    /// Returns how many blocks of `threads` threads and `shared` bytes of dynamic shared memory fit on a
    /// multiprocessor.
    ///
    /// It is at least 1 for an emulated kernel.
    ///
    /// # Errors
    /// As [`Kernel::info`]; the driver reports an error.
    pub fn resident_blocks(&self, threads: u32, shared: u32) -> Result<u32, DeviceError> {
        self.loaded()?.function.resident_blocks(threads, shared)
    }

    /// Adds the work of a launch to the counters: cells, and the minimum number of bytes read and written.
    pub fn count_work(&self, cells: usize, bytes: usize) {
        self.0.counters.count_work(cells as u64, bytes as u64);
    }

    pub(super) fn atomic_counters(&self) -> &Arc<AtomicKernelCounters> {
        &self.0.counters
    }

    pub(super) fn launch(
        &self,
        shape: LaunchShape,
        parameters: &[u8],
        timed: bool,
    ) -> Result<(), DeviceError> {
        let loaded = self.loaded()?;
        let size = loaded.info.parameters;
        if let Some(size) = size.filter(|&size| size as usize != parameters.len()) {
            return Err(DeviceError::Kernel(format!(
                "the kernel {} takes {size} bytes of parameters, not {}",
                self.0.name,
                parameters.len()
            )));
        }
        let timer = timed.then_some(&self.0.counters);
        loaded.function.launch(shape, parameters, timer)
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kernel").field(&self.0.name).finish()
    }
}

/// Length of the digest at the end of a file, bytes.
const DIGEST: usize = 32;

/// Folder of compiled kernels, or the reason why there is none.
pub(super) struct Cache {
    folder: Result<PathBuf, String>,
}

/// Returns the folder of files that only save time, which is created if needed; `None` if it cannot be used.
///
/// It belongs to the user and nobody else may write it: `$NESTAR_CACHE`, or else `nestar` in `$XDG_CACHE_HOME` or in
/// `$HOME/.cache`.
#[must_use]
pub fn cache_folder() -> Option<PathBuf> {
    Cache::open().folder.ok()
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
