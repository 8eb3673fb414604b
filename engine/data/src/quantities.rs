//! Quantities computed from the states of a field, and criteria on these quantities, for lists built at run time.

use super::Precision;
use super::failure::FaultBox;
use super::field_spec::{Component, Components, Element};
use super::parameters::Parameters;
use crate::in_precision;
use bevy_ecs::prelude::Resource;
use nestar_deck::Formula;
use nestar_device::{CellFn, CellInputs, CellState, Item, Parameter, Place, Precise, Real};
use nestar_kernels::criteria::{LIST_BLOCK, LIST_GHOSTS, LIST_WIDTH};
use nestar_kernels::mesh::block::{LevelGeometry, place_of};
use nestar_kernels::{CELLS, PATCH};
use std::sync::Arc;

/// A loop over cells with these arguments: cells, components that form the state, numeric parameters, results.
pub(super) type Loop<R, T> = dyn Fn(&CellCube<R>, &[usize], &[f64], &mut [T]) + Send + Sync;

/// A cell function in type-erased form, with results `S` and `D` in the two precisions.
#[derive(Clone)]
pub struct CellFunction<S, D> {
    pub(super) item: &'static Item,
    /// Number of members of its state. A function of position alone has none and always uses double precision.
    pub(super) count: usize,
    pub(super) reach: usize,
    single: Arc<Loop<f32, S>>,
    pub(super) double: Arc<Loop<f64, D>>,
    /// Parameters that are a structure instead of numbers.
    pub(super) structure: Option<Arc<dyn Structure>>,
}

/// The loops of a function in single and double precision.
type BothLoops<S, D> = (Arc<Loop<f32, S>>, Arc<Loop<f64, D>>);

/// A function that computes a quantity.
pub type QuantityFn = CellFunction<f32, f64>;
/// A function that returns `true` for marked cells.
pub type CriterionFn = CellFunction<bool, bool>;

impl<S: 'static, D: 'static> CellFunction<S, D> {
    /// Wraps the function `M` with numeric parameters, given with each call.
    /// The function depends on position or on a state: a number or an array, read in the cell or up to [`LIST_GHOSTS`]
    /// cells around it.
    ///
    /// # Panics
    /// If it reads several fields or another number of cells far.
    #[must_use]
    pub fn of<M>() -> Self
    where
        M: CellFn<Result<f32> = S> + CellFn<Result<f64> = D>,
        M::Parameters: for<'a> TryFrom<&'a [f64]>,
    {
        let loops: BothLoops<S, D> = (Arc::new(each::<M, f32, S>), Arc::new(each::<M, f64, D>));
        Self::with_loops::<M>(loops, None)
    }

    /// Wraps the function `M` with a parameter structure that may contain tables and follow the simulation time.
    ///
    /// # Panics
    /// As [`CellFunction::of`]; if it is a function of position alone.
    #[must_use]
    pub fn with<M>(parameters: impl Into<Parameters<M::Parameters>>) -> Self
    where
        M: CellFn<Result<f32> = S> + CellFn<Result<f64> = D>,
        M::Parameters: Send + Sync + 'static,
    {
        let all = parameters.into();
        let (p, q) = (all.clone(), all.clone());
        let single = move |span: &CellCube<f32>, of: &[usize], _: &[f64], out: &mut [S]| {
            over::<M, f32, S>(span, of, &p.at(span.geometry.numbers), out);
        };
        let double = move |span: &CellCube<f64>, of: &[usize], _: &[f64], out: &mut [D]| {
            over::<M, f64, D>(span, of, &q.at(span.geometry.numbers), out);
        };
        let structure = Some(Arc::new(all) as Arc<dyn Structure>);
        let listed = Self::with_loops::<M>((Arc::new(single), Arc::new(double)), structure);
        assert!(listed.count > 0, "`{}` reads no state", M::ITEM.name);
        listed
    }

    /// Returns `true` if the function reads the place and the time alone, and no state.
    #[must_use]
    pub fn is_of_place(&self) -> bool {
        self.count == 0
    }

