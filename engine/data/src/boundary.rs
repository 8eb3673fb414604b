//! Boundary conditions given by `#[device]` functions.

use super::cell_args::CellMap;
use super::failure::FaultBox;
use super::field_spec::{Element, FieldSpec};
use super::pool::Field;
use nestar_device::{
    CellFn, CellInputs, CellState, Ghost, InnerCells, MAX_INNER_CELLS, Parameter, Place, Precise,
    Real,
};
use nestar_kernels::mesh::block::place_of;
use nestar_kernels::mesh::{CellRule, GhostCell, InnerStates, RuleFault, RuleText, StateRules};

/// A function of a [`Ghost`] and its position that returns the leading components of a ghost cell:
///
/// ```text
/// fn f<R: Real>(ghost: Ghost<R, S<R>>, at: &Place<R>, p: &P<R>) -> T      // each of `at` and `p` may be left out
/// ```
///
/// `at` is the position of the ghost cell itself; `p` may also be an array of numbers.
pub trait BoundaryFn: CellMap<State<f64>: InnerCells, Parameters: Send + Sync> {}

impl<M: CellMap<State<f64>: InnerCells, Parameters: Send + Sync>> BoundaryFn for M {}

/// A function as the boundary rule called `word` in decks.
pub struct FunctionRule<M: BoundaryFn> {
    word: String,
    parameters: M::Parameters,
    components: usize,
    states: Option<StateRules>,
    faults: FaultBox,
}

impl<M: BoundaryFn> FunctionRule<M> {
    /// Creates the rule `word` for the field `F`.
    ///
    /// # Errors
    /// The function does not fit the field; its parameters contain a table.
    pub fn new<F: Field>(
        word: &str,
        parameters: M::Parameters,
        spec: &FieldSpec,
        faults: FaultBox,
    ) -> Result<Self, String> {
        let inner = <M::State<f64> as InnerCells>::NUMBERS;
        let (reads, gives) = (inner, M::Result::<f64>::COUNT);
        let components = spec.components.len();
        let cells = <M::State<f64> as InnerCells>::CELLS;
        let name = M::ITEM.name;
        let fits = spec.check_leading(name, F::NAME, reads.max(gives));
        fits.map_err(|why| format!("the boundary `{word}`: {why}"))?;
        if reads.max(gives) > components || !(1..=MAX_INNER_CELLS).contains(&cells) {
            return Err(format!(
                "the boundary `{word}`: `{name}` reads {reads} components of {cells} inner cells and gives {gives}; the field has \
                 {components}, and 1 to {MAX_INNER_CELLS} inner cells can be read"
            ));
        }
        let mut tables = 0;
        let mut precise = parameters.precise::<f64>();
        precise.bind(&mut |_| {
            tables += 1;
            0
        });
        if tables > 0 {
            return Err(format!(
                "the boundary `{word}`: `{name}` has a table among its parameters, which boundary rules do not support"
            ));
        }
        Ok(Self {
            word: word.into(),
            parameters,
            components,
            states: spec.states,
            faults,
        })
    }

    /// Computes the ghost state from `state`, that of the nearest inner cell. Components that are shares of the first
    /// one scale with it.
    /// An unmodified copy of the inner state is not checked.
    fn set<R: Element>(&self, cell: &GhostCell, inner: &InnerStates<R>, state: &mut [R])
    where
        M: CellFn<Result<R>: CellState<R>>,
    {
        let numbers = <M::State<f64> as InnerCells>::NUMBERS;
        let at = GhostCellInput {
            cell,
            inner,
            numbers,
            values: numbers * <M::State<f64> as InnerCells>::CELLS,
        };
        let rules = self.states.as_ref().map(R::states);
        let dependents = rules.and_then(|rules| rules.dependents);
        let inside = dependents.map_or(Vec::new(), |_| state.to_vec());
        let before = state[0];
        let result = M::call(&at, &self.parameters.precise::<R>());
        let mut copied = true;
        let mut set = |_, c: usize, value: R| {
            copied &= state[c] == value;
            state[c] = value;
        };
        result.write(&mut set, 0, 0);
        if copied {
            return;
        }
        if let Some(dependents) = dependents {
            (dependents.update)(&inside, state);
        }
        if let Some(rules) = &rules
            && state[0] != before
        {
            let shares = rules.leading.max(M::Result::<R>::COUNT)..state.len();
            let whole = state[0];
            state[shares]
                .iter_mut()
                .for_each(|u| *u = *u / before * whole);
        }
        self.check_state(cell, state);
    }

    /// Reports an unphysical ghost state.
    fn check_state<R: Element>(&self, cell: &GhostCell, state: &[R]) {
        let rules = self.states.as_ref().map(R::states);
        let sound = state.iter().all(|u| u.is_finite());
        if !sound || rules.is_some_and(|rules| !(rules.physical)(state, 1)) {
            let state: Vec<f64> = state.iter().map(|u| u.to_f64()).collect();
            let GhostCell {
                axis, side, centre, ..
            } = *cell;
            self.faults
                .report(|| self.message([axis, side], centre, cell.time, &state));
        }
    }

