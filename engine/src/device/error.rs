//! What can go wrong with a device.

use crate::device::format_bytes;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// An error of a device, in words for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// There is no device of the kind, or what it needs is not installed.
    Missing(String),
    /// The device is there but taken by others.
    Busy(String),
    /// The device's memory does not suffice.
    Memory {
        /// Bytes that were asked for.
        asked: u64,
        /// Bytes that are free.
        free: u64,
        /// Bytes that the device has.
        total: u64,
    },
    /// A kernel source does not compile.
    Compile {
        /// Name of the source.
        name: String,
        /// The compiler's words.
        log: String,
    },
    /// A compiled source has no such kernel, or the kernel takes other parameters.
    Kernel(String),
    /// An access beyond the end of device memory, or a shape that the device cannot launch.
    Range(String),
    /// The driver, the operating system or the compiler refused.
    Failed {
        /// What was being done.
        doing: String,
        /// The answer.
        why: String,
    },
    /// The deck asks for what the device cannot do.
    Setup(String),
    /// What carries messages between devices has failed, with an error of its own.
    Transport(TransportError),
}

/// The error of a carrier between devices, whatever its kind.
#[derive(Clone, Debug)]
pub struct TransportError(Arc<dyn std::error::Error + Send + Sync>);

impl PartialEq for TransportError {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_string() == other.0.to_string()
    }
}

impl Eq for TransportError {}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(why)
            | Self::Busy(why)
            | Self::Kernel(why)
            | Self::Range(why)
            | Self::Setup(why) => f.write_str(why),
            Self::Memory { asked, free, total } => write!(
                f,
                "the device's memory does not suffice: {} asked for, {} of {} free",
                format_bytes(*asked),
                format_bytes(*free),
                format_bytes(*total)
            ),
            Self::Compile { name, log } => {
                write!(f, "the kernels \"{name}\" do not compile:\n{log}")
            }
            Self::Failed { doing, why } => write!(f, "{doing}: {why}"),
            Self::Transport(why) => why.0.fmt(f),
        }
    }
}

impl std::error::Error for DeviceError {}

impl DeviceError {
    /// A carrier's error.
    pub fn from_transport(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Transport(TransportError(Arc::new(error)))
    }

    /// The carrier's error, if it is one of type `E`.
    #[must_use]
    pub fn as_transport_error<E: std::error::Error + 'static>(&self) -> Option<&E> {
        match self {
            Self::Transport(error) => error.0.downcast_ref(),
            _ => None,
        }
    }

    /// A refusal while `doing` something.
    pub(super) fn failed(doing: impl Into<String>, why: impl fmt::Display) -> Self {
        Self::Failed {
            doing: doing.into(),
            why: why.to_string(),
        }
    }

    /// Says where the source of a failed compilation stands.
    pub(super) fn with_source(self, source: Option<&Path>) -> Self {
        match (self, source) {
            (Self::Compile { name, log }, Some(path)) => Self::Compile {
                name,
                log: format!("{log}\nthe source: {}", path.display()),
            },
            (error, _) => error,
        }
    }
}
