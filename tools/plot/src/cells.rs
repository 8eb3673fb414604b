//! Reading of the cells that a picture shows, a number of patches at a time.

use crate::error::{PlotError, Result};
use crate::field::{CellPlaces, PlotField};
use nestar_snapshot::{LEAF, LevelHeader, ORIGIN, PATCH_SIZE, Snapshot, Values};
use rayon::prelude::*;
use std::ops::Range;

/// Number of cells of a patch along an axis.
pub(crate) const PATCH: usize = PATCH_SIZE as usize;
/// Number of cells of a patch.
pub(crate) const CELLS: usize = PATCH * PATCH * PATCH;
/// Number of patches read at a time.
const PATCHES_PER_CHUNK: usize = 1024;
/// Number of patches that are summed together. It fixes the order of summation, so that sums do not depend on the number of threads.
const PATCHES_PER_PART: usize = 128;

/// Patches of one level with the values of fields.
pub(crate) struct Chunk<'a> {
    /// The level.
    pub level: &'a LevelHeader,
    /// Lower corner of the domain.
    pub low: [f64; 3],
    /// First cell of each patch.
    pub origins: &'a [[i32; 3]],
    /// Values of each field, patch by patch, `[z][y][x]`.
    pub values: Vec<&'a [f64]>,
}

impl Chunk<'_> {
    /// Returns the lower corner of a patch.
    pub fn corner(&self, patch: usize) -> [f64; 3] {
        let origin = self.origins[patch];
        std::array::from_fn(|i| self.low[i] + f64::from(origin[i]) * self.level.cell_width[i])
    }

    /// Returns the values of a field in a patch.
    pub fn patch(&self, field: usize, patch: usize) -> &[f64] {
        &self.values[field][patch * CELLS..][..CELLS]
    }

    /// Returns the volume of a cell.
    pub fn volume(&self) -> f64 {
        self.level.cell_width.iter().product()
    }

    /// Returns parts of the patches, whose sums may be formed in parallel and added in order.
    pub fn parts(&self) -> Vec<Range<usize>> {
        let count = self.origins.len();
        let first = (0..count).step_by(PATCHES_PER_PART);
        first
            .map(|i| i..(i + PATCHES_PER_PART).min(count))
            .collect()
    }

    /// Calls `work` with each cell of some patches: the centre, and the cell's place among the values of each field.
    pub fn for_each_cell(&self, patches: Range<usize>, mut work: impl FnMut([f64; 3], usize)) {
        let width = self.level.cell_width;
        for patch in patches {
            let corner = self.corner(patch);
            for cell in 0..CELLS {
                let index = [cell % PATCH, cell / PATCH % PATCH, cell / PATCH / PATCH];
                let centre = |i: usize| corner[i] + (index[i] as f64 + 0.5) * width[i];
                work(std::array::from_fn(centre), patch * CELLS + cell);
            }
        }
    }
}

/// Patches of one level: their numbers and first cells.
#[derive(Default)]
pub(crate) struct Selection {
    pub patches: Vec<u64>,
    pub origins: Vec<[i32; 3]>,
}

/// Selects the patches of a level that are drawn, leaves (on the finest level drawn, all patches), of those that are wanted.
pub(crate) fn select(
    snapshot: &Snapshot,
    header: &LevelHeader,
    finest: u8,
    wanted: impl Fn([i32; 3]) -> bool,
) -> Result<Selection> {
    let leaf = snapshot.read(header.level, LEAF)?;
    let Values::I32(origins) = snapshot.read(header.level, ORIGIN)? else {
        return Err(PlotError::Option(
            "the snapshot's patch origins are not integers".to_string(),
        ));
    };
    let mut selection = Selection::default();
    for (patch, origin) in origins.as_chunks::<3>().0.iter().enumerate() {
        let visible = leaf.bytes()[patch] == 1 || header.level == finest;
        if visible && wanted(*origin) {
            selection.patches.push(patch as u64);
            selection.origins.push(*origin);
        }
    }
    Ok(selection)
}

