//! Functions of one cell and of what surrounds it on the cells of a level, where the pools live: maps, reductions and marks.
//!
//! A function is a `#[device]` function as [`CellFn`] describes it. It may read several fields, of which the first is the pool
//! that the skeleton is called on; the others follow in the order of the function's tuple. Of the first field it may also read the
//! states around a cell, those of other ranks' patches and ghost cells between levels and beyond the domain included.

use super::called::{Again, Along, At, FIELDS, StateColumns};
use super::components::Components;
use super::level::LevelView;
use super::listed::{Loops, Span};
use super::numbers::Numbers;
use super::pool::{Field, Pool};
use super::storage::Storage;
use super::window::gather_block;
use crate::device::parallel::PerThread;
use nestar_device::{CellFn, CellState, Precise, Real};
use nestar_kernels::mesh::block::LevelGeometry;
use nestar_kernels::mesh::gather::MOST_GHOSTS;
use nestar_kernels::mesh::{GatherScratch, GhostView, Rows, StateFunctions};
use nestar_kernels::{CELLS, PATCH};

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
pub(super) struct Job<'a, M: CellFn> {
    pub level: LevelView<'a>,
    /// The fields behind the first.
    pub others: &'a [&'a dyn CellSource],
    /// What stands in place of a second field.
    pub numbers: Option<&'a Numbers>,
    /// The cells that are mapped, by the parity of the sum of their indices; `None`: all.
    pub colour: Option<usize>,
    /// Numbers that a call hands on to the next in a cell, which stand in place of the field [`Job::carried`].
    pub carries: usize,
    pub given: &'a M::Parameters,
}

impl<'a, M: CellFn> Job<'a, M> {
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
    pub fn with(self, numbers: &'a Numbers) -> Self {
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
        let most = self.numbers.map_or(MOST_GHOSTS, |_| 0);
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
        fits::<M>(chosen, counts, MOST_GHOSTS).map_err(|why| format!("field `{}`: {why}", F::NAME))
    }
}

/// What a function reads on the host.
pub(super) struct Reader<'a, M: CellFn, R: Real> {
    fields: [Option<Rows<'a, R>>; FIELDS],
    ghosts: Option<(GhostView<'a, R>, &'a PerThread<GatherScratch<R>>)>,
    numbers: Option<&'a Numbers>,
    /// What is known of the first field's states.
    states: Option<StateFunctions<R>>,
    components: usize,
    chosen: Components,
    /// What a component reads as that is not there.
    zeros: [R; CELLS],
    geometry: LevelGeometry,
    index: &'a [[i32; 3]],
    colour: Option<usize>,
    /// The field in whose place carried numbers stand.
    carried: usize,
    given: <M::Parameters as Precise>::In<R>,
}

