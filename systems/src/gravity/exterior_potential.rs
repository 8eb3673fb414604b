//! Potential outside the domain: around an isolated one from the solver of the root level, as part of the state of a run,
//! and as the mirror image beyond mirrored faces.

use super::kernels::{GravityKernels, rank_range};
use super::multipole::MultipoleExpansion;
use super::root_fft::PaddedPatch;
use super::surroundings::Surroundings;
use crate::fields::Potential;
use bevy_ecs::prelude::*;
use nestar_device::{Address, Number};
use nestar_engine::comm::{Comm, Ranks};
use nestar_engine::data::{Element, Field, Precision};
use nestar_engine::device::ReusableBuffer;
use nestar_engine::mesh::parallel;
use nestar_engine::step::PluginState;
use nestar_engine::{Error, in_precision};
use nestar_kernels::PATCH;
use nestar_kernels::multigrid::device;
use nestar_kernels::multigrid::expansion::{
    MARGIN, TABLE_LAYERS_WITH_MARGIN, exterior_cell, face_extent, face_value_count,
    spline_coefficient, value_count,
};
use nestar_kernels::multigrid::exterior::{Exterior, LAYERS, table_length};
use nestar_kernels::multigrid::moments::coordinate;
use std::any::Any;
use std::marker::PhantomData;

/// Potential around an isolated domain before and after the latest step of the root level.
#[derive(Resource)]
pub struct ExteriorPotential<P: Field = Potential> {
    /// `true` if the potential is known; otherwise it is solved for after a restart.
    pub(super) solved: bool,
    /// Cells of the root level.
    root_cells: [i32; 3],
    surroundings: Surroundings,
    /// Potential after the step.
    potential: ExteriorSource,
    /// `true` if the newer tables hold that potential.
    tables_are_current: bool,
    precision: Precision,
    /// `true` if the potential was solved for since [`ExteriorPotential::set_reference`].
    changed_since_reference: bool,
    /// [`ExteriorTables`] in the precision of the field.
    tables: Box<dyn Any + Send + Sync>,
    /// The field.
    of: PhantomData<fn() -> P>,
}

/// Representation of the potential around the domain.
#[derive(Clone, Debug)]
enum ExteriorSource {
    /// `[face][layer][b][a]`, from three cells outside a lower face and two inside an upper one, with three cells
    /// around faces.
    Values(Vec<f64>),
    /// Multipole expansion.
    Multipoles(MultipoleExpansion),
}

/// Tables for kernels at two times.
struct ExteriorTables<R> {
    older: ExteriorTable<R>,
    newer: ExteriorTable<R>,
    /// Table before the latest solve.
    reference: ExteriorTable<R>,
}

/// Values, then spline coefficients, on the device or on the host.
struct ExteriorTable<R> {
    host: Vec<R>,
    device: ReusableBuffer<R>,
}

impl<R> Default for ExteriorTable<R> {
    fn default() -> Self {
        Self {
            host: Vec::new(),
            device: ReusableBuffer::default(),
        }
    }
}

impl<P: Field> ExteriorPotential<P> {
    /// Creates the potential around a domain of root cells.
    pub(super) fn new(
        root_cells: [i32; 3],
        surroundings: Surroundings,
        precision: Precision,
    ) -> Self {
        let tables: Box<dyn Any + Send + Sync> = in_precision!(precision, R => Box::new(ExteriorTables::<R> {
            older: ExteriorTable::default(),
            newer: ExteriorTable::default(),
            reference: ExteriorTable::default(),
        }));
        Self {
            solved: false,
            root_cells,
            surroundings,
            potential: ExteriorSource::Values(Vec::new()),
            tables_are_current: false,
            precision,
            changed_since_reference: false,
            tables,
            of: PhantomData,
        }
    }

    /// Returns `true` if the domain has no isolated faces.
    pub(super) fn is_closed(&self) -> bool {
        self.surroundings.is_closed()
    }

    /// Returns the cells of the root level if the tables are needed.
    fn cells(&self) -> Option<[i32; 3]> {
        (!self.is_closed()).then_some(self.root_cells)
    }

    fn tables<R: Element>(&self) -> &ExteriorTables<R> {
        self.tables.downcast_ref().expect("the field's precision")
    }

    fn tables_mut<R: Element>(&mut self) -> &mut ExteriorTables<R> {
        self.tables.downcast_mut().expect("the field's precision")
    }

