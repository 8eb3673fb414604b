//! Stack machine that evaluates formulas at one point or at blocks of points, with the same bits.

use super::Formula;
use super::program;
use super::program::{DEPTH, FormulaProgram, Op};

/// Points per block: long enough to hide the dispatch, short enough to keep the stack in the L1 cache.
const BLOCK: usize = 64;

impl Formula {
    /// Evaluates the formula at one point; `values` are the variables in the order given to `parse`. Does not allocate.
    ///
    /// The value is NaN where the formula is undefined.
    ///
    /// # Panics
    /// `values` is shorter than the list of variables.
    #[must_use]
    pub fn eval(&self, values: &[f64]) -> f64 {
        assert!(
            values.len() >= self.variables().len(),
            "one value for each of {:?}",
            self.variables()
        );
        let load = |variable: usize, lane: &mut [f64; 1]| lane[0] = values[variable];
        ValueStack::new().evaluate(self.program(), load)[0]
    }

    /// Evaluates the formula at many points, `out[i]` from `columns[..][i]`, several times faster than [`eval`](Self::eval)
    /// and with the same bits. Does not allocate.
    ///
    /// # Panics
    /// There are fewer columns than variables, or a column is shorter than `out`.
    pub fn eval_many(&self, columns: &[&[f64]], out: &mut [f64]) {
        assert!(
            columns.len() >= self.variables().len(),
            "one column for each of {:?}",
            self.variables()
        );
        assert!(
            columns.iter().all(|column| column.len() >= out.len()),
            "each column has a value for each point"
        );
        let mut stack = ValueStack::<BLOCK>::new();
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            let points = block * BLOCK..block * BLOCK + out.len();
            // lanes after the last point keep old values; their results are not used
            let load = |variable: usize, lanes: &mut [f64; BLOCK]| {
                lanes[..points.len()].copy_from_slice(&columns[variable][points.clone()]);
            };
            out.copy_from_slice(&stack.evaluate(self.program(), load)[..points.len()]);
        }
    }
}

/// Applies one operation to numbers, for constant folding.
pub(super) fn apply(op: Op, arguments: &[f64]) -> f64 {
    let mut stack = ValueStack::<1>::new();
    for argument in arguments {
        stack.push()[0] = *argument;
    }
    stack.run(op);
    stack.lanes[0][0]
}

/// Stacks for `N` points.
struct ValueStack<const N: usize> {
    lanes: [[f64; N]; DEPTH],
    top: usize,
}

impl<const N: usize> ValueStack<N> {
    fn new() -> Self {
        ValueStack {
            lanes: [[0.0; N]; DEPTH],
            top: 0,
        }
    }

    /// Runs `program` and returns the result; `load` copies a variable into the lanes.
    fn evaluate(
        &mut self,
        program: &FormulaProgram,
        load: impl Fn(usize, &mut [f64; N]),
    ) -> &[f64; N] {
        self.top = 0;
        for op in &program.ops {
            match op {
                Op::Constant(index) => self.push().fill(program.constants[usize::from(*index)]),
                Op::Variable(index) => load(usize::from(*index), self.push()),
                Op::Curve(index) => {
                    let (_, curve) = &program.curves[usize::from(*index)];
                    self.one(|a| curve.at(a));
                }
                op => self.run(*op),
            }
        }
        &self.lanes[0]
    }

    /// Pushes a value and returns its lanes.
    #[inline(always)]
    fn push(&mut self) -> &mut [f64; N] {
        self.top += 1;
        &mut self.lanes[self.top - 1]
    }

    #[inline(always)]
    fn one(&mut self, function: impl Fn(f64) -> f64) {
        for a in &mut self.lanes[self.top - 1] {
            *a = function(*a);
        }
    }

    #[inline(always)]
    fn two(&mut self, function: impl Fn(f64, f64) -> f64) {
        self.top -= 1;
        let (below, above) = self.lanes.split_at_mut(self.top);
        for (a, b) in below[self.top - 1].iter_mut().zip(&above[0]) {
            *a = function(*a, *b);
        }
    }

