//! Snapshots of chosen fields and patches.

use super::file_view::{FileContent, FileView, PatchRange};
use super::{Quantity, ViewConfig, ViewContext, ViewKind, ViewOutput, ViewPrecision};
use nestar_deck::DeckError;
use nestar_snapshot::{LEAF, ORIGIN, SnapshotData, StoredPrecision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Snapshot: values of fields in all cells of the levels up to `level`, in the patches that overlap the region. Each entry is a store
/// `views/NAME/NNNNNN.zarr` with the format of snapshots, but no state from which a run can start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct SnapshotConfig {
    #[serde(flatten)]
    pub common: ViewConfig,
}

impl ViewKind for SnapshotConfig {
    const NAME: &'static str = "snapshot";

    fn common(&self) -> &ViewConfig {
        &self.common
    }

    fn view(&self, context: &ViewContext) -> Result<ViewOutput, DeckError> {
        let fields = context.fields()?;
        if let Some(n) = fields
            .iter()
            .position(|own| [ORIGIN, LEAF].contains(&&*own.name))
        {
            let why = "has the name of an array that describes patches";
            return Err(context.error(&format!("fields[{n}]"), why));
        }
        let level = context.level();
        Ok(ViewOutput::files(SnapshotView {
            fields,
            range: PatchRange::new(level, context.cells(level)),
            precision: match self.common.precision {
                ViewPrecision::Single => StoredPrecision::Single,
                ViewPrecision::Double => StoredPrecision::Double,
            },
        }))
    }
}

/// A view that writes snapshots.
struct SnapshotView {
    fields: Vec<Quantity>,
    range: PatchRange,
    precision: StoredPrecision,
}

impl FileView for SnapshotView {
    fn quantities(&self) -> &[Quantity] {
        &self.fields
    }

    fn finest(&self) -> usize {
        self.range.level
    }

    fn uses(&self, level: usize, patch: [i32; 3]) -> bool {
        self.range.overlaps(level, patch)
    }

    fn precision(&self) -> StoredPrecision {
        self.precision
    }

    fn ending(&self) -> &'static str {
        "zarr"
    }

    fn content(&self, data: SnapshotData) -> Result<FileContent, String> {
        Ok(FileContent::Snapshot(Box::new(data)))
    }
}
