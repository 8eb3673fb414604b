//! Which device a run computes on.

use super::{Device, DeviceError, DeviceKind};
use bevy_ecs::prelude::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the run computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceChoice {
    /// A GPU where one is found, the CPU otherwise.
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU with CUDA; without one the run does not start.
    Cuda,
    /// The GPU's kernels compiled by the C++ compiler and run on the CPU, to test them without a GPU; slower than `cpu`.
    Emulated,
}

/// Whether `auto` takes a GPU where there is one.
const AUTO_TAKES_A_GPU: bool = true;

/// The device that a run computes on.
#[derive(Resource, Clone, Debug, Default)]
pub struct ComputeDevice {
    /// The device; none: the CPU.
    pub device: Option<Device>,
    /// Why the CPU was taken, where a GPU would have been welcome.
    pub note: Option<String>,
}

impl ComputeDevice {
    /// Opens what a deck asks for, of several devices the one with this number. `auto` is content with the CPU.
    ///
    /// # Errors
    /// A device that was asked for by name cannot be opened.
    pub fn choose(choice: DeviceChoice, number: usize) -> Result<Self, DeviceError> {
        let open = |kind, name| Self::open(kind, number, name);
        match choice {
            DeviceChoice::Auto if AUTO_TAKES_A_GPU => Ok(Self::gpu_or_cpu(number)),
            DeviceChoice::Auto | DeviceChoice::Cpu => Ok(Self::default()),
            DeviceChoice::Cuda => open(DeviceKind::Cuda, "cuda"),
            DeviceChoice::Emulated => open(DeviceKind::Emulated, "emulated"),
        }
    }

    /// A GPU if there is one.
    fn gpu_or_cpu(number: usize) -> Self {
        match Device::open_numbered(DeviceKind::Cuda, number) {
            Ok(device) => Self::on(device),
            Err(why) => Self {
                device: None,
                note: Some(why.to_string()),
            },
        }
    }

    fn on(device: Device) -> Self {
        Self {
            device: Some(device),
            note: None,
        }
    }

    fn open(kind: DeviceKind, number: usize, name: &str) -> Result<Self, DeviceError> {
        let device = Device::open_numbered(kind, number);
        device
            .map(Self::on)
            .map_err(|why| DeviceError::Setup(format!("run.device = \"{name}\": {why}")))
    }
}
