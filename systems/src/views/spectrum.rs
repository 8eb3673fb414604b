//! Power spectra of fields in a periodic box.

use super::matter_spectrum::MatterSpectrum;
use super::overdensity::Grid;
use crate::spectral::power_by_shell;
use nestar_deck::{DeckError, formula_units};
use nestar_engine::run::views::{
    Accumulator, PatchCells, Quantity, View, ViewArray, ViewConfig, ViewContext, ViewCoordinate,
    ViewKind, ViewLayout, ViewOutput,
};
use nestar_kernels::mesh::block::LevelGeometry;
use nestar_kernels::{CELLS, PATCH};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest number of cells along an axis if `level` is not given.
const CELLS_ALONG: i64 = 512;
/// Largest number of cells of the grid.
const MOST_CELLS: i64 = 1 << 30;

/// Spectrum: power of fields or particles by wave number, on the uniform grid of `level`, in a periodic box. The integral of that of a
/// field over the wave number is its variance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct SpectrumConfig {
    #[serde(flatten)]
    pub common: ViewConfig,
    /// Species of particles in place of fields, or `matter` for all particles with mass and gas. Their spectra are those of the
    /// overdensity, with clouds as wide as a cell of `level` (default: the root level).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub species: Vec<String>,
    /// With `species`: take the mean of two grids that are displaced by half a cell.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interlaced: bool,
}

impl ViewKind for SpectrumConfig {
    const NAME: &'static str = "spectrum";

    fn common(&self) -> &ViewConfig {
        &self.common
    }

    fn view(&self, context: &ViewContext) -> Result<ViewOutput, DeckError> {
        if self.common.region.is_some() {
            return Err(context.error("region", "has no meaning for a spectrum of the whole box"));
        }
        if context.domain.periodic != [true; 3] {
            let path = context.path;
            let message =
                format!("`{path}`: a spectrum needs a box that is periodic along all axes");
            return Err(context.deck.error_at(path, message));
        }
        let has_species = !self.species.is_empty();
        if has_species && !self.common.fields.is_empty() {
            let why = "has no meaning together with `species`: give another view of the fields";
            return Err(context.error("fields", why));
        }
        if self.interlaced && !has_species {
            return Err(context.error("interlaced", "needs the key `species`: remove it"));
        }
        let level = match has_species {
            true => self.common.level.unwrap_or(0) as usize,
            false => context.grid_level(CELLS_ALONG),
        };
        let cells = context.domain.cells(level);
        if cells.iter().map(|&n| i64::from(n)).product::<i64>() > MOST_CELLS {
            let why = format!(
                "has {} x {} x {} cells in the box, too many for a spectrum: set a lower level",
                cells[0], cells[1], cells[2]
            );
            return Err(context.error("level", &why));
        }
        let [left, right] = [context.domain.left_edge, context.domain.right_edge];
        let lengths = [0, 1, 2].map(|a| right[a] - left[a]);
        let cells = cells.map(|n| n as usize);
        if has_species {
            let grid = Grid {
                left,
                lengths,
                cells,
                interlaced: self.interlaced,
            };
            let view = MatterSpectrum::new(context, &self.species, grid)?;
            return Ok(ViewOutput::computed(view));
        }
        Ok(ViewOutput::series(Spectrum {
            fields: context.fields()?,
            level,
            cells,
            lengths,
        }))
    }
}

/// A spectrum.
struct Spectrum {
    fields: Vec<Quantity>,
    level: usize,
    /// Cells of the box on this level.
    cells: [usize; 3],
    /// Lengths of the box.
    lengths: [f64; 3],
}

impl Spectrum {
    /// Returns the length of the longest axis: its period has the smallest wave number.
    fn longest(&self) -> f64 {
        self.lengths.into_iter().fold(0.0, f64::max)
    }

    /// Returns the shell of a mode: its wave number in units of the smallest one, rounded.
    fn shell(&self, wave: [i64; 3]) -> usize {
        let longest = self.longest();
        let [x, y, z] = [0, 1, 2].map(|a| {
            let k = wave[a] as f64 * (longest / self.lengths[a]);
            k * k
        });
        (x + y + z).sqrt().round() as usize
    }

    /// Returns the number of shells, including that of the mean.
    fn shells(&self) -> usize {
        self.shell(self.cells.map(|n| n as i64 / 2)) + 1
    }

    /// Returns the smallest wave number, which is the width of a shell.
    fn wavenumber(&self) -> f64 {
        std::f64::consts::TAU / self.longest()
    }
}

