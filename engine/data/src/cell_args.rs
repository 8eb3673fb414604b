//! Cell functions on a level: kinds of functions, their inputs, and their evaluation on the host.
//!
//! A cell function is a `#[device]` function as described by [`CellFn`]. It may read several fields: first the pool on
//! which the method is called, then the others in the order of the function's tuple. In the first field it may also
//! read neighbouring cells, including halo patches and ghost cells at coarse-fine and domain boundaries.

use super::criteria::DerivedInputs;
use super::field_spec::{Components, Element, FieldSpec};
use super::function_inputs::{CellSource, InputList};
use super::level::LevelView;
use super::pool::{Field, Pool, gather_block};
use super::quantities::{CellCube, Loops};
use super::storage::Storage;
use nestar_device::{CellFn, CellInputs, CellState, Place, Precise, Real};
use nestar_engine_device::parallel::PerThread;
use nestar_kernels::mesh::block::{LevelGeometry, cell_place};
use nestar_kernels::mesh::gather::MAX_GHOSTS;
use nestar_kernels::mesh::{
    Centring, DependentComponents, GatherScratch, GhostView, MAX_COMPONENTS, Rows, StateFunctions,
};
use nestar_kernels::{CELLS, PATCH};

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

    fn name(&self) -> &'static str {
        F::NAME
    }

    fn spec(&self) -> &FieldSpec {
        &self.spec
    }
}

/// A cell function that returns the new state of a field.
pub trait CellMap:
    CellFn<Result<f32>: CellState<f32>> + CellFn<Result<f64>: CellState<f64>>
{
}

impl<M> CellMap for M where
    M: CellFn<Result<f32>: CellState<f32>> + CellFn<Result<f64>: CellState<f64>>
{
}

/// A cell function that returns a number.
pub trait CellValue: CellFn<Result<f32> = f32> + CellFn<Result<f64> = f64> {}

impl<M> CellValue for M where M: CellFn<Result<f32> = f32> + CellFn<Result<f64> = f64> {}

/// A cell function that returns `true` for marked cells.
pub trait CellMark: CellFn<Result<f32> = bool> + CellFn<Result<f64> = bool> {}

impl<M> CellMark for M where M: CellFn<Result<f32> = bool> + CellFn<Result<f64> = bool> {}

/// A cell function with its inputs on one level.
pub(super) struct CellJob<'a, M: CellFn> {
    pub level: LevelView<'a>,
    /// The states after the first.
    pub inputs: InputList<'a>,
    /// Parity of the index sum of the cells to update; `None` for all cells.
    pub colour: Option<usize>,
    /// Number of values carried between calls; they replace the field [`CellJob::carried`].
    pub carries: usize,
    pub parameters: &'a M::Parameters,
}

impl<'a, M: CellFn> CellJob<'a, M> {
    /// Creates a job over all cells.
    pub fn new(level: LevelView<'a>, inputs: InputList<'a>, parameters: &'a M::Parameters) -> Self {
        Self {
            level,
            inputs,
            colour: None,
            carries: 0,
            parameters,
        }
    }

    /// Returns the position of the carried numbers among the fields: after all inputs.
    pub fn carried(&self) -> usize {
        1 + self.inputs.count()
    }

    /// Checks that the function fits the fields.
    pub fn check(&self, first: &dyn CellSource) {
        let fits = check_fit::<M>(&self.level.components, first, &self.inputs, self.carries);
        fits.unwrap_or_else(|why| panic!("{why}"));
    }
}

/// Checks that a function fits its fields. `carries` numbers follow the inputs.
///
/// # Errors
/// The reason why it does not fit.
pub(super) fn check_fit<M: CellFn>(
    chosen: &Components,
    first: &dyn CellSource,
    inputs: &InputList,
    carries: usize,
) -> Result<(), String> {
    let function = FunctionNeeds {
        name: M::ITEM.name,
        reach: M::REACH,
        components: M::State::<f64>::COMPONENTS,
    };
    function.check(chosen, first, inputs, carries)
}

/// Checks that the values of a field belong to the cells of a patch, for the cell function `name`.
///
/// # Errors
/// The values are on faces or edges, or coarser than the cells.
pub fn require_cell_values(name: &str, field: &str, spec: &FieldSpec) -> Result<(), String> {
    let place = match spec.centring {
        Centring::Cell if spec.side == PATCH => return Ok(()),
        Centring::Cell => "coarser than the cells",
        Centring::Face => "on the faces of cells",
        Centring::Edge => "on the edges of cells",
    };
    Err(format!(
        "`{name}` is evaluated in cells, and the values of the field `{field}` are {place}; register a field with values in cells, fill it \
         in a system that reads `{field}` row by row, and pass that field to `{name}`"
    ))
}

