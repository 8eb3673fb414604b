//! Chooses the device that a run computes on.

use super::{Device, DeviceError, DeviceKind};
use bevy_ecs::prelude::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Device that the run computes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceChoice {
    /// A GPU if there is one, else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU with CUDA; the run does not start without one.
    Cuda,
    /// Kernels of the GPU, compiled by the C++ compiler and run on the CPU. For tests without a GPU; slower than `cpu`.
    Emulated,
}

/// Is `true` if `auto` uses a GPU where there is one.
const AUTO_TAKES_A_GPU: bool = true;

/// Device of a run.
#[derive(Resource, Clone, Debug, Default)]
pub struct ComputeDevice {
    /// The device, or `None` for the CPU.
    pub device: Option<Device>,
    /// Reason why `auto` uses the CPU.
    pub note: Option<String>,
}

impl ComputeDevice {
    /// Opens the device that a deck asks for, by its number among several ones. `auto` falls back to the CPU.
    ///
    /// # Errors
    /// A device that the deck names cannot be opened.
    pub fn choose(choice: DeviceChoice, number: usize) -> Result<Self, DeviceError> {
        let open = |kind, name| Self::open(kind, number, name);
        match choice {
            DeviceChoice::Auto if AUTO_TAKES_A_GPU => Ok(Self::gpu_or_cpu(number)),
            DeviceChoice::Auto | DeviceChoice::Cpu => Ok(Self::default()),
            DeviceChoice::Cuda => open(DeviceKind::Cuda, "cuda"),
            DeviceChoice::Emulated => open(DeviceKind::Emulated, "emulated"),
        }
    }

    /// Opens a GPU, or falls back to the CPU.
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
