//! Which device a run computes on.

use super::{Device, DeviceKind};
use crate::config::DeviceChoice;
use crate::error::Error;
use bevy_ecs::prelude::Resource;

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
    /// Opens what a deck asks for. `auto` is content with the CPU.
    ///
    /// # Errors
    /// A device that was asked for by name cannot be opened.
    pub fn choose(choice: DeviceChoice) -> Result<Self, Error> {
        match choice {
            DeviceChoice::Auto if AUTO_TAKES_A_GPU => Ok(match Device::open(DeviceKind::Cuda) {
                Ok(device) => Self::on(device),
                Err(why) => Self {
                    device: None,
                    note: Some(why.to_string()),
                },
            }),
            DeviceChoice::Auto | DeviceChoice::Cpu => Ok(Self::default()),
            DeviceChoice::Cuda => Self::open(DeviceKind::Cuda, "cuda"),
            DeviceChoice::Emulated => Self::open(DeviceKind::Emulated, "emulated"),
        }
    }

    fn on(device: Device) -> Self {
        Self {
            device: Some(device),
            note: None,
        }
    }

    fn open(kind: DeviceKind, name: &str) -> Result<Self, Error> {
        let device = Device::open(kind);
        device
            .map(Self::on)
            .map_err(|why| Error::Setup(format!("run.device = \"{name}\": {why}")))
    }
}
