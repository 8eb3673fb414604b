//! Fields and particle sets: declaration, storage, and the operations that the engine derives from the declaration.

pub mod boundary;
mod cell_args;
mod cell_records;
mod cell_values;
mod circulations;
mod columns;
pub mod criteria;
pub mod device;
mod face_fluxes;
pub mod failure;
pub mod field_spec;
mod function_inputs;
pub mod iterate;
pub mod level;
pub mod operators;
mod parameters;
pub mod particle_entities;
mod particle_set;
pub mod patches;
pub mod pool;
mod prepare;
mod quantities;
pub mod reduce;
pub mod registers;
pub mod storage;
pub mod store;
mod stores;
pub mod transfer;
pub mod update;

pub use boundary::BoundaryFn;
pub use cell_args::{CellMap, CellMark, CellValue, require_cell_values};
pub use cell_records::{CellCollect, RecordOf, RecordedCell};
pub use cell_values::CellAddress;
pub use circulations::CirculationRegisters;
pub use columns::{ColumnSums, sum_columns};
pub use criteria::DerivedInputs;
pub use failure::{CellCallResult, CellCase, FaultBox, ReportedFault};
pub use field_spec::{
    BoundaryCondition, BoundaryRule, Component, Components, Correct, Element, FieldSpec,
    LeadingState, Prolong, Restrict,
};
pub use function_inputs::{CellSource, FieldList, FunctionInputs, InputList};
pub use iterate::CellSubcycle;
pub use level::{InitialEstimate, SubcycleQueues};
pub use level::{LevelRows, LevelView};
pub use nestar_snapshot::DataType;
pub use parameters::Parameters;
pub use particle_entities::{ENTITY_BYTES, ParticleEntities, ParticleEntityIndex, ParticleId};
pub use particle_set::check_columns;
pub use particle_set::{
    CoveringLeaf, MigrationBatch, ParticleColumn, ParticleGroup, ParticleKinds, ParticleSet,
    ParticleSetRef, PatchPlace, RefinedPatch, RemapOnRegrid,
};
pub use patches::{PatchEntity, Patches};
pub use pool::PoolResource;
pub use pool::{Field, Pool};
pub use quantities::{DerivedField, DerivedFields};
pub use reduce::{CellTotals, pairwise};
pub use registers::{FineSide, FluxRegisters, StageShare};
pub use storage::RowSlabs;
pub use store::{DevicePieces, LevelBank, MeshContext, Piece, RowShape, Store};
pub use stores::{HaloLayers, StoreRef, Stores};
pub use update::FaceMap;

use nestar_deck::deck;
use std::fmt;

/// Floating-point precision.
#[deck]
pub enum Precision {
    /// 32 bits.
    Single,
    /// 64 bits.
    Double,
}

impl Precision {
    /// Returns the size of a value in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Single => 4,
            Self::Double => 8,
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Single => "single",
            Self::Double => "double",
        })
    }
}

/// Evaluates `$body` with `$R` for the type of values in `$precision`.
///
/// ```
/// use nestar_engine_data::{Precision, in_precision};
/// assert_eq!(in_precision!(Precision::Single, R => size_of::<R>()), 4);
/// ```
#[macro_export]
macro_rules! in_precision {
    ($precision:expr, $R:ident => $body:expr) => {
        match $precision {
            $crate::Precision::Single => {
                type $R = f32;
                $body
            }
            $crate::Precision::Double => {
                type $R = f64;
                $body
            }
        }
    };
}
