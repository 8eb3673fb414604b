//! Lines and points: the values of fields in the cells that contain them.

use super::{
    Accumulator, PatchCells, Quantity, View, ViewArray, ViewConfig, ViewContext, ViewCoordinate,
    ViewKind, ViewLayout, ViewOutput,
};
use nestar_deck::DeckError;
use nestar_kernels::mesh::block::LevelGeometry;
use nestar_kernels::{CELLS, PATCH};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Largest number of points of a line whose number is not given.
const MAX_POINTS: f64 = 4096.0;

/// Line: values of fields at equidistant points between two positions, in the cells that contain them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct LineConfig {
    #[serde(flatten)]
    pub common: ViewConfig,
    /// Position of the first point.
    #[schemars(extend("unit" = "length"))]
    pub start: [f64; 3],
    /// Position of the last point.
    #[schemars(extend("unit" = "length"))]
    pub end: [f64; 3],
    /// Number of points; default: as many as the line has widths of the cells of `level`, 2 to 4096.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2, max = 65536))]
    pub points: Option<u32>,
}

impl ViewKind for LineConfig {
    const NAME: &'static str = "line";

    fn common(&self) -> &ViewConfig {
        &self.common
    }

    fn view(&self, context: &ViewContext) -> Result<ViewOutput, DeckError> {
        require_inside(context, "start", self.start)?;
        require_inside(context, "end", self.end)?;
        let across = [0, 1, 2].map(|a| self.end[a] - self.start[a]);
        let [x, y, z] = across.map(|d| d * d);
        let length = (x + y + z).sqrt();
        if length == 0.0 {
            return Err(context.error("end", "must differ from start"));
        }
        let width = context.domain.cell_width(context.level());
        let cells = length / width.into_iter().fold(f64::INFINITY, f64::min);
        let most = cells.ceil().clamp(2.0, MAX_POINTS) as u32;
        let last = f64::from(self.points.unwrap_or(most) - 1);
        let parts = (0..=last as u32).map(|n| f64::from(n) / last);
        let parts: Vec<f64> = parts.collect();
        let at = |part: &f64| [0, 1, 2].map(|a| self.start[a] + part * across[a]);
        let coordinate = ViewCoordinate {
            name: "distance".into(),
            units: Some("length".into()),
            long_name: "distance from the start".into(),
            values: parts.iter().map(|part| part * length).collect(),
        };
        let points: Vec<[f64; 3]> = parts.iter().map(at).collect();
        Samples::view(context, &points, vec![coordinate])
    }
}

/// Point: values of fields in the cell that contains a position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct PointConfig {
    #[serde(flatten)]
    pub common: ViewConfig,
    /// The position.
    #[schemars(extend("unit" = "length"))]
    pub position: [f64; 3],
}

impl ViewKind for PointConfig {
    const NAME: &'static str = "point";

    fn common(&self) -> &ViewConfig {
        &self.common
    }

    fn view(&self, context: &ViewContext) -> Result<ViewOutput, DeckError> {
        require_inside(context, "position", self.position)?;
        Samples::view(context, &[self.position], Vec::new())
    }
}

fn require_inside(context: &ViewContext, key: &str, at: [f64; 3]) -> Result<(), DeckError> {
    (0..3).try_for_each(|a| context.require_inside(&format!("{key}[{a}]"), a, at[a]))
}

/// Points at which fields are sampled.
struct Samples {
    fields: Vec<Quantity>,
    /// Dimension and coordinate of the points; none for a single one.
    coordinates: Vec<ViewCoordinate>,
    /// Cells of the finest level that contain the points.
    cells: Vec<[i64; 3]>,
    /// Numbers of the points in each patch, by level and index.
    patches: BTreeMap<(usize, [i32; 3]), Vec<usize>>,
    level: usize,
}

impl Samples {
    /// Creates the view of some points.
    fn view(
        context: &ViewContext,
        points: &[[f64; 3]],
        coordinates: Vec<ViewCoordinate>,
    ) -> Result<ViewOutput, DeckError> {
        if context.config.region.is_some() {
            return Err(context.error("region", "has no meaning for points"));
        }
        let level = context.level();
        let cell = |at: &[f64; 3]| [0, 1, 2].map(|a| context.cell(level, a, at[a]));
        let cells: Vec<[i64; 3]> = points.iter().map(cell).collect();
        let mut patches: BTreeMap<(usize, [i32; 3]), Vec<usize>> = BTreeMap::new();
        for (n, cell) in cells.iter().enumerate() {
            for own in 0..=level {
                let side = (PATCH << (level - own)) as i64;
                let patch = cell.map(|i| (i / side) as i32);
                patches.entry((own, patch)).or_default().push(n);
            }
        }
        Ok(ViewOutput::series(Self {
            fields: context.fields()?,
            coordinates,
            cells,
            patches,
            level,
        }))
    }
}

impl View for Samples {
    fn layout(&self) -> ViewLayout {
        let array = |own: &Quantity| ViewArray {
            name: own.name.clone(),
            dimensions: self
                .coordinates
                .iter()
                .map(|own| own.name.clone())
                .collect(),
            units: own.units.clone(),
            long_name: own.long_name.clone(),
        };
        ViewLayout {
            coordinates: self.coordinates.clone(),
            arrays: self.fields.iter().map(array).collect(),
        }
    }

    fn quantities(&self) -> &[Quantity] {
        &self.fields
    }

    fn finest(&self) -> usize {
        self.level
    }

    fn uses(&self, geometry: &LevelGeometry, patch: [i32; 3]) -> bool {
        self.patches.contains_key(&(geometry.level as usize, patch))
    }

    fn accumulator(&self) -> Box<dyn Accumulator + '_> {
        Box::new(SampledValues {
            samples: self,
            values: BTreeMap::new(),
        })
    }
}

/// Values of all fields by the number of the point.
struct SampledValues<'a> {
    samples: &'a Samples,
    values: BTreeMap<u64, Vec<f64>>,
}

impl Accumulator for SampledValues<'_> {
    fn add(&mut self, cells: &PatchCells) {
        let shift = self.samples.level - cells.level;
        let points = self.samples.patches.get(&(cells.level, cells.patch));
        for &n in points.into_iter().flatten() {
            let [i, j, k] = self.samples.cells[n].map(|i| (i >> shift) as usize % PATCH);
            let cell = i + PATCH * (j + PATCH * k);
            let fields = cells.values.chunks(CELLS);
            self.values
                .insert(n as u64, fields.map(|of| of[cell]).collect());
        }
    }

    fn pack(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (n, values) in &self.values {
            bytes.extend(n.to_le_bytes());
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
        bytes
    }

    fn join(&mut self, mut bytes: &[u8]) -> Option<()> {
        while let Some((n, rest)) = bytes.split_first_chunk::<8>() {
            bytes = rest;
            let values = bytes.split_off(..8 * self.samples.fields.len())?;
            let values = values
                .as_chunks()
                .0
                .iter()
                .map(|own| f64::from_le_bytes(*own));
            self.values.insert(u64::from_le_bytes(*n), values.collect());
        }
        bytes.is_empty().then_some(())
    }

    fn values(&self) -> Vec<Vec<f64>> {
        let value = |point: u64, field: usize| {
            let values = self.values.get(&point);
            values.map_or(f64::NAN, |values| values[field])
        };
        let of = |field: usize| {
            let points = 0..self.samples.cells.len() as u64;
            points.map(|point| value(point, field)).collect()
        };
        (0..self.samples.fields.len()).map(of).collect()
    }
}