    fn message(
        &self,
        [axis, side]: [usize; 2],
        centre: [f64; 3],
        time: f64,
        state: &[f64],
    ) -> String {
        let (axis, side) = (["x", "y", "z"][axis], ["lower", "upper"][side]);
        let shown = &state[..state.len().min(8)];
        format!(
            "the boundary `{}` gives an unphysical state beyond the {side} {axis} face at (x, y, z) = {centre:?}, t = {time}: \
             {shown:?}",
            self.word
        )
    }

    fn text<R: Element>(&self, axis: usize, side: usize) -> RuleText {
        type In<M, R> = <<M as CellFn>::Parameters as Precise>::In<R>;
        let mut words = vec![0u64; In::<M, R>::BYTES.div_ceil(8)];
        let bytes = &mut bytemuck::cast_slice_mut(&mut words)[..In::<M, R>::BYTES];
        self.parameters.precise::<R>().write(bytes);
        let words: Vec<String> = words.iter().map(|word| format!("{word:#x}ull")).collect();
        let functions = format!(
            "RS_FN bool wall_{axis}_{side}(const double*, double, unsigned*) {{ return false; }}
RS_FN void ghost_{axis}_{side}(const GhostQuery& at, REAL* u, unsigned* fault) {{
  const rs::u64 parameters[] = {{{}}};
  if (!Rule<&::{}<REAL>>::template apply<{axis}, {side}>(at, parameters, u)) launch::leave_fault(fault, {}u, at.centre, at.time, u, COMPONENTS);
}}
",
            words.join(", "),
            M::ITEM.path(),
            RuleText::face_code(axis, side),
        );
        RuleText {
            items: vec![M::ITEM, Ghost],
            functions,
            inner: <M::State<f64> as InnerCells>::CELLS,
        }
    }
}

macro_rules! rule {
    ($($t:ty),*) => {$(
        impl<M: BoundaryFn> CellRule<$t> for FunctionRule<M> {
            fn apply(&self, cell: &GhostCell, inner: &InnerStates<$t>, state: &mut [$t]) {
                self.set(cell, inner, state);
            }

            fn device(&self, axis: usize, side: usize) -> Option<RuleText> {
                Some(self.text::<$t>(axis, side))
            }

            fn fault_message(&self, fault: &RuleFault) -> Option<String> {
                let state = &fault.state[..self.components.min(fault.state.len())];
                Some(self.message([fault.axis, fault.side], fault.centre, fault.time, state))
            }
        }
    )*};
}
rule!(f32, f64);

/// A ghost cell with its inner cells, as read by the function.
struct GhostCellInput<'a, R> {
    cell: &'a GhostCell,
    inner: &'a InnerStates<'a, R>,
    /// Number of values read per inner cell.
    numbers: usize,
    values: usize,
}

impl<R: Real> CellInputs<R> for GhostCellInput<'_, R> {
    #[inline(always)]
    fn value(&self, _: usize, component: usize) -> R {
        let face = [
            self.cell.axis as i32,
            self.cell.side as i32,
            self.cell.layer,
        ];
        match component.checked_sub(self.values) {
            None => self
                .inner
                .value(component / self.numbers, component % self.numbers),
            Some(n) => R::from_i32(face[n]),
        }
    }

    fn around(&self) -> (&[R], usize) {
        (&[], 0)
    }

    fn place(&self) -> Place<R> {
        place_of(&self.cell.level, self.cell.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestar_device::device;
    use nestar_kernels::mesh::{Boundaries, CellBlock, FaceRule};
    use std::sync::Arc;

    struct Dust;

    impl Field for Dust {
        const NAME: &'static str = "dust";
    }

    #[device]
    fn copied<R: Real>(ghost: Ghost<R, R, 1>) -> R {
        ghost.at(0)
    }

    #[device]
    fn turned<R: Real>(ghost: Ghost<R, R, 1>) -> R {
        -ghost.at(0)
    }

    /// Returns `true` if the rule of the upper x face is reported, with all inner values equal to `value`.
    fn is_blamed<M: BoundaryFn<Parameters = [f64; 0]>>(value: f64) -> bool
    where
        FunctionRule<M>: CellRule<f64>,
    {
        let (spec, faults) = (FieldSpec::cells(&["dust"]), FaultBox::default());
        let rule = FunctionRule::<M>::new::<Dust>("word", [], &spec, faults.clone());
        let mut faces = [[(); 2]; 3].map(|sides| sides.map(|()| FaceRule::Outflow));
        faces[0][1] = FaceRule::Rule(Arc::new(rule.expect("a rule")));
        let boundaries = Boundaries {
            faces,
            normal: [0; 3],
        };
        let block = CellBlock {
            n: 4,
            level: 0,
            origin: [6, 0, 0],
            domain_cells: [8; 3],
            left_edge: [0.0; 3],
            right_edge: [1.0; 3],
        };
        let (mut values, mut state) = (vec![value; 64], [0.0]);
        boundaries.fill(&block, 0.0, &mut values, 64, 1, &mut state);
        faults.has_fault()
    }

    #[test]
    fn what_stands_inside_is_no_fault_of_a_rule_that_copies_it() {
        assert!(!is_blamed::<copied>(1.0) && !is_blamed::<turned>(1.0));
        assert!(!is_blamed::<copied>(f64::INFINITY));
        assert!(is_blamed::<turned>(f64::INFINITY));
        assert!(is_blamed::<copied>(f64::NAN));
    }
}
