//! `nestar plot`.

use super::snapshot::{SnapshotArgs, open};
use super::{CommandError, FAILED, print};
use clap::Args;
use nestar::App;
use nestar::engine::data::{DerivedFields, Stores};
use nestar::kernels::hydro::eos;
use nestar::snapshot::Snapshot;
use nestar::systems::fields::quantities::WITH_UNITS;
use nestar::systems::fields::{GAS_COMPONENTS, GasUnits};
use nestar::systems::units::Units;
use nestar_deck::{CodeUnits, Deck};
use nestar_plot::{Axis, CellFunction, CustomField, PlotKind, PlotOptions, Scale};
use std::path::PathBuf;
use std::sync::Arc;

/// What to draw.
#[derive(Args)]
pub struct PlotArgs {
    #[command(flatten)]
    snapshot: SnapshotArgs,
    /// An array of the snapshot, a derived field (`nestar list fields`), fraction_NAME for the mass fraction of scalar_NAME, or
    /// particles/NAME for the density of a species: with --projection its surface density
    #[arg(long, short, default_value = "density")]
    field: String,
    /// The line of sight: x, y or z
    #[arg(long, default_value = "z")]
    axis: Axis,
    /// Draw the cells at this place along the axis, code length; without it: the middle of the domain
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    slice: Option<f64>,
    /// Draw the integral along the axis
    #[arg(long, conflicts_with = "slice")]
    projection: bool,
    /// Draw the greatest value along the axis
    #[arg(long, conflicts_with_all = ["slice", "projection"])]
    max: bool,
    /// Colours in proportion to the logarithm
    #[arg(long)]
    log: bool,
    /// Colours in proportion to the value (this is the default)
    #[arg(long, conflicts_with = "log")]
    linear: bool,
    /// Value of the first colour; without it: the least value drawn
    #[arg(
        long = "min-value",
        alias = "min",
        value_name = "V",
        allow_negative_numbers = true
    )]
    min: Option<f64>,
    /// Value of the last colour; without it: the greatest value drawn
    #[arg(long, value_name = "V", allow_negative_numbers = true)]
    max_value: Option<f64>,
    /// Draw no level finer than this one
    #[arg(long, value_name = "N")]
    level: Option<u8>,
    /// Outline the patches
    #[arg(long)]
    outlines: bool,
    /// Draw particles as dots: names of species, or all
    #[arg(long, value_name = "SPECIES", value_delimiter = ',')]
    particles: Vec<String>,
    /// How thick a slice of particles is, code length; without it: a cell of the finest level
    #[arg(long, value_name = "LENGTH", conflicts_with_all = ["projection", "max"])]
    depth: Option<f64>,
    /// Diameter of a particle's dot in pixels; without it: a 400th of the width
    #[arg(long, value_name = "PX", requires = "particles")]
    dot: Option<f32>,
    /// Width of the picture in pixels, 200 to 8192
    #[arg(long, value_name = "PX", default_value_t = PlotOptions::default().width_px)]
    width: u32,
    /// A colour map such as viridis or red-blue, also with -reversed behind it; without it: one that suits the field
    #[arg(long, alias = "color-map", value_name = "NAME")]
    colour_map: Option<String>,
    /// Text above the picture
    #[arg(long)]
    title: Option<String>,
    /// The PNG file; without it: FIELD_NNNNNN.png here
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl PlotArgs {
    fn options(&self) -> PlotOptions {
        let kind = match (self.projection, self.max) {
            (true, _) => PlotKind::Projection,
            (_, true) => PlotKind::Maximum,
            _ => PlotKind::Slice(self.slice),
        };
        PlotOptions {
            field: self.field.clone(),
            axis: self.axis,
            kind,
            scale: if self.log { Scale::Log } else { Scale::Linear },
            min: self.min,
            max: self.max_value,
            max_level: self.level,
            width_px: self.width,
            colour_map: self.colour_map.clone(),
            outlines: self.outlines,
            particles: self.particles.clone(),
            depth: self.depth,
            dot_px: self.dot,
            title: self.title.clone(),
        }
    }
}

/// The derived fields of the program, as a run of the snapshot's deck has them. Other programs' snapshots have none here.
fn derived_here(app: &App, snapshot: &Snapshot) -> Option<Vec<CustomField>> {
    let mut deck = Deck::parse("the snapshot's deck", &snapshot.attributes().config).ok()?;
    deck.set("run.device=cpu").ok()?;
    let mut sim = app.simulation(deck).ok()?;
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
    Some(own.collect())
}

/// Temperature and number density of the gas, where the snapshot's units say what they are.
fn with_units(snapshot: &Snapshot) -> Vec<CustomField> {
    let attributes = snapshot.attributes();
    let units = CodeUnits {
        length_cgs: attributes.units.length_cgs,
        mass_cgs: attributes.units.mass_cgs,
        time_cgs: attributes.units.time_cgs,
        name: attributes.units.name.clone(),
    };
    let fact = |name: &str| attributes.facts.get(name).copied();
    let (Some(units), Some(gamma)) = (units.if_dimensional(), fact("gamma")) else {
        return Vec::new();
    };
    let weight = fact("mean_molecular_weight").unwrap_or(GasUnits::IONISED);
    let physical = GasUnits::of(&Units::from(units), weight);
    let field = |name: &str, units: &str, arrays: &[&str], value: CellFunction| CustomField {
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

/// The arrays that all gas has.
const GAS: [&str; GAS_COMPONENTS] = [
    "density",
    "momentum_x",
    "momentum_y",
    "momentum_z",
    "energy",
];

/// Draws a picture and prints where it is.
pub fn plot(app: &App, arguments: &PlotArgs) -> Result<(), CommandError> {
    let snapshot = open(&arguments.snapshot.snapshot)?;
    let mut own = derived_here(app, &snapshot).unwrap_or_default();
    // the first of a name is drawn: that of the program
    own.extend(with_units(&snapshot));
    let bytes = nestar_plot::plot_with(&snapshot, &arguments.options(), &own)?;
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