    /// Returns the potential outside the domain on the host; `weight` is that of the newer root state.
    ///
    /// # Panics
    /// If the field has the other precision.
    #[must_use]
    pub fn on_host<R: Element>(&self, weight: f64) -> Exterior<'_, R> {
        let ExteriorTables { older, newer, .. } = self.tables::<R>();
        // avoids round-off if only the newer one counts
        let older = if weight == 1.0 { newer } else { older };
        self.host_between([older, newer], weight)
    }

    /// Returns the potential at [`ExteriorPotential::set_reference`].
    pub(super) fn reference_on_host<R: Element>(&self) -> Exterior<'_, R> {
        let ExteriorTables {
            newer, reference, ..
        } = self.tables::<R>();
        let table = if self.changed_since_reference {
            reference
        } else {
            newer
        };
        self.host_between([table, table], 1.0)
    }

    fn host_between<'a, R: Element>(
        &self,
        [older, newer]: [&'a ExteriorTable<R>; 2],
        weight: f64,
    ) -> Exterior<'a, R> {
        Exterior {
            older: &older.host,
            newer: &newer.host,
            weight: R::lit(weight),
            cells: self.root_cells,
            mirrored: self.surroundings.mirrored_faces(),
        }
    }

    /// Returns [`ExteriorPotential::on_host`] for a device.
    pub(super) fn on_device(&self, weight: f64) -> device::ExteriorParameters<Number> {
        let [older, newer, _] = self.addresses();
        let older = if weight == 1.0 { newer } else { older };
        self.device_between([older, newer], weight)
    }

    /// Returns [`ExteriorPotential::reference_on_host`] for a device.
    pub(super) fn reference_on_device(&self) -> device::ExteriorParameters<Number> {
        let [_, newer, reference] = self.addresses();
        let table = if self.changed_since_reference {
            reference
        } else {
            newer
        };
        self.device_between([table, table], 1.0)
    }

    fn device_between(
        &self,
        [older, newer]: [u64; 2],
        weight: f64,
    ) -> device::ExteriorParameters<Number> {
        device::ExteriorParameters {
            older: Address::from(older),
            newer: Address::from(newer),
            weight,
            cells: self.root_cells,
            mirrored: self.surroundings.mirrored_faces(),
            coefficients: table_length(self.root_cells) as i32,
        }
    }

    fn addresses(&self) -> [u64; 3] {
        in_precision!(self.precision, R => {
            let ExteriorTables { older, newer, reference } = self.tables::<R>();
            [older, newer, reference].map(|table| table.device.address())
        })
    }

    /// Makes the present potential the reference for the next solve.
    pub(super) fn set_reference(&mut self) {
        self.changed_since_reference = false;
    }

    /// Accepts a step of the root level: the newer tables become the older ones.
    pub(super) fn commit(&mut self) {
        self.tables_are_current = false;
        in_precision!(self.precision, R => {
            let ExteriorTables { older, newer, .. } = self.tables_mut::<R>();
            std::mem::swap(older, newer);
        });
    }

    /// Updates the potential from padded patches of all ranks. Collective over all ranks.
    pub(super) fn update_from_patches(
        &mut self,
        others: &Comm,
        patches: &[[i32; 3]],
        padded: &[PaddedPatch],
        kernels: Option<&GravityKernels>,
    ) -> Result<(), Error> {
        let Some(cells) = self.cells() else {
            return Ok(());
        };
        let mut own = Vec::new();
        for grown in padded {
            let patch = patches[grown.patch];
            own.extend(patch.map(f64::from));
            for_each_value(cells, patch, |_, cell| {
                own.push(grown.at(cell).unwrap_or(f64::NAN));
            });
        }
        let all = others
            .ranks()
            .communicator()
            .all_gather(bytemuck::cast_slice(&own))?;
        let mut potential = vec![0.0; value_count(cells)];
        for bytes in all {
            let numbers: Vec<f64> = bytemuck::pod_collect_to_vec(&bytes);
            let mut numbers = numbers.into_iter();
            while let Some(x) = numbers.next() {
                let mut next = || numbers.next().unwrap_or(f64::NAN);
                let patch = [x, next(), next()].map(|n| n as i32);
                for_each_value(cells, patch, |place, _| potential[place] = next());
            }
        }
        self.replace(others, ExteriorSource::Values(potential), kernels)
    }

    /// Updates the potential from an expansion. Collective over all ranks.
    pub(super) fn update_from_expansion(
        &mut self,
        others: &Comm,
        expansion: MultipoleExpansion,
        kernels: Option<&GravityKernels>,
    ) -> Result<(), Error> {
        let same = |known: &ExteriorSource| matches!(known, ExteriorSource::Multipoles(known) if *known == expansion);
        if self.tables_are_current && same(&self.potential) {
            return Ok(());
        }
        self.replace(others, ExteriorSource::Multipoles(expansion), kernels)
    }

    /// Copies the potential around another field. Collective over all ranks.
    pub(super) fn copy_from<Q: Field>(
        &mut self,
        others: &Comm,
        other: &ExteriorPotential<Q>,
        kernels: Option<&GravityKernels>,
    ) -> Result<(), Error> {
        self.replace(others, other.potential.clone(), kernels)
    }

    /// Replaces the potential and keeps the previous tables as reference.
    fn replace(
        &mut self,
        others: &Comm,
        potential: ExteriorSource,
        kernels: Option<&GravityKernels>,
    ) -> Result<(), Error> {
        in_precision!(self.precision, R => {
            let ExteriorTables { newer, reference, .. } = self.tables_mut::<R>();
            std::mem::swap(newer, reference);
        });
        self.potential = potential;
        self.changed_since_reference = true;
        self.tabulate(others, kernels)
    }

    /// Fills the newer tables, on the device if there is one. Collective over all ranks.
    pub(super) fn tabulate(
        &mut self,
        others: &Comm,
        kernels: Option<&GravityKernels>,
    ) -> Result<(), Error> {
        let Some(cells) = self.cells() else {
            return Ok(());
        };
        let potential = std::mem::replace(&mut self.potential, ExteriorSource::Values(Vec::new()));
        let made: Result<(), Error> = in_precision!(self.precision, R => {
            let ExteriorTable { host, device } = &mut self.tables_mut::<R>().newer;
            match (kernels, &potential) {
                (Some(kernels), ExteriorSource::Values(values)) => kernels.root.tabulate(cells, values, device),
                (Some(kernels), ExteriorSource::Multipoles(expansion)) => kernels.root.expand(cells, others, expansion, device),
                (None, ExteriorSource::Values(values)) => {
                    fill_table(cells, values, host);
                    Ok(())
                }
                (None, ExteriorSource::Multipoles(expansion)) => {
                    evaluate_on_ranks(cells, expansion, others.ranks()).map(|values| fill_table(cells, &values, host))
                }
            }
        });
        self.potential = potential;
        self.tables_are_current = made.is_ok();
        made
    }
}

