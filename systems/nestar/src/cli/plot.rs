//! `nestar plot`.

use super::snapshot::{SnapshotArgs, UnitsArgs, open};
use super::{CommandError, FAILED, INVALID_INPUT, print};
use crate::plot_fields;
use clap::Args;
use nestar::snapshot::Snapshot;
use nestar::{App, Error};
use nestar_deck::{CodeUnits, Deck};
use nestar_plot::{
    Axis, Centre, Contours, CustomField, Format, PlotError, PlotKind, PlotOptions, ProfileAxis,
    Scale, Zoom,
};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Arguments of `nestar plot`.
#[derive(Args)]
pub struct PlotArgs {
    #[command(flatten)]
    snapshot: SnapshotArgs,
    /// Field: an array of the snapshot, a derived field (`nestar list fields`), fraction_NAME for the mass fraction of scalar_NAME,
    /// particles/NAME for the density of a species (surface density with --projection), or a formula of fields and x, y, z ("density*temperature").
    /// Give it again for more panels in the same picture
    #[arg(long, short, default_value = "density")]
    field: Vec<String>,
    #[command(flatten)]
    kind: KindArgs,
    #[command(flatten)]
    view: ViewArgs,
    #[command(flatten)]
    colours: ColourArgs,
    #[command(flatten)]
    overlay: OverlayArgs,
    #[command(flatten)]
    units: UnitsArgs,
    /// Finest level to plot
    #[arg(long, value_name = "N")]
    level: Option<u8>,
    /// Width of the plot in pixels, 200 to 8192
    #[arg(long, value_name = "PX", default_value_t = PlotOptions::default().width_px)]
    width: u32,
    /// Title
    #[arg(long)]
    title: Option<String>,
    /// Plot each of these snapshots of the run, with one range of colours: all, or FIRST..LAST (numbers of snapshots)
    #[arg(long, value_name = "RANGE")]
    frames: Option<String>,
    /// PNG or SVG file; default: FIELD_NNNNNN.png in the current directory. With --frames, the directory of the files
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Arguments that say what is drawn; a slice by default.
#[derive(Args)]
struct KindArgs {
    /// Position of the slice along the axis, in code length or with a unit ("2 kpc"); default: --centre
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    slice: Option<String>,
    /// Plot the integral along the axis; with --weight, the mean
    #[arg(long, conflicts_with = "slice")]
    projection: bool,
    /// Plot the maximum along the axis
    #[arg(long, conflicts_with_all = ["slice", "projection"])]
    max: bool,
    /// Plot the mean of the field by radius, x, y or z
    #[arg(long, value_name = "COORDINATE", conflicts_with_all = ["slice", "projection", "max"])]
    profile: Option<ProfileAxis>,
    /// Plot the mass by two fields: a histogram of two dimensions
    #[arg(long, value_name = "FIELD,FIELD", conflicts_with_all = ["slice", "projection", "max", "profile", "field"])]
    phase: Option<String>,
    /// Plot the field on the line between two points, each X,Y,Z in code length or with units
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"], allow_hyphen_values = true,
        conflicts_with_all = ["slice", "projection", "max", "profile", "phase"])]
    line: Vec<String>,
    /// Weight of a projection, profile or phase diagram: a field (per volume), or volume; default: none, volume, density
    #[arg(long, value_name = "FIELD")]
    weight: Option<String>,
    /// Bins of a profile, or of both axes of a phase diagram; default: 128, in a profile not narrower than a cell
    #[arg(long, value_name = "N")]
    bins: Option<u32>,
    /// Logarithmic horizontal axis of a profile, line or phase diagram
    #[arg(long)]
    log_x: bool,
    /// Logarithmic vertical axis of a phase diagram
    #[arg(long, requires = "phase")]
    log_y: bool,
}

/// Arguments that say what part of the domain is drawn, and from where.
#[derive(Args)]
struct ViewArgs {
    /// Line of sight: x, y or z
    #[arg(long, default_value = "z")]
    axis: Axis,
    /// Direction towards the viewer, in place of an axis; a slice goes through --centre
    #[arg(long, value_name = "X,Y,Z", allow_hyphen_values = true, conflicts_with_all = ["axis", "slice"])]
    normal: Option<String>,
    /// Centre of --zoom, of radii and of a slice: X,Y,Z in code length or with units, or max for the largest value of the field; default: the
    /// middle of the domain
    #[arg(
        long,
        alias = "center",
        value_name = "X,Y,Z",
        allow_hyphen_values = true
    )]
    centre: Option<String>,
    /// Draw a part of the domain about --centre: a factor ("4"), or the width of a square ("20 kpc")
    #[arg(long, value_name = "FACTOR", allow_hyphen_values = true)]
    zoom: Option<String>,
}

