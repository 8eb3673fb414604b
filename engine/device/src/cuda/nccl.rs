//! Bindings of NCCL, which moves data between GPUs.
//!
//! Functions are looked up at run time. The library usually has the name `libnccl.so.2` only, and a missing function
//! must be an error, not a panic.

use crate::{DeviceError, LinkId, Segment};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::time::Duration;

/// Return code of NCCL.
type NcclCode = c_int;
const SUCCESS: NcclCode = 0;
/// The operation continues in the background.
const IN_PROGRESS: NcclCode = 7;
/// Element type of transfers: unsigned 8-bit integers.
const BYTES: c_int = 1;

/// Unique identity of a communicator, in the layout of NCCL.
#[repr(C)]
#[derive(Clone, Copy)]
struct Id([u8; LinkId::BYTES]);

/// Handle of a rank's communicator.
#[derive(Clone, Copy)]
pub(super) struct NcclComm(*mut c_void);

// SAFETY: a communicator belongs to no thread; its owner serialises the calls
unsafe impl Send for NcclComm {}

/// Handle of a CUDA stream for NCCL.
#[derive(Clone, Copy)]
pub(super) struct StreamHandle(pub(super) *mut c_void);

// SAFETY: the driver's handles may be used from all threads
unsafe impl Send for StreamHandle {}

/// Defines a table of functions that are found by name.
macro_rules! functions {
    ($($name:ident = $symbol:literal ($($argument:ty),*) -> $answer:ty;)*) => {
        struct NcclFunctions {
            $($name: unsafe extern "C" fn($($argument),*) -> $answer,)*
        }

        impl NcclFunctions {
            fn find(library: *mut c_void) -> Result<Self, String> {
                Ok(Self {
                    // SAFETY: these functions have these signatures in every version of NCCL
                    $($name: unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> $answer>(
                            symbol(library, $symbol)?,
                        )
                    },)*
                })
            }
        }
    };
}

functions! {
    get_version = c"ncclGetVersion" (*mut c_int) -> NcclCode;
    get_unique_id = c"ncclGetUniqueId" (*mut Id) -> NcclCode;
    get_error_string = c"ncclGetErrorString" (NcclCode) -> *const c_char;
    get_last_error = c"ncclGetLastError" (*mut c_void) -> *const c_char;
    init_rank = c"ncclCommInitRank" (*mut *mut c_void, c_int, Id, c_int) -> NcclCode;
    destroy = c"ncclCommDestroy" (*mut c_void) -> NcclCode;
    abort = c"ncclCommAbort" (*mut c_void) -> NcclCode;
    get_async_error = c"ncclCommGetAsyncError" (*mut c_void, *mut NcclCode) -> NcclCode;
    group_start = c"ncclGroupStart" () -> NcclCode;
    group_end = c"ncclGroupEnd" () -> NcclCode;
    send = c"ncclSend" (*const c_void, usize, c_int, c_int, *mut c_void, *mut c_void) -> NcclCode;
    receive = c"ncclRecv" (*mut c_void, usize, c_int, c_int, *mut c_void, *mut c_void) -> NcclCode;
}

/// The loaded library.
pub(super) struct Nccl {
    functions: NcclFunctions,
    version: c_int,
}

/// Returns NCCL, if it is installed.
pub(super) fn library() -> Result<&'static Nccl, DeviceError> {
    static LIBRARY: OnceLock<Result<Nccl, String>> = OnceLock::new();
    let library = LIBRARY.get_or_init(Nccl::load);
    library
        .as_ref()
        .map_err(|why| DeviceError::Missing(why.clone()))
}