/// What a cell function reads.
struct FunctionNeeds {
    name: &'static str,
    /// Distance of the neighbouring cells that it reads.
    reach: usize,
    /// Number of components of each field.
    components: [usize; FIELDS],
}

impl FunctionNeeds {
    /// As [`check_fit`].
    fn check(
        &self,
        chosen: &Components,
        first: &dyn CellSource,
        inputs: &InputList,
        carries: usize,
    ) -> Result<(), String> {
        let (name, reach) = (self.name, self.reach);
        for source in std::iter::once(first).chain(inputs.fields()) {
            require_cell_values(name, source.name(), source.spec())?;
        }
        if inputs.numbers.is_some() && inputs.fields().next().is_some() {
            return Err(format!(
                "`{name}` reads derived inputs and further fields, which is not supported"
            ));
        }
        let states = self.components.into_iter();
        let fields = std::iter::once(first).chain(inputs.fields());
        for (n, (source, count)) in fields.zip(states).enumerate() {
            if n > 0 || chosen.lead() {
                (source.spec()).check_leading(name, source.name(), count)?;
            }
        }
        let numbers = inputs.numbers.map(DerivedInputs::count);
        let counts = [first.count()].into_iter().chain(numbers);
        let counts = counts.chain(inputs.fields().map(CellSource::count));
        let mut counts = counts.chain([carries]);
        for (field, wanted) in self.components.into_iter().enumerate() {
            let there = counts.next().unwrap_or(0);
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
                "`{name}` reads neighbouring cells, so its state must be the leading components"
            ));
        }
        let most = numbers.map_or(MAX_GHOSTS, |_| 0);
        match reach > most {
            true => Err(format!(
                "`{name}` reads {reach} cells far; at most {most} are supported"
            )),
            false => Ok(()),
        }
    }
}

/// All inputs of a cell function on the host.
pub(super) struct CellReader<'a, M: CellFn, R: Real> {
    fields: [Option<Rows<'a, R>>; FIELDS],
    ghosts: Option<(GhostView<'a, R>, &'a PerThread<GatherScratch<R>>)>,
    numbers: Option<&'a DerivedInputs>,
    /// State functions of the first field.
    states: Option<StateFunctions<R>>,
    components: usize,
    chosen: Components,
    /// Column of zeros for missing components.
    zeros: [R; CELLS],
    geometry: LevelGeometry,
    index: &'a [[i32; 3]],
    colour: Option<usize>,
    /// Position of the carried numbers among the fields.
    carried: usize,
    parameters: <M::Parameters as Precise>::In<R>,
}

/// Returns the present rows of the fields that a function reads on a level.
fn rows_of<'a, R: Loops>(
    first: &'a dyn CellSource,
    inputs: &InputList<'a>,
    level: usize,
) -> [Option<Rows<'a, R>>; FIELDS] {
    let rows = |source: &'a dyn CellSource| {
        let typed = source.values().typed::<R>();
        let typed = typed.expect("all fields of a function have the same precision and device");
        typed.bank(source.present_bank(level))
    };
    let mut others = inputs.fields();
    std::array::from_fn(|n| match n {
        0 => Some(rows(first)),
        _ => others.next().map(&rows),
    })
}

impl<'a, M: CellFn, R: Loops> CellReader<'a, M, R> {
    pub fn new<F: Field>(first: &'a Pool<F>, job: &CellJob<'a, M>) -> Self {
        let (topology, level) = (job.level.topology, job.level.clock.level);
        let gathers = || {
            let scratch = &first.typed::<R>().gather_scratch;
            (first.ghosts::<R>(topology, level, M::REACH), scratch)
        };
        Self {
            fields: rows_of(first, &job.inputs, level),
            ghosts: (M::REACH > 0).then(gathers),
            numbers: job.inputs.numbers,
            states: first.typed::<R>().states,
            components: first.components(),
            chosen: job.level.components,
            zeros: [R::lit(0.0); CELLS],
            geometry: job.level.geometry(),
            index: topology.index_table(),
            colour: job.colour,
            carried: job.carried(),
            parameters: job.parameters.precise::<R>(),
        }
    }

