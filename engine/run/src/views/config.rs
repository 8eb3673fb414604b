//! Keys that all kinds of views have, and their checks.

use super::quantity::{DEPOSITS, Quantity, ViewQuantities};
use crate::snapshot::headers;
use bevy_ecs::prelude::World;
use nestar_deck::{Deck, DeckError, deck};
use nestar_engine_mesh::{Domain, Topology};
use nestar_engine_step::config::check_times;
use nestar_engine_step::{Engine, Settings};
use nestar_snapshot::{
    DataType, FieldHeader, LevelHeader, LevelPlan, SnapshotData, StoredPrecision,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Precision of the values of a view.
#[deck]
#[derive(Default)]
pub enum ViewPrecision {
    /// 32-bit floating point.
    #[default]
    Single,
    /// 64-bit floating point.
    Double,
}

impl ViewPrecision {
    /// Returns the type of the values.
    pub(super) fn data_type(&self) -> DataType {
        match self {
            Self::Single => DataType::F32,
            Self::Double => DataType::F64,
        }
    }
}

/// An axis.
#[deck]
pub enum Axis {
    /// The x axis.
    X,
    /// The y axis.
    Y,
    /// The z axis.
    Z,
}

impl Axis {
    /// Returns the number of the axis.
    #[must_use]
    pub fn number(self) -> usize {
        self as usize
    }
}

/// Names of the axes.
pub(super) const AXES: [&str; 3] = ["x", "y", "z"];

/// A part of the box.
#[deck]
pub struct ViewRegion {
    /// Lower corner.
    #[key(unit = "length")]
    pub left: [f64; 3],
    /// Upper corner.
    #[key(unit = "length")]
    pub right: [f64; 3],
}

/// A field of a view: the name of a field (`nestar list fields`), or a formula with a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ViewField {
    /// Name of a field.
    Name(String),
    /// A formula of fields.
    Formula(FormulaField),
}

impl ViewField {
    /// Returns the name of the field, or the formula.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Formula(own) => &own.formula,
        }
    }
}

/// A formula with a name.
#[deck]
pub struct FormulaField {
    /// Name of the array: letters, digits and `_`.
    pub name: String,
    /// Formula of the names of fields and of x, y, z, r and t.
    pub formula: String,
}

/// Keys of all kinds of views.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ViewConfig {
    /// Name of the view: letters, digits and `_`. The view is written to `views/NAME.zarr` or `views/NAME`.
    pub name: String,
    /// Simulation time between two entries; 0: none by time.
    #[serde(default)]
    #[schemars(range(min = 0.0), extend("unit" = "time"))]
    pub interval: f64,
    /// Simulation times of entries, ascending.
    #[serde(default)]
    #[schemars(extend("unit" = "time"))]
    pub times: Vec<f64>,
    /// Also writes an entry at each of `output.times` and at `time.end`.
    #[serde(default)]
    pub output_times: bool,
    /// Root steps between two entries; 0: none by step.
    #[serde(default)]
    pub steps: u64,
    /// Wall-clock seconds between two entries; 0: none by wall time.
    #[serde(default)]
    #[schemars(range(min = 0.0), extend("unit" = "second"))]
    pub wall_interval: f64,
    /// Names of fields (`nestar list fields`), or tables with the `name` and the `formula` of a quantity.
    #[serde(default)]
    pub fields: Vec<ViewField>,
    /// Finest level that is used, whose cells hold the mean of finer ones; default: the finest level of the run. Slices and
    /// projections default to the finest level with at most 4096 cells along each axis of the box, spectra to 512.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// Part of the box; default: the whole box.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<ViewRegion>,
    /// Precision of the values.
    #[serde(default)]
    pub precision: ViewPrecision,
}

impl ViewConfig {
    /// Returns the simulation times of entries, ascending.
    pub(super) fn all_times(&self, settings: &Settings) -> Vec<f64> {
        let mut times = self.times.clone();
        if self.output_times {
            times.extend(&settings.output.times);
            times.extend(Some(settings.time.end).filter(|end| end.is_finite()));
            times.sort_by(f64::total_cmp);
            times.dedup();
        }
        times
    }
}