/// Evaluates an expansion; each rank evaluates a part.
fn evaluate_on_ranks(
    cells: [i32; 3],
    expansion: &MultipoleExpansion,
    ranks: &Ranks,
) -> Result<Vec<f64>, Error> {
    let part = rank_range(value_count(cells), ranks.rank(), ranks.size());
    let mut own = vec![0.0; part.len()];
    evaluate_expansion(cells, expansion, part.start, &mut own);
    let own = bytemuck::cast_slice(&own);
    let all = ranks.communicator().all_gather(own)?;
    let parts = all.iter();
    let numbers = parts.flat_map(|bytes| bytemuck::pod_collect_to_vec(bytes));
    Ok(numbers.collect())
}

impl<P: Field> PluginState for ExteriorPotential<P> {
    const VERSION: u32 = 3;

    fn save(&self) -> Vec<u8> {
        let (kind, numbers) = match &self.potential {
            ExteriorSource::Values(values) => (0, values.clone()),
            ExteriorSource::Multipoles(expansion) => (1, expansion.to_numbers()),
        };
        let mut bytes = vec![u8::from(self.solved), kind];
        bytes.extend(numbers.iter().flat_map(|value| value.to_le_bytes()));
        bytes
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), String> {
        let ([solved, kind], numbers) = bytes
            .split_first_chunk()
            .ok_or("the exterior potential is empty")?;
        let (numbers, rest) = numbers.as_chunks();
        let numbers: Vec<f64> = numbers.iter().copied().map(f64::from_le_bytes).collect();
        let wanted = self.cells().map_or(0, value_count);
        self.potential = match kind {
            0 if rest.is_empty() && [0, wanted].contains(&numbers.len()) => {
                ExteriorSource::Values(numbers)
            }
            1 if rest.is_empty() => {
                let expansion = MultipoleExpansion::from_numbers(&numbers);
                ExteriorSource::Multipoles(
                    expansion
                        .ok_or("the multipole expansion of the exterior potential is damaged")?,
                )
            }
            _ => {
                return Err(format!(
                    "the exterior potential has {} values instead of {wanted}",
                    numbers.len()
                ));
            }
        };
        // a closed domain has no values around it
        let is_known =
            !matches!(&self.potential, ExteriorSource::Values(values) if values.len() < wanted);
        self.solved = *solved == 1 && is_known;
        Ok(())
    }
}

