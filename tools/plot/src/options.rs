//! Options of plots.

use crate::PlotError;
use nestar_deck::UnitSystem;
use std::str::FromStr;

/// A coordinate axis; plots look along it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// The x axis; the picture shows y to the right and z upwards.
    X,
    /// The y axis; the picture shows x to the right and z upwards.
    Y,
    /// The z axis; the picture shows x to the right and y upwards.
    Z,
}

impl Axis {
    /// Returns 0, 1 or 2.
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// Returns the axes to the right and upwards in the picture.
    pub(crate) fn plane(self) -> [usize; 2] {
        match self {
            Self::X => [1, 2],
            Self::Y => [0, 2],
            Self::Z => [0, 1],
        }
    }

    /// Returns the name of axis 0, 1 or 2.
    pub(crate) fn name(index: usize) -> &'static str {
        ["x", "y", "z"][index]
    }
}

impl FromStr for Axis {
    type Err = PlotError;

    fn from_str(text: &str) -> Result<Self, PlotError> {
        match text {
            "x" => Ok(Self::X),
            "y" => Ok(Self::Y),
            "z" => Ok(Self::Z),
            _ => Err(PlotError::Option(format!(
                "axis {text:?}: must be x, y or z"
            ))),
        }
    }
}

/// Reduction from three dimensions to two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlotKind {
    /// Slice at this coordinate along the axis (code length); `None`: the middle of the domain.
    Slice(Option<f64>),
    /// Integral along the axis, in units of the field times length.
    Projection,
    /// Maximum along the axis.
    Maximum,
}

/// Scale of the colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear in the value.
    Linear,
    /// Linear in the logarithm of the value; values up to zero are grey.
    Log,
}

/// Options of [`crate::plot`].
#[derive(Clone, Debug, PartialEq)]
pub struct PlotOptions {
    /// Name of an array of the snapshot or of a derived field.
    ///
    /// Derived fields are `velocity_x` (`_y`, `_z`), `speed`, `pressure`, `temperature` (pressure/density), `sound_speed`,
    /// `mach`, `entropy` (pressure/density^gamma), `level`, and `fraction_NAME`, the mass fraction of an array `scalar_NAME`.
    /// `particles/NAME` is the mass density of a particle species, or its number density if no particle has mass; it has a
    /// slice and a projection, but no maximum.
    pub field: String,
    /// Line of sight.
    pub axis: Axis,
    /// Slice, projection or maximum.
    pub kind: PlotKind,
    /// Linear or logarithmic colours.
    pub scale: Scale,
    /// Units of numbers in the picture, if the run has units.
    pub units: UnitSystem,
    /// Value of the first colour in these units; `None`: the minimum in the picture.
    pub min: Option<f64>,
    /// Value of the last colour in these units; `None`: the maximum in the picture.
    pub max: Option<f64>,
    /// Finest level to draw.
    pub max_level: Option<u8>,
    /// Width of the figure in pixels, 200 to 8192. The figure is narrower if the domain is taller than wide.
    pub width_px: u32,
    /// One of [`crate::COLOUR_MAPS`], optionally with the suffix `-reversed`; `None`: the default of the field.
    pub colour_map: Option<String>,
    /// `true` to draw the outlines of patches.
    pub outlines: bool,
    /// Species to draw as dots; `all` for all species.
    pub particles: Vec<String>,
    /// Thickness of a slice of particles (code length), above 0; `None`: the cell width of the finest level drawn.
    pub depth: Option<f64>,
    /// Diameter of a dot in pixels, 0.5 to 100; `None`: 1/400 of the figure's width.
    pub dot_px: Option<f32>,
    /// Title above the picture; `None`: field and plane.
    pub title: Option<String>,
}

impl Default for PlotOptions {
    /// Returns the options of a slice of the density at the middle of z, with a linear scale, 1200 pixels wide.
    fn default() -> Self {
        Self {
            field: "density".to_string(),
            axis: Axis::Z,
            kind: PlotKind::Slice(None),
            scale: Scale::Linear,
            units: UnitSystem::default(),
            min: None,
            max: None,
            max_level: None,
            width_px: 1200,
            colour_map: None,
            outlines: false,
            particles: vec![],
            depth: None,
            dot_px: None,
            title: None,
        }
    }
}
