//! Views of the kind `picture`: pictures that a run draws, with the functions of `nestar plot`.

use crate::plot_fields;
use nestar_deck::{DeckError, TableSchema, UnitSystem, deck};
use nestar_engine::run::views::{
    self, Axis, FileContent, FileView, PatchRange, Quantity, ViewConfig, ViewContext, ViewKind,
    ViewKinds, ViewOutput,
};
use nestar_engine::{Engine, Error, Plugin};
use nestar_plot::{
    COLOUR_MAPS, Centre, CustomField, PlotError, PlotKind, PlotOptions, Scale, Zoom,
};
use nestar_snapshot::{Snapshot, SnapshotData, StoredPrecision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Plugin that adds the kind.
pub(crate) struct Pictures;

impl Plugin for Pictures {
    fn name(&self) -> &str {
        "pictures"
    }

    fn after(&self) -> &[&str] {
        &["views"]
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let mut kinds = sim.world.resource_mut::<ViewKinds>();
        kinds.add::<PictureConfig>();
        Ok(())
    }
}

/// Returns the schema of the kind.
pub(crate) fn table() -> TableSchema {
    views::table::<PictureConfig>()
}

/// Reduction from three dimensions to two.
#[deck]
#[derive(Default)]
enum Reduction {
    /// Values on a plane.
    #[default]
    Slice,
    /// Integral along the axis; with `weight`, the mean.
    Projection,
    /// Maximum along the axis.
    Maximum,
}

/// Units of the numbers in pictures.
#[deck]
#[derive(Default)]
enum PictureUnits {
    /// kpc, Msun, Myr and km/s.
    #[default]
    Astronomical,
    /// Centimetre, gram and second.
    Cgs,
    /// Code units.
    Code,
}

/// Picture: a PNG file `views/NAME/NNNNNN.png` for each entry, as `nestar plot` draws it. Several fields are drawn side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct PictureConfig {
    #[serde(flatten)]
    common: ViewConfig,
    /// Slice, projection or maximum along the axis.
    #[serde(default)]
    reduction: Reduction,
    /// Line of sight.
    #[serde(default = "upwards")]
    axis: Axis,
    /// Position of the slice along the axis; default: that of the centre.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("unit" = "length"))]
    position: Option<f64>,
    /// Centre of the picture; default: the middle of the box.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("unit" = "length"))]
    centre: Option<[f64; 3]>,
    /// Side of the square around the centre that is drawn; default: the whole box.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("unit" = "length"))]
    side: Option<f64>,
    /// Field or formula by which a projection is weighted, or `volume`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weight: Option<String>,
    /// Logarithmic colours. An entry in which a field has no positive value has linear colours in all panels.
    #[serde(default)]
    logarithmic: bool,
    /// Values of the first and the last colour, in the unit of the picture; default: the extremes of each picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    range: Option<[f64; 2]>,
    /// Colour map, such as `viridis` or `red-blue`, with the suffix `-reversed` for the reverse order; default: depends on the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    colour_map: Option<String>,
    /// Width in pixels.
    #[serde(default = "usual_width")]
    #[schemars(range(min = 200, max = 8192))]
    width: u32,
    /// Units of numbers, if the run has units.
    #[serde(default)]
    units: PictureUnits,
    /// Draw the outlines of patches.
    #[serde(default)]
    outlines: bool,
}

fn upwards() -> Axis {
    Axis::Z
}

fn usual_width() -> u32 {
    PlotOptions::default().width_px
}

impl ViewKind for PictureConfig {
    const NAME: &'static str = "picture";

    fn common(&self) -> &ViewConfig {
        &self.common
    }

