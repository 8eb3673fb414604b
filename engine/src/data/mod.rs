//! Fields: what a plugin declares, where the values live, and what the engine derives from the declaration.

mod again;
pub mod attempts;
pub(crate) mod boundary;
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
pub mod criteria;
mod derived;
pub mod device;
mod element;
pub mod faults;
mod held;
mod items;
pub(crate) mod level;
mod list_text;
mod listed;
pub mod map;
pub mod new_patches;
mod numbers;
pub mod operators;
pub(crate) mod particle_entities;
pub mod pieces;
pub mod pool;
mod reader;
pub mod reduce;
pub mod registers;
pub mod slab;
pub mod spec;
pub(crate) mod staggered;
pub(crate) mod storage;
pub mod store;
mod stores;
mod structures;
mod taken;
mod tally;
pub mod totals;
pub mod transfer;
mod window;

pub use attempts::CellSubcycle;
pub use boundary::BoundaryFn;
pub use cell_case::{CellCallResult, CellCase};
pub use cells::{CellMap, CellMark, CellSource, CellValue};
pub(crate) use columns::check as check_columns;
pub use columns::{ParticleColumn, PatchPlace};
pub use components::Components;
pub use conserve::FaceMap;
pub use derived::{DerivedField, DerivedFields};
pub use element::Element;
pub use faults::{FaultBox, ReportedFault};
pub(crate) use held::PoolResource;
pub use items::{
    CoveringLeaf, MigrationBatch, ParticleGroup, ParticleKinds, ParticleSet, ParticleSetRef,
    RefinedPatch, RemapOnRegrid,
};
pub(crate) use level::{InitialEstimate, SubcycleQueues};
pub use level::{LevelRows, LevelView};
pub use nestar_snapshot::DataType;
pub use numbers::DerivedInputs;
pub use particle_entities::{ENTITY_BYTES, ParticleEntities, ParticleEntityIndex, ParticleId};
pub use pieces::{DevicePieces, Piece, RowShape};
pub use pool::{Field, Pool};
pub use registers::{FineSide, FluxRegisters};
pub use slab::RowSlabs;
pub use spec::{BoundaryCondition, BoundaryRule, Component, Correct, FieldSpec, Prolong, Restrict};
pub use store::{LevelBank, MeshContext, Store};
pub use stores::{HaloLayers, StoreRef, Stores};
pub use tally::CellTotals;
pub(crate) use totals::pairwise;

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
            $crate::data::Precision::Single => {
                type $R = f32;
                $body
            }
            $crate::data::Precision::Double => {
                type $R = f64;
                $body
            }
        }
    };
}
