//! `nestar plot`.

use super::snapshot::{SnapshotArgs, UnitsArgs, open};
use super::{CommandError, FAILED, INVALID_INPUT, print};
use clap::Args;
use nestar::engine::data::{DerivedFields, Stores};
use nestar::kernels::hydro::eos;
use nestar::snapshot::Snapshot;
use nestar::systems::fields::quantities::WITH_UNITS;
use nestar::systems::fields::{GAS_COMPONENTS, GasUnits};
use nestar::systems::units::Units;
use nestar::{App, Error};
use nestar_deck::{CodeUnits, Deck};
use nestar_plot::{Axis, CustomField, FieldFunction, PlotError, PlotKind, PlotOptions, Scale};
use std::path::PathBuf;
use std::sync::Arc;

/// Arguments of `nestar plot`.
#[derive(Args)]
pub struct PlotArgs {
    #[command(flatten)]
    snapshot: SnapshotArgs,
    /// Field: an array of the snapshot, a derived field (`nestar list fields`), fraction_NAME for the mass fraction of scalar_NAME, or
    /// particles/NAME for the density of a species (surface density with --projection)
    #[arg(long, short, default_value = "density")]
    field: String,
    /// Line of sight: x, y or z
    #[arg(long, default_value = "z")]
    axis: Axis,
    /// Position of the slice along the axis, in code length or with a unit ("2 kpc"); default: the middle of the domain
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    slice: Option<String>,
    /// Plot the integral along the axis
    #[arg(long, conflicts_with = "slice")]
    projection: bool,
    /// Plot the maximum along the axis
    #[arg(long, conflicts_with_all = ["slice", "projection"])]
    max: bool,
    /// Logarithmic colour scale
    #[arg(long)]
    log: bool,
    /// Linear colour scale (default)
    #[arg(long, conflicts_with = "log")]
    linear: bool,
    #[command(flatten)]
    units: UnitsArgs,
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
    /// Finest level to plot
    #[arg(long, value_name = "N")]
    level: Option<u8>,
    /// Draw outlines of patches
    #[arg(long)]
    outlines: bool,
    /// Draw particles of these species as dots; `all` for all species
    #[arg(long, value_name = "SPECIES", value_delimiter = ',')]
    particles: Vec<String>,
    /// Thickness of a slice of particles, in code length or with a unit; default: a cell of the finest level
    #[arg(long, value_name = "LENGTH", conflicts_with_all = ["projection", "max"])]
    depth: Option<String>,
    /// Diameter of particle dots in pixels; default: 1/400 of the width
    #[arg(long, value_name = "PX", requires = "particles")]
    dot: Option<f32>,
    /// Width of the plot in pixels, 200 to 8192
    #[arg(long, value_name = "PX", default_value_t = PlotOptions::default().width_px)]
    width: u32,
    /// Colour map, such as viridis or red-blue; append -reversed to reverse it; default: depends on the field
    #[arg(long, alias = "color-map", value_name = "NAME")]
    colour_map: Option<String>,
    /// Title
    #[arg(long)]
    title: Option<String>,
    /// PNG file; default: FIELD_NNNNNN.png in the current directory
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl PlotArgs {
    /// Returns the options of a plot of a snapshot in these code units.
    fn options(&self, code: &CodeUnits) -> Result<PlotOptions, CommandError> {
        let length = |option: &str, text: &Option<String>| {
            let number = text.as_ref().map(|text| code.number(text, "length"));
            number
                .transpose()
                .map_err(|why| CommandError::new(INVALID_INPUT, format!("{option}: {why}")))
        };
        let kind = match (self.projection, self.max) {
            (true, _) => PlotKind::Projection,
            (_, true) => PlotKind::Maximum,
            _ => PlotKind::Slice(length("--slice", &self.slice)?),
        };
        Ok(PlotOptions {
            field: self.field.clone(),
            axis: self.axis,
            kind,
            scale: if self.log { Scale::Log } else { Scale::Linear },
            units: self.units.units,
            min: self.min,
            max: self.max_value,
            max_level: self.level,
            width_px: self.width,
            colour_map: self.colour_map.clone(),
            outlines: self.outlines,
            particles: self.particles.clone(),
            depth: length("--depth", &self.depth)?,
            dot_px: self.dot,
            title: self.title.clone(),
        })
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
    let world = &sim.engine().world;
    let stores = world.resource::<Stores>().all();
    let derived = world.resource::<DerivedFields>().all();
    let own = derived.filter_map(|(of, derived)| {
        let store = stores.iter().find(|store| store.name == of)?;
        let components = &store.of(world).spec().components;
        let number = derived.number.clone();
        Some(CustomField {
            name: derived.name.clone(),
            units: derived.units.clone(),
            arrays: components.iter().map(|c| c.name.clone()).collect(),
            value: Arc::new(move |state| number.of_state(state)),
        })
    });
    Ok(own.collect())
}

/// Returns temperature and number density of the gas, if the snapshot has units.
fn with_units(snapshot: &Snapshot) -> Vec<CustomField> {
    let attributes = snapshot.attributes();
    let units = nestar_plot::code_units(snapshot);
    let fact = |name: &str| attributes.facts.get(name).copied();
    let (Some(units), Some(gamma)) = (units.if_dimensional(), fact("gamma")) else {
        return Vec::new();
    };
    // without this number the mean molecular weight is not constant
    let Some(weight) = fact("mean_molecular_weight") else {
        return Vec::new();
    };
    let physical = GasUnits::of(&Units::from(units), weight);
    let field = |name: &str, units: &str, arrays: &[&str], value: FieldFunction| CustomField {
        name: name.into(),
        units: units.into(),
        arrays: arrays.iter().map(ToString::to_string).collect(),
        value,
    };
    let [hot, many] = WITH_UNITS;
    let kelvins = move |state: &[f64]| {
        let state = std::array::from_fn(|c| state[c]);
        let [density, .., pressure] = eos::primitive_from_conserved(&state, gamma);
        pressure / density * physical.kelvin
    };
    let number = move |state: &[f64]| state[0] * physical.number_density;
    vec![
        field(hot, "K", &GAS, Arc::new(kelvins)),
        field(many, "cm**-3", &GAS[..1], Arc::new(number)),
    ]
}

/// Arrays of the gas.
const GAS: [&str; GAS_COMPONENTS] = [
    "density",
    "momentum_x",
    "momentum_y",
    "momentum_z",
    "energy",
];

/// Writes a plot and prints its path.
pub fn plot(app: &App, arguments: &PlotArgs) -> Result<(), CommandError> {
    let snapshot = open(&arguments.snapshot.snapshot)?;
    let options = arguments.options(&nestar_plot::code_units(&snapshot))?;
    let (mut own, why) = match derived_here(app, &snapshot) {
        Ok(own) => (own, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    // the first field of a name is used: that of the program
    own.extend(with_units(&snapshot));
    let bytes = nestar_plot::plot_with(&snapshot, &options, &own);
    let bytes = bytes.map_err(|error| match (&error, why) {
        (PlotError::UnknownField { .. }, Some(why)) => CommandError::new(
            INVALID_INPUT,
            format!("{error}; fields that plugins define need a simulation of the snapshot's deck, but {why}"),
        ),
        _ => error.into(),
    })?;
    let field = arguments.field.replace('/', "_");
    let number = snapshot.path().file_stem().unwrap_or_default();
    let file = arguments
        .output
        .clone()
        .unwrap_or_else(|| format!("{field}_{}.png", number.to_string_lossy()).into());
    std::fs::write(&file, bytes).map_err(|error| {
        CommandError::new(FAILED, format!("cannot write {}: {error}", file.display()))
    })?;
    print(&format!("{}\n", file.display()))
}
