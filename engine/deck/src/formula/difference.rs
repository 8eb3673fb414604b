//! Central differences of formulas.

use super::program::{DEPTH, FormulaProgram, Op};
use super::{Formula, FormulaError};

impl Formula {
    /// Returns the central difference of the formula over one step: (f(1) - f(-1)) / 2, or with fourth order
    /// (8 (f(1) - f(-1)) - (f(2) - f(-2))) / 12. Its variables are those of the formula at the points 1, -1, 2, -2, in
    /// this order. A reflection changes only the sign of the result.
    ///
    /// # Errors
    /// The formula is too long.
    pub fn difference(&self, fourth: bool) -> Result<Formula, FormulaError> {
        let mut joined = DifferenceBuilder {
            formula: self,
            program: FormulaProgram {
                curves: self.program.curves.clone(),
                constants: self.program.constants.clone(),
                ..FormulaProgram::default()
            },
            points: 0,
        };
        if fourth {
            joined.constant(8.0);
        }
        joined.pair();
        if fourth {
            joined.program.ops.push(Op::Multiply);
            joined.pair();
            joined.program.ops.push(Op::Subtract);
        }
        joined.constant(if fourth { 12.0 } else { 2.0 });
        joined.program.ops.push(Op::Divide);
        // the stack also holds the value of the previous point and the result of the previous pair
        joined.program.depth = self.program.depth + 2;
        let constants = joined.program.constants.len() <= usize::from(u16::MAX);
        let variables = joined.points * self.variables.len() <= usize::from(u16::MAX);
        if joined.program.depth > DEPTH || !constants || !variables {
            let text = &self.text;
            let message = "the formula is too long for a slope; split it";
            return Err(FormulaError::new(text, 0..text.len(), message));
        }
        let names = &self.variables;
        let at = |point| names.iter().map(move |name| format!("{name} {point}"));
        Ok(Formula {
            text: format!("slope of {}", self.text),
            variables: (0..joined.points).flat_map(at).collect(),
            program: joined.program,
        })
    }
}

/// Builds a program that evaluates a formula at several points.
struct DifferenceBuilder<'a> {
    formula: &'a Formula,
    program: FormulaProgram,
    points: usize,
}

impl DifferenceBuilder<'_> {
    fn constant(&mut self, value: f64) {
        let index = self.program.constants.len() as u16;
        self.program.constants.push(value);
        self.program.ops.push(Op::Constant(index));
    }

    /// Appends the difference between the next two points.
    fn pair(&mut self) {
        self.point();
        self.point();
        self.program.ops.push(Op::Subtract);
    }

    /// Appends the formula with variables of the next point.
    fn point(&mut self) {
        let first = (self.points * self.formula.variables.len()) as u16;
        self.points += 1;
        let moved = |op: &Op| match *op {
            Op::Variable(index) => Op::Variable(first + index),
            op => op,
        };
        let ops = self.formula.program.ops.iter().map(moved);
        self.program.ops.extend(ops);
    }
}
