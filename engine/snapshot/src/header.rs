//! Headers of a snapshot and its parts, independent of the physics.

use crate::{Result, SnapshotError};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Cells of a patch along each axis.
pub const PATCH_SIZE: u64 = 8;
/// Name of the array with the global index of each patch's first cell: `[patch][axis]`, i32, order x y z.
pub const ORIGIN: &str = "origin";
/// Name of the array that marks patches without children: `[patch]`, u8, 0 or 1.
pub const LEAF: &str = "leaf";

/// The precision of the run's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoredPrecision {
    /// 32-bit floating point.
    Single,
    /// 64-bit floating point.
    Double,
}

/// Code units in cgs; all 1 for a dimensionless run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CgsUnits {
    /// Centimetres in one code length.
    pub length_cgs: f64,
    /// Grams in one code mass.
    pub mass_cgs: f64,
    /// Seconds in one code time.
    pub time_cgs: f64,
    /// The name of the unit system, e.g. `"dimensionless"`.
    pub name: String,
    /// `true` if the units change during the run; these are the units at the time of the snapshot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_changing: bool,
}

/// Attributes of a snapshot; floats are finite, lengths and times in code units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attributes {
    /// Simulation time of level 0; all levels are synchronised in a snapshot.
    pub time: f64,
    /// Root steps taken.
    pub step: u64,
    /// Lower corner of the domain: x, y, z.
    pub domain_left_edge: [f64; 3],
    /// Upper corner of the domain: x, y, z.
    pub domain_right_edge: [f64; 3],
    /// Cells of level 0 along x, y, z.
    pub root_cells: [u64; 3],
    /// Per axis, the lower and the upper boundary condition.
    pub boundary: Value,
    /// Precision of the fields.
    pub precision: StoredPrecision,
    /// Code units in cgs.
    pub units: CgsUnits,
    /// Additional numbers about the run; each is an attribute.
    #[serde(flatten, deserialize_with = "facts")]
    pub facts: BTreeMap<String, f64>,
    /// The text of the resolved deck.
    pub config: String,
    /// Name of the view that wrote the snapshot, with chosen fields and patches; `None` for the state of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
    /// What the program needs besides fields for a bitwise restart; opaque here. Exact floats are best stored
    /// as hexadecimal strings.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub restart: Map<String, Value>,
}

/// Collects the additional numbers among the root attributes: those with a fraction or an exponent.
fn facts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<BTreeMap<String, f64>, D::Error> {
    let attributes = Map::deserialize(deserializer)?;
    let facts = attributes.iter().filter(|(_, value)| value.is_f64());
    Ok(facts
        .filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)))
        .collect())
}

/// The attributes of one refinement level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelHeader {
    /// The level; 0 is the root.
    pub level: u8,
    /// Time of the level, code units.
    pub time: f64,
    /// Latest time step of the level, code units.
    pub dt: f64,
    /// Width of a cell along x, y, z, code length.
    pub cell_width: [f64; 3],
    /// Number of patches.
    pub patches: u64,
}

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataType {
    /// 32-bit floating point.
    F32,
    /// 64-bit floating point.
    F64,
    /// 32-bit signed integer.
    I32,
    /// 8-bit unsigned integer.
    U8,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
}

impl DataType {
    /// Returns the name in Zarr metadata, such as `"float64"`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::I32 => "int32",
            Self::U8 => "uint8",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
        }
    }

    /// Returns the type with this name in Zarr metadata, if it is supported.
    pub fn from_name(name: &str) -> Option<Self> {
        use DataType::{F32, F64, I32, U8, U32, U64};
        let mut all = [F32, F64, I32, U8, U32, U64].into_iter();
        all.find(|data_type| data_type.name() == name)
    }

    /// Returns the bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::U64 => 8,
        }
    }
}

/// Describes an array of a level or of a kind of particles: `[patch]` or `[particle]` followed by `shape`.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldHeader {
    /// Name: letters, digits and `_`.
    pub name: String,
    /// Element type.
    pub data_type: DataType,
    /// Names of the dimensions after the first, e.g. `z`, `y`, `x`.
    pub dimensions: Vec<String>,
    /// Lengths of the dimensions after the first, at least 1 each.
    pub shape: Vec<u64>,
    /// Unit in code units, e.g. `"mass/length**3"`.
    pub units: String,
    /// Value of one code unit in cgs.
    pub cgs_factor: f64,
    /// Unit in cgs, such as `g/cm**3`, of numbers times this factor; `1` for pure numbers and in runs without units.
    pub cgs_units: String,
    /// Power of the run's scale factor in `cgs_factor`; `None` if the units of the run are constant, or this one is not known.
    pub scale_factor_exponent: Option<f64>,
    /// Description, such as `"momentum along x"`.
    pub long_name: String,
    /// `true` if the values follow from other arrays; digests and restarts ignore them.
    pub derived: bool,
}

impl FieldHeader {
    /// Describes a cell-centred field: dimensions `patch, z, y, x`.
    pub fn cells(
        name: &str,
        data_type: DataType,
        units: &str,
        cgs_factor: f64,
        long_name: &str,
    ) -> Self {
        Self {
            name: name.to_string(),
            data_type,
            dimensions: ["z", "y", "x"].map(String::from).to_vec(),
            shape: vec![PATCH_SIZE; 3],
            units: units.to_string(),
            cgs_factor,
            cgs_units: "1".into(),
            scale_factor_exponent: None,
            long_name: long_name.to_string(),
            derived: false,
        }
    }