/// Arguments of colours and of the axis of values.
#[derive(Args)]
struct ColourArgs {
    /// Logarithmic scale of the values
    #[arg(long)]
    log: bool,
    /// Linear scale of the values (default)
    #[arg(long, conflicts_with = "log")]
    linear: bool,
    /// Value of the first colour, in the unit of the plot; default: the minimum of the plot
    #[arg(
        long = "min-value",
        alias = "min",
        value_name = "V",
        allow_negative_numbers = true
    )]
    min: Option<f64>,
    /// Value of the last colour, in the unit of the plot; default: the maximum of the plot
    #[arg(long, value_name = "V", allow_negative_numbers = true)]
    max_value: Option<f64>,
    /// Colour map, such as viridis or red-blue; append -reversed to reverse it; default: depends on the field
    #[arg(long, alias = "color-map", value_name = "NAME")]
    colour_map: Option<String>,
}

/// Arguments of what is drawn over a picture.
#[derive(Args)]
struct OverlayArgs {
    /// Draw outlines of patches
    #[arg(long)]
    outlines: bool,
    /// Draw contours: their number, or values in the unit of the plot ("1,2.5"; "3," for one value)
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    contours: Option<String>,
    /// Draw arrows of a vector field, of the components NAME_x, NAME_y and NAME_z
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "velocity")]
    arrows: Option<String>,
    /// Draw streamlines of a vector field in the plane of the picture
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "velocity")]
    streamlines: Option<String>,
    /// Draw particles of these species as dots; `all` for all species
    #[arg(long, value_name = "SPECIES", value_delimiter = ',')]
    particles: Vec<String>,
    /// Thickness of a slice of particles, in code length or with a unit; default: a cell of the finest level
    #[arg(long, value_name = "LENGTH", conflicts_with_all = ["projection", "max"])]
    depth: Option<String>,
    /// Diameter of particle dots in pixels; default: 1/400 of the width
    #[arg(long, value_name = "PX", requires = "particles")]
    dot: Option<f32>,
}

/// Returns an error about an option.
fn refuse(option: &str, why: impl std::fmt::Display) -> CommandError {
    CommandError::new(INVALID_INPUT, format!("{option}: {why}"))
}

/// Reads a length, in code length or with a unit.
fn length(code: &CodeUnits, option: &str, text: &str) -> Result<f64, CommandError> {
    let number = code
        .number(text, "length")
        .map_err(|why| refuse(option, why))?;
    match number.is_finite() {
        true => Ok(number),
        false => Err(refuse(option, format!("{text:?} is not finite"))),
    }
}

/// Reads three lengths; pure numbers if there is no code unit.
fn vector(code: &CodeUnits, option: &str, text: &str) -> Result<[f64; 3], CommandError> {
    let numbers: Vec<f64> = text
        .split(',')
        .map(|number| length(code, option, number.trim()))
        .collect::<Result<_, _>>()?;
    numbers.try_into().map_err(|found: Vec<f64>| {
        let count = found.len();
        refuse(
            option,
            format!("{text:?} has {count} numbers: write three, X,Y,Z"),
        )
    })
}

/// Splits a text at the comma outside of brackets.
fn two_fields(text: &str) -> Result<[String; 2], CommandError> {
    let mut depth = 0;
    let commas = text.char_indices().filter(|(_, c)| {
        depth += i32::from(*c == '(') - i32::from(*c == ')');
        *c == ',' && depth == 0
    });
    match commas.map(|(place, _)| place).collect::<Vec<_>>()[..] {
        [place] => Ok([&text[..place], &text[place + 1..]].map(|field| field.trim().into())),
        _ => Err(refuse(
            "--phase",
            format!("{text:?}: write two fields, such as density,temperature"),
        )),
    }
}

impl ViewArgs {
    fn centre(&self, code: &CodeUnits) -> Result<Centre, CommandError> {
        match self.centre.as_deref() {
            None => Ok(Centre::Middle),
            Some("max") => Ok(Centre::Maximum),
            Some(text) => vector(code, "--centre", text).map(Centre::At),
        }
    }

    fn zoom(&self, code: &CodeUnits) -> Result<Option<Zoom>, CommandError> {
        let zoom = |text: &String| match text.trim().parse() {
            Ok(factor) => Ok(Zoom::Factor(factor)),
            Err(_) => length(code, "--zoom", text).map(Zoom::Width),
        };
        self.zoom.as_ref().map(zoom).transpose()
    }
}

impl OverlayArgs {
    fn contours(&self) -> Result<Option<Contours>, CommandError> {
        let read = |text: &String| {
            if let Ok(count) = text.trim().parse() {
                return Ok(Contours::Count(count));
            }
            let values = text.trim().trim_end_matches(',').split(',');
            let values: Result<Vec<f64>, _> = values.map(|value| value.trim().parse()).collect();
            values.map(Contours::Values).map_err(|_| {
                let why = format!("{text:?}: write their number, or values such as 1,2.5");
                refuse("--contours", why)
            })
        };
        self.contours.as_ref().map(read).transpose()
    }
}