    /// Creates a reader for one row, number 0, of each field, for replaying a single patch.
    pub fn for_single_row<F: Field>(
        first: &Pool<F>,
        rows: &[Rows<'a, R>],
        chosen: Components,
        numbers: Option<&'a DerivedInputs>,
        geometry: &LevelGeometry,
        index: &'a [[i32; 3]],
        parameters: &M::Parameters,
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
            parameters: parameters.precise::<R>(),
        }
    }

    /// Calls `each` with every selected cell of a row and the result there.
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
            each(cell, M::call(&at, &self.parameters));
        }
    }

    /// Returns the component columns of the states, looked up once per row so that the compiler vectorises over cells.
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
                // carried numbers are no field and read as zeros in the first call
                let values = values.and_then(|values| values.first_chunk());
                values.unwrap_or(&self.zeros)
            })
        })
    }

    /// Evaluates the function in a cell. `own` holds the first field, `block` the derived inputs, `carried` the numbers
    /// of an earlier call.
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
        M::call(&RepeatedCell { at, field, values }, &self.parameters)
    }

    /// Fills `block` with the first field and its ghost cells, or with the derived inputs, if the function reads them.
    pub fn gather(&self, row: u32, block: &mut Vec<R>) {
        if let Some(numbers) = self.numbers {
            let own = self.row_values(row, self.components * CELLS);
            let patch = self.index[row as usize];
            numbers.fill(&CellCube::of_patch(own, patch, &self.geometry), block);
        }
        if let Some((view, scratch)) = &self.ghosts {
            let shape = [self.components, M::REACH];
            gather_block(view, row, u32::MAX, shape, block, &mut scratch.get());
        }
    }

    /// Sets the state of a cell in the row `own` unless it is unphysical; `scratch` is working space. Returns `true` if
    /// it is set.
    #[inline(always)]
    pub fn store_cell<S: CellState<R>>(
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
        if let Some(dependents) = &states.dependents {
            (dependents.update)(before, after);
        }
        let physical = (states.physical)(after, 1);
        if !physical || states.dependents.is_some() {
            let left = if physical { after } else { before };
            let own = own.iter_mut().skip(cell).step_by(CELLS);
            own.zip(left).for_each(|(own, value)| *own = *value);
        }
        physical
    }

    /// Fills `values` with the components of a row that form the state `S`.
    pub fn load_state<S: CellState<R>>(&self, row: u32, values: &mut Vec<R>) {
        let own = self.row_values(row, self.components * CELLS);
        values.clear();
        for n in 0..S::COUNT {
            let number = self.chosen.number(n);
            let there = number.map_or(&self.zeros[..], |number| &own[number * CELLS..][..CELLS]);
            values.extend_from_slice(there);
        }
    }

    /// Sets the chosen components of a row to `values` unless a state would be unphysical. Returns `true` if they are
    /// set.
    pub fn store_row(&self, own: &mut [R], values: &mut [R]) -> bool {
        let states = self.states.as_ref();
        write_back(own, &self.chosen, states, values, &mut Vec::new()).is_ok()
    }

    /// Returns the leading values of a row of the first field.
    pub fn row_values(&self, row: u32, length: usize) -> &'a [R] {
        self.fields[0].map_or(&[], |rows| &rows.row(row)[..length])
    }
}

/// Largest number of fields that a function may read.
pub(super) const FIELDS: usize = 4;

/// Evaluates a function in one cell of a patch. `fields` holds the values of the patch, `carried` the numbers of an
/// earlier call.
pub(super) fn evaluate_cell<M: CellFn, R: Real>(
    chosen: &Components,
    fields: &[Vec<R>],
    carried: &[R],
    geometry: &LevelGeometry,
    index: [i32; 3],
    cell: usize,
    parameters: &M::Parameters,
) -> M::Result<R> {
    let at = HostCell {
        fields: &std::array::from_fn(|n| fields.get(n).map_or(&[][..], |values| values)),
        chosen,
        block: &[],
        geometry,
        index,
        cell,
    };
    let (field, values) = (fields.len(), carried);
    M::call(
        &RepeatedCell { at, field, values },
        &parameters.precise::<R>(),
    )
}

/// A cell on the host, given by the rows of all fields.
pub(super) struct HostCell<'a, R> {
    pub fields: &'a [&'a [R]; FIELDS],
    /// Components of the first field that form its state.
    pub chosen: &'a Components,
    pub block: &'a [R],
    pub geometry: &'a LevelGeometry,
    pub index: [i32; 3],
    pub cell: usize,
}

