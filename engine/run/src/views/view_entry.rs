//! Views that compute their entries themselves, of particles for example, in place of receiving cells.

use super::{ViewArray, ViewLayout};
use nestar_engine_step::{Engine, Error};
use nestar_snapshot::{DataType, Values};

/// A configured view that computes its entries. Its series has arrays, a list (ragged arrays), or both.
pub trait ComputedView: Send + Sync {
    /// Describes the arrays and their coordinates, which do not change during a run.
    fn layout(&self) -> ViewLayout {
        ViewLayout::default()
    }

    /// Describes the list.
    fn list(&self) -> Option<ViewList> {
        None
    }

    /// Computes an entry of the present state for the first rank; other ranks return `None`. Collective. The values must not depend on
    /// the number of ranks and threads.
    ///
    /// # Errors
    /// The device or another rank has failed; the entry cannot be computed.
    fn entry(&self, sim: &Engine) -> Result<Option<ComputedEntry>, Error>;
}

/// A list in a series of views: columns with one row for each object, such as a halo, stored as ragged arrays.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewList {
    /// Name of the dimension of the rows.
    pub dimension: String,
    /// Description of the number of rows.
    pub long_name: String,
    /// Columns.
    pub columns: Vec<ViewColumn>,
}

/// A column of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewColumn {
    /// Name, unit and description, and dimensions besides that of the rows.
    pub array: ViewArray,
    /// `true` for integers: they are stored with 64 bits.
    pub is_integer: bool,
}

impl ViewColumn {
    /// Returns the type of its values, if numbers have the type `numbers`.
    pub(super) fn data_type(&self, numbers: DataType) -> DataType {
        match self.is_integer {
            true => DataType::U64,
            false => numbers,
        }
    }
}

/// Values of an entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComputedEntry {
    /// Values of the arrays, in the order of the layout.
    pub arrays: Vec<Vec<f64>>,
    /// Values of the columns of the list: 64-bit numbers, or 64-bit integers.
    pub columns: Vec<Values>,
}
