//! Defines the table `[mesh]` and its criteria `[[mesh.refine]]`.

use crate::declare::PerLevel;
use nestar_deck::{Deck, DeckError, deck};
use nestar_engine::step::config::MeshSettings;
use nestar_kernels::mesh::prolong::SlopeLimiter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Slope limiter of the prolongation.
#[deck]
pub enum ProlongationWord {
    /// Smallest one-sided difference.
    Minmod,
    /// Van Leer.
    VanLeer,
    /// Monotonized central.
    MonotonizedCentral,
}

impl From<ProlongationWord> for SlopeLimiter {
    fn from(word: ProlongationWord) -> Self {
        match word {
            ProlongationWord::Minmod => Self::Minmod,
            ProlongationWord::VanLeer => Self::VanLeer,
            ProlongationWord::MonotonizedCentral => Self::MonotonizedCentral,
        }
    }
}

/// A refinement criterion. `field` is the name of a field (`nestar list fields`), or a formula of such names and x, y, z,
/// r, t.
/// Thresholds are numbers or lists with one number per level, from level 0; the criterion does not refine levels beyond
/// the end of the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "criterion", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Criterion {
    /// Refines cells in which the field is above (or below) the threshold.
    Threshold {
        /// Field or formula.
        field: String,
        /// Threshold in the field's unit.
        #[schemars(extend("unit" = "of the field"))]
        threshold: PerLevel<f64>,
        /// Refines below instead of above the threshold.
        #[serde(default)]
        below: bool,
    },
    /// Refines cells in which the relative difference of the field to a neighbour exceeds the threshold.
    Gradient {
        /// Field or formula.
        field: String,
        /// Relative difference above which cells are refined.
        #[schemars(extend("minimum" = 0.0))]
        threshold: PerLevel<f64>,
    },
    /// Refines cells in which Löhner's (1987) estimate of the second derivative exceeds the threshold, as in FLASH.
    Lohner {
        /// Field or formula.
        field: String,
        /// Estimate above which cells are refined, 0 to 1.
        #[schemars(extend("minimum" = 0.0, "maximum" = 1.0))]
        threshold: PerLevel<f64>,
        /// Coefficient of the noise filter; larger values ignore larger ripples.
        #[serde(default = "filter")]
        #[schemars(range(min = 0.0, max = 1.0))]
        filter: f64,
    },
    /// Refines cells in which |curl v| times the cell width exceeds the threshold times |v|.
    Vorticity {
        /// Ratio above which cells are refined.
        #[schemars(extend("minimum" = 0.0))]
        threshold: PerLevel<f64>,
    },
    /// Refines cells in which |curl B| times the cell width exceeds the threshold times |B|; with a table `[mhd]`.
    Current {
        /// Ratio above which cells are refined.
        #[schemars(extend("minimum" = 0.0))]
        threshold: PerLevel<f64>,
        /// Least |B| in this comparison: where there is almost no field, round-off has a curl, too.
        #[serde(default)]
        #[schemars(extend("minimum" = 0.0, "unit" = "(mass/length)**0.5/time"))]
        least: f64,
    },
    /// Refines cells in which the Jeans length is resolved by fewer cells than the threshold.
    Jeans {
        /// Smallest number of cells per Jeans length.
        #[schemars(extend("exclusiveMinimum" = 0.0))]
        threshold: PerLevel<f64>,
        /// Gravitational constant in code units; default: that of the table `[gravity]`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length**3/(mass*time**2)"))]
        gravity: Option<f64>,
    },
    /// Refines cells that overlap a box.
    Box {
        /// Lower corner.
        #[schemars(extend("unit" = "length"))]
        left: [f64; 3],
        /// Upper corner.
        #[schemars(extend("unit" = "length"))]
        right: [f64; 3],
        /// Finest level requested in the box; default: the finest level of the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        level: Option<u32>,
    },
    /// Refines cells that overlap a sphere.
    Sphere {
        /// Centre.
        #[schemars(extend("unit" = "length"))]
        centre: [f64; 3],
        /// Radius.
        #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "length"))]
        radius: f64,
        /// Finest level requested in the sphere; default: the finest level of the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        level: Option<u32>,
    },
    /// Refines cells in which a formula of the fields, x, y, z, r, t, `level` and `width` (smallest width of the cell)
    /// is not 0.
    Formula {
        /// The condition.
        when: String,
    },
}

fn filter() -> f64 {
    0.01
}

/// The adaptive mesh.
#[deck]
pub struct MeshConfig {
    /// Finest refinement level; 0: uniform grid.
    #[key(default = 0, min = 0, max = 12)]
    pub max_level: u32,
    /// Finest level that is open: a formula of t and, with `[cosmology]`, of `scale_factor` and `redshift`, rounded down. A level that is not open
    /// gets no new patches and loses those it has. Default: `max_level`.
    pub open: Option<String>,
    /// Number of steps of a level between two regrids: a number, or one per level.
    #[key(default = PerLevel::Every(4))]
    #[schemars(extend("minimum" = 1))]
    pub regrid_interval: PerLevel<u32>,
    /// Width in cells of the buffer around a flagged cell that is refined too, 0 to 8: a number, or one per level.
    #[key(default = PerLevel::Every(4))]
    #[schemars(extend("minimum" = 0, "maximum" = 8, "unit" = "cell"))]
    pub flag_buffer: PerLevel<u32>,
    /// Slope limiter of the prolongation.
    #[key(default = ProlongationWord::MonotonizedCentral)]
    pub prolongation: ProlongationWord,
    /// Refinement criteria; a cell that meets any of them is refined.
    #[key(default = Vec::new())]
    pub refine: Vec<Criterion>,
}

impl MeshConfig {
    /// Returns the settings of the engine.
    ///
    /// # Errors
    /// A list is too short; a box has no volume.
    pub fn settings(&self, deck: &Deck) -> Result<MeshSettings, DeckError> {
        let levels = self.max_level as usize;
        let list = |key: &str, values: &PerLevel<u32>| -> Result<Vec<u32>, DeckError> {
            let missing = || format!("needs a number for each of the levels 0 to {}", levels - 1);
            let value = |level| {
                let value = values.at(level);
                value.ok_or_else(|| deck.error_at(&format!("mesh.{key}"), missing()))
            };
            (0..levels).map(value).collect()
        };
        let flag_buffer = list("flag_buffer", &self.flag_buffer)?;
        let regrid_interval = list("regrid_interval", &self.regrid_interval)?;
        for (n, criterion) in self.refine.iter().enumerate() {
            check_box(deck, n, criterion)?;
        }
        Ok(MeshSettings {
            max_level: levels,
            regrid_interval,
            flag_buffer,
        })
    }
}

fn check_box(deck: &Deck, n: usize, criterion: &Criterion) -> Result<(), DeckError> {
    let Criterion::Box { left, right, .. } = criterion else {
        return Ok(());
    };
    match (0..3).find(|&a| right[a] <= left[a]) {
        None => Ok(()),
        Some(a) => {
            let message = format!(
                "must lie above left along every axis, found {} after {}",
                right[a], left[a]
            );
            Err(deck.error_at(&format!("mesh.refine[{n}].right"), message))
        }
    }
}