    fn view(&self, context: &ViewContext) -> Result<ViewOutput, DeckError> {
        self.check(context)?;
        let headers = Snapshot::in_memory(context.headers());
        let mut custom = plot_fields::derived(context.world());
        custom.extend(plot_fields::with_units(&headers));
        let mut panels = Vec::new();
        let mut quantities: Vec<Quantity> = Vec::new();
        for (n, field) in self.common.fields.iter().enumerate() {
            let (key, options) = (format!("fields[{n}]"), self.options(field.text()));
            let arrays = nestar_plot::required_arrays(&headers, &options, &custom);
            for name in arrays.map_err(|error| self.refused(context, &key, error))? {
                if quantities.iter().all(|own| own.name != name) {
                    quantities.push(context.quantity(&key, &name, &name)?);
                }
            }
            panels.push(options);
        }
        let used = quantities.iter().map(|own| own.name.clone()).collect();
        Ok(ViewOutput::files(Picture {
            quantities,
            custom: custom_of(custom, used),
            panels,
            range: self.patches(context),
            precision: context.run_precision(),
        }))
    }
}

/// Returns the fields of plugins whose arrays a picture reads.
fn custom_of(custom: Vec<CustomField>, arrays: Vec<String>) -> Vec<CustomField> {
    let is_read = |own: &CustomField| own.arrays.iter().all(|name| arrays.contains(name));
    custom.into_iter().filter(is_read).collect()
}

impl PictureConfig {
    /// Checks the keys besides the fields.
    fn check(&self, context: &ViewContext) -> Result<(), DeckError> {
        if self.common.fields.is_empty() {
            return Err(context.error("fields", "must name one field or more"));
        }
        let axis = self.axis.number();
        if self.common.region.is_some() {
            let why = "has no meaning for a picture: give `centre` and `side`";
            return Err(context.error("region", why));
        }
        let precision = format!("{}.precision", context.path);
        if context.deck.has(&precision) {
            return Err(context.error("precision", "has no meaning for a picture"));
        }
        if let Some(at) = self.position {
            if self.reduction != Reduction::Slice {
                return Err(context.error("position", "needs `reduction = \"slice\"`"));
            }
            context.require_inside("position", axis, at)?;
        }
        for (n, at) in self.centre.into_iter().flatten().enumerate() {
            context.require_inside(&format!("centre[{n}]"), n, at)?;
        }
        let [left, right] = [context.domain.left_edge, context.domain.right_edge];
        let longest = [0, 1, 2].map(|a| right[a] - left[a]);
        let longest = longest.into_iter().fold(0.0, f64::max);
        // beyond this, pixels have no different positions
        if let Some(side) = self.side
            && !(1e-10 * longest..=10.0 * longest).contains(&side)
        {
            let why = format!("must be above 0 and at most 10 sides of the box, found {side}");
            return Err(context.error("side", &why));
        }
        if self.weight.is_some() && self.reduction != Reduction::Projection {
            return Err(context.error("weight", "needs `reduction = \"projection\"`"));
        }
        self.check_colours(context)
    }

    fn check_colours(&self, context: &ViewContext) -> Result<(), DeckError> {
        if let Some([first, last]) = self.range {
            if first.is_nan() || first >= last {
                let why = format!("must ascend, found [{first}, {last}]");
                return Err(context.error("range", &why));
            }
            if self.logarithmic && first <= 0.0 {
                let why = format!("must be positive for logarithmic colours, found {first}");
                return Err(context.error("range", &why));
            }
        }
        if let Some(name) = &self.colour_map {
            let base = name.strip_suffix("-reversed").unwrap_or(name);
            if !COLOUR_MAPS.contains(&base) {
                let path = format!("{}.colour_map", context.path);
                return Err(context.deck.unknown_word_at(&path, base, &COLOUR_MAPS));
            }
        }
        let panels = self.common.fields.len() as u32;
        let across = (1..).find(|n| n * n >= panels).unwrap_or(1);
        let across = if panels == 3 { 3 } else { across };
        if self.width / across < 200 {
            let why = format!(
                "must be at least {} for {across} panels side by side, found {}",
                200 * across,
                self.width
            );
            return Err(context.error("width", &why));
        }
        Ok(())
    }