impl<R: Real> CellInputs<R> for HostCell<'_, R> {
    #[inline(always)]
    fn value(&self, field: usize, component: usize) -> R {
        let component = match field {
            0 => self.chosen.number(component),
            _ => Some(component),
        };
        component.map_or(R::lit(0.0), |c| self.fields[field][c * CELLS + self.cell])
    }

    #[inline(always)]
    fn around(&self) -> (&[R], usize) {
        (self.block, self.cell)
    }

    #[inline(always)]
    fn place(&self) -> Place<R> {
        cell_place(self.geometry, self.index, self.cell as i32)
    }
}

/// Component columns of a patch that form the states, `[field][component][cell]`.
pub(super) type StateColumns<'a, R> = [[&'a [R; CELLS]; MAX_COMPONENTS]; FIELDS];

/// A cell on the host, read from the component columns of its patch.
pub(super) struct ColumnCell<'a, R> {
    pub columns: &'a StateColumns<'a, R>,
    pub block: &'a [R],
    pub geometry: &'a LevelGeometry,
    pub index: [i32; 3],
    pub cell: usize,
}

impl<R: Real> CellInputs<R> for ColumnCell<'_, R> {
    #[inline(always)]
    fn value(&self, field: usize, component: usize) -> R {
        self.columns[field][component][self.cell]
    }

    #[inline(always)]
    fn around(&self) -> (&[R], usize) {
        (self.block, self.cell)
    }

    #[inline(always)]
    fn place(&self) -> Place<R> {
        cell_place(self.geometry, self.index, self.cell as i32)
    }
}

/// A cell with carried numbers from an earlier call in place of the state of one field.
pub(super) struct RepeatedCell<'a, R> {
    pub at: HostCell<'a, R>,
    pub field: usize,
    pub values: &'a [R],
}

impl<R: Real> CellInputs<R> for RepeatedCell<'_, R> {
    #[inline(always)]
    fn value(&self, field: usize, component: usize) -> R {
        if field > 0 && field == self.field {
            return self.values[component];
        }
        self.at.value(field, component)
    }

    #[inline(always)]
    fn around(&self) -> (&[R], usize) {
        self.at.around()
    }

    #[inline(always)]
    fn place(&self) -> Place<R> {
        self.at.place()
    }
}

/// Sets the chosen components of a row and updates dependent components; `before` is scratch memory.
///
/// # Errors
/// The first cell whose state would be unphysical; the row is unchanged.
pub(super) fn write_back<R: Element>(
    row: &mut [R],
    chosen: &Components,
    states: Option<&StateFunctions<R>>,
    values: &mut [R],
    before: &mut Vec<R>,
) -> Result<(), usize> {
    let dependents = states.and_then(|states| states.dependents);
    if dependents.is_some() {
        before.clear();
        before.extend_from_slice(row);
    }
    exchange(row, chosen, values);
    if let Some(dependents) = &dependents {
        update_dependents(before, row, dependents);
    }
    let Some(states) = states.filter(|states| !(states.physical)(row, CELLS)) else {
        return Ok(());
    };
    // the row is unphysical, so one of its cells is
    let cell = first_unphysical(row, states).unwrap_or_default();
    match dependents {
        Some(_) => row.copy_from_slice(before),
        None => exchange(row, chosen, values),
    }
    Err(cell)
}

/// Exchanges the chosen components of a row with `values`.
fn exchange<R: Element>(row: &mut [R], chosen: &Components, values: &mut [R]) {
    for (n, values) in values.chunks_mut(CELLS).enumerate() {
        if let Some(number) = chosen.number(n) {
            let first = number * CELLS;
            row[first..first + values.len()].swap_with_slice(values);
        }
    }
}

/// Updates components of a row that depend on changed ones; `before` is the old row.
fn update_dependents<R: Element>(before: &[R], row: &mut [R], dependents: &DependentComponents<R>) {
    let [mut old, mut new] = [[R::lit(0.0); MAX_COMPONENTS]; 2];
    let components = row.len() / CELLS;
    for cell in 0..CELLS {
        for c in 0..components {
            (old[c], new[c]) = (before[c * CELLS + cell], row[c * CELLS + cell]);
        }
        (dependents.update)(&old[..components], &mut new[..components]);
        for c in 0..components {
            row[c * CELLS + cell] = new[c];
        }
    }
}

/// Returns the first cell of a row with an unphysical state.
fn first_unphysical<R: Element>(row: &[R], states: &StateFunctions<R>) -> Option<usize> {
    let state = |cell: usize| -> Vec<R> { row.iter().copied().skip(cell).step_by(CELLS).collect() };
    (0..CELLS).find(|&cell| !(states.physical)(&state(cell), 1))
}