/// What a view is created from.
pub struct ViewContext<'a> {
    /// The deck.
    pub deck: &'a Deck,
    /// Path of the view in the deck, such as `output.view[0]`.
    pub path: &'a str,
    /// Keys of all kinds.
    pub config: &'a ViewConfig,
    /// The domain.
    pub domain: &'a Domain,
    settings: &'a Settings,
    quantities: Option<&'a ViewQuantities>,
    sim: &'a Engine,
}

impl<'a> ViewContext<'a> {
    pub(super) fn new(sim: &'a Engine, path: &'a str, config: &'a ViewConfig) -> Self {
        Self {
            deck: &sim.deck,
            path,
            config,
            domain: &sim.world.resource::<Topology>().domain,
            settings: &sim.settings,
            quantities: sim.world.get_resource::<ViewQuantities>(),
            sim,
        }
    }

    /// Returns the world, for what plugins have registered.
    #[must_use]
    pub fn world(&self) -> &'a World {
        &self.sim.world
    }

    /// Returns the headers of a snapshot of the run, without patches, with sums over particles among the fields.
    #[must_use]
    pub fn headers(&self) -> SnapshotData {
        let width = self.domain.cell_width(0);
        let header = LevelHeader {
            level: 0,
            time: 0.0,
            dt: 0.0,
            cell_width: width,
            patches: 0,
        };
        let mut fields = headers::cell_fields(self.sim);
        fields.extend(self.deposits());
        SnapshotData {
            attributes: headers::described(self.sim),
            levels: vec![LevelPlan { header, fields }],
            arrays: vec![BTreeMap::new()],
        }
    }

    /// Returns the headers of sums over particles.
    fn deposits(&self) -> impl Iterator<Item = FieldHeader> {
        let code = &self.settings.units;
        let all = self.quantities.map_or(&[][..], |all| &all.names);
        let sums = all.iter().filter(|own| own.store == DEPOSITS);
        sums.map(|own| {
            let factor = code.cgs_factor(&own.units);
            FieldHeader::cells(&own.name, DataType::F64, &own.units, factor, &own.long_name)
        })
    }

    /// Returns the precision of the run's fields.
    #[must_use]
    pub fn run_precision(&self) -> StoredPrecision {
        headers::stored_precision(self.sim)
    }

    /// Returns the error for a key of the view.
    #[must_use]
    pub fn error(&self, key: &str, message: &str) -> DeckError {
        let path = format!("{}.{key}", self.path);
        self.deck.error_at(&path, format!("`{path}` {message}"))
    }

    /// Returns the quantity `text` at `key` of the view: the name of a field or a formula.
    ///
    /// # Errors
    /// There is no such field; the formula is invalid.
    pub fn quantity(&self, key: &str, name: &str, text: &str) -> Result<Quantity, DeckError> {
        let path = format!("{}.{key}", self.path);
        match self.quantities {
            Some(all) => all.compile(self.deck, &path, name, text),
            None => Err(self.error(key, "names a field, but the program registers none")),
        }
    }

    /// Returns `true` if a field has this name.
    fn is_field(&self, name: &str) -> bool {
        let all = self.quantities.map_or(&[][..], |all| &all.names);
        all.iter().any(|known| known.name == name)
    }

    /// Returns the quantities of the key `fields`.
    ///
    /// # Errors
    /// There is none; two have the same name; one is invalid.
    pub fn fields(&self) -> Result<Vec<Quantity>, DeckError> {
        let fields = &self.config.fields;
        if fields.is_empty() {
            return Err(self.error("fields", "must name one field or more"));
        }
        let mut all: Vec<Quantity> = Vec::new();
        for (n, field) in fields.iter().enumerate() {
            let key = format!("fields[{n}]");
            let own = match field {
                ViewField::Name(name) => self.quantity(&key, name, name)?,
                ViewField::Formula(FormulaField { name, formula }) => {
                    if !is_name(name) {
                        let key = format!("{key}.name");
                        return Err(self.error(&key, NAME));
                    }
                    if self.is_field(name) && formula.trim() != name {
                        let key = format!("{key}.name");
                        let why = format!("gives a formula the name of the field \"{name}\"");
                        return Err(self.error(&key, &why));
                    }
                    self.quantity(&format!("{key}.formula"), name, formula)?
                }
            };
            let reserved = [
                "time",
                "step",
                "x",
                "y",
                "z",
                "radius",
                "distance",
                "wavenumber",
            ]
            .contains(&&*own.name);
            if reserved || all.iter().any(|other| other.name == own.name) {
                let why = format!("gives a second array named \"{}\"", own.name);
                return Err(self.error(&key, &why));
            }
            all.push(own);
        }
        Ok(all)
    }

    /// Returns the finest level of the run.
    #[must_use]
    pub fn max_level(&self) -> usize {
        self.settings.mesh.max_level
    }

    /// Returns the key `level` of a view that reads cells.
    #[must_use]
    pub fn level(&self) -> usize {
        (self.config.level).map_or(self.max_level(), |level| level as usize)
    }

    /// Returns the level of a uniform grid: the key `level`, or the finest level with at most `most` cells along each axis.
    #[must_use]
    pub fn grid_level(&self, most: i64) -> usize {
        let fits = |level: &usize| {
            let cells = self.domain.cells(*level);
            cells.iter().all(|&n| i64::from(n) <= most)
        };
        let finest = (0..=self.max_level()).rev().find(fits).unwrap_or(0);
        self.config.level.map_or(finest, |level| level as usize)
    }

    /// Returns the cells of a level that overlap the region: the first and the end along each axis.
    #[must_use]
    pub fn cells(&self, level: usize) -> [[i64; 2]; 3] {
        let (cells, width) = (self.domain.cells(level), self.domain.cell_width(level));
        let Some(region) = &self.config.region else {
            return cells.map(|n| [0, i64::from(n)]);
        };
        std::array::from_fn(|a| {
            let index = |x: f64| (x - self.domain.left_edge[a]) / width[a];
            // round-off must not add a cell
            let first = (index(region.left[a]) + 1e-9).floor() as i64;
            let end = (index(region.right[a]) - 1e-9).ceil() as i64;
            let first = first.clamp(0, i64::from(cells[a]) - 1);
            [first, end.clamp(first + 1, i64::from(cells[a]))]
        })
    }

    /// Returns the cell of a level at `x` along an axis.
    #[must_use]
    pub fn cell(&self, level: usize, axis: usize, x: f64) -> i64 {
        let cells = i64::from(self.domain.cells(level)[axis]);
        let at = (x - self.domain.left_edge[axis]) / self.domain.cell_width(level)[axis];
        (at.floor() as i64).clamp(0, cells - 1)
    }

    /// Checks that `x` along an axis, at `key`, is in the box.
    ///
    /// # Errors
    /// It is not.
    pub fn require_inside(&self, key: &str, axis: usize, x: f64) -> Result<(), DeckError> {
        let [left, right] = [self.domain.left_edge[axis], self.domain.right_edge[axis]];
        match (left..=right).contains(&x) {
            true => Ok(()),
            false => {
                let name = AXES[axis];
                let why = format!("must be in the box, from {name} = {left} to {right}, found {x}");
                Err(self.error(key, &why))
            }
        }
    }
}

