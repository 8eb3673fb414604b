//! Views: small series, such as slices and projections, which a run writes more often than snapshots.
//!
//! A kind of view is a type that implements [`ViewKind`], the struct of its keys in `[[output.view]]`; plugins add kinds to
//! [`ViewKinds`]. Its [`View`] names arrays and gives an [`Accumulator`], which receives the cells of each rank level by level.
//! The accumulators of all ranks are combined on the first rank, which appends an entry to `views/NAME.zarr`.
//!
//! The [`FileView`] of other kinds makes a file for each entry, such as `views/NAME/000010.zarr`, of cells that the first rank
//! receives. A [`ComputedView`] computes the entries of its series itself.

mod bins;
mod collect;
mod config;
mod distribution;
mod file_entries;
mod file_view;
mod inputs;
mod line;
mod plane;
mod profile;
mod projection;
mod quantity;
mod reader;
mod slice;
mod snapshot;
mod sums;
mod view_entry;
mod view_series;

pub use config::{Axis, ViewConfig, ViewContext, ViewField, ViewPrecision, ViewRegion};
pub use file_view::{FileContent, FileView, PatchRange};
pub use quantity::{CompileFormula, DEPOSITS, Quantity, ViewDeposit, ViewQuantities, ViewQuantity};
pub use view_entry::{ComputedEntry, ComputedView, ViewColumn, ViewList};
pub(crate) use view_series::Views;

use bevy_ecs::prelude::*;
use file_view::FileReader;
use nestar_deck::{Deck, DeckError, TableSchema};
use nestar_engine_step::{Engine, Error};
use nestar_kernels::PATCH;
use nestar_kernels::mesh::block::LevelGeometry;
use reader::ViewReader;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Path of the list of views in decks, and the key that selects the kind.
const LIST: &str = "output.view";
const TAG: &str = "kind";

/// A kind of view: the keys of an element of `[[output.view]]`, without `kind`.
///
/// It contains a [`ViewConfig`], the keys of all kinds, as `#[serde(flatten)]`.
pub trait ViewKind: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// Word in decks.
    const NAME: &'static str;

    /// Returns the keys of all kinds.
    fn common(&self) -> &ViewConfig;

    /// Creates the view.
    ///
    /// # Errors
    /// A key is invalid, with its position.
    fn view(&self, context: &ViewContext) -> Result<ViewOutput, DeckError>;
}

/// What a view writes.
pub enum ViewOutput {
    /// Entries of a series in `views/NAME.zarr`.
    Series(Box<dyn View>),
    /// Entries of a series that the view computes.
    Computed(Box<dyn ComputedView>),
    /// A file for each entry in `views/NAME`.
    Files(Box<dyn FileView>),
}

impl ViewOutput {
    /// Wraps a view with a series.
    pub fn series(view: impl View + 'static) -> Self {
        Self::Series(Box::new(view))
    }

    /// Wraps a view that computes its entries.
    pub fn computed(view: impl ComputedView + 'static) -> Self {
        Self::Computed(Box::new(view))
    }

    /// Wraps a view with files.
    pub fn files(view: impl FileView + 'static) -> Self {
        Self::Files(Box::new(view))
    }
}

/// A configured view whose entries are small arrays.
pub trait View: Send + Sync {
    /// Describes the arrays and their coordinates, which do not change during a run.
    fn layout(&self) -> ViewLayout;

    /// Returns the quantities that accumulators receive.
    fn quantities(&self) -> &[Quantity];

    /// Returns the finest level that the view reads. Refined cells of this level hold the mean of finer cells.
    fn finest(&self) -> usize;

    /// Returns `true` if the view uses the patch with this index on the level with this geometry.
    fn uses(&self, geometry: &LevelGeometry, patch: [i32; 3]) -> bool;

    /// Returns how cells are summed along an axis, if accumulators need only these sums in place of the cells.
    fn columns(&self) -> Option<ViewColumns> {
        None
    }

    /// Returns the factors of the eight cells of a patch along the axis of [`View::columns`], by which they are multiplied in sums.
    fn factors(&self, _level: usize, _patch: [i32; 3]) -> [f64; PATCH] {
        [1.0; PATCH]
    }

    /// Returns a number by which patches of a level are sorted, so that each thread meets few of the places that an accumulator keeps.
    fn place(&self, _patch: [i32; 3]) -> u64 {
        0
    }

    /// Creates an empty accumulator.
    fn accumulator(&self) -> Box<dyn Accumulator + '_>;
}

/// Sums of the cells of each patch along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewColumns {
    /// The axis.
    pub axis: usize,
    /// `true` if the last quantity multiplies the others.
    pub weighted: bool,
}

/// Collects the cells of a view on one rank, in any order. The result must not depend on the order of the patches, nor on
/// their distribution over ranks.
pub trait Accumulator: Send {
    /// Adds the cells of a patch.
    fn add(&mut self, cells: &PatchCells);

