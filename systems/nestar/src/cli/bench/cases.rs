//! Benchmark cases: decks, sizes and numbers of steps.

use clap::ValueEnum;
use nestar::engine::data::Precision;
use nestar::engine::device::DeviceKind;

/// A benchmark case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Case {
    /// Blast wave on a uniform mesh
    Uniform,
    /// Blast wave with three levels of refinement that follow the shock
    Blast,
    /// Two shear layers with three levels of refinement
    KelvinHelmholtz,
    /// Self-gravitating collapse of a cloud with four levels of refinement
    Collapse,
    /// Self-gravitating particles on a uniform mesh, in frozen gas
    Particles,
    /// Plummer sphere of particles in an open box, partitioned by load
    Plummer,
    /// Gas of many densities and temperatures with tabulated cooling
    Cooling,
    /// The same with 6 species out of equilibrium, sub-cycled in each cell
    Chemistry,
    /// Gas, self-gravity, a million particles and tabulated cooling, with three levels that follow moving clouds
    Joint,
}

/// Class of device that computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceClass {
    /// CPU.
    Cpu,
    /// GPU.
    Gpu,
    /// GPU kernels emulated on the CPU, for tests.
    Emulated,
}

impl DeviceClass {
    /// Returns the class of a device.
    pub fn of(kind: DeviceKind) -> Self {
        match kind {
            DeviceKind::Cuda => Self::Gpu,
            DeviceKind::Emulated => Self::Emulated,
        }
    }
}

impl Case {
    /// Returns the name on the command line.
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
            Self::Joint => "joint",
        }
    }

    /// Returns the text of the deck.
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
            Self::Joint => include_str!("../../../bench/joint.toml"),
        }
    }

    /// Returns the numbers of root cells per axis.
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

    /// Returns the number of untimed root steps, which touch memory, fill caches and regrid every level.
    pub fn warm_up(self) -> u64 {
        match self {
            Self::Uniform => 2,
            // the gas approaches equilibrium with time
            Self::Cooling | Self::Chemistry => 1,
            _ => 4,
        }
    }

    /// Returns the number of timed root steps; with refinement, a multiple of the regrid interval of four.
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

/// Returns the word for a precision in decks.
pub fn precision(precision: Precision) -> &'static str {
    match precision {
        Precision::Single => "single",
        Precision::Double => "double",
    }
}

/// Formats the size of a root grid.
pub fn root(cells: [u32; 3]) -> String {
    let [x, y, z] = cells;
    if x == y && y == z {
        format!("{x}^3")
    } else {
        format!("{x}x{y}x{z}")
    }
}