    fn with_loops<M: CellFn>(
        (single, double): BothLoops<S, D>,
        structure: Option<Arc<dyn Structure>>,
    ) -> Self {
        let [count, others @ ..] = M::State::<f64>::COMPONENTS;
        let fits = others == [0; 3] && [0, LIST_GHOSTS].contains(&M::REACH);
        assert!(
            fits,
            "`{}` cannot be used in a list: it reads several fields or an unsupported number of cells far",
            M::ITEM.name
        );
        Self {
            item: M::ITEM,
            count,
            reach: M::REACH,
            single,
            double,
            structure,
        }
    }
}

/// Converts a list of numbers to the parameters of the function `M`.
///
/// # Errors
/// A message with the expected count, if the list has another length.
pub fn parameters_of<M: CellFn>(given: &[f64]) -> Result<M::Parameters, String>
where
    M::Parameters: for<'a> TryFrom<&'a [f64]>,
{
    M::Parameters::try_from(given).map_err(|_| {
        let fits = |n: &usize| M::Parameters::try_from(&[0.0; 8][..*n]).is_ok();
        let takes = (0..=8).find(fits).unwrap_or_default();
        let plural = if takes == 1 { "" } else { "s" };
        format!(
            "`{}` takes {takes} number{plural} as parameters, but is given {}: {given:?}",
            M::ITEM.name,
            given.len()
        )
    })
}

/// Loops over the cells with numeric parameters.
fn each<M, R: Real, T>(span: &CellCube<R>, components: &[usize], given: &[f64], out: &mut [T])
where
    M: CellFn<Result<R> = T>,
    M::Parameters: for<'a> TryFrom<&'a [f64]>,
{
    let parameters = parameters_of::<M>(given).unwrap_or_else(|why| panic!("{why}"));
    over::<M, R, T>(span, components, &parameters, out);
}

/// Loops over the cells with converted parameters.
fn over<M, R: Real, T>(
    span: &CellCube<R>,
    components: &[usize],
    given: &M::Parameters,
    out: &mut [T],
) where
    M: CellFn<Result<R> = T>,
{
    let parameters = given.precise::<R>();
    for (cell, out) in out.iter_mut().enumerate() {
        let at = CubeCell {
            span,
            components,
            cell,
        };
        *out = M::call(&at, &parameters);
    }
}

/// Selects the loops of a precision.
pub(super) trait Loops: Element {
    fn number(function: &QuantityFn) -> &Loop<Self, Self>;
    fn mark(function: &CriterionFn) -> &Loop<Self, bool>;
}

macro_rules! loops {
    ($t:ty, $loop:ident) => {
        impl Loops for $t {
            fn number(function: &QuantityFn) -> &Loop<Self, Self> {
                &*function.$loop
            }
            fn mark(function: &CriterionFn) -> &Loop<Self, bool> {
                &*function.$loop
            }
        }
    };
}
loops!(f32, single);
loops!(f64, double);

/// Quantities in cubes of cells, one cube after the other.
pub(super) struct CellCube<'a, R> {
    pub values: &'a [R],
    /// Distance between consecutive quantities of a cell.
    pub stride: usize,
    /// Number of cells along an axis.
    pub width: usize,
    pub first: [i32; 3],
    pub geometry: &'a LevelGeometry,
}

impl<'a, R> CellCube<'a, R> {
    /// Wraps the cells of a patch with `values` as `[quantity][512]`.
    pub(super) fn of_patch(values: &'a [R], patch: [i32; 3], geometry: &'a LevelGeometry) -> Self {
        CellCube {
            values,
            stride: CELLS,
            width: PATCH,
            first: patch.map(|i| i * PATCH as i32),
            geometry,
        }
    }
}