    #[inline(always)]
    fn compare(&mut self, function: impl Fn(f64, f64) -> bool) {
        self.two(|a, b| if function(a, b) { 1.0 } else { 0.0 });
    }

    fn select(&mut self) {
        self.top -= 2;
        let (below, above) = self.lanes.split_at_mut(self.top);
        for (i, condition) in below[self.top - 1].iter_mut().enumerate() {
            *condition = if *condition != 0.0 {
                above[0][i]
            } else {
                above[1][i]
            };
        }
    }

    /// Runs a function of a seed, a level and the index of a cell.
    fn of_cell(&mut self, function: impl Fn(f64, f64, f64, f64, f64) -> f64) {
        self.top -= 4;
        let (below, above) = self.lanes.split_at_mut(self.top);
        for (n, seed) in below[self.top - 1].iter_mut().enumerate() {
            let [level, i, j, k] = [0, 1, 2, 3].map(|argument| above[argument][n]);
            *seed = function(*seed, level, i, j, k);
        }
    }

    /// Runs an operation that takes arguments.
    fn run(&mut self, op: Op) {
        match op {
            // handled by `evaluate`
            Op::Constant(_) | Op::Variable(_) | Op::Curve(_) => {}
            // same bits as `power_integer`, without its loop
            Op::PowerInteger(2) => self.one(|a| a * a),
            Op::PowerInteger(exponent) => self.one(|a| program::power_integer(a, exponent)),
            Op::Negate => self.one(|a| -a),
            Op::Not => self.one(|a| if a == 0.0 { 1.0 } else { 0.0 }),
            Op::Abs => self.one(f64::abs),
            Op::Sign => self.one(program::sign),
            Op::Step => self.one(|a| if a >= 0.0 { 1.0 } else { 0.0 }),
            Op::Floor => self.one(f64::floor),
            Op::Ceil => self.one(f64::ceil),
            Op::Sqrt => self.one(f64::sqrt),
            Op::Add => self.two(|a, b| a + b),
            Op::Subtract => self.two(|a, b| a - b),
            Op::Multiply => self.two(|a, b| a * b),
            Op::Divide => self.two(|a, b| a / b),
            Op::Modulo => self.two(program::modulo),
            Op::Min => self.two(program::least),
            Op::Max => self.two(program::greatest),
            Op::Less => self.compare(|a, b| a < b),
            Op::LessEqual => self.compare(|a, b| a <= b),
            Op::Greater => self.compare(|a, b| a > b),
            Op::GreaterEqual => self.compare(|a, b| a >= b),
            Op::Equal => self.compare(|a, b| a == b),
            Op::NotEqual => self.compare(|a, b| a != b),
            Op::And => self.compare(|a, b| a != 0.0 && b != 0.0),
            Op::Or => self.compare(|a, b| a != 0.0 || b != 0.0),
            Op::Select => self.select(),
            _ => self.transcendental(op),
        }
    }

    /// Runs a function of `math`.
    fn transcendental(&mut self, op: Op) {
        match op {
            Op::Exp => self.one(program::exp),
            Op::Ln => self.one(program::ln),
            Op::Log10 => self.one(program::log10),
            Op::Sin => self.one(program::sin),
            Op::Cos => self.one(program::cos),
            Op::Tan => self.one(program::tan),
            Op::Asin => self.one(program::asin),
            Op::Acos => self.one(program::acos),
            Op::Atan => self.one(program::atan),
            Op::Sinh => self.one(program::sinh),
            Op::Cosh => self.one(program::cosh),
            Op::Tanh => self.one(program::tanh),
            Op::Erf => self.one(program::erf),
            Op::Atan2 => self.two(program::angle),
            Op::Power => self.two(program::pow),
            Op::Random => self.of_cell(program::random),
            Op::Gaussian => self.of_cell(program::gaussian),
            _ => {}
        }
    }
}
