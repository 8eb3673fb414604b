//! What lists of criteria consist of: numbers that are made of a field's states, and functions of those numbers that mark cells.

use super::components::Components;
use super::element::Element;
use super::faults::FaultBox;
use super::structures::Structure;
use nestar_deck::Formula;
use nestar_device::{CellFn, CellInputs, CellState, Item, Place, Precise, Real};
use nestar_kernels::criteria::{LIST_BLOCK, LIST_GHOSTS, LIST_WIDTH};
use nestar_kernels::mesh::block::{LevelGeometry, place_of};
use nestar_kernels::{CELLS, PATCH};
use std::sync::Arc;

/// A loop over cells: those of the span, the components that the function reads, its parameters where they are numbers, and the results.
pub(super) type Loop<R, T> = dyn Fn(&CellCube<R>, &[usize], &[f64], &mut [T]) + Send + Sync;

/// A function of a cell, among others of its kind: `S` and `D` are its results in the two precisions.
#[derive(Clone)]
pub struct CellFunction<S, D> {
    pub(super) item: &'static Item,
    /// Numbers of its state; a function of the place alone has none, and is called in double precision always.
    pub(super) count: usize,
    pub(super) reach: usize,
    single: Arc<Loop<f32, S>>,
    pub(super) double: Arc<Loop<f64, D>>,
    /// Its parameters, where they are no numbers.
    pub(super) structure: Option<Arc<dyn Structure>>,
}

/// A function's loops over cells in single and in double precision.
type BothLoops<S, D> = (Arc<Loop<f32, S>>, Arc<Loop<f64, D>>);

/// A function that gives a number.
pub type QuantityFn = CellFunction<f32, f64>;
/// A function that says whether a cell is marked.
pub type CriterionFn = CellFunction<bool, bool>;

impl<S: 'static, D: 'static> CellFunction<S, D> {
    /// The function `M`, of a number or of an array of them, in the cell or [`LIST_GHOSTS`] cells around it, or of the place. Its
    /// parameters are numbers, which come with each call.
    ///
    /// # Panics
    /// If it reads several fields, or another number of cells far.
    #[must_use]
    pub fn of<M>() -> Self
    where
        M: CellFn<Result<f32> = S> + CellFn<Result<f64> = D>,
        M::Parameters: for<'a> TryFrom<&'a [f64]>,
    {
        let loops: BothLoops<S, D> = (Arc::new(each::<M, f32, S>), Arc::new(each::<M, f64, D>));
        Self::with_loops::<M>(loops, None)
    }

    /// The same with these parameters, a structure that may hold tables.
    ///
    /// # Panics
    /// As [`CellFunction::of`]; if it is a function of the place alone.
    #[must_use]
    pub fn with<M>(parameters: M::Parameters) -> Self
    where
        M: CellFn<Result<f32> = S> + CellFn<Result<f64> = D>,
        M::Parameters: Send + Sync + 'static,
    {
        let all = Arc::new(parameters);
        let (p, q) = (all.clone(), all.clone());
        let single = move |span: &CellCube<f32>, of: &[usize], _: &[f64], out: &mut [S]| {
            over::<M, f32, S>((span, of), &p, out);
        };
        let double = move |span: &CellCube<f64>, of: &[usize], _: &[f64], out: &mut [D]| {
            over::<M, f64, D>((span, of), &q, out);
        };
        let listed = Self::with_loops::<M>((Arc::new(single), Arc::new(double)), Some(all));
        assert!(listed.count > 0, "{} reads no state", M::ITEM.name);
        listed
    }

    fn with_loops<M: CellFn>(
        (single, double): BothLoops<S, D>,
        structure: Option<Arc<dyn Structure>>,
    ) -> Self {
        let [count, others @ ..] = M::State::<f64>::COMPONENTS;
        let fits = others == [0; 3] && [0, LIST_GHOSTS].contains(&M::REACH);
        assert!(fits, "{} cannot stand in a list", M::ITEM.name);
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

/// The parameters of the function `M`, numbers, made of a list of them.
///
/// # Errors
/// There are more or fewer than the function takes: how many.
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

/// The loop over a function whose parameters are numbers.
fn each<M, R: Real, T>(span: &CellCube<R>, components: &[usize], given: &[f64], out: &mut [T])
where
    M: CellFn<Result<R> = T>,
    M::Parameters: for<'a> TryFrom<&'a [f64]>,
{
    let parameters = parameters_of::<M>(given).unwrap_or_else(|why| panic!("{why}"));
    over::<M, R, T>((span, components), &parameters, out);
}

/// The loop over a function with its parameters.
fn over<M, R: Real, T>(
    (span, components): (&CellCube<R>, &[usize]),
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

/// The loops of a precision.
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

/// Numbers in cubes of cells, one cube after the other.
pub(super) struct CellCube<'a, R> {
    pub values: &'a [R],
    /// From a cell's number to its next.
    pub stride: usize,
    /// Cells along an axis, and the first of them on the level.
    pub width: usize,
    pub first: [i32; 3],
    pub geometry: &'a LevelGeometry,
}

impl<'a, R> CellCube<'a, R> {
    /// A patch's cells, of which `values` are `[number][512]`.
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
    /// The same cells without numbers.
    pub(super) fn places(&self) -> CellCube<'_, f64> {
        CellCube {
            values: &[],
            stride: 0,
            width: self.width,
            first: self.first,
            geometry: self.geometry,
        }
    }

    /// The same patch with ghost cells, whose numbers are `values`.
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

    /// Where the number of one of the patch's own cells stands in a cube of `stride` numbers.
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

/// A cell of a span.
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

/// A number with a name: a function of a cell's state, of which it reads some components, with its parameters.
#[derive(Clone)]
pub struct NamedQuantity {
    /// The function.
    pub function: QuantityFn,
    /// Components of the field that make its state, or [`Components::ZERO`].
    pub components: Vec<usize>,
    /// Its parameters, where they are numbers.
    pub parameters: Vec<f64>,
}

impl NamedQuantity {
    /// The number for a state of the whole field; of a function of the state alone.
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

/// A number in a cell.
#[derive(Clone)]
pub enum CellQuantity {
    /// By its name.
    Named(NamedQuantity),
    /// A formula of such, in the order of its variables, and the key of the deck where it stands.
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

    /// Whether it may be no number by a mistake of the user.
    pub(super) fn is_formula(&self) -> bool {
        matches!(self, Self::Formula(..))
    }

    /// The message of a number that is none at a place and time; a formula's alone.
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

/// A criterion of a list.
pub struct CellCriterion {
    /// What says whether a cell is marked.
    pub function: CriterionFn,
    /// The numbers that make its state.
    pub of: Vec<CellQuantity>,
    /// Its parameters on each level; `None`: it marks no cell of the level.
    pub levels: Vec<Option<Vec<f64>>>,
}

impl CellCriterion {
    /// Reports the first of a patch's cells where a formula is not a number.
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
