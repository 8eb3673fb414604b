//! Parses formulas: splits them into tokens and builds trees by operator precedence.
//!
//! No existing library fits: fasteval and fasteval2 hide their tree and read `-2^2` as 4, exmex has no functions of three
//! arguments, and evalexpr uses libm. None keeps the positions that error messages need.

use super::FormulaError;
use super::curve::Curves;
use super::program::{CELL_VARIABLES, Call, FUNCTIONS, Op, call, constant};
use super::simplify;
use crate::error::nearest;
use crate::units::is_word;
use std::ops::Range;

/// A token of a formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Number(f64),
    Name(&'a str),
    /// An operator, bracket or comma; `**`, `and`, `or` are read as `^`, `&&`, `||`.
    Sign(&'static str),
    End,
}

/// Signs and their canonical forms; longer signs precede their prefixes.
const SIGNS: [(&str, &str); 20] = [
    ("**", "^"),
    ("<=", "<="),
    (">=", ">="),
    ("==", "=="),
    ("!=", "!="),
    ("&&", "&&"),
    ("||", "||"),
    ("+", "+"),
    ("-", "-"),
    ("−", "-"),
    ("*", "*"),
    ("·", "*"),
    ("/", "/"),
    ("^", "^"),
    ("<", "<"),
    (">", ">"),
    ("!", "!"),
    ("(", "("),
    (")", ")"),
    (",", ","),
];

/// Splits `text` into tokens with their byte ranges; the last token is `End`.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token<'_>, Range<usize>)>, FormulaError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else {
            break;
        };
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (token, length) = if first.is_ascii_digit() || (first == '.' && digits(&rest[1..]) > 0)
        {
            number(text, at)?
        } else if first.is_alphabetic() || first == '_' {
            name(rest)
        } else if let Some((sign, canonical)) =
            SIGNS.iter().find(|(sign, _)| rest.starts_with(sign))
        {
            (Token::Sign(canonical), sign.len())
        } else {
            return Err(stray(text, at, first));
        };
        tokens.push((token, at..at + length));
        at += length;
    }
    tokens.push((Token::End, text.len()..text.len()));
    Ok(tokens)
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Reads a number such as `1`, `1.5`, `.5` or `1e-3` at byte `at`.
fn number(text: &str, at: usize) -> Result<(Token<'_>, usize), FormulaError> {
    let rest = &text[at..];
    let mut length = digits(rest);
    if rest[length..].starts_with('.') {
        length += 1 + digits(&rest[length + 1..]);
    }
    if rest[length..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[length + 1..].starts_with(['+', '-']));
        let exponent = digits(&rest[length + 1 + sign..]);
        // without digits the e is a name, and the parser reports a missing operator
        length += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    match rest[..length].parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((Token::Number(number), length)),
        _ => Err(FormulaError::new(
            text,
            at..at + length,
            format!("the number {} is too large", &rest[..length]),
        )),
    }
}

fn name(rest: &str) -> (Token<'_>, usize) {
    let length = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    let token = match &rest[..length] {
        "and" => Token::Sign("&&"),
        "or" => Token::Sign("||"),
        "not" => Token::Sign("not"),
        name => Token::Name(name),
    };
    (token, length)
}

/// Returns the error for an invalid character.
fn stray(text: &str, at: usize, first: char) -> FormulaError {
    let hint = match first {
        '=' => "; to compare, write ==",
        '&' => "; for both, write && or and",
        '|' => "; for either, write || or or",
        '[' | '{' => "; write ( and )",
        '%' => "; the remainder is mod(a, b)",
        '?' | ':' => "; write if(condition, a, b)",
        ';' => "; arguments are separated by commas",
        _ => "",
    };
    let message = format!("unexpected character `{first}`{hint}");
    FormulaError::new(text, at..at + first.len_utf8(), message)
}

/// Expression tree of a formula.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    Number(f64),
    Variable(u16),
    Apply(Op, Vec<Tree>),
}

