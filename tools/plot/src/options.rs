//! What a picture shows.

use crate::PlotError;
use std::str::FromStr;

/// An axis of space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// The first axis; the picture shows y to the right and z upwards.
    X,
    /// The second axis; the picture shows x to the right and z upwards.
    Y,
    /// The third axis; the picture shows x to the right and y upwards.
    Z,
}

impl Axis {
    /// 0, 1 or 2.
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// The axes drawn to the right and upwards.
    pub(crate) fn plane(self) -> [usize; 2] {
        match self {
            Self::X => [1, 2],
            Self::Y => [0, 2],
            Self::Z => [0, 1],
        }
    }

    /// The name of axis 0, 1 or 2.
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
            _ => Err(PlotError::Option(format!("axis {text:?}: it is x, y or z"))),
        }
    }
}

/// How three dimensions become two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlotKind {
    /// The cells at this coordinate along the axis (code length); the middle of the domain if `None`.
    Slice(Option<f64>),
    /// The integral along the axis, in units of the field times length.
    Projection,
    /// The greatest value along the axis.
    Maximum,
}

/// The scale of the colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Colours in proportion to the value.
    Linear,
    /// Colours in proportion to the logarithm of the value; values up to zero are left grey.
    Log,
}

/// The options of [`crate::plot`].
#[derive(Clone, Debug, PartialEq)]
pub struct PlotOptions {
    /// An array of the snapshot, or a derived field: `velocity_x` (`_y`, `_z`), `speed`, `pressure`, `temperature`
    /// (pressure over density), `sound_speed`, `mach`, `entropy` (pressure / density^gamma), `level`, or `fraction_NAME`
    /// for the mass fraction of an array `scalar_NAME`. `particles/NAME` is the density of a species: of mass, or of number where
    /// no particle has mass. It is of what a slice or a projection shows; it has no maximum.
    pub field: String,
    /// The line of sight.
    pub axis: Axis,
    /// Slice, projection or maximum.
    pub kind: PlotKind,
    /// Linear or logarithmic colours.
    pub scale: Scale,
    /// Value of the first colour; the least value shown if `None`.
    pub min: Option<f64>,
    /// Value of the last colour; the greatest value shown if `None`.
    pub max: Option<f64>,
    /// Draw no level finer than this one.
    pub max_level: Option<u8>,
    /// Width of the picture in pixels, 200 to 8192. A domain taller than wide makes a narrower picture.
    pub width_px: u32,
    /// One of [`crate::COLOUR_MAPS`], also with `-reversed` behind it; one that suits the field if `None`.
    pub colour_map: Option<String>,
    /// Whether the patches are outlined.
    pub outlines: bool,
    /// Species whose particles are drawn as dots; `all` for all of them.
    pub particles: Vec<String>,
    /// How thick a slice of particles is, code length, above 0; a cell of the finest level drawn if `None`.
    pub depth: Option<f64>,
    /// Diameter of a dot in pixels, 0.5 to 100; a 400th of the picture's width if `None`.
    pub dot_px: Option<f32>,
    /// The text above the picture, instead of field, plane and time.
    pub title: Option<String>,
}

impl Default for PlotOptions {
    /// A slice of the density through the middle, seen along z, linear, 1200 pixels wide.
    fn default() -> Self {
        Self {
            field: "density".to_string(),
            axis: Axis::Z,
            kind: PlotKind::Slice(None),
            scale: Scale::Linear,
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
