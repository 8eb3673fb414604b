//! Translates formulas to device code with the same bits as the stack machine.

use nestar_device::Item;
use std::fmt::Write as _;

use super::Formula;
use super::program;
use super::program::{FormulaProgram, Op};

/// A formula as a C++ function for the device.
#[derive(Clone, Debug)]
pub struct DeviceFormula {
    /// Definition of the function.
    pub text: String,
    /// Items that it calls; they must precede the text in the program (see `nestar_device::program`).
    pub items: Vec<&'static Item>,
}

impl Formula {
    /// Writes the C++ function `double NAME(double v0, double v1, …)` with one argument per variable, in the order of
    /// [`Formula::variables`]. Compiled without contraction it gives the bits of [`Formula::eval`], except for the sign
    /// and payload of NaN.
    #[must_use]
    pub fn device_text(&self, name: &str) -> DeviceFormula {
        let mut writer = DeviceTextWriter {
            program: self.program(),
            text: String::new(),
            stack: Vec::new(),
            results: 0,
            items: Vec::new(),
        };
        let arguments: Vec<String> = (0..self.variables().len())
            .map(|variable| format!("double v{variable}"))
            .collect();
        // keep the comment on one line
        let comment: String = self.text().split(['\n', '\r', '\\']).collect();
        let _ = writeln!(writer.text, "// {comment}");
        let _ = writeln!(
            writer.text,
            "RS_FN double {name}({}) {{",
            arguments.join(", ")
        );
        for op in &self.program().ops {
            writer.operation(*op);
        }
        // a program made by `lower` leaves one value
        let result = writer.stack.pop().unwrap_or_default();
        let _ = writeln!(writer.text, "  return {result};\n}}");
        DeviceFormula {
            text: writer.text,
            items: writer.items,
        }
    }
}

/// Writes one assignment for every operation.
struct DeviceTextWriter<'a> {
    program: &'a FormulaProgram,
    text: String,
    /// Expressions on the stack: only names and constants, so no brackets are needed.
    stack: Vec<String>,
    results: usize,
    items: Vec<&'static Item>,
}

impl DeviceTextWriter<'_> {
    fn operation(&mut self, op: Op) {
        let first = self.stack.len().saturating_sub(op.arity());
        let arguments = self.stack.split_off(first);
        let value = match op {
            Op::Constant(index) => {
                return self.constant(self.program.constants[usize::from(index)]);
            }
            Op::Variable(index) => return self.stack.push(format!("v{index}")),
            Op::Curve(index) => {
                let (_, curve) = &self.program.curves[usize::from(index)];
                let (call, items) = curve.device_call(&arguments.join(", "));
                self.items.extend(items);
                call
            }
            _ => match function(op) {
                Some(item) => {
                    self.items.push(item);
                    format!("::{}<double>({})", item.path(), arguments.join(", "))
                }
                None => expression(op, &arguments),
            },
        };
        let result = format!("t{}", self.results);
        self.results += 1;
        let _ = writeln!(self.text, "  const double {result} = {value};");
        self.stack.push(result);
    }

    /// Writes a constant by its bits, which are exact.
    fn constant(&mut self, value: f64) {
        let bits = value.to_bits();
        self.stack.push(format!(
            "rs::from_bits((rs::u64)0x{bits:016x}ull /* {value:e} */)"
        ));
    }
}

/// Returns the function that computes an operation, if it needs one.
fn function(op: Op) -> Option<&'static Item> {
    Some(match op {
        Op::Sign => program::sign::ITEM,
        Op::Modulo => program::modulo::ITEM,
        Op::Min => program::least::ITEM,
        Op::Max => program::greatest::ITEM,
        Op::Exp => program::exp::ITEM,
        Op::Ln => program::ln::ITEM,
        Op::Log10 => program::log10::ITEM,
        Op::Sin => program::sin::ITEM,
        Op::Cos => program::cos::ITEM,
        Op::Tan => program::tan::ITEM,
        Op::Asin => program::asin::ITEM,
        Op::Acos => program::acos::ITEM,
        Op::Atan => program::atan::ITEM,
        Op::Atan2 => program::angle::ITEM,
        Op::Sinh => program::sinh::ITEM,
        Op::Cosh => program::cosh::ITEM,
        Op::Tanh => program::tanh::ITEM,
        Op::Erf => program::erf::ITEM,
        Op::Power => program::pow::ITEM,
        Op::Random => program::random::ITEM,
        Op::Gaussian => program::gaussian::ITEM,
        _ => return None,
    })
}

/// Writes an operation that C++ has as an operator or intrinsic.
fn expression(op: Op, arguments: &[String]) -> String {
    let truth = |condition: String| format!("{condition} ? 1.0 : 0.0");
    match (op, arguments) {
        // same bits as `rs::powi`, without its loop
        (Op::PowerInteger(2), [a]) => format!("{a} * {a}"),
        (Op::PowerInteger(exponent), [a]) => format!("rs::powi({a}, {exponent})"),
        (Op::Negate, [a]) => format!("-{a}"),
        (Op::Not, [a]) => truth(format!("{a} == 0.0")),
        (Op::Abs, [a]) => format!("rs::abs({a})"),
        (Op::Step, [a]) => truth(format!("{a} >= 0.0")),
        (Op::Floor, [a]) => format!("rs::floor({a})"),
        (Op::Ceil, [a]) => format!("rs::ceil({a})"),
        (Op::Sqrt, [a]) => format!("rs::sqrt({a})"),
        (Op::Add, [a, b]) => format!("{a} + {b}"),
        (Op::Subtract, [a, b]) => format!("{a} - {b}"),
        (Op::Multiply, [a, b]) => format!("{a} * {b}"),
        (Op::Divide, [a, b]) => format!("{a} / {b}"),
        (Op::Less, [a, b]) => truth(format!("{a} < {b}")),
        (Op::LessEqual, [a, b]) => truth(format!("{a} <= {b}")),
        (Op::Greater, [a, b]) => truth(format!("{a} > {b}")),
        (Op::GreaterEqual, [a, b]) => truth(format!("{a} >= {b}")),
        (Op::Equal, [a, b]) => truth(format!("{a} == {b}")),
        (Op::NotEqual, [a, b]) => truth(format!("{a} != {b}")),
        (Op::And, [a, b]) => truth(format!("{a} != 0.0 && {b} != 0.0")),
        (Op::Or, [a, b]) => truth(format!("{a} != 0.0 || {b} != 0.0")),
        (Op::Select, [condition, a, b]) => format!("{condition} != 0.0 ? {a} : {b}"),
        // all other operations have functions or no arguments
        _ => unreachable!("{op:?} of {arguments:?}"),
    }
}