/// Maximum depth of nested brackets, signs and exponents; bounds the recursion.
const MAX_DEPTH: usize = 64;

/// Maximum number of tokens; bounds the recursion in `lower`, where a chain of operators is as deep as it is long.
const MAX_TOKENS: usize = 2000;

/// Parses `text` as a formula of `variables` and `constants` that may call `curves`.
pub(super) fn parse(
    text: &str,
    variables: &[&str],
    constants: &[(String, f64)],
    curves: Curves,
) -> Result<Tree, FormulaError> {
    let tokens = tokens(text)?;
    let mut parser = Parser {
        text,
        tokens,
        at: 0,
        depth: 0,
        variables,
        constants,
        curves,
    };
    if parser.peek() == Token::End {
        return Err(parser.error("the formula is empty"));
    }
    let tree = parser.expression(0)?;
    match parser.peek() {
        Token::End => Ok(tree),
        Token::Sign(")") => Err(parser.error("this `)` closes nothing")),
        Token::Sign(",") => Err(parser.error("a comma separates the arguments of a function only")),
        _ => Err(parser.needs_operator()),
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token<'a>, Range<usize>)>,
    at: usize,
    depth: usize,
    variables: &'a [&'a str],
    constants: &'a [(String, f64)],
    curves: Curves<'a>,
}

/// Binding strengths of prefix operators and comparisons.
const SIGN: u8 = 13;
const NOT: u8 = 5;
const COMPARISON: u8 = 7;