/// Rule for names.
const NAME: &str = "must consist of letters, digits and `_`";

/// Returns `true` for a non-empty name of letters, digits and `_`.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Checks the keys of all kinds.
///
/// # Errors
/// The first invalid key.
pub(super) fn check(context: &ViewContext) -> Result<(), DeckError> {
    let config = context.config;
    if !is_name(&config.name) {
        return Err(context.error("name", NAME));
    }
    let timed = config.interval > 0.0 || config.wall_interval > 0.0 || config.output_times;
    if !timed && config.steps == 0 && config.times.is_empty() {
        let path = context.path;
        let message = format!(
            "`{path}` is a view without cadence: give interval, times, output_times, steps or wall_interval"
        );
        return Err(context.deck.error_at(path, message));
    }
    check_times(context.deck, context.path, &config.times)?;
    let most = context.max_level();
    if let Some(level) = config.level.filter(|&level| level as usize > most) {
        let why = format!("must be at most `mesh.max_level` = {most}, found {level}");
        return Err(context.error("level", &why));
    }
    let Some(ViewRegion { left, right }) = &config.region else {
        return Ok(());
    };
    for axis in 0..3 {
        context.require_inside(&format!("region.left[{axis}]"), axis, left[axis])?;
        let key = format!("region.right[{axis}]");
        context.require_inside(&key, axis, right[axis])?;
        if right[axis] <= left[axis] {
            let why = format!(
                "must be above left, found {} after {}",
                right[axis], left[axis]
            );
            return Err(context.error(&key, &why));
        }
    }
    Ok(())
}
