//! The emulated device: kernel sources compiled by the C++ compiler and run on the CPU, one thread per block.

mod library;

use super::backend::{AddressRange, Backend, CopyStream, Fence, LoadedCode};
use super::module::{Cache, PrivateFolder};
use super::parallel::lock;
use super::{DeviceError, DeviceLimits, DeviceMemory, format_bytes};
use library::{Compiler, Library};
use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

/// Alignment of device memory, as of CUDA.
const ALIGNMENT: usize = 256;

/// One lock for each library that this process has compiled or loaded, by the name of its file.
static COMPILED: Mutex<BTreeMap<String, Arc<Mutex<()>>>> = Mutex::new(BTreeMap::new());

/// The backend of the emulated device.
pub(super) struct Emulated {
    compiler: Compiler,
    cache: Cache,
}

impl Emulated {
    /// Finds a compiler and opens the cache.
    pub(super) fn open() -> Result<Self, DeviceError> {
        Self::with(Cache::open())
    }

    /// As `open`, with a given cache.
    pub(super) fn with(cache: Cache) -> Result<Self, DeviceError> {
        let compiler = Compiler::find()?;
        Ok(Self { compiler, cache })
    }

    /// Compiles a source, caches the library and returns its bytes.
    fn build(&self, name: &str, source: &str, file: &str) -> Result<Vec<u8>, DeviceError> {
        let place = PrivateFolder::within(&std::env::temp_dir())?;
        place.put(&format!("{name}.cpp"), source.as_bytes())?;
        let built = self.compiler.run(name, place.folder()).map_err(|error| {
            let stored = self
                .cache
                .write(&format!("{name}-failed.cpp"), source.as_bytes());
            error.with_source(stored.as_deref())
        })?;
        let contents = std::fs::read(&built)
            .map_err(|e| DeviceError::failed(format!("cannot read {}", built.display()), e))?;
        self.cache.store(file, &contents);
        Ok(contents)
    }

    /// Loads a library from its bytes, through a file in a private folder.
    fn load(&self, name: &str, bytes: &[u8]) -> Result<Library, DeviceError> {
        let mut loaded = Err(DeviceError::Kernel(format!("`{name}` cannot be loaded")));
        for place in self.cache.private_folders()? {
            loaded = Library::load(&place.put(&format!("{name}.so"), bytes)?);
            if loaded.is_ok() {
                break;
            }
        }
        loaded
    }
}

impl Backend for Emulated {
    fn describe(&self) -> String {
        let compiler = &self.compiler.version;
        let stored = self.cache.described();
        format!("emulated device (kernels compiled by {compiler}, run on the CPU){stored}")
    }

    fn identity(&self) -> Option<[u8; 16]> {
        None
    }

    fn limits(&self) -> DeviceLimits {
        DeviceLimits {
            multiprocessors: rayon::current_num_threads() as u32,
            threads_per_block: 1024,
            threads_per_multiprocessor: 2048,
            registers_per_multiprocessor: 65536,
            shared_per_block: 227 << 10,
            shared_per_multiprocessor: 228 << 10,
            shared_reserved_per_block: 1 << 10,
            capability: [0, 0],
        }
    }

    fn memory(&self) -> Result<DeviceMemory, DeviceError> {
        let file = "/proc/meminfo";
        let text = std::fs::read_to_string(file)
            .map_err(|e| DeviceError::failed(format!("cannot read {file}"), e))?;
        let entry = |name: &str| -> Option<u64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
        };
        match (entry("MemAvailable:"), entry("MemTotal:")) {
            (Some(free), Some(total)) => Ok(DeviceMemory { free, total }),
            _ => Err(DeviceError::failed(file, "it holds no memory sizes")),
        }
    }

    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        Ok(self.allocate_host(bytes)? as u64)
    }

    fn release(&self, address: u64, bytes: usize) {
        self.release_host(address as *mut u8, bytes);
    }

    fn reserve(&self, bytes: usize) -> Result<Box<dyn AddressRange>, DeviceError> {
        Ok(Box::new(PageRange::reserve(bytes)?))
    }

    fn allocate_host(&self, bytes: usize) -> Result<*mut u8, DeviceError> {
        let layout = layout(bytes)?;
        // SAFETY: the layout is not empty
        let pointer = unsafe { std::alloc::alloc_zeroed(layout) };
        if pointer.is_null() {
            let memory = self.memory()?;
            return Err(DeviceError::Memory {
                asked: bytes as u64,
                free: memory.free,
                total: memory.total,
            });
        }
        Ok(pointer)
    }

    fn release_host(&self, pointer: *mut u8, bytes: usize) {
        if let Ok(layout) = layout(bytes) {
            // SAFETY: `allocate_host` returned the pointer for this layout
            unsafe { std::alloc::dealloc(pointer, layout) }
        }
    }

    fn zero(&self, to: u64, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: the caller owns this device memory, which is host memory here
        unsafe { (to as *mut u8).write_bytes(0, bytes) };
        Ok(())
    }

    fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: as in `zero`, for both ends
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
        Ok(())
    }

    fn copies(&self, beside: bool) -> Result<Box<dyn CopyStream>, DeviceError> {
        Ok(Box::new(EmulatedCopyStream::new(beside)))
    }

    fn synchronise(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn compile(&self, name: &str, source: &str) -> Result<Arc<dyn LoadedCode>, DeviceError> {
        let options = Compiler::options().join(" ");
        let file = Cache::file(name, &[source, &options, &self.compiler.version], "so");
        // ranks and tests that ask for one source at the same time wait for the first, and then find its library
        let turn = lock(&COMPILED).entry(file.clone()).or_default().clone();
        let _turn = lock(&turn);
        let known = self.cache.load(&file);
        if let Some(Ok(library)) = known.map(|bytes| self.load(name, &bytes)) {
            return Ok(Arc::new(library));
        }
        let built = self.build(name, source, &file)?;
        Ok(Arc::new(self.load(name, &built)?))
    }
}