impl View for Spectrum {
    fn layout(&self) -> ViewLayout {
        let wavenumber = ViewCoordinate {
            name: "wavenumber".into(),
            units: Some("1/length".into()),
            long_name: "wave number, 2 pi over the wavelength".into(),
            values: (1..self.shells())
                .map(|shell| shell as f64 * self.wavenumber())
                .collect(),
        };
        let array = |own: &Quantity| {
            let units = own.units.as_deref();
            ViewArray {
                name: own.name.clone(),
                dimensions: vec![wavenumber.name.clone()],
                units: units.and_then(|own| formula_units("a*a*l", &[("a", own), ("l", "length")])),
                long_name: format!("{}, power per wave number", own.long_name),
            }
        };
        let arrays = self.fields.iter().map(array).collect();
        ViewLayout {
            coordinates: vec![wavenumber],
            arrays,
        }
    }

    fn quantities(&self) -> &[Quantity] {
        &self.fields
    }

    fn finest(&self) -> usize {
        self.level
    }

    fn uses(&self, _: &LevelGeometry, _: [i32; 3]) -> bool {
        true
    }

    fn accumulator(&self) -> Box<dyn Accumulator + '_> {
        Box::new(GridPatches {
            spectrum: self,
            patches: Vec::new(),
            values: Vec::new(),
        })
    }
}

/// Values of a spectrum by patch.
struct GridPatches<'a> {
    spectrum: &'a Spectrum,
    /// Level and index of each patch.
    patches: Vec<(u8, [i32; 3])>,
    /// `[patch][field][512]`.
    values: Vec<f64>,
}

/// Bytes of the level and the index of a patch.
const KEY: usize = 13;

impl GridPatches<'_> {
    /// Returns a field on the grid, x fastest.
    fn grid(&self, field: usize) -> Vec<f64> {
        let [nx, ny, nz] = self.spectrum.cells;
        let mut grid = vec![f64::NAN; nx * ny * nz];
        let fields = self.spectrum.fields.len();
        let blocks = self.values.chunks(CELLS).skip(field).step_by(fields);
        for (&(level, patch), values) in self.patches.iter().zip(blocks) {
            let side = 1 << (self.spectrum.level - usize::from(level));
            let [i, j, k] = patch.map(|n| n as usize * PATCH * side);
            for z in 0..PATCH * side {
                for y in 0..PATCH * side {
                    let row = &mut grid[i + nx * (j + y + ny * (k + z))..][..PATCH * side];
                    let from = &values[PATCH * (y / side + PATCH * (z / side))..][..PATCH];
                    for (out, &value) in row.chunks_mut(side).zip(from) {
                        out.fill(value);
                    }
                }
            }
        }
        grid
    }
}

impl Accumulator for GridPatches<'_> {
    fn add(&mut self, cells: &PatchCells) {
        self.patches.push((cells.level as u8, cells.patch));
        self.values.extend_from_slice(cells.values);
    }

    fn pack(&self) -> Vec<u8> {
        let size = CELLS * self.spectrum.fields.len();
        let mut bytes = Vec::with_capacity(self.patches.len() * (KEY + 8 * size));
        for ((level, patch), values) in self.patches.iter().zip(self.values.chunks(size)) {
            bytes.push(*level);
            bytes.extend(patch.iter().flat_map(|n| n.to_le_bytes()));
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
        bytes
    }

    fn join(&mut self, mut bytes: &[u8]) -> Option<()> {
        let size = CELLS * self.spectrum.fields.len();
        while let Some((key, rest)) = bytes.split_first_chunk::<KEY>() {
            bytes = rest;
            let index = key[1..].as_chunks().0;
            let patch = [0, 1, 2].map(|a| i32::from_le_bytes(index[a]));
            self.patches.push((key[0], patch));
            let values = bytes.split_off(..8 * size)?.as_chunks().0;
            self.values
                .extend(values.iter().map(|own| f64::from_le_bytes(*own)));
        }
        bytes.is_empty().then_some(())
    }

    fn values(&self) -> Vec<Vec<f64>> {
        let spectrum = self.spectrum;
        let of = |field: usize| {
            let grid = self.grid(field);
            let shell = |wave| spectrum.shell(wave);
            let power = power_by_shell(&grid, spectrum.cells, spectrum.shells(), shell);
            let width = spectrum.wavenumber();
            power[1..].iter().map(|power| power / width).collect()
        };
        (0..spectrum.fields.len()).map(of).collect()
    }
}