impl<R> CellCube<'_, R> {
    /// Returns the same cells without quantities.
    pub(super) fn places(&self) -> CellCube<'_, f64> {
        CellCube {
            values: &[],
            stride: 0,
            width: self.width,
            first: self.first,
            geometry: self.geometry,
        }
    }

    /// Returns the cells of the same patch with ghost cells and their quantities `values`.
    pub(super) fn with_ghosts<'a>(&self, values: &'a [R]) -> CellCube<'a, R>
    where
        Self: 'a,
    {
        CellCube {
            values,
            stride: LIST_BLOCK,
            width: LIST_WIDTH,
            first: self.first.map(|i| i - LIST_GHOSTS as i32),
            geometry: self.geometry,
        }
    }

    /// Returns the index of an interior cell of the patch within the cube.
    fn own(&self, cell: usize) -> usize {
        if self.stride == CELLS {
            return cell;
        }
        let [i, j, k] = [cell % 8, cell / 8 % 8, cell / 64].map(|i| i + LIST_GHOSTS);
        i + LIST_WIDTH * (j + LIST_WIDTH * k)
    }

    pub(super) fn place<P: Real>(&self, cell: usize) -> Place<P> {
        let n = self.width;
        let c = [cell % n, cell / n % n, cell / (n * n)];
        let index = std::array::from_fn(|a| self.first[a] + c[a] as i32);
        place_of(self.geometry, index)
    }
}

/// A cell of a cube.
struct CubeCell<'a, R> {
    span: &'a CellCube<'a, R>,
    components: &'a [usize],
    cell: usize,
}

impl<R: Real> CellInputs<R> for CubeCell<'_, R> {
    #[inline(always)]
    fn value(&self, _: usize, component: usize) -> R {
        match self.components[component] {
            Components::ZERO => R::lit(0.0),
            c => self.span.values[c * self.span.stride + self.cell],
        }
    }

    #[inline(always)]
    fn around(&self) -> (&[R], usize) {
        (
            &self.span.values[self.components[0] * self.span.stride..],
            self.cell,
        )
    }

    #[inline(always)]
    fn place(&self) -> Place<R> {
        self.span.place(self.cell)
    }
}

/// A quantity with its parameters, computed by a function from some components of the field.
#[derive(Clone)]
pub struct NamedQuantity {
    /// Function that computes it.
    pub function: QuantityFn,
    /// Components of the field that form its state, or [`Components::ZERO`].
    pub components: Vec<usize>,
    /// Numeric parameters.
    pub parameters: Vec<f64>,
}

impl NamedQuantity {
    /// Evaluates the quantity for a state of the whole field. The function must depend on the state alone.
    #[must_use]
    pub fn of_state(&self, state: &[f64]) -> f64 {
        let nowhere = LevelGeometry::default();
        let span = CellCube {
            values: state,
            stride: 1,
            width: 1,
            first: [0; 3],
            geometry: &nowhere,
        };
        let mut number = [0.0];
        (self.function.double)(&span, &self.components, &self.parameters, &mut number);
        number[0]
    }

    pub(super) fn fill<R: Loops>(&self, span: &CellCube<R>, out: &mut [R]) {
        if self.function.count == 0 {
            let mut exact = vec![0.0; out.len()];
            self.fill_exactly(span, &mut exact);
            return (out.iter_mut().zip(exact)).for_each(|(out, x)| *out = R::lit(x));
        }
        R::number(&self.function)(span, &self.components, &self.parameters, out);
    }

    fn fill_exactly<R: Loops>(&self, span: &CellCube<R>, out: &mut [f64]) {
        if self.function.count == 0 {
            return (self.function.double)(&span.places(), &[], &self.parameters, out);
        }
        let mut values = vec![R::lit(0.0); out.len()];
        self.fill(span, &mut values);
        (out.iter_mut().zip(values)).for_each(|(out, x)| *out = x.to_f64());
    }
}

/// A quantity in a cell.
#[derive(Clone)]
pub enum CellQuantity {
    /// A named quantity.
    Named(NamedQuantity),
    /// A formula of quantities, in the order of its variables, with its deck key.
    Formula(Formula, Vec<NamedQuantity>, String),
}