/// Calls `work` with the values of fields on the selected patches of a level, chunk by chunk.
pub(crate) fn for_each_chunk(
    snapshot: &Snapshot,
    fields: &[&PlotField],
    level: &LevelHeader,
    selection: &Selection,
    mut work: impl FnMut(&Chunk),
) -> Result<()> {
    let mut names: Vec<String> = vec![];
    let places: Vec<Vec<usize>> = fields.iter().map(|f| f.places_among(&mut names)).collect();
    let patches = selection.patches.chunks(PATCHES_PER_CHUNK);
    for (patches, origins) in patches.zip(selection.origins.chunks(PATCHES_PER_CHUNK)) {
        let read = |array: &String| {
            Ok(snapshot
                .read_selected(level.level, array, patches)?
                .into_f64())
        };
        let arrays: Vec<Vec<f64>> = names.iter().map(read).collect::<Result<_>>()?;
        let evaluate = |(field, places): (&&PlotField, &Vec<usize>)| {
            let mut values = vec![0.0; patches.len() * CELLS];
            let parts = values.par_chunks_mut(PATCHES_PER_PART * CELLS);
            parts.enumerate().for_each(|(part, out)| {
                let first = part * PATCHES_PER_PART;
                let own = places.iter().map(|&place| &arrays[place][first * CELLS..]);
                let cells = CellPlaces {
                    level: level.level,
                    low: snapshot.attributes().domain_left_edge,
                    width: level.cell_width,
                    origins: &origins[first..],
                };
                field.evaluate(cells, &own.collect::<Vec<_>>(), out);
            });
            values
        };
        let values: Vec<Vec<f64>> = fields.iter().zip(&places).map(evaluate).collect();
        work(&Chunk {
            level,
            low: snapshot.attributes().domain_left_edge,
            origins,
            values: values.iter().map(|values| &values[..]).collect(),
        });
    }
    Ok(())
}

/// Calls `work` with the values of fields on all leaf patches (on the finest level, all patches) that are wanted, level by level.
pub(crate) fn for_each_leaf(
    snapshot: &Snapshot,
    fields: &[&PlotField],
    max_level: Option<u8>,
    wanted: impl Fn(&LevelHeader, [i32; 3]) -> bool,
    mut work: impl FnMut(&Chunk),
) -> Result<()> {
    let finest = max_level.unwrap_or(u8::MAX);
    for level in snapshot.levels().filter(|level| level.level <= finest) {
        let selection = select(snapshot, level, finest, |origin| wanted(level, origin))?;
        for_each_chunk(snapshot, fields, level, &selection, &mut work)?;
    }
    Ok(())
}

/// Returns the centre of the cell with the largest value of a field, the first one of several.
pub(crate) fn position_of_maximum(
    snapshot: &Snapshot,
    field: &PlotField,
    max_level: Option<u8>,
) -> Result<[f64; 3]> {
    let mut best: Option<(f64, [f64; 3])> = None;
    for_each_leaf(
        snapshot,
        &[field],
        max_level,
        |_, _| true,
        |chunk| {
            let largest = |patch: usize| {
                let values = chunk
                    .patch(0, patch)
                    .iter()
                    .copied()
                    .filter(|v| v.is_finite());
                values.fold(f64::NEG_INFINITY, f64::max)
            };
            let found = (0..chunk.origins.len()).map(largest).enumerate();
            let found = found.reduce(|a, b| if b.1 > a.1 { b } else { a });
            let Some((patch, value)) = found.filter(|(_, value)| *value > f64::NEG_INFINITY) else {
                return;
            };
            if best.is_none_or(|(old, _)| value > old) {
                let base = patch * CELLS;
                chunk.for_each_cell(patch..patch + 1, |centre, cell| {
                    let is_first = best.is_none_or(|(old, _)| value > old);
                    if is_first && chunk.patch(0, patch)[cell - base] == value {
                        best = Some((value, centre));
                    }
                });
            }
        },
    )?;
    best.map(|(_, centre)| centre).ok_or_else(|| {
        let text = format!(
            "--centre max: {} has no finite value; give X,Y,Z",
            field.name
        );
        PlotError::Option(text)
    })
}
