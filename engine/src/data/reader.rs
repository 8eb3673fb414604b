//! What a function of cells reads, and where its results go, on the host.

use super::called::{ColumnCell, FIELDS, HostCell, RepeatedCell, StateColumns};
use super::cells::{CellJob, CellSource};
use super::components::Components;
use super::listed::{CellCube, Loops};
use super::numbers::DerivedInputs;
use super::pool::{Field, Pool};
use super::taken::write_back;
use super::window::gather_block;
use crate::device::parallel::PerThread;
use nestar_device::{CellFn, CellState, Precise, Real};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::block::LevelGeometry;
use nestar_kernels::mesh::{GatherScratch, GhostView, Rows, StateFunctions};

/// What a function reads on the host.
pub(super) struct CellReader<'a, M: CellFn, R: Real> {
    fields: [Option<Rows<'a, R>>; FIELDS],
    ghosts: Option<(GhostView<'a, R>, &'a PerThread<GatherScratch<R>>)>,
    numbers: Option<&'a DerivedInputs>,
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

impl<'a, M: CellFn, R: Loops> CellReader<'a, M, R> {
    pub fn new<F: Field>(first: &'a Pool<F>, job: &CellJob<'a, M>) -> Self {
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
        (chosen, numbers): (Components, Option<&'a DerivedInputs>),
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
            let at = ColumnCell {
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
                let values = number.and_then(|number| fields[field].get(number * CELLS..));
                // what a first call is handed on is no field, and reads as zeros
                let values = values.and_then(|values| values.first_chunk());
                values.unwrap_or(&self.zeros)
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
        let at = HostCell {
            fields: &fields,
            chosen: &self.chosen,
            block: &[],
            geometry: &self.geometry,
            index: self.index[row as usize],
            cell,
        };
        let (field, values) = (self.carried, carried);
        M::call(&RepeatedCell { at, field, values }, &self.given)
    }

    /// Fills `block` with the first field around a row, or with the numbers of its cells, where the function reads such.
    pub fn gather(&self, row: u32, block: &mut Vec<R>) {
        if let Some(numbers) = self.numbers {
            let own = self.own(row, self.components * CELLS);
            let patch = self.index[row as usize];
            numbers.fill(&CellCube::of_patch(own, patch, &self.geometry), block);
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
        if let Some(follow) = &states.dependents {
            (follow.update)(before, after);
        }
        let sound = (states.physical)(after, 1);
        if !sound || states.dependents.is_some() {
            let left = if sound { after } else { before };
            let own = own.iter_mut().skip(cell).step_by(CELLS);
            own.zip(left).for_each(|(own, value)| *own = *value);
        }
        sound
    }

    /// Fills `values` with the components of a row that a state `S` has.
    pub fn start<S: CellState<R>>(&self, row: u32, values: &mut Vec<R>) {
        let own = self.own(row, self.components * CELLS);
        values.clear();
        for n in 0..S::COUNT {
            let number = self.chosen.number(n);
            let there = number.map_or(&self.zeros[..], |number| &own[number * CELLS..][..CELLS]);
            values.extend_from_slice(there);
        }
    }

    /// Sets the chosen components of a row to `values` if all its states are sound then; whether they are.
    pub fn take(&self, own: &mut [R], values: &mut [R]) -> bool {
        let target = (&self.chosen, self.states.as_ref());
        write_back(own, target, values, &mut Vec::new()).is_ok()
    }

    /// The leading values of a row of the first field.
    pub fn own(&self, row: u32, length: usize) -> &'a [R] {
        self.fields[0].map_or(&[], |rows| &rows.row(row)[..length])
    }
}