/// Returns the candidate paths of the library, in order of preference.
fn places() -> Vec<String> {
    let names = ["libnccl.so.2", "libnccl.so"];
    let set = ["NCCL_HOME", "CUDA_HOME", "CUDA_PATH"].map(|name| std::env::var(name).ok());
    let usual = ["/usr/local/cuda", "/opt/cuda"].map(|folder| Some(folder.to_string()));
    let folders = set.into_iter().chain(usual).flatten();
    let folders = folders.filter(|folder| !folder.is_empty());
    let within = folders.flat_map(|f| ["lib", "lib64"].map(|lib| format!("{f}/{lib}/")));
    let prefixes = std::iter::once(String::new()).chain(within);
    prefixes
        .flat_map(|prefix| names.map(|name| format!("{prefix}{name}")))
        .collect()
}

fn symbol(library: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: the library is open
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    if address.is_null() {
        let name = name.to_string_lossy();
        return Err(format!(
            "the installed version of NCCL is too old: it has no function {name}"
        ));
    }
    Ok(address)
}

impl Nccl {
    fn load() -> Result<Self, String> {
        let open = |place: String| {
            let name = CString::new(place).ok()?;
            // SAFETY: loading the library runs no code of this program; it stays loaded
            let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            (!library.is_null()).then_some(library)
        };
        let library = places().into_iter().find_map(open).ok_or(
            "NCCL (libnccl.so.2) was not found: install it and set NCCL_HOME or LD_LIBRARY_PATH",
        )?;
        let functions = NcclFunctions::find(library)?;
        let mut version = 0;
        // SAFETY: the number is stored in a live variable
        let code = unsafe { (functions.get_version)(&mut version) };
        match code {
            SUCCESS => Ok(Self { functions, version }),
            code => Err(format!("NCCL does not report its version: error {code}")),
        }
    }

    /// Returns the name with version, such as `NCCL 2.27.5`.
    pub(super) fn name(&self) -> String {
        let number = self.version;
        let (major, minor) = (number / 10_000, number / 100 % 100);
        format!("NCCL {major}.{minor}.{}", number % 100)
    }

    /// Creates the identity of a new communicator; this process serves the ranks that join it.
    pub(super) fn id(&self) -> Result<[u8; LinkId::BYTES], DeviceError> {
        let mut id = Id([0; LinkId::BYTES]);
        // SAFETY: the identity is stored in a live variable of the right size
        let code = unsafe { (self.functions.get_unique_id)(&mut id) };
        self.answer("NCCL cannot create an identity", code, None)?;
        Ok(id.0)
    }