/// Number of values that a thread evaluates at once.
const CHUNK: usize = 512;

/// Returns the first layer of a face.
fn first_layer(cells: [i32; 3], face: usize) -> i32 {
    match face % 2 {
        0 => -(MARGIN as i32),
        _ => cells[face / 2] - 2,
    }
}

/// Evaluates an expansion into `potential`, from value `first` on.
fn evaluate_expansion(
    cells: [i32; 3],
    expansion: &MultipoleExpansion,
    first: usize,
    potential: &mut [f64],
) {
    parallel::for_each_chunk(potential, CHUNK, 1, |n, out| {
        let first = first + n * CHUNK;
        expansion.fill(out, |m| {
            let cell = exterior_cell(&cells, (first + m) as i32);
            std::array::from_fn(|axis| coordinate(cell[axis], cells[axis], expansion.half[axis]))
        });
    });
}

/// Calls `visit` with the index of each value in and beside a root patch, and its cell relative to the patch.
fn for_each_value(cells: [i32; 3], patch: [i32; 3], mut visit: impl FnMut(usize, [i32; 3])) {
    let (size, margin) = (PATCH as i32, MARGIN as i32);
    let ends = |axis: usize| [patch[axis] == 0, (patch[axis] + 1) * size == cells[axis]];
    let range = |axis: usize| {
        let [first, last] = ends(axis).map(|ends| if ends { margin } else { 0 });
        -first..size + last
    };
    let mut begin = 0;
    for face in 0..6 {
        let (axis, [wide, high]) = (face / 2, face_extent(cells, face));
        let (a, b) = ((axis + 1) % 3, (axis + 2) % 3);
        for layer in (0..TABLE_LAYERS_WITH_MARGIN as i32).filter(|_| ends(axis)[face % 2]) {
            for (j, i) in range(b).flat_map(|j| range(a).map(move |i| (j, i))) {
                let mut cell = [0; 3];
                cell[axis] = first_layer(cells, face) + layer - patch[axis] * size;
                (cell[a], cell[b]) = (i, j);
                let (i, j) = (i + patch[a] * size + margin, j + patch[b] * size + margin);
                visit(begin + ((layer * high + j) * wide + i) as usize, cell);
            }
        }
        begin += face_value_count(cells, face);
    }
}

/// Fills the tables of values and of spline coefficients in the order of
/// [`table_index`](nestar_kernels::multigrid::stencil::table_index). They have one layer less on each side, in all
/// directions, than the values.
fn fill_table<R: Element>(cells: [i32; 3], potential: &[f64], table: &mut Vec<R>) {
    let length = table_length(cells);
    table.resize(2 * length, R::lit(0.0));
    let (mut values, mut splines) = table.split_at_mut(length);
    let mut begin = 0;
    for face in 0..6 {
        let [wide, high] = face_extent(cells, face).map(|n| n as usize);
        let steps = [wide * high, 1, wide];
        let count = LAYERS * (high - 2) * (wide - 2);
        let (own, rest) = std::mem::take(&mut values).split_at_mut(count);
        let (own_splines, rest_splines) = std::mem::take(&mut splines).split_at_mut(count);
        (values, splines) = (rest, rest_splines);
        let lines = own.chunks_mut(wide - 2);
        let mut lines: Vec<_> = lines.zip(own_splines.chunks_mut(wide - 2)).collect();
        parallel::for_each_mut(&mut lines, |line, (values, splines)| {
            let (layer, j) = (line / (high - 2) + 1, line % (high - 2) + 1);
            let first = begin + (layer * high + j) * wide + 1;
            for (i, (out, spline)) in values.iter_mut().zip(&mut **splines).enumerate() {
                let n = first + i;
                let value = potential[n];
                let beside = |m: usize| [n - steps[m / 2], n + steps[m / 2]][m % 2];
                *out = R::lit(value);
                let beside = std::array::from_fn(|m| potential[beside(m)]);
                *spline = R::lit(spline_coefficient(value, &beside));
            }
        });
        begin += face_value_count(cells, face);
    }
}