impl PlotArgs {
    /// Returns what is drawn.
    fn kind(&self, code: &CodeUnits) -> Result<PlotKind, CommandError> {
        let kind = &self.kind;
        if let [from, to] = &kind.line[..] {
            let point = |text| vector(code, "--line", text);
            return Ok(PlotKind::Line([point(from)?, point(to)?]));
        }
        let slice = kind.slice.as_ref();
        let slice = slice
            .map(|text| length(code, "--slice", text))
            .transpose()?;
        Ok(match (&kind.profile, &kind.phase) {
            (Some(axis), _) => PlotKind::Profile(*axis),
            (_, Some(_)) => PlotKind::Phase,
            _ if kind.projection => PlotKind::Projection,
            _ if kind.max => PlotKind::Maximum,
            _ => PlotKind::Slice(slice),
        })
    }

    /// Returns the options of the panels of a plot of a snapshot in these code units.
    pub(super) fn panels(
        &self,
        code: &CodeUnits,
        format: Format,
    ) -> Result<Vec<PlotOptions>, CommandError> {
        let (kind, view, colours) = (&self.kind, &self.view, &self.colours);
        let phase = kind.phase.as_deref().map(two_fields).transpose()?;
        let [field, across] = phase.unwrap_or_else(|| [self.field[0].clone(), String::new()]);
        let depth = self.overlay.depth.as_ref();
        let normal = view.normal.as_ref();
        // the components of a direction have no unit
        let pure = CodeUnits::default();
        let options = PlotOptions {
            field,
            across,
            axis: view.axis,
            normal: normal
                .map(|text| vector(&pure, "--normal", text))
                .transpose()?,
            kind: self.kind(code)?,
            centre: view.centre(code)?,
            zoom: view.zoom(code)?,
            weight: kind.weight.clone(),
            bins: kind.bins,
            log_axes: [kind.log_x, kind.log_y],
            contours: self.overlay.contours()?,
            arrows: self.overlay.arrows.clone(),
            streamlines: self.overlay.streamlines.clone(),
            scale: if colours.log {
                Scale::Log
            } else {
                Scale::Linear
            },
            units: self.units.units,
            min: colours.min,
            max: colours.max_value,
            max_level: self.level,
            width_px: self.width,
            colour_map: colours.colour_map.clone(),
            outlines: self.overlay.outlines,
            particles: self.overlay.particles.clone(),
            depth: depth
                .map(|text| length(code, "--depth", text))
                .transpose()?,
            dot_px: self.overlay.dot,
            title: self.title.clone(),
            format,
        };
        let panel = |field: &String| PlotOptions {
            field: field.clone(),
            ..options.clone()
        };
        Ok(match options.kind {
            PlotKind::Phase => vec![options],
            _ => self.field.iter().map(panel).collect(),
        })
    }

    /// Returns the beginning of the names of files: the fields and the kind of plot.
    fn name(&self) -> String {
        let fields = match &self.kind.phase {
            Some(phase) => phase.replace(',', "_"),
            None => self.field.join("_"),
        };
        let kind = match (&self.kind.profile, self.kind.line.is_empty()) {
            (Some(_), _) => "_profile",
            (_, false) => "_line",
            _ if self.kind.phase.is_some() => "_phase",
            _ => "",
        };
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        fields.chars().map(plain).collect::<String>() + kind
    }

    /// Returns the format that the file's ending asks for.
    fn format(&self) -> Result<Format, CommandError> {
        let Some(file) = self.output.as_ref().filter(|_| self.frames.is_none()) else {
            return Ok(Format::Png);
        };
        match file
            .extension()
            .map(|ending| ending.to_string_lossy().to_lowercase())
            .as_deref()
        {
            Some("svg") => Ok(Format::Svg),
            Some("png") => Ok(Format::Png),
            _ => Err(refuse(
                "--output",
                format!("{}: must end in .png or .svg", file.display()),
            )),
        }
    }