    /// Joins a communicator with the GPU whose context is current. Waits for all other ranks.
    pub(super) fn join(
        &self,
        id: [u8; LinkId::BYTES],
        rank: usize,
        size: usize,
    ) -> Result<NcclComm, DeviceError> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the handle is stored in a live variable; NCCL created the identity
        let code =
            unsafe { (self.functions.init_rank)(&mut raw, size as c_int, Id(id), rank as c_int) };
        let communicator = NcclComm(raw);
        match raw.is_null() {
            true => self.answer("NCCL cannot connect the GPUs", code, None)?,
            false => {
                self.wait_for_background("NCCL cannot connect the GPUs", code, communicator)?
            }
        }
        Ok(communicator)
    }

    /// Queues an exchange of segments. Waits for peers in the first exchange with them.
    pub(super) fn exchange(
        &self,
        communicator: NcclComm,
        queue: StreamHandle,
        sends: &[Segment],
        receives: &[Segment],
    ) -> Result<(), DeviceError> {
        let doing = "NCCL cannot exchange data";
        // SAFETY: no conditions
        let started = unsafe { (self.functions.group_start)() };
        self.answer(doing, started, Some(communicator))?;
        let queued = self.segments(communicator, queue, sends, receives);
        // SAFETY: a group was started on this thread
        let ended = unsafe { (self.functions.group_end)() };
        self.answer(doing, queued, Some(communicator))?;
        self.wait_for_background(doing, ended, communicator)
    }

    /// Adds segments to a group; returns the first return code that is not a success.
    fn segments(
        &self,
        NcclComm(raw): NcclComm,
        StreamHandle(queue): StreamHandle,
        sends: &[Segment],
        receives: &[Segment],
    ) -> NcclCode {
        let (send, receive) = (self.functions.send, self.functions.receive);
        for segment in sends.iter().filter(|segment| segment.bytes > 0) {
            let (from, peer) = (segment.address as *const c_void, segment.peer as c_int);
            // SAFETY: the caller keeps this memory of the GPU valid until the exchange has ended
            let code = unsafe { send(from, segment.bytes, BYTES, peer, raw, queue) };
            if code != SUCCESS {
                return code;
            }
        }
        for segment in receives.iter().filter(|segment| segment.bytes > 0) {
            let (to, peer) = (segment.address as *mut c_void, segment.peer as c_int);
            // SAFETY: as above
            let code = unsafe { receive(to, segment.bytes, BYTES, peer, raw, queue) };
            if code != SUCCESS {
                return code;
            }
        }
        SUCCESS
    }

    /// Returns an asynchronous error, if there is one.
    pub(super) fn check(&self, communicator: NcclComm) -> Result<(), DeviceError> {
        match self.state(communicator) {
            IN_PROGRESS => Ok(()),
            code => self.answer("the link between the GPUs failed", code, Some(communicator)),
        }
    }

    /// Destroys a communicator without pending work. Waits for the other ranks of this host.
    pub(super) fn leave(&self, communicator: NcclComm) {
        // SAFETY: NCCL created the communicator, and nobody uses it afterwards; errors cannot be reported here
        unsafe { (self.functions.destroy)(communicator.0) };
    }

    /// Aborts a communicator and its pending work.
    pub(super) fn abandon(&self, communicator: NcclComm) {
        // SAFETY: as in `leave`
        unsafe { (self.functions.abort)(communicator.0) };
    }

    /// Waits for an operation that NCCL continues in the background, as its environment may request.
    fn wait_for_background(
        &self,
        doing: &str,
        mut code: NcclCode,
        of: NcclComm,
    ) -> Result<(), DeviceError> {
        while code == IN_PROGRESS {
            std::thread::sleep(Duration::from_micros(50));
            code = self.state(of);
        }
        self.answer(doing, code, Some(of))
    }

    fn state(&self, communicator: NcclComm) -> NcclCode {
        let mut state = SUCCESS;
        // SAFETY: NCCL created the communicator; the state is stored in a live variable
        let code = unsafe { (self.functions.get_async_error)(communicator.0, &mut state) };
        if code == SUCCESS { state } else { code }
    }

    fn answer(&self, doing: &str, code: NcclCode, of: Option<NcclComm>) -> Result<(), DeviceError> {
        if code == SUCCESS {
            return Ok(());
        }
        let of = of.map_or(std::ptr::null_mut(), |communicator| communicator.0);
        // SAFETY: static texts of NCCL, or null
        let (kind, why) = unsafe {
            let kind = text((self.functions.get_error_string)(code));
            (kind, text((self.functions.get_last_error)(of)))
        };
        let mut words = format!("{} (error {code})", kind.trim());
        if !why.trim().is_empty() {
            words = format!("{words}: {}", why.trim());
        }
        Err(DeviceError::failed(doing, words))
    }
}

/// Copies a text terminated by 0; empty for null.
///
/// # Safety
/// The text is valid during the call, or null.
unsafe fn text(words: *const c_char) -> String {
    if words.is_null() {
        return String::new();
    }
    // SAFETY: guaranteed by the caller
    unsafe { CStr::from_ptr(words) }
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::library;

    #[test]
    fn the_library_is_loaded_or_said_to_be_missing() {
        match library() {
            Ok(nccl) => {
                let name = nccl.name();
                println!("{name}");
                assert!(name.starts_with("NCCL 2."), "{name}");
            }
            Err(why) => {
                println!("skipped: {why}");
                assert!(why.to_string().contains("NCCL"), "{why}");
            }
        }
    }
}