    /// Returns the content as bytes for the first rank.
    fn pack(&self) -> Vec<u8>;

    /// Adds the bytes of another rank; `None` if they are damaged.
    fn join(&mut self, bytes: &[u8]) -> Option<()>;

    /// Returns the values of the arrays, in the order of the layout.
    fn values(&self) -> Vec<Vec<f64>>;
}

/// Cells of a patch with the quantities of a view.
pub struct PatchCells<'a> {
    /// Level.
    pub level: usize,
    /// Index of the patch on its level.
    pub patch: [i32; 3],
    /// Geometry of the level.
    pub geometry: &'a LevelGeometry,
    /// Values, `[quantity][k][j][i]`; for views with [`View::columns`] their sums, `[quantity][64]`, where the first of the other two axes is
    /// the fast one.
    pub values: &'a [f64],
}

/// A coordinate of a view: values along the dimension with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewCoordinate {
    /// Name, also of the dimension.
    pub name: String,
    /// Unit, such as `length`; `None` if it is not known.
    pub units: Option<String>,
    /// Description.
    pub long_name: String,
    /// Values.
    pub values: Vec<f64>,
}

/// An array of a view.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewArray {
    /// Name.
    pub name: String,
    /// Dimensions besides time: names of coordinates.
    pub dimensions: Vec<String>,
    /// Unit, such as `mass/length**3`; `None` if it is not known.
    pub units: Option<String>,
    /// Description.
    pub long_name: String,
}

/// Arrays of a view and their coordinates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ViewLayout {
    /// Coordinates.
    pub coordinates: Vec<ViewCoordinate>,
    /// Arrays.
    pub arrays: Vec<ViewArray>,
}

impl ViewLayout {
    /// Returns the number of values of an entry.
    fn values(&self) -> usize {
        let length = |name: &String| {
            let mut coordinates = self.coordinates.iter();
            let own = coordinates.find(|own| own.name == *name);
            own.map_or(1, |own| own.values.len())
        };
        let size = |array: &ViewArray| array.dimensions.iter().map(length).product::<usize>();
        self.arrays.iter().map(size).sum()
    }
}

/// Reads the keys of a view of one kind and creates the view; also returns all keys for its attributes.
type ViewMaker = fn(&mut Engine, &str) -> Result<(ViewConfig, ViewOutput), Error>;

