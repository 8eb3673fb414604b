//! Projections: integrals of fields along an axis, or means along it weighted by a field.

use super::plane::{Plane, TILE, TileKey, pack_key, unpack_key};
use super::sums::OrderlessSum;
use super::{
    Accumulator, Axis, PatchCells, Quantity, View, ViewColumns, ViewConfig, ViewContext, ViewKind,
    ViewLayout, ViewOutput,
};
use nestar_deck::DeckError;
use nestar_kernels::PATCH;
use nestar_kernels::mesh::block::LevelGeometry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Projection: integral of fields along an axis through the region, on a uniform grid with the cells of `level`; with `weight`, the
/// mean of fields along the axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct ProjectionConfig {
    #[serde(flatten)]
    pub common: ViewConfig,
    /// Axis of the projection.
    pub axis: Axis,
    /// Field or formula by which values are weighted: the array holds their mean. Without it, it holds their integral.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
}

impl ViewKind for ProjectionConfig {
    const NAME: &'static str = "projection";

    fn common(&self) -> &ViewConfig {
        &self.common
    }

    fn view(&self, context: &ViewContext) -> Result<ViewOutput, DeckError> {
        let plane = Plane::new(context, self.axis);
        let mut quantities = context.fields()?;
        let fields = quantities.len();
        if let Some(weight) = &self.weight {
            quantities.push(context.quantity("weight", "weight", weight)?);
        }
        let width = context.domain.cell_width(plane.level)[plane.axis];
        Ok(ViewOutput::series(Projection {
            plane,
            quantities,
            fields,
            width,
        }))
    }
}

/// A projection.
struct Projection {
    plane: Plane,
    /// The fields, then the weight if there is one.
    quantities: Vec<Quantity>,
    fields: usize,
    /// Width along the axis of the cells of the pixels' level.
    width: f64,
}

impl Projection {
    fn weight(&self) -> Option<&Quantity> {
        self.quantities.get(self.fields)
    }
}

impl View for Projection {
    fn layout(&self) -> ViewLayout {
        let array = |own: &Quantity| {
            let (units, long_name) = match self.weight() {
                Some(weight) => (
                    own.units.clone(),
                    format!("{}, mean weighted by {}", own.long_name, weight.long_name),
                ),
                None => (
                    own.units.as_ref().map(|units| along_length(units)),
                    format!("{}, integral", own.long_name),
                ),
            };
            (own.name.clone(), units, long_name)
        };
        let fields = &self.quantities[..self.fields];
        self.plane.layout(fields.iter().map(array).collect())
    }

    fn quantities(&self) -> &[Quantity] {
        &self.quantities
    }

    fn finest(&self) -> usize {
        self.plane.level
    }

    fn uses(&self, geometry: &LevelGeometry, patch: [i32; 3]) -> bool {
        self.plane.uses(geometry.level as usize, patch)
    }

    fn columns(&self) -> Option<ViewColumns> {
        Some(ViewColumns {
            axis: self.plane.axis,
            weighted: self.weight().is_some(),
        })
    }

    fn factors(&self, level: usize, patch: [i32; 3]) -> [f64; PATCH] {
        std::array::from_fn(|n| self.plane.depth(level, patch, n) as f64 * self.width)
    }

    fn place(&self, patch: [i32; 3]) -> u64 {
        self.plane.place(patch)
    }

    fn accumulator(&self) -> Box<dyn Accumulator + '_> {
        Box::new(ProjectionTiles {
            projection: self,
            tiles: BTreeMap::new(),
        })
    }
}

/// Returns the unit of an integral along a length.
fn along_length(units: &str) -> String {
    match units {
        "1" => "length".into(),
        _ => format!("{units}*length"),
    }
}

/// Sums of a projection by tile, `[quantity][pixel]`.
struct ProjectionTiles<'a> {
    projection: &'a Projection,
    tiles: BTreeMap<TileKey, Vec<OrderlessSum>>,
}

impl Accumulator for ProjectionTiles<'_> {
    fn add(&mut self, cells: &PatchCells) {
        let plane = &self.projection.plane;
        let empty = || vec![OrderlessSum::default(); cells.values.len()];
        let sums = self.tiles.entry(plane.tile(cells)).or_insert_with(empty);
        (sums.iter_mut().zip(cells.values)).for_each(|(sum, x)| sum.add(*x));
    }

    fn pack(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (key, sums) in &self.tiles {
            pack_key(key, &mut bytes);
            sums.iter().for_each(|sum| sum.pack(&mut bytes));
        }
        bytes
    }

    fn join(&mut self, mut bytes: &[u8]) -> Option<()> {
        let count = TILE * self.projection.quantities.len();
        while !bytes.is_empty() {
            let key = unpack_key(&mut bytes)?;
            let sums = bytes.split_off(..OrderlessSum::BYTES * count)?;
            let sums = sums.as_chunks().0.iter().map(OrderlessSum::unpack);
            let empty = || vec![OrderlessSum::default(); count];
            let own = self.tiles.entry(key).or_insert_with(empty);
            own.iter_mut()
                .zip(sums)
                .for_each(|(own, sum)| own.merge(&sum));
        }
        Some(())
    }

    fn values(&self) -> Vec<Vec<f64>> {
        let Projection { plane, fields, .. } = self.projection;
        let sum = |tiles: &[(&Vec<OrderlessSum>, usize)], quantity: usize| {
            let mut sum = OrderlessSum::default();
            for (tile, pixel) in tiles {
                sum.merge(&tile[TILE * quantity + pixel]);
            }
            sum.value()
        };
        let image = |field: usize| {
            plane.image(&self.tiles, |tiles| match self.projection.weight() {
                Some(_) => sum(tiles, field) / sum(tiles, *fields),
                None => sum(tiles, field),
            })
        };
        (0..*fields).map(image).collect()
    }
}
