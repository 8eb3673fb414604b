//! Functions of one cell and of what surrounds it on the cells of a level, where the pools live: maps, reductions and marks.
//!
//! A function is a `#[device]` function as [`CellFn`] describes it. It may read several fields, of which the first is the pool
//! that the skeleton is called on; the others follow in the order of the function's tuple. Of the first field it may also read the
//! states around a cell, those of other ranks' patches and ghost cells between levels and beyond the domain included.

use super::called::FIELDS;
use super::components::Components;
use super::level::LevelView;
use super::numbers::DerivedInputs;
use super::pool::{Field, Pool};
use super::storage::Storage;
use nestar_device::{CellFn, CellState};
use nestar_kernels::PATCH;
use nestar_kernels::mesh::gather::MAX_GHOSTS;

/// A field whose present state functions of a cell may read: every [`Pool`].
pub trait CellSource: Sync {
    /// The values.
    fn values(&self) -> &Storage;
    /// Bank with the present state of `level`.
    fn present_bank(&self, level: usize) -> usize;
    /// Number of components.
    fn count(&self) -> usize;
    /// Cells of a row along each axis.
    fn side(&self) -> usize;
}

impl<F: Field> CellSource for Pool<F> {
    fn values(&self) -> &Storage {
        &self.storage
    }

    fn present_bank(&self, level: usize) -> usize {
        self.current(level)
    }

    fn count(&self) -> usize {
        self.components()
    }

    fn side(&self) -> usize {
        self.spec.side
    }
}

/// A function whose result a map writes: a state of one field.
pub trait CellMap:
    CellFn<Result<f32>: CellState<f32>> + CellFn<Result<f64>: CellState<f64>>
{
}

impl<M> CellMap for M where
    M: CellFn<Result<f32>: CellState<f32>> + CellFn<Result<f64>: CellState<f64>>
{
}

/// A function that gives a number.
pub trait CellValue: CellFn<Result<f32> = f32> + CellFn<Result<f64> = f64> {}

impl<M> CellValue for M where M: CellFn<Result<f32> = f32> + CellFn<Result<f64> = f64> {}

/// A function that says yes or no.
pub trait CellMark: CellFn<Result<f32> = bool> + CellFn<Result<f64> = bool> {}

impl<M> CellMark for M where M: CellFn<Result<f32> = bool> + CellFn<Result<f64> = bool> {}

/// A function at work on a level.
pub(super) struct CellJob<'a, M: CellFn> {
    pub level: LevelView<'a>,
    /// The fields behind the first.
    pub others: &'a [&'a dyn CellSource],
    /// What stands in place of a second field.
    pub numbers: Option<&'a DerivedInputs>,
    /// The cells that are mapped, by the parity of the sum of their indices; `None`: all.
    pub colour: Option<usize>,
    /// Numbers that a call hands on to the next in a cell, which stand in place of the field [`CellJob::carried`].
    pub carries: usize,
    pub given: &'a M::Parameters,
}

impl<'a, M: CellFn> CellJob<'a, M> {
    /// All cells, and one field only.
    pub fn new(level: LevelView<'a>, given: &'a M::Parameters) -> Self {
        Self {
            level,
            others: &[],
            numbers: None,
            colour: None,
            carries: 0,
            given,
        }
    }

    /// The same for a function that reads `numbers` as the state of a second field.
    pub fn with(self, numbers: &'a DerivedInputs) -> Self {
        let numbers = Some(numbers);
        Self { numbers, ..self }
    }

    /// The field in whose place carried numbers stand: behind all others, and behind numbers of a list.
    pub fn carried(&self) -> usize {
        1 + self.others.len() + usize::from(self.numbers.is_some())
    }

    /// Checks that the function fits to the fields.
    pub fn check(&self, first: &dyn CellSource) {
        let mut sources = std::iter::once(first).chain(self.others.iter().copied());
        assert!(
            sources.all(|source| source.side() == PATCH),
            "`{}` is a function of cells: a field has coarser rows",
            M::ITEM.name
        );
        let mut counts = [0; FIELDS];
        counts[0] = first.count();
        for (count, other) in counts[1..].iter_mut().zip(self.others) {
            *count = other.count();
        }
        if let Some(numbers) = self.numbers {
            counts[1] = numbers.count();
        }
        if let Some(count) = counts.get_mut(self.carried())
            && self.carries > 0
        {
            *count = self.carries;
        }
        let most = self.numbers.map_or(MAX_GHOSTS, |_| 0);
        let fits = fits::<M>(&self.level.components, counts, most);
        fits.unwrap_or_else(|why| panic!("{why}"));
    }
}

/// Whether a function fits to fields with so many components, of which it may read the first so many cells far.
///
/// # Errors
/// Why it does not.
fn fits<M: CellFn>(
    chosen: &Components,
    counts: [usize; FIELDS],
    most: usize,
) -> Result<(), String> {
    let (wanted, name, reach) = (M::State::<f64>::COMPONENTS, M::ITEM.name, M::REACH);
    for (field, (wanted, there)) in wanted.into_iter().zip(counts).enumerate() {
        let wanted = match field {
            0 => chosen.wanted(wanted),
            _ => wanted,
        };
        if wanted > there {
            return Err(format!(
                "`{name}` reads {wanted} components of field {field}, which has {there}"
            ));
        }
    }
    if reach > 0 && !chosen.lead() {
        return Err(format!(
            "`{name}` reads around cells: its states are the leading components"
        ));
    }
    match reach > most {
        true => Err(format!(
            "`{name}` reads {reach} cells far, {most} are possible"
        )),
        false => Ok(()),
    }
}

impl<F: Field> Pool<F> {
    /// Whether a function of this field alone can read it.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn fits<M: CellFn>(&self, chosen: &Components) -> Result<(), String> {
        let counts = [self.components(), 0, 0, 0];
        fits::<M>(chosen, counts, MAX_GHOSTS).map_err(|why| format!("field `{}`: {why}", F::NAME))
    }
}