/// All kinds of views, by name.
#[derive(Resource, Default)]
pub struct ViewKinds(Vec<(&'static str, ViewMaker)>);

impl ViewKinds {
    /// Returns the engine's kinds.
    #[must_use]
    pub fn built_in() -> Self {
        let mut kinds = Self::default();
        kinds.add::<slice::SliceConfig>();
        kinds.add::<projection::ProjectionConfig>();
        kinds.add::<profile::ProfileConfig>();
        kinds.add::<distribution::PdfConfig>();
        kinds.add::<line::LineConfig>();
        kinds.add::<line::PointConfig>();
        kinds.add::<snapshot::SnapshotConfig>();
        kinds
    }

    /// Adds a kind.
    pub fn add<K: ViewKind>(&mut self) {
        self.0.push((K::NAME, make::<K>));
    }

    /// Returns the maker of a kind.
    fn find(&self, word: &str) -> Option<ViewMaker> {
        let found = self.0.iter().find(|(name, _)| *name == word);
        found.map(|(_, maker)| *maker)
    }
}

/// Returns the schemas of the engine's kinds.
#[must_use]
pub fn tables() -> Vec<TableSchema> {
    vec![
        table::<slice::SliceConfig>(),
        table::<projection::ProjectionConfig>(),
        table::<profile::ProfileConfig>(),
        table::<distribution::PdfConfig>(),
        table::<line::LineConfig>(),
        table::<line::PointConfig>(),
        table::<snapshot::SnapshotConfig>(),
    ]
}

/// Returns the schema of a kind.
#[must_use]
pub fn table<K: ViewKind>() -> TableSchema {
    TableSchema::variant::<K>(LIST, TAG, K::NAME)
}

fn make<K: ViewKind>(sim: &mut Engine, path: &str) -> Result<(ViewConfig, ViewOutput), Error> {
    let config: K = sim.deck.variant(path, TAG)?;
    let context = ViewContext::new(sim, path, config.common());
    config::check(&context)?;
    let view = config.view(&context)?;
    Ok((config.common().clone(), view))
}

/// A view before the run has begun.
struct PreparedView {
    /// Path in the deck.
    path: String,
    config: ViewConfig,
    source: ViewSource,
}

/// A view and what it reads.
enum ViewSource {
    Series(ViewReader),
    Computed(Box<dyn ComputedView>),
    Files(FileReader),
}

/// The views of a run.
#[derive(Resource, Default)]
struct PreparedViews(Vec<PreparedView>);

/// Creates the views of the deck, once all fields and kinds are registered: call it with
/// [`Engine::defer_setup`](nestar_engine_step::Engine::defer_setup).
///
/// # Errors
/// A view is invalid, with its position in the deck.
pub fn prepare(sim: &mut Engine) -> Result<(), Error> {
    let mut prepared: Vec<PreparedView> = Vec::new();
    for n in 0..sim.settings.output.view.len() {
        let path = format!("{LIST}[{n}]");
        let kind = sim.settings.output.view[n].get(TAG);
        let Some(kind) = kind.and_then(|kind| kind.as_str()) else {
            let message = format!("`{path}`: missing key `{TAG}`");
            return Err(sim.deck.error_at(&path, message).into());
        };
        let kinds = sim.world.resource::<ViewKinds>();
        let Some(maker) = kinds.find(kind) else {
            let known: Vec<&str> = kinds.0.iter().map(|(name, _)| *name).collect();
            let path = format!("{path}.{TAG}");
            return Err(sim.deck.unknown_word_at(&path, kind, &known).into());
        };
        let (config, view) = maker(sim, &path)?;
        require_new_name(&sim.deck, &path, &config.name, &prepared)?;
        require_particles(sim, &path, &view)?;
        let source = match view {
            ViewOutput::Series(view) => ViewSource::Series(ViewReader::new(sim, view)?),
            ViewOutput::Computed(view) => ViewSource::Computed(view),
            ViewOutput::Files(view) => ViewSource::Files(FileReader::new(sim, view)?),
        };
        prepared.push(PreparedView {
            path,
            config,
            source,
        });
    }
    sim.world.insert_resource(PreparedViews(prepared));
    Ok(())
}

/// Rejects quantities of particles where patches with finer ones inside are used, since particles are in the finest patches only.
fn require_particles(sim: &Engine, path: &str, view: &ViewOutput) -> Result<(), DeckError> {
    let (quantities, finest, uses_parents) = match view {
        ViewOutput::Series(view) => (view.quantities(), view.finest(), false),
        ViewOutput::Computed(_) => return Ok(()),
        ViewOutput::Files(view) => (view.quantities(), view.finest(), view.uses_parents()),
    };
    let Some(own) = quantities.iter().find(|own| own.has_particles()) else {
        return Ok(());
    };
    let most = sim.settings.mesh.max_level;
    let name = &own.name;
    let (key, why) = match uses_parents {
        false if finest == most => return Ok(()),
        false => (
            "level",
            format!("must be {most}, the finest level, for the particles of `{name}`"),
        ),
        true => (
            "fields",
            format!(
                "must not have particles, as `{name}` does, since its coarser cells would have none: give a slice, a projection or a \
                 picture of them"
            ),
        ),
    };
    let place = format!("{path}.{key}");
    let at = if sim.deck.has(&place) { &place } else { path };
    Err(sim.deck.error_at(at, format!("`{place}` {why}")))
}

/// What a view of a deck writes.
pub struct ViewSummary {
    /// Keys of all kinds.
    pub config: ViewConfig,
    /// Place in the run's directory, such as `views/NAME.zarr`.
    pub place: String,
    /// Bytes of an entry of the present state without compression; `None` for pictures and the like.
    pub bytes: Option<usize>,
}

/// Describes the views of the deck before the run has begun.
#[must_use]
pub fn summaries(sim: &Engine) -> Vec<ViewSummary> {
    let prepared = sim.world.get_resource::<PreparedViews>();
    let summary = |own: &PreparedView| {
        let name = own.config.name.clone();
        let series = |values: Option<usize>| {
            let size = own.config.precision.data_type().size();
            (
                format!("views/{name}.zarr"),
                values.map(|values| size * values),
            )
        };
        let (place, bytes) = match &own.source {
            ViewSource::Series(reader) => series(Some(reader.view.layout().values())),
            // nothing tells the length of a list in advance
            ViewSource::Computed(view) => {
                series(view.list().is_none().then(|| view.layout().values()))
            }
            ViewSource::Files(reader) => {
                let ending = reader.view.ending();
                let bytes = (ending == "zarr").then(|| reader.bytes(sim));
                (format!("views/{name}/NNNNNN.{ending}"), bytes)
            }
        };
        ViewSummary {
            config: own.config.clone(),
            place,
            bytes,
        }
    };
    prepared
        .into_iter()
        .flat_map(|all| &all.0)
        .map(summary)
        .collect()
}

/// Rejects a second view with the same name.
fn require_new_name(
    deck: &Deck,
    path: &str,
    name: &str,
    prepared: &[PreparedView],
) -> Result<(), DeckError> {
    match prepared.iter().find(|other| other.config.name == name) {
        None => Ok(()),
        Some(other) => {
            let path = format!("{path}.name");
            let message = format!("`{path}`: `{}` has the name \"{name}\" already", other.path);
            Err(deck.error_at(&path, message))
        }
    }
}
