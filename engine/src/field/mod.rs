//! Fields: what a plugin declares, where the values live, and what the engine derives from the declaration.

mod again;
pub mod attempts;
mod called;
mod calls;
mod cell_case;
mod cell_fault;
pub mod cells;
mod changes;
mod clocks;
mod columns;
mod components;
pub mod conserve;
mod copies;
mod derived;
pub mod device;
mod element;
pub(crate) mod faces;
pub mod faults;
pub(crate) mod held;
pub(crate) mod individuals;
mod items;
pub(crate) mod level;
mod list_text;
mod listed;
pub mod map;
pub mod marks;
mod numbers;
pub mod operations;
pub mod patches;
pub mod pieces;
pub mod pool;
mod reader;
pub mod reduce;
pub mod registers;
pub(crate) mod rules;
pub mod slab;
pub mod spec;
pub(crate) mod storage;
pub mod store;
mod stores;
mod structures;
mod taken;
mod tally;
pub mod totals;
pub mod transfer;
mod window;

pub use attempts::CellAttempt;
pub use cell_case::{Called, CellCase};
pub use cells::{CellMap, CellMark, CellSource, CellValue};
pub(crate) use columns::check as check_columns;
pub use columns::{ItemColumn, PatchPlace};
pub use components::Components;
pub use conserve::FaceMap;
pub use derived::{DerivedField, DerivedFields};
pub use element::Element;
pub use faults::{FaultBox, Reported};
pub use individuals::{ENTITY_BYTES, Individuals, Item, ItemEntities};
pub use items::{Above, ItemGroup, ItemKinds, Items, ItemsRef, Parcel, Refined, Shifts};
pub(crate) use level::{InParts, Queues};
pub use level::{LevelRows, LevelView};
pub use nestar_snapshot::DataType;
pub use numbers::Numbers;
pub use pieces::RowShape;
pub use pool::{Field, Pool};
pub use registers::{FineSide, Registers};
pub use rules::BeyondFn;
pub use slab::Slabs;
pub use spec::{Beyond, BoundaryRule, Component, Correct, FieldSpec, Prolong, Restrict};
pub use store::{BankOf, Store, Surroundings};
pub use stores::{Layers, StoreRef, Stores};
pub use tally::Tally;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Floating-point precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// 32 bits.
    Single,
    /// 64 bits.
    Double,
}

impl Precision {
    /// Bytes of a value.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Single => 4,
            Self::Double => 8,
        }
    }
}

/// Evaluates `$body` with `$R` for the type of values in `$precision`.
///
/// ```
/// use nestar_engine::{field::Precision, in_precision};
/// assert_eq!(in_precision!(Precision::Single, R => size_of::<R>()), 4);
/// ```
#[macro_export]
macro_rules! in_precision {
    ($precision:expr, $R:ident => $body:expr) => {
        match $precision {
            $crate::field::Precision::Single => {
                type $R = f32;
                $body
            }
            $crate::field::Precision::Double => {
                type $R = f64;
                $body
            }
        }
    };
}
