//! Slices: the values of fields in the cells that a plane cuts.

use super::plane::{Plane, TILE, TileKey, pack_key, unpack_key};
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

/// Slice: values of the cells that a plane across an axis cuts, on a uniform grid with the cells of `level`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct SliceConfig {
    #[serde(flatten)]
    pub common: ViewConfig,
    /// Axis across the plane.
    pub axis: Axis,
    /// Position of the plane along the axis.
    #[schemars(extend("unit" = "length"))]
    pub position: f64,
}

impl ViewKind for SliceConfig {
    const NAME: &'static str = "slice";

    fn common(&self) -> &ViewConfig {
        &self.common
    }

    fn view(&self, context: &ViewContext) -> Result<ViewOutput, DeckError> {
        let axis = self.axis.number();
        context.require_inside("position", axis, self.position)?;
        let mut plane = Plane::new(context, self.axis);
        let cell = context.cell(plane.level, axis, self.position);
        if !(plane.cells[axis][0]..plane.cells[axis][1]).contains(&cell) {
            return Err(context.error("position", "must be in the region of the view"));
        }
        plane.cells[axis] = [cell, cell + 1];
        Ok(ViewOutput::series(Slice {
            plane,
            fields: context.fields()?,
        }))
    }
}

/// A slice.
struct Slice {
    plane: Plane,
    fields: Vec<Quantity>,
}

impl View for Slice {
    fn layout(&self) -> ViewLayout {
        let array = |own: &Quantity| (own.name.clone(), own.units.clone(), own.long_name.clone());
        self.plane.layout(self.fields.iter().map(array).collect())
    }

    fn quantities(&self) -> &[Quantity] {
        &self.fields
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
            weighted: false,
        })
    }

    fn factors(&self, level: usize, patch: [i32; 3]) -> [f64; PATCH] {
        let is_cut = |n: usize| self.plane.depth(level, patch, n) > 0;
        std::array::from_fn(|n| f64::from(u8::from(is_cut(n))))
    }

    fn place(&self, patch: [i32; 3]) -> u64 {
        self.plane.place(patch)
    }

    fn accumulator(&self) -> Box<dyn Accumulator + '_> {
        Box::new(SliceTiles {
            slice: self,
            tiles: BTreeMap::new(),
        })
    }
}

/// Values of a slice by tile, `[field][pixel]`.
struct SliceTiles<'a> {
    slice: &'a Slice,
    tiles: BTreeMap<TileKey, Vec<f64>>,
}

impl Accumulator for SliceTiles<'_> {
    fn add(&mut self, cells: &PatchCells) {
        let tile = self.slice.plane.tile(cells);
        self.tiles.insert(tile, cells.values.to_vec());
    }

    fn pack(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (key, values) in &self.tiles {
            pack_key(key, &mut bytes);
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
        bytes
    }

    fn join(&mut self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() {
            let key = unpack_key(&mut bytes)?;
            let values = bytes.split_off(..8 * TILE * self.slice.fields.len())?;
            let values = values
                .as_chunks()
                .0
                .iter()
                .map(|own| f64::from_le_bytes(*own));
            self.tiles.insert(key, values.collect());
        }
        Some(())
    }

    fn values(&self) -> Vec<Vec<f64>> {
        let plane = &self.slice.plane;
        let image = |field: usize| {
            // exactly one tile covers a pixel
            let value = |(values, pixel): &(&Vec<f64>, usize)| values[TILE * field + pixel];
            plane.image(&self.tiles, |tiles| tiles.first().map_or(f64::NAN, value))
        };
        (0..self.slice.fields.len()).map(image).collect()
    }
}