impl CellQuantity {
    pub(super) fn fill<R: Loops>(&self, span: &CellCube<R>, out: &mut [R]) {
        match self {
            Self::Named(named) => named.fill(span, out),
            Self::Formula(formula, arguments, _) => {
                let mut columns = vec![vec![0.0; out.len()]; arguments.len()];
                for (argument, column) in arguments.iter().zip(&mut columns) {
                    argument.fill_exactly(span, column);
                }
                let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
                let mut values = vec![0.0; out.len()];
                formula.eval_many(&columns, &mut values);
                (out.iter_mut().zip(values)).for_each(|(out, x)| *out = R::lit(x));
            }
        }
    }

    /// Computes the quantity in the 512 cells of a patch from `[component][512]` values.
    pub fn fill_patch(
        &self,
        values: &[f64],
        patch: [i32; 3],
        geometry: &LevelGeometry,
        out: &mut [f64],
    ) {
        self.fill(&CellCube::of_patch(values, patch, geometry), out);
    }

    /// Returns the named quantities that it reads.
    pub fn parts_mut(&mut self) -> &mut [NamedQuantity] {
        match self {
            Self::Named(named) => std::slice::from_mut(named),
            Self::Formula(_, arguments, _) => arguments,
        }
    }

    /// Returns `true` if it is a formula, which may give NaN by an error of the user.
    pub(super) fn is_formula(&self) -> bool {
        matches!(self, Self::Formula(..))
    }

    /// Returns the message about a formula that is not a number at this place and time.
    pub(super) fn fault(&self, place: [f64; 3], time: f64) -> Option<String> {
        let Self::Formula(formula, _, key) = self else {
            return None;
        };
        Some(format!(
            "the formula {key} = \"{}\" is not a finite number at (x, y, z) = {place:?}, t = {time}{}",
            formula.text(),
            formula.ranges()
        ))
    }
}

/// A criterion with its quantities and parameters.
pub struct CellCriterion {
    /// Function that marks cells.
    pub function: CriterionFn,
    /// Quantities that form its state.
    pub of: Vec<CellQuantity>,
    /// Parameters on each level; `None` for levels without marks.
    pub levels: Vec<Option<Vec<f64>>>,
}

impl CellCriterion {
    /// Reports the first cell of a patch in which a formula is not a number.
    pub(super) fn check<R: Real>(
        &self,
        numbers: &CellCube<R>,
        places: &[usize],
        faults: &FaultBox,
    ) {
        for (number, place) in self.of.iter().zip(places) {
            if !number.is_formula() {
                continue;
            }
            let values = &numbers.values[place * numbers.stride..];
            let wrong = (0..CELLS).find(|&cell| values[numbers.own(cell)].is_nan());
            if let Some(message) = wrong
                .and_then(|cell| number.fault(numbers.place(cell).centre, numbers.geometry.time))
            {
                faults.report(|| message);
            }
        }
    }
}

/// Returns the device address of the values of a table.
pub type Placing<'a> = dyn FnMut(&Arc<[f64]>) -> u64 + 'a;

/// A parameter structure.
pub(super) trait Structure: Send + Sync {
    /// Returns its size in double precision, the larger one, in bytes.
    fn most_bytes(&self) -> usize;
    /// Returns its bytes on a device, for these numbers of the clock.
    fn bytes(&self, precision: Precision, numbers: [f64; 2], place: &mut Placing) -> Vec<u8>;
}

impl<P: Precise + Send + Sync> Structure for Parameters<P> {
    fn most_bytes(&self) -> usize {
        P::In::<f64>::BYTES
    }

    fn bytes(&self, precision: Precision, numbers: [f64; 2], place: &mut Placing) -> Vec<u8> {
        let parameters = self.at(numbers);
        in_precision!(precision, R => {
            let mut own = parameters.precise::<R>();
            own.bind(place);
            let mut bytes = vec![0; P::In::<R>::BYTES];
            own.write(&mut bytes);
            bytes
        })
    }
}

/// Alignment of every structure, bytes.
const ALIGNMENT: usize = 16;