fn layout(bytes: usize) -> Result<Layout, DeviceError> {
    Layout::from_size_align(bytes, ALIGNMENT)
        .map_err(|_| DeviceError::Range(format!("{bytes} bytes exceed the address space")))
}

/// Reserved pages; mapped ones can be read and written, and are zero at first.
struct PageRange {
    address: *mut c_void,
    reserved: usize,
    mapped: usize,
}

// SAFETY: the value owns the memory exclusively
unsafe impl Send for PageRange {}
// SAFETY: shared references do not change the memory
unsafe impl Sync for PageRange {}

impl PageRange {
    const SIZE: usize = 1 << 16;

    fn reserve(bytes: usize) -> Result<Self, DeviceError> {
        let reserved = bytes.next_multiple_of(Self::SIZE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new anonymous mapping affects no other memory
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                reserved,
                libc::PROT_NONE,
                flags,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            let doing = format!("cannot reserve {}", format_bytes(bytes as u64));
            return Err(DeviceError::failed(doing, std::io::Error::last_os_error()));
        }
        Ok(Self {
            address,
            reserved,
            mapped: 0,
        })
    }
}

impl AddressRange for PageRange {
    fn address(&self) -> u64 {
        self.address as u64
    }

    fn mapped(&self) -> usize {
        self.mapped
    }

    fn grow(&mut self, bytes: usize) -> Result<(), DeviceError> {
        let mapped = bytes.next_multiple_of(Self::SIZE).min(self.reserved);
        // SAFETY: the pages belong to this mapping
        let answer =
            unsafe { libc::mprotect(self.address, mapped, libc::PROT_READ | libc::PROT_WRITE) };
        if answer != 0 {
            let doing = format!("cannot map {}", format_bytes(mapped as u64));
            return Err(DeviceError::failed(doing, std::io::Error::last_os_error()));
        }
        self.mapped = mapped;
        Ok(())
    }

    fn shrink(&mut self, bytes: usize) -> Result<(), DeviceError> {
        let mapped = bytes.next_multiple_of(Self::SIZE);
        if mapped >= self.mapped {
            return Ok(());
        }
        let behind = self.address.wrapping_byte_add(mapped);
        // SAFETY: the pages belong to this mapping, and nobody uses them any more
        let answers = unsafe {
            let length = self.mapped - mapped;
            [
                libc::madvise(behind, length, libc::MADV_DONTNEED),
                libc::mprotect(behind, length, libc::PROT_NONE),
            ]
        };
        if answers != [0, 0] {
            let doing = format!("cannot free all but {}", format_bytes(mapped as u64));
            return Err(DeviceError::failed(doing, std::io::Error::last_os_error()));
        }
        self.mapped = mapped;
        Ok(())
    }
}

impl Drop for PageRange {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, which nobody uses afterwards
        unsafe { libc::munmap(self.address, self.reserved) };
    }
}

/// A queue of copies.
///
/// Concurrent copies run only when somebody waits for them. So tests detect data that is changed or read too early.
struct EmulatedCopyStream {
    late: bool,
    waiting: Mutex<Vec<QueuedCopy>>,
}

/// A queued copy.
struct QueuedCopy {
    from: *const u8,
    to: *mut u8,
    bytes: usize,
}

// SAFETY: both ends are valid until the copy has ended, and nobody else accesses the target
unsafe impl Send for QueuedCopy {}

impl EmulatedCopyStream {
    fn new(late: bool) -> Self {
        Self {
            late,
            waiting: Mutex::default(),
        }
    }

    fn add(&self, copy: QueuedCopy) {
        let mut waiting = lock(&self.waiting);
        waiting.push(copy);
        if !self.late {
            perform(&mut waiting);
        }
    }
}

fn perform(copies: &mut Vec<QueuedCopy>) {
    for QueuedCopy { from, to, bytes } in copies.drain(..) {
        // SAFETY: the caller who queued the copy keeps both ends valid
        unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
    }
}

impl CopyStream for EmulatedCopyStream {
    fn wait_for_main_stream(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn download(&self, from: u64, to: *mut u8, bytes: usize) -> Result<(), DeviceError> {
        let from = from as *const u8;
        self.add(QueuedCopy { from, to, bytes });
        Ok(())
    }

    fn upload(&self, from: *const u8, to: u64, bytes: usize) -> Result<(), DeviceError> {
        let to = to as *mut u8;
        self.add(QueuedCopy { from, to, bytes });
        Ok(())
    }

    fn record_fence(&self) -> Result<Box<dyn Fence>, DeviceError> {
        let mut waiting = lock(&self.waiting);
        Ok(Box::new(Mutex::new(std::mem::take(&mut *waiting))))
    }

    fn block_main_stream(&self) -> Result<Box<dyn Fence>, DeviceError> {
        let mark = self.record_fence()?;
        mark.wait()?;
        Ok(mark)
    }

    fn wait(&self) -> Result<(), DeviceError> {
        self.waiting.wait()
    }
}

impl Fence for Mutex<Vec<QueuedCopy>> {
    fn is_done(&self) -> Result<bool, DeviceError> {
        self.wait().map(|()| true)
    }

    fn wait(&self) -> Result<(), DeviceError> {
        perform(&mut lock(self));
        Ok(())
    }
}
