//! Compiles the tree of a formula to a flat program.

use super::FormulaError;
use super::curve::{Curve, Curves};
use super::eval::apply;
use super::parse::Tree;
use super::program::{DEPTH, FormulaProgram, Op};
use std::sync::Arc;

/// Largest integer exponent that is computed by repeated multiplication.
const MAX_WHOLE_EXPONENT: f64 = 16.0;

/// Compiles `tree` (the formula `text`, which may call `curves`) to a program.
pub(super) fn lower(
    tree: &Tree,
    text: &str,
    curves: Curves,
) -> Result<FormulaProgram, FormulaError> {
    let mut program = FormulaProgram::default();
    let depth = emit(&simplify(tree, curves), curves, &mut program);
    program.depth = depth;
    if depth > DEPTH || program.constants.len() > usize::from(u16::MAX) {
        return Err(FormulaError::new(
            text,
            0..text.len(),
            "the formula is too long; split it",
        ));
    }
    Ok(program)
}

/// Folds constants with the same functions that evaluate the program.
fn simplify(tree: &Tree, curves: Curves) -> Tree {
    let Tree::Apply(op, arguments) = tree else {
        return tree.clone();
    };
    let mut arguments: Vec<Tree> = arguments
        .iter()
        .map(|argument| simplify(argument, curves))
        .collect();
    let whole = |x: f64| x == x.trunc() && x.abs() <= MAX_WHOLE_EXPONENT;
    let mut op = *op;
    match (op, arguments.as_slice()) {
        (Op::Select, [Tree::Number(condition), _, _]) => {
            return arguments.swap_remove(if *condition != 0.0 { 1 } else { 2 });
        }
        (Op::Power, [_, Tree::Number(exponent)]) if whole(*exponent) => {
            op = Op::PowerInteger(*exponent as i8);
            arguments.truncate(1);
        }
        _ => {}
    }
    let number = |tree: &Tree| {
        if let Tree::Number(number) = tree {
            Some(*number)
        } else {
            None
        }
    };
    match arguments.iter().map(number).collect::<Option<Vec<f64>>>() {
        Some(numbers) => Tree::Number(match op {
            Op::Curve(index) => curves[usize::from(index)].1.at(numbers[0]),
            _ => apply(op, &numbers),
        }),
        None => Tree::Apply(op, arguments),
    }
}

/// Appends `tree` to `program` and returns the stack depth that it needs.
fn emit(tree: &Tree, curves: Curves, program: &mut FormulaProgram) -> usize {
    match tree {
        Tree::Number(number) => {
            let same = |other: &f64| other.to_bits() == number.to_bits();
            let index = program.constants.iter().position(same).unwrap_or_else(|| {
                program.constants.push(*number);
                program.constants.len() - 1
            });
            // `lower` rejects programs with more constants than indices
            program.ops.push(Op::Constant(index as u16));
            1
        }
        Tree::Variable(index) => {
            program.ops.push(Op::Variable(*index));
            1
        }
        Tree::Apply(op, arguments) => {
            let needs = arguments
                .iter()
                .enumerate()
                .map(|(i, argument)| i + emit(argument, curves, program));
            let depth = needs.max().unwrap_or(0);
            let op = match *op {
                Op::Curve(index) => Op::Curve(curve_index(&curves[usize::from(index)], program)),
                op => op,
            };
            program.ops.push(op);
            depth
        }
    }
}

/// Returns the index of a tabulated function in the program.
fn curve_index(curve: &(String, Arc<Curve>), program: &mut FormulaProgram) -> u16 {
    let known = program.curves.iter().position(|own| own.0 == curve.0);
    known.unwrap_or_else(|| {
        program.curves.push(curve.clone());
        program.curves.len() - 1
    }) as u16
}
