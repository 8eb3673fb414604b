//! Splits formulas into tokens.

use std::ops::Range;

use super::FormulaError;

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