    /// Marks the array as derived from others.
    #[must_use]
    pub fn derived(self) -> Self {
        Self {
            derived: true,
            ..self
        }
    }

    /// Changes the number of cells per axis to `side`; dimensions are then named like `x_4`, except for 8.
    #[must_use]
    pub fn of_side(self, side: u64) -> Self {
        let mut header = self;
        if side != PATCH_SIZE {
            header
                .dimensions
                .iter_mut()
                .for_each(|name| *name = format!("{name}_{side}"));
            header.shape = vec![side; 3];
        }
        header
    }

    /// Staggers the field along the axes (x y z) that `staggered` selects. These have one more value, and
    /// dimensions like `x_face`.
    #[must_use]
    pub fn on_sides(self, staggered: [bool; 3]) -> Self {
        let mut header = self;
        for (axis, _) in staggered.iter().enumerate().filter(|(_, on)| **on) {
            header.dimensions[2 - axis].push_str("_face");
            header.shape[2 - axis] += 1;
        }
        header
    }

    /// Describes the array [`ORIGIN`] of every level.
    pub(crate) fn origin() -> Self {
        Self {
            dimensions: vec!["axis".to_string()],
            shape: vec![3],
            ..Self::cells(
                ORIGIN,
                DataType::I32,
                "cell",
                1.0,
                "global index of the first cell, x y z",
            )
        }
    }

    /// Describes the array [`LEAF`] of every level.
    pub(crate) fn leaf() -> Self {
        Self {
            dimensions: vec![],
            shape: vec![],
            ..Self::cells(
                LEAF,
                DataType::U8,
                "1",
                1.0,
                "1 where the patch has no children",
            )
        }
    }

    /// Returns `true` if the field has one value per cell.
    pub fn is_per_cell(&self) -> bool {
        self.dimensions == ["z", "y", "x"]
    }

    /// Returns the number of values per patch or particle.
    pub fn values_per_patch(&self) -> usize {
        self.shape.iter().product::<u64>() as usize
    }

    /// Rejects names, shapes and factors that the format does not support.
    pub(crate) fn validate(&self) -> Result<()> {
        let complaint = if !is_name(&self.name) {
            "a name has letters, digits and `_` only"
        } else if self.dimensions.len() != self.shape.len() || self.shape.contains(&0) {
            "every dimension needs a name and a length of at least 1"
        } else if !self.cgs_factor.is_finite() {
            "`cgs_factor` must be finite"
        } else {
            return Ok(());
        };
        Err(SnapshotError::Request(format!(
            "field {:?}: {complaint}",
            self.name
        )))
    }
}

/// Returns `true` for a non-empty name of letters, digits and `_`.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Describes a level for the writer: its header and fields, without [`ORIGIN`] and [`LEAF`], which every
/// level has.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelPlan {
    /// The level's attributes.
    pub header: LevelHeader,
    /// The level's fields.
    pub fields: Vec<FieldHeader>,
}

/// Groups whose arrays are blobs.
pub const BLOB_GROUPS: [&str; 2] = ["components", "state"];

/// Describes a kind of particles: the attributes of its group.
///
/// The group has arrays with one row per particle, sorted by level, Hilbert order of the patch and identity. Each level has an
/// array with the number of particles per patch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParticlesHeader {
    /// Path in the snapshot, such as `particles/stars`: a group and a name, which consist of letters, digits
    /// and `_`.
    #[serde(skip)]
    pub path: String,
    /// Number of particles.
    pub count: u64,
    /// Version of the meaning of the arrays, set by their owner.
    pub version: u32,
}

impl ParticlesHeader {
    /// Returns the name of the array of each level with the number of particles per patch: `[patch]`, u32.
    #[must_use]
    pub fn counts(&self) -> String {
        Self::counts_of(&self.path)
    }

    /// Returns this name for the kind at `path`.
    #[must_use]
    pub fn counts_of(path: &str) -> String {
        path.replace('/', "_")
    }

    /// Returns the header of this array.
    pub(crate) fn counts_header(&self) -> FieldHeader {
        let long_name = format!("number of {} in the patch", self.path);
        FieldHeader {
            dimensions: vec![],
            shape: vec![],
            ..FieldHeader::cells(&self.counts(), DataType::U32, "1", 1.0, &long_name)
        }
    }

    /// Rejects paths that the format does not support.
    pub(crate) fn validate(&self) -> Result<()> {
        let is_free = |group: &str| !BLOB_GROUPS.contains(&group) && !group.starts_with("level_");
        match self.path.split_once('/') {
            Some((group, name)) if is_name(group) && is_free(group) && is_name(name) => Ok(()),
            _ => Err(SnapshotError::Request(format!(
                "particles {:?}: the path must be a group (none of {BLOB_GROUPS:?} and no level), `/`, and a name, each of letters, digits \
                 and `_`",
                self.path
            ))),
        }
    }
}

/// Describes a kind of particles for the writer.
#[derive(Clone, Debug, PartialEq)]
pub struct ParticlesPlan {
    /// Attributes of the group.
    pub header: ParticlesHeader,
    /// Name of the first dimension of the arrays, such as `particle`.
    pub dimension: String,
    /// The arrays.
    pub columns: Vec<FieldHeader>,
}
