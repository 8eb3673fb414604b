//! Errors of devices, and the format of numbers of bytes in messages.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// An error of a device, displayed as a message for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// There is no such device, or required software is not installed.
    Missing(String),
    /// Other processes occupy the device.
    Busy(String),
    /// The memory of the device does not suffice.
    Memory {
        /// Requested memory, bytes.
        asked: u64,
        /// Free memory, bytes.
        free: u64,
        /// Total memory, bytes.
        total: u64,
    },
    /// A kernel source does not compile.
    Compile {
        /// Name of the source.
        name: String,
        /// Output of the compiler.
        log: String,
    },
    /// A compiled source has no such kernel, or the kernel takes other parameters.
    Kernel(String),
    /// An access out of bounds, or an impossible launch shape.
    Range(String),
    /// The driver, the operating system or the compiler reported an error.
    Failed {
        /// The failed action.
        doing: String,
        /// The reported error.
        why: String,
    },
    /// The deck asks for something that the device cannot do.
    Setup(String),
    /// The transport between devices failed with an error of its own.
    Transport(TransportError),
}

/// Error of a transport between devices.
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
                "the memory of the device does not suffice: {} requested, {} of {} free",
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
    /// Wraps the error of a transport.
    pub fn from_transport(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Transport(TransportError(Arc::new(error)))
    }

    /// Returns the error of the transport, if it has type `E`.
    #[must_use]
    pub fn as_transport_error<E: std::error::Error + 'static>(&self) -> Option<&E> {
        match self {
            Self::Transport(error) => error.0.downcast_ref(),
            _ => None,
        }
    }

    /// Creates the error of a failed action.
    pub(super) fn failed(doing: impl Into<String>, why: impl fmt::Display) -> Self {
        Self::Failed {
            doing: doing.into(),
            why: why.to_string(),
        }
    }

    /// Adds the path of the source to a compilation error.
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

/// Formats a number of bytes with a binary unit.
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    for larger in units {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    if bytes == u64::MAX {
        // A saturated sum.
        "more than 15 EiB".into()
    } else if unit == "B" {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {unit}")
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_are_formatted_with_a_suitable_unit() {
        assert_eq!(super::format_bytes(1023), "1023 B");
        assert_eq!(super::format_bytes(40 << 10), "40.0 KiB");
        assert_eq!(super::format_bytes(3 << 29), "1.5 GiB");
        assert_eq!(super::format_bytes(5 << 50), "5.0 PiB");
        assert_eq!(super::format_bytes(u64::MAX), "more than 15 EiB");
    }
}
