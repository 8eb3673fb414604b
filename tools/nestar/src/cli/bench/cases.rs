//! The cases: decks, and how large and how long they are measured where.

use clap::ValueEnum;
use nestar::engine::data::Precision;
use nestar::engine::device::DeviceKind;

/// A case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Case {
    /// A hot sphere on a uniform mesh
    Uniform,
    /// The same with three levels of refinement that follow the shock
    Blast,
    /// Two shear layers with three levels of refinement on them
    KelvinHelmholtz,
    /// A cloud that falls together under its own gravity, with four levels of refinement
    Collapse,
    /// Particles on a uniform mesh, in a gas that stands still
    Particles,
    /// A sphere of particles in an open box, which ranks share out by what they hold
    Plummer,
    /// Gas of many densities and temperatures that cools by a table
    Cooling,
    /// The same with 6 species out of balance, each cell in sub-steps of its own
    Chemistry,
}

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceClass {
    /// The CPU.
    Cpu,
    /// A GPU.
    Gpu,
    /// Kernels of a GPU on the CPU, which is for tests.
    Emulated,
}

impl DeviceClass {
    /// The kind of a device.
    pub fn of(kind: DeviceKind) -> Self {
        match kind {
            DeviceKind::Cuda => Self::Gpu,
            DeviceKind::Emulated => Self::Emulated,
        }
    }
}

impl Case {
    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Blast => "blast",
            Self::KelvinHelmholtz => "kelvin-helmholtz",
            Self::Collapse => "collapse",
            Self::Particles => "particles",
            Self::Plummer => "plummer",
            Self::Cooling => "cooling",
            Self::Chemistry => "chemistry",
        }
    }

    /// Text of the deck.
    pub fn text(self) -> &'static str {
        match self {
            Self::Uniform => include_str!("../../../bench/uniform.toml"),
            Self::Blast => include_str!("../../../bench/blast.toml"),
            Self::KelvinHelmholtz => include_str!("../../../bench/kelvin-helmholtz.toml"),
            Self::Collapse => include_str!("../../../bench/collapse.toml"),
            Self::Particles => include_str!("../../../bench/particles.toml"),
            Self::Plummer => include_str!("../../../bench/plummer.toml"),
            Self::Cooling => include_str!("../../../bench/cooling.toml"),
            Self::Chemistry => include_str!("../../../bench/chemistry.toml"),
        }
    }

    /// Root cells along each axis.
    pub fn sizes(self, kind: DeviceClass) -> &'static [u32] {
        match (self, kind) {
            (Self::Uniform, DeviceClass::Cpu) => &[64, 128],
            (Self::Uniform, DeviceClass::Gpu) => &[256, 512],
            (Self::Uniform, DeviceClass::Emulated) => &[32],
            (Self::Collapse, DeviceClass::Gpu) => &[64],
            (
                Self::Particles | Self::Plummer | Self::Cooling | Self::Chemistry,
                DeviceClass::Cpu,
            ) => &[64],
            (_, DeviceClass::Gpu) => &[128],
            (Self::Blast, DeviceClass::Cpu) => &[32],
            _ => &[16],
        }
    }

    /// Root steps before the clock starts: memory is touched, caches are filled, and every level has been regridded.
    pub fn warm_up(self) -> u64 {
        match self {
            Self::Uniform => 2,
            // gas comes into balance with time
            Self::Cooling | Self::Chemistry => 1,
            _ => 4,
        }
    }

    /// Root steps that are timed: with refinement, a multiple of the four between two regrids of the root level.
    pub fn steps(self, kind: DeviceClass) -> u64 {
        match (self, kind) {
            (Self::Uniform, DeviceClass::Gpu) => 50,
            (Self::Uniform, DeviceClass::Cpu) => 10,
            (Self::Collapse, DeviceClass::Gpu | DeviceClass::Cpu) => 4,
            (Self::Cooling | Self::Chemistry, DeviceClass::Gpu | DeviceClass::Cpu) => 2,
            (_, DeviceClass::Gpu) => 16,
            (_, DeviceClass::Cpu) => 8,
            (_, DeviceClass::Emulated) => 4,
        }
    }
}

/// The word of a deck for a precision.
pub fn precision(precision: Precision) -> &'static str {
    match precision {
        Precision::Single => "single",
        Precision::Double => "double",
    }
}

/// A root grid as people write it.
pub fn root(cells: [u32; 3]) -> String {
    let [x, y, z] = cells;
    if x == y && y == z {
        format!("{x}^3")
    } else {
        format!("{x}x{y}x{z}")
    }
}