    /// Returns the error of a field or of the weight.
    fn refused(&self, context: &ViewContext, key: &str, error: PlotError) -> DeckError {
        match error {
            PlotError::UnknownField { name, known, .. } => {
                let key = if self.weight.as_ref() == Some(&name) {
                    "weight"
                } else {
                    key
                };
                if name.starts_with("particles/") {
                    let species = name.replace('/', "_");
                    let why =
                        format!("must be `{species}_mass` or `{species}_number`, found \"{name}\"");
                    return context.error(key, &why);
                }
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let path = format!("{}.{key}", context.path);
                context.deck.unknown_word_at(&path, &name, &known)
            }
            other => context.error(key, &format!("cannot be drawn: {other}")),
        }
    }

    /// Returns the options of the panel of a field.
    fn options(&self, field: &str) -> PlotOptions {
        PlotOptions {
            field: field.into(),
            axis: match self.axis {
                Axis::X => nestar_plot::Axis::X,
                Axis::Y => nestar_plot::Axis::Y,
                Axis::Z => nestar_plot::Axis::Z,
            },
            kind: match self.reduction {
                Reduction::Slice => PlotKind::Slice(self.position),
                Reduction::Projection => PlotKind::Projection,
                Reduction::Maximum => PlotKind::Maximum,
            },
            centre: self.centre.map_or(Centre::Middle, Centre::At),
            zoom: self.side.map(Zoom::Width),
            weight: self.weight.clone(),
            scale: match self.logarithmic {
                true => Scale::Log,
                false => Scale::Linear,
            },
            min: self.range.map(|[first, _]| first),
            max: self.range.map(|[_, last]| last),
            colour_map: self.colour_map.clone(),
            width_px: self.width,
            units: match self.units {
                PictureUnits::Astronomical => UnitSystem::Astronomical,
                PictureUnits::Cgs => UnitSystem::Cgs,
                PictureUnits::Code => UnitSystem::Code,
            },
            outlines: self.outlines,
            max_level: self.common.level.map(|level| level as u8),
            ..PlotOptions::default()
        }
    }

    /// Returns the patches that the pictures show.
    fn patches(&self, context: &ViewContext) -> PatchRange {
        let (level, axis) = (context.level(), self.axis.number());
        let mut cells = context.cells(level);
        if self.reduction == Reduction::Slice {
            let [left, right] = [context.domain.left_edge, context.domain.right_edge];
            let centre = self.centre.map(|centre| centre[axis]);
            let middle = 0.5 * (left[axis] + right[axis]);
            let at = self.position.or(centre).unwrap_or(middle);
            // a position between two cells belongs to one of them, up to round-off
            let cell = context.cell(level, axis, at);
            cells[axis] = [cell - 1, cell + 2];
        }
        PatchRange::new(level, cells)
    }
}

/// A view that draws pictures.
struct Picture {
    quantities: Vec<Quantity>,
    custom: Vec<CustomField>,
    panels: Vec<PlotOptions>,
    range: PatchRange,
    precision: StoredPrecision,
}

impl FileView for Picture {
    fn quantities(&self) -> &[Quantity] {
        &self.quantities
    }

    fn finest(&self) -> usize {
        self.range.level
    }

    fn uses(&self, level: usize, patch: [i32; 3]) -> bool {
        self.range.overlaps(level, patch)
    }

    fn uses_parents(&self) -> bool {
        false
    }

    fn precision(&self) -> StoredPrecision {
        self.precision
    }

    fn ending(&self) -> &'static str {
        "png"
    }

    fn content(&self, data: SnapshotData) -> Result<FileContent, String> {
        let snapshot = Snapshot::in_memory(data);
        let draw =
            |panels: &[PlotOptions]| nestar_plot::plot_panels(&snapshot, panels, &self.custom);
        let drawn = draw(&self.panels).or_else(|why| {
            // a field without positive values, such as the speed of a gas at rest, must not end a run
            let linear = |own: &PlotOptions| PlotOptions {
                scale: Scale::Linear,
                ..own.clone()
            };
            let panels: Vec<PlotOptions> = self.panels.iter().map(linear).collect();
            draw(&panels).map_err(|_| why)
        });
        drawn.map(FileContent::Bytes).map_err(|why| why.to_string())
    }
}