    /// Returns the snapshots of --frames.
    fn snapshots(&self, range: &str) -> Result<Vec<Snapshot>, CommandError> {
        let run = &self.snapshot.snapshot;
        if !run.join("snapshots").is_dir() {
            let why = format!(
                "{} is no directory of a run; leave it out for one snapshot",
                run.display()
            );
            return Err(refuse("--frames", why));
        }
        let (first, last) = match range.split_once("..") {
            _ if range == "all" => (0, u32::MAX),
            Some((first, last)) => match (first.trim().parse(), last.trim().parse()) {
                (Ok(first), Ok(last)) => (first, last),
                _ => {
                    return Err(refuse(
                        "--frames",
                        format!("{range:?}: write all, or FIRST..LAST"),
                    ));
                }
            },
            None => {
                return Err(refuse(
                    "--frames",
                    format!("{range:?}: write all, or FIRST..LAST"),
                ));
            }
        };
        let number = |path: &Path| path.file_stem()?.to_str()?.parse::<u32>().ok();
        let all = nestar::snapshot::list_complete(run)?;
        let wanted = all
            .iter()
            .filter(|path| number(path).is_some_and(|n| (first..=last).contains(&n)));
        let found: Vec<Snapshot> = wanted
            .map(|path| Snapshot::open(path))
            .collect::<Result<_, _>>()?;
        match found.is_empty() {
            true => Err(refuse(
                "--frames",
                format!("{range:?}: the run has no such snapshot"),
            )),
            false => Ok(found),
        }
    }
}

/// Returns the derived fields that this program defines for the snapshot's deck.
///
/// # Errors
/// The program cannot build the simulation.
fn derived_here(app: &App, snapshot: &Snapshot) -> Result<Vec<CustomField>, Error> {
    let mut deck = Deck::parse("the snapshot's deck", &snapshot.attributes().config)?;
    deck.set("run.device=cpu")?;
    let mut sim = app.simulation(deck)?;
    Ok(plot_fields::derived(&sim.engine().world))
}

/// Returns all fields that this program defines, and the reason if those of plugins are missing.
pub(super) fn own_fields(app: &App, snapshot: &Snapshot) -> (Vec<CustomField>, Option<Error>) {
    let (mut own, why) = match derived_here(app, snapshot) {
        Ok(own) => (own, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    // the first field of a name is used: that of the program
    own.extend(plot_fields::with_units(snapshot));
    (own, why)
}

/// Returns the error of a plot; `why` says why fields of plugins are missing.
fn explained(error: PlotError, why: Option<Error>) -> CommandError {
    match (&error, why) {
        (PlotError::UnknownField { .. }, Some(why)) => CommandError::new(
            INVALID_INPUT,
            format!(
                "{error}; fields that plugins define need a simulation of the snapshot's deck, but {why}"
            ),
        ),
        _ => error.into(),
    }
}

/// Writes a file.
fn write(file: &Path, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(file, bytes).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// Writes a plot, or one of each frame, and prints the paths.
pub fn plot(app: &App, arguments: &PlotArgs) -> Result<(), CommandError> {
    let format = arguments.format()?;
    if let Some(range) = &arguments.frames {
        return frames(app, arguments, range);
    }
    let snapshot = open(&arguments.snapshot.snapshot)?;
    let panels = arguments.panels(&nestar_plot::code_units(&snapshot), format)?;
    let (own, why) = own_fields(app, &snapshot);
    let bytes = nestar_plot::plot_panels(&snapshot, &panels, &own);
    let bytes = bytes.map_err(|error| explained(error, why))?;
    let number = snapshot.path().file_stem().unwrap_or_default();
    let file = arguments
        .output
        .clone()
        .unwrap_or_else(|| format!("{}_{}.png", arguments.name(), number.to_string_lossy()).into());
    write(&file, &bytes).map_err(|why| CommandError::new(FAILED, why))?;
    print(&format!("{}\n", file.display()))
}

/// Writes a plot of each snapshot of a range.
fn frames(app: &App, arguments: &PlotArgs, range: &str) -> Result<(), CommandError> {
    let snapshots = arguments.snapshots(range)?;
    let panels = arguments.panels(&nestar_plot::code_units(&snapshots[0]), Format::Png)?;
    let (own, why) = own_fields(app, &snapshots[0]);
    let directory = arguments.output.clone().unwrap_or_default();
    if arguments.output.is_some() {
        std::fs::create_dir_all(&directory).map_err(|error| {
            CommandError::new(
                FAILED,
                format!("cannot make {}: {error}", directory.display()),
            )
        })?;
    }
    let name = arguments.name();
    let file = |number: usize| {
        let number = snapshots[number].path().file_stem().unwrap_or_default();
        directory.join(format!("{name}_{}.png", number.to_string_lossy()))
    };
    let unwritten = Mutex::new(None);
    let done = nestar_plot::plot_frames(&snapshots, &panels, &own, |number, bytes| {
        write(&file(number), &bytes).map_err(|why| {
            *unwritten.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.clone());
            PlotError::Option(why)
        })
    });
    if let Some(why) = unwritten
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
    {
        return Err(CommandError::new(FAILED, why));
    }
    done.map_err(|error| explained(error, why))?;
    let files = (0..snapshots.len()).map(|number| format!("{}\n", file(number).display()));
    print(&files.collect::<String>())
}
