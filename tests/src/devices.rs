//! The device that tests compare with the CPU: the emulated one, or the one named by the environment.

use nestar::engine::device::{Device, DeviceError, DeviceKind};

/// The variable that names it: `emulated` (as without it) or `cuda`.
const VARIABLE: &str = "NESTAR_TEST_DEVICE";

/// The setting of a test's deck that asks for it.
pub const SETTING: &str = "run.device=emulated";

/// Opens the device of the tests.
///
/// # Errors
/// The device is not available.
pub fn open() -> Result<Device, DeviceError> {
    Device::open(match name().as_str() {
        "cuda" => DeviceKind::Cuda,
        _ => DeviceKind::Emulated,
    })
}

/// `setting`, with the device of the tests where it asks for the emulated one.
pub(crate) fn chosen(setting: &str) -> String {
    match setting {
        SETTING => format!("run.device={}", name()),
        other => other.to_owned(),
    }
}

fn name() -> String {
    std::env::var(VARIABLE).unwrap_or_else(|_| "emulated".into())
}
