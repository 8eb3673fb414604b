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
    /// Mean of the field in bins of a coordinate.
    Profile(ProfileAxis),
    /// Histogram of the mass (or another weight) over the field and the field `across`.
    Phase,
    /// Values of the field on the line between two points (code length).
    Line([[f64; 3]; 2]),
}

impl PlotKind {
    /// Returns `true` for a slice, projection or maximum.
    pub(crate) fn is_picture(self) -> bool {
        matches!(self, Self::Slice(_) | Self::Projection | Self::Maximum)
    }
}

/// Coordinate of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileAxis {
    /// Distance from the centre.
    Radius,
    /// Coordinate along an axis.
    Along(Axis),
}

impl FromStr for ProfileAxis {
    type Err = PlotError;

    fn from_str(text: &str) -> Result<Self, PlotError> {
        let unknown = || PlotError::Option(format!("{text:?}: must be radius, x, y or z"));
        match text {
            "radius" => Ok(Self::Radius),
            _ => text.parse().map(Self::Along).map_err(|_| unknown()),
        }
    }
}

/// Centre of a picture, and of radii.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Centre {
    /// The middle of the domain.
    #[default]
    Middle,
    /// The cell with the largest value of the field.
    Maximum,
    /// A point (code length).
    At([f64; 3]),
}

/// Part of the domain that is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Zoom {
    /// The sides of the domain are divided by this factor.
    Factor(f64),
    /// A square, or cube, of this width (code length).
    Width(f64),
}

/// Contours of a picture.
#[derive(Clone, Debug, PartialEq)]
pub enum Contours {
    /// This many levels, evenly between the first and the last colour.
    Count(u32),
    /// These values, in the units of the picture.
    Values(Vec<f64>),
}

/// File format of plots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Pixels.
    #[default]
    Png,
    /// Vector graphics; the picture itself is an embedded PNG image.
    Svg,
}

/// Scale of the colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear in the value.
    Linear,
    /// Linear in the logarithm of the value; values up to zero are grey.
    Log,
}

impl Scale {
    /// Returns the position of a value between two, 0 at the first and 1 at the last one, without clamping.
    pub(crate) fn fraction(self, [first, last]: [f64; 2], value: f64) -> f64 {
        match self {
            Self::Linear => (value - first) / (last - first),
            Self::Log => (value / first).ln() / (last / first).ln(),
        }
    }

    /// Returns the value at a position between two.
    pub(crate) fn value(self, [first, last]: [f64; 2], fraction: f64) -> f64 {
        match self {
            Self::Linear => first + fraction * (last - first),
            Self::Log => first * (last / first).powf(fraction),
        }
    }
}

/// Options of [`crate::plot`].
#[derive(Clone, Debug, PartialEq)]
pub struct PlotOptions {
    /// Name of an array of the snapshot or of a derived field.
    ///
    /// Derived fields are `velocity_x` (`_y`, `_z`), `speed`, `pressure`, `temperature` (pressure/density), `sound_speed`,
    /// `mach`, `entropy` (pressure/density^gamma), `level`, the coordinates `x`, `y` and `z`, and `fraction_NAME`, the mass fraction of an array `scalar_NAME`.
    /// `particles/NAME` is the mass density of a particle species, or its number density if no particle has mass; it has a
    /// slice and a projection, but no maximum.
    ///
    /// Any other text is a formula of these fields and the constants of the deck, such as `density*temperature`.
    pub field: String,
    /// Line of sight.
    pub axis: Axis,
    /// Direction towards the viewer, in place of an axis. A slice goes through the centre.
    pub normal: Option<[f64; 3]>,
    /// What is drawn.
    pub kind: PlotKind,
    /// Centre of the zoom, of radii and of a slice without a position.
    pub centre: Centre,
    /// Part of the domain that is drawn; `None`: all of it.
    pub zoom: Option<Zoom>,
    /// Field by which a projection, profile or phase diagram is weighted, or `volume`. `None`: a projection is an integral, a profile
    /// weighted by the volume, a phase diagram by the mass.
    pub weight: Option<String>,
    /// Field of the vertical axis of a phase diagram.
    pub across: String,
    /// Number of bins of a profile, or along each axis of a phase diagram, 2 to 4096; `None`: 128, in a profile not narrower than cells.
    pub bins: Option<u32>,
    /// `true` for logarithmic axes to the right and upwards of profiles, lines and phase diagrams. Values of profiles and lines follow `scale`.
    pub log_axes: [bool; 2],
    /// Contours of a picture.
    pub contours: Option<Contours>,
    /// Vector field to draw as arrows: `velocity` for `velocity_x`, `velocity_y` and `velocity_z`.
    pub arrows: Option<String>,
    /// Vector field of which streamlines are drawn, like `arrows`.
    pub streamlines: Option<String>,
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
    /// File format.
    pub format: Format,
}

impl Default for PlotOptions {
    /// Returns the options of a slice of the density at the middle of z, with a linear scale, 1200 pixels wide.
    fn default() -> Self {
        Self {
            field: "density".to_string(),
            axis: Axis::Z,
            normal: None,
            kind: PlotKind::Slice(None),
            centre: Centre::Middle,
            zoom: None,
            weight: None,
            across: String::new(),
            bins: None,
            log_axes: [false; 2],
            contours: None,
            arrows: None,
            streamlines: None,
            format: Format::Png,
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