impl<'a, M: CellFn, R: Loops> Reader<'a, M, R> {
    pub fn new<F: Field>(first: &'a Pool<F>, job: &Job<'a, M>) -> Self {
        let (topology, level) = (job.level.topology, job.level.clock.level);
        let rows = |source: &'a dyn CellSource| {
            let typed = source.values().typed::<R>();
            let typed = typed.expect("all fields have one precision and place");
            typed.bank(source.present_bank(level))
        };
        let gathers = || {
            let scratch = &first.typed::<R>().gather_scratch;
            (first.ghosts::<R>(topology, level, M::REACH), scratch)
        };
        Self {
            fields: std::array::from_fn(|n| match n.checked_sub(1) {
                None => Some(rows(first)),
                Some(n) => job.others.get(n).map(|source| rows(*source)),
            }),
            ghosts: (M::REACH > 0).then(gathers),
            numbers: job.numbers,
            states: first.typed::<R>().states,
            components: first.components(),
            chosen: job.level.components,
            zeros: [R::lit(0.0); CELLS],
            geometry: job.level.geometry(),
            index: topology.index_table(),
            colour: job.colour,
            carried: job.carried(),
            given: job.given.precise::<R>(),
        }
    }

    /// A reader of one row of each field, number 0, that stands alone in a place.
    pub fn alone<F: Field>(
        first: &Pool<F>,
        rows: &[Rows<'a, R>],
        (chosen, numbers): (Components, Option<&'a Numbers>),
        (geometry, index): (&LevelGeometry, &'a [[i32; 3]]),
        given: &M::Parameters,
    ) -> Self {
        Self {
            fields: std::array::from_fn(|n| rows.get(n).copied()),
            ghosts: None,
            numbers,
            states: first.typed::<R>().states,
            components: first.components(),
            chosen,
            zeros: [R::lit(0.0); CELLS],
            geometry: *geometry,
            index,
            colour: None,
            carried: rows.len() + usize::from(numbers.is_some()),
            given: given.precise::<R>(),
        }
    }

    /// Calls `each` with the cells of a row that are wanted and the function's result there.
    #[inline(always)]
    pub fn each(&self, row: u32, block: &mut Vec<R>, mut each: impl FnMut(usize, M::Result<R>)) {
        self.gather(row, block);
        let columns = self.columns(row, block);
        for cell in 0..CELLS {
            let colour = (cell ^ cell >> 3 ^ cell >> 6) & 1;
            if self.colour.is_some_and(|wanted| wanted != colour) {
                continue;
            }
            let at = Along {
                columns: &columns,
                block,
                geometry: &self.geometry,
                index: self.index[row as usize],
                cell,
            };
            each(cell, M::call(&at, &self.given));
        }
    }

    /// The components that the function's states consist of, in the cells of a row: found once, so that vectors of cells go together.
    #[inline(always)]
    fn columns<'b>(&'b self, row: u32, block: &'b [R]) -> StateColumns<'b, R> {
        let wanted = M::State::<R>::COMPONENTS;
        let fields = self.fields.each_ref();
        let mut fields = fields.map(|rows| rows.as_ref().map_or(&[][..], |rows| rows.row(row)));
        if self.numbers.is_some() {
            fields[1] = block;
        }
        std::array::from_fn(|field| {
            std::array::from_fn(|n| {
                let number = match field {
                    0 => self.chosen.number(n),
                    _ => Some(n),
                };
                let number = number.filter(|_| n < wanted[field]);
                let values = number.map(|number| fields[field][number * CELLS..].first_chunk());
                values.map_or(&self.zeros, |values| {
                    values.expect("a row holds whole components")
                })
            })
        })
    }

    /// The function's result in a cell of a row of which the first field's values are `own`, its numbers stand in `block`, and `carried`
    /// is what an earlier call hands on.
    #[inline(always)]
    pub fn call(
        &self,
        row: u32,
        [own, block]: [&[R]; 2],
        carried: &[R],
        cell: usize,
    ) -> M::Result<R> {
        let mut fields: [&[R]; FIELDS] = [own, &[], &[], &[]];
        for (field, rows) in fields[1..].iter_mut().zip(&self.fields[1..]) {
            *field = rows.as_ref().map_or(&[][..], |rows| rows.row(row));
        }
        if self.numbers.is_some() {
            fields[1] = block;
        }
        let at = At {
            fields: &fields,
            chosen: &self.chosen,
            block: &[],
            geometry: &self.geometry,
            index: self.index[row as usize],
            cell,
        };
        let (field, values) = (self.carried, carried);
        M::call(&Again { at, field, values }, &self.given)
    }

    /// Fills `block` with the first field around a row, or with the numbers of its cells, where the function reads such.
    pub fn gather(&self, row: u32, block: &mut Vec<R>) {
        if let Some(numbers) = self.numbers {
            let own = self.own(row, self.components * CELLS);
            let patch = self.index[row as usize];
            numbers.fill(&Span::of_patch(own, patch, &self.geometry), block);
        }
        if let Some((view, scratch)) = &self.ghosts {
            let shape = [self.components, M::REACH];
            gather_block(view, (row, u32::MAX), shape, block, &mut scratch.get());
        }
    }

    /// Sets the state of a cell among the values `own` of its row, if it is sound then; `scratch` is working space.
    #[inline(always)]
    pub fn set<S: CellState<R>>(
        &self,
        own: &mut [R],
        cell: usize,
        state: &S,
        scratch: &mut Vec<R>,
    ) -> bool {
        let write = |own: &mut [R]| {
            let mut write = |_, c, value| {
                if let Some(c) = self.chosen.number(c) {
                    own[c * CELLS + cell] = value;
                }
            };
            state.write(&mut write, 0, 0);
        };
        let Some(states) = &self.states else {
            write(own);
            return true;
        };
        scratch.clear();
        scratch.extend(own.iter().skip(cell).step_by(CELLS));
        write(own);
        let components = scratch.len();
        scratch.extend(own.iter().skip(cell).step_by(CELLS));
        let (before, after) = scratch.split_at_mut(components);
        if let Some(follow) = &states.follow {
            (follow.follow)(before, after);
        }
        let sound = (states.physical)(after, 1);
        if !sound || states.follow.is_some() {
            let left = if sound { after } else { before };
            let own = own.iter_mut().skip(cell).step_by(CELLS);
            own.zip(left).for_each(|(own, value)| *own = *value);
        }
        sound
    }

    /// The leading values of a row of the first field.
    pub fn own(&self, row: u32, length: usize) -> &'a [R] {
        self.fields[0].map_or(&[], |rows| &rows.row(row)[..length])
    }
}