/// The structures of a list in sequence, at the same offsets in both precisions.
#[derive(Clone, Default)]
pub(super) struct Structures(Vec<(usize, Arc<dyn Structure>)>);

impl Structures {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the offset of a structure in bytes, adding it if necessary.
    pub fn place(&mut self, structure: &Arc<dyn Structure>) -> usize {
        let mut known = self.0.iter();
        if let Some((at, _)) = known.find(|(_, other)| Arc::ptr_eq(other, structure)) {
            return *at;
        }
        let end = self.bytes_to(self.0.len());
        self.0.push((end, structure.clone()));
        end
    }

    /// Returns the bytes of the first `count` structures.
    fn bytes_to(&self, count: usize) -> usize {
        let last = self.0[..count].last();
        last.map_or(0, |(at, last)| {
            (at + last.most_bytes()).next_multiple_of(ALIGNMENT)
        })
    }

    /// Returns the bytes of all structures on a device, for these numbers of the clock.
    pub fn bytes(&self, precision: Precision, numbers: [f64; 2], place: &mut Placing) -> Vec<u8> {
        let mut all = vec![0; self.bytes_to(self.0.len())];
        for (at, structure) in &self.0 {
            let bytes = structure.bytes(precision, numbers, place);
            all[*at..at + bytes.len()].copy_from_slice(&bytes);
        }
        all
    }
}

/// A quantity per cell that is derived from the state of a field.
#[derive(Clone)]
pub struct DerivedField {
    /// Name of the quantity and of its array in snapshots.
    pub name: String,
    /// Unit: `1`, or as `mass/length**3`. Words other than length, mass and time are units of their own, such as `K`.
    pub units: String,
    /// Description in one sentence.
    pub long_name: String,
    /// The function that computes it.
    pub number: NamedQuantity,
}

impl DerivedField {
    /// Returns the components of the field that it reads, ascending.
    #[must_use]
    pub fn components(&self) -> Vec<usize> {
        let mut components = self.number.components.clone();
        components.retain(|&c| c != Components::ZERO);
        components.sort_unstable();
        components.dedup();
        components
    }

    /// Computes the quantity in the 512 cells of a patch from `[component][512]` values.
    pub fn fill(&self, values: &[f64], patch: [i32; 3], geometry: &LevelGeometry, out: &mut [f64]) {
        self.number
            .fill(&CellCube::of_patch(values, patch, geometry), out);
    }
}

/// All derived quantities with the names of their fields; filled by `Engine::register_derived`.
#[derive(Resource, Default)]
pub struct DerivedFields(Vec<(&'static str, DerivedField)>);

impl DerivedFields {
    /// Adds quantities derived from the field `of`.
    ///
    /// # Errors
    /// The first quantity that is refused, with the reason.
    pub fn add(
        &mut self,
        of: &'static str,
        components: &[Component],
        derived: Vec<DerivedField>,
    ) -> Result<(), String> {
        for own in derived {
            let wrong = |why: &str| Err(format!("derived field `{}`: {why}", own.name));
            if own.number.function.reach > 0 {
                return wrong(
                    "it reads neighbouring cells; derived fields may read only their own cell",
                );
            }
            if own
                .components()
                .last()
                .is_none_or(|&c| c >= components.len())
            {
                return wrong(&format!("its components are not those of the field `{of}`"));
            }
            if self.0.iter().any(|(_, known)| known.name == own.name) {
                return wrong("the name is already in use");
            }
            self.0.push((of, own));
        }
        Ok(())
    }

    /// Returns all quantities with the names of their fields.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &DerivedField)> {
        self.0.iter().map(|(of, own)| (*of, own))
    }

    /// Returns the quantities called `names`.
    pub fn named<'a>(
        &'a self,
        names: &'a [String],
    ) -> impl Iterator<Item = (&'static str, &'a DerivedField)> {
        let find = |name: &'a String| self.all().find(|(_, own)| own.name == *name);
        names.iter().filter_map(find)
    }
}