/// Returns the operation and the left and right binding strengths of a binary operator.
fn binary(sign: &str) -> Option<(Op, u8, u8)> {
    Some(match sign {
        "||" => (Op::Or, 1, 2),
        "&&" => (Op::And, 3, 4),
        "<" => (Op::Less, COMPARISON, 8),
        "<=" => (Op::LessEqual, COMPARISON, 8),
        ">" => (Op::Greater, COMPARISON, 8),
        ">=" => (Op::GreaterEqual, COMPARISON, 8),
        "==" => (Op::Equal, COMPARISON, 8),
        "!=" => (Op::NotEqual, COMPARISON, 8),
        "+" => (Op::Add, 9, 10),
        "-" => (Op::Subtract, 9, 10),
        "*" => (Op::Multiply, 11, 12),
        "/" => (Op::Divide, 11, 12),
        "^" => (Op::Power, 16, 15),
        _ => return None,
    })
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens[self.at].0
    }

    /// Returns the next token and advances; stays at the end.
    fn next(&mut self) -> (Token<'a>, Range<usize>) {
        let token = self.tokens[self.at].clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn error(&self, message: impl Into<String>) -> FormulaError {
        FormulaError::new(self.text, self.tokens[self.at].1.clone(), message)
    }

    fn needs_operator(&self) -> FormulaError {
        let found = &self.text[self.tokens[self.at].1.clone()];
        let before = self.at.checked_sub(1).map(|at| &self.tokens[at]);
        let follows_number = before.is_some_and(|(token, span)| {
            matches!(token, Token::Number(_)) && span.end == self.tokens[self.at].1.start
        });
        let digits = found.trim_start_matches(['d', 'D']);
        if follows_number && digits != found && digits.bytes().all(|b| b.is_ascii_digit()) {
            return self.error("exponents are written with e, as in 1e-3");
        }
        self.error(format!(
            "an operator is missing before `{found}`; a product is written with *"
        ))
    }

    /// Parses an expression whose operators bind at least as strongly as `least`.
    fn expression(&mut self, least: u8) -> Result<Tree, FormulaError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(format!("the formula is nested more than {MAX_DEPTH} deep")));
        }
        let mut left = self.operand()?;
        let mut compared = false;
        while let Token::Sign(sign) = self.peek() {
            if self.at > MAX_TOKENS {
                return Err(self.error(format!(
                    "the formula has more than {MAX_TOKENS} numbers, names and signs; use a Zarr array for such a state"
                )));
            }
            let Some((op, strength, right)) = binary(sign) else {
                break;
            };
            if strength < least {
                break;
            }
            if strength == COMPARISON && compared {
                return Err(self.error("comparisons do not chain; write a < b && b < c"));
            }
            compared = strength == COMPARISON;
            self.next();
            let right = self.expression(right)?;
            left = Tree::Apply(op, vec![left, right]);
        }
        self.depth -= 1;
        Ok(left)
    }

    /// Parses a number, a name, a call, a bracket or a prefix operator.
    fn operand(&mut self) -> Result<Tree, FormulaError> {
        let (token, span) = self.next();
        match token {
            Token::Number(number) => Ok(Tree::Number(number)),
            Token::Name(name) if self.peek() == Token::Sign("(") => self.function(name, span),
            Token::Name(name) => self.named(name, span),
            Token::Sign("(") => {
                let tree = self.expression(0)?;
                self.close(&span)?;
                Ok(tree)
            }
            Token::Sign("-") => Ok(Tree::Apply(Op::Negate, vec![self.expression(SIGN)?])),
            Token::Sign("+") => self.expression(SIGN),
            Token::Sign("!") => Ok(Tree::Apply(Op::Not, vec![self.expression(SIGN)?])),
            Token::Sign("not") => Ok(Tree::Apply(Op::Not, vec![self.expression(NOT)?])),
            Token::Sign(sign) => {
                let message = format!("a number, a name or `(` is expected, found `{sign}`");
                Err(FormulaError::new(self.text, span, message))
            }
            Token::End => Err(FormulaError::new(
                self.text,
                span,
                "the formula ends where a value is expected",
            )),
        }
    }

    /// Parses the bracket that closes the bracket at `open`.
    fn close(&mut self, open: &Range<usize>) -> Result<(), FormulaError> {
        match self.peek() {
            Token::Sign(")") => {
                self.next();
                Ok(())
            }
            Token::End => Err(FormulaError::new(
                self.text,
                open.clone(),
                "this `(` is not closed",
            )),
            Token::Sign(",") => {
                Err(self.error("a comma separates the arguments of a function only"))
            }
            _ => Err(self.needs_operator()),
        }
    }

    /// Resolves a variable or a constant.
    fn named(&self, name: &str, span: Range<usize>) -> Result<Tree, FormulaError> {
        if let Some(index) = self.variables.iter().position(|variable| *variable == name) {
            return match u16::try_from(index) {
                Ok(index) => Ok(Tree::Variable(index)),
                Err(_) => Err(FormulaError::new(
                    self.text,
                    span,
                    "a formula has at most 65536 variables",
                )),
            };
        }
        if let Some(number) = self.constant(name) {
            return Ok(Tree::Number(number));
        }
        if self.call(name).is_some() {
            let message = format!("`{name}` is a function; write {name}(…)");
            return Err(FormulaError::new(self.text, span, message));
        }
        let constants = self.constants.iter().map(|(name, _)| name.as_str());
        let variables = self.variables.iter().copied();
        let variables = variables.filter(|name| !CELL_VARIABLES.contains(name));
        let known = variables.chain(constants);
        let known = known.chain(["pi", "e"]);
        let hint = match nearest(name, known.clone()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("known are {}", known.collect::<Vec<_>>().join(", ")),
        };
        // a single letter is more likely a missing constant
        let hint = match is_word(name) && name.len() > 1 {
            true => format!("{hint}; units need a table [units]"),
            false => hint,
        };
        Err(FormulaError::new(
            self.text,
            span,
            format!("unknown name `{name}`; {hint}"),
        ))
    }

    /// Returns the value of a constant.
    fn constant(&self, name: &str) -> Option<f64> {
        let own = self.constants.iter().find(|(own, _)| own == name);
        own.map(|(_, value)| *value).or_else(|| constant(name))
    }

    /// Returns the tabulated or built-in function `name`.
    fn call(&self, name: &str) -> Option<Call> {
        let own = self.curves.iter().position(|(own, _)| own == name);
        let own = own.map(|index| Call::Fixed(Op::Curve(index as u16)));
        own.or_else(|| call(name))
    }

    /// Parses a call of the function `name`, starting at its bracket.
    fn function(&mut self, name: &str, span: Range<usize>) -> Result<Tree, FormulaError> {
        let Some(function) = self.call(name) else {
            return Err(self.unknown_function(name, span));
        };
        let mut arguments = self.arguments()?;
        let found = arguments.len();
        let takes = match function {
            Call::Fixed(op) if found == op.arity() => return Ok(Tree::Apply(op, arguments)),
            Call::Fold(op) if found >= 2 => {
                let first = arguments.remove(0);
                let join = |left, right| Tree::Apply(op, vec![left, right]);
                return Ok(arguments.into_iter().fold(first, join));
            }
            Call::OfCell(op) if found == 1 => {
                return self.of_cell(op, arguments.remove(0), name, span);
            }
            Call::OfCell(_) => "1 argument, the seed".to_string(),
            Call::Fixed(op) if op.arity() == 1 => "1 argument".to_string(),
            Call::Fixed(op) => format!("{} arguments", op.arity()),
            Call::Fold(_) => "2 or more arguments".to_string(),
        };
        let message = format!("`{name}` takes {takes}, found {found}");
        Err(FormulaError::new(self.text, span, message))
    }

    /// Builds the call of a random function of the cell.
    fn of_cell(
        &self,
        op: Op,
        seed: Tree,
        name: &str,
        span: Range<usize>,
    ) -> Result<Tree, FormulaError> {
        let error = |message: String| Err(FormulaError::new(self.text, span.clone(), message));
        let seed = simplify(&seed, self.curves);
        let is_seed = |x: f64| x == x.trunc() && (0.0..=f64::from(u32::MAX)).contains(&x);
        if !matches!(seed, Tree::Number(x) if is_seed(x)) {
            return error(format!(
                "the seed of `{name}` must be an integer from 0 to {}, without variables",
                u32::MAX
            ));
        }
        let index = |name: &str| self.variables.iter().position(|own| *own == name);
        let cell = CELL_VARIABLES.map(|name| index(name).and_then(|n| u16::try_from(n).ok()));
        let mut arguments = vec![seed];
        for variable in cell {
            let Some(variable) = variable else {
                return error(format!(
                    "`{name}` is a random number of a cell, and this formula is not evaluated cell by cell; it is known in \
                     [initial] and in views"
                ));
            };
            arguments.push(Tree::Variable(variable));
        }
        Ok(Tree::Apply(op, arguments))
    }

    /// Parses the arguments of a call and their brackets.
    fn arguments(&mut self) -> Result<Vec<Tree>, FormulaError> {
        let (_, open) = self.next();
        let mut arguments = Vec::new();
        if self.peek() != Token::Sign(")") {
            arguments.push(self.expression(0)?);
        }
        while self.peek() == Token::Sign(",") && !arguments.is_empty() {
            self.next();
            arguments.push(self.expression(0)?);
        }
        self.close(&open)?;
        Ok(arguments)
    }

    fn unknown_function(&self, name: &str, span: Range<usize>) -> FormulaError {
        let own = self.curves.iter().map(|(name, _)| name.as_str());
        let names = own.chain(FUNCTIONS.iter().map(|(name, _)| *name));
        let message = match nearest(name, names.clone()) {
            _ if self.variables.contains(&name) || self.constant(name).is_some() => {
                format!("`{name}` is not a function; a product is written {name}*(…)")
            }
            _ if name == "log" => "unknown function `log`; write ln or log10".to_string(),
            Some(near) => format!("unknown function `{name}`; did you mean `{near}`?"),
            None => {
                let names: Vec<&str> = names.collect();
                format!("unknown function `{name}`; known are {}", names.join(", "))
            }
        };
        FormulaError::new(self.text, span, message)
    }
}
