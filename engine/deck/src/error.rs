//! Errors with their position in a deck, and suggestions for misspelt names.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A text that values are read from: the deck file or one command-line override.
#[derive(Debug)]
pub(crate) struct SourceText {
    /// Name in messages: the path of the file, or `--set` and the argument.
    pub name: String,
    /// The whole text.
    pub text: String,
    /// `true` for a file, which has lines; `false` for an override.
    pub is_file: bool,
}

/// A range of bytes in a source.
#[derive(Clone, Debug)]
pub(crate) struct SourceSpan {
    pub source: Arc<SourceText>,
    pub span: Range<usize>,
}

/// One error in a deck or an override, with its position.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Path of the file, or `--set` and the argument; empty if the fault belongs to neither.
    pub origin: String,
    /// Line in the file, from 1; `None` if the fault has no position in a file.
    pub line: Option<usize>,
    /// Column in characters, from 1; `None` if the fault has no position.
    pub column: Option<usize>,
    /// What is wrong and what would be right.
    pub message: String,
    /// Source line with a caret range below it; empty if the fault has no position.
    pub excerpt: String,
}

impl Fault {
    /// Creates a fault at `location`.
    pub(crate) fn at(location: &SourceSpan, message: impl Into<String>) -> Self {
        let source = &location.source;
        let (line, column, excerpt) = locate(&source.text, &location.span, source.is_file);
        let mut message = message.into();
        if let Some((_, found)) = misleading_character(&source.text, location.span.start)
            && !message.contains(&found)
        {
            message += &format!("; the line has {found}");
        }
        Fault {
            origin: source.name.clone(),
            line: source.is_file.then_some(line),
            column: Some(column),
            message,
            excerpt,
        }
    }

    /// Creates the fault of a text that is not TOML: `reason` at `location`, unless the line has a character or a number of another notation
    /// that explains it.
    pub(crate) fn not_toml(location: &SourceSpan, reason: impl Into<String>) -> Self {
        let (source, start) = (&location.source, location.span.start);
        let at = |span| SourceSpan {
            source: source.clone(),
            span,
        };
        if let Some((span, found)) = misleading_character(&source.text, start) {
            return Fault::at(&at(span), format!("{found} has no meaning here"));
        }
        match foreign_number(&source.text, start) {
            Some((span, right)) => {
                let found = &source.text[span.clone()];
                let message = format!("`{found}` is not a number of a deck; write {right}");
                Fault::at(&at(span), message)
            }
            None => Fault::at(location, reason),
        }
    }

    /// Returns the fault of the first invisible character in a string of a deck, which would become part of a name. Joiners belong to
    /// some scripts.
    pub(crate) fn of_invisible(source: &Arc<SourceText>) -> Option<Self> {
        let text = &source.text;
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let found = find_in_line(text, start, |n, c, _| {
                let joins = ['\u{200c}', '\u{200d}'].contains(&c);
                let (_, right) = resembled(c).filter(|_| !joins && (n > 0 || c != '\u{feff}'))?;
                is_invisible(&right).then_some(n)
            });
            if let Some(n) = found {
                let span = n..n + text[n..].chars().next().map_or(1, char::len_utf8);
                let (source, what) = (source.clone(), misleading_character(text, n));
                let what = what.map_or_else(String::new, |(_, what)| what);
                let message = format!("{what} has no meaning here");
                return Some(Fault::at(&SourceSpan { source, span }, message));
            }
            start += line.len();
        }
        None
    }

    /// Creates a fault of a whole file or argument.
    pub(crate) fn of(origin: impl Into<String>, message: impl Into<String>) -> Self {
        Fault {
            origin: origin.into(),
            line: None,
            column: None,
            message: message.into(),
            excerpt: String::new(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.origin.is_empty() {
            f.write_str(&self.origin)?;
            if let (Some(line), Some(column)) = (self.line, self.column) {
                write!(f, ":{line}:{column}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.message)?;
        if !self.excerpt.is_empty() {
            write!(f, "\n{}", self.excerpt)?;
        }
        Ok(())
    }
}

/// All errors found in a deck, in the order of their positions.
///
/// `Display` writes `file:line:column: message` and the source line with a caret range for each fault.
#[derive(Clone, Debug)]
pub struct DeckError {
    faults: Vec<Fault>,
}

impl DeckError {
    /// Creates an error without position, for example for a file that cannot be read.
    #[must_use]
    pub fn new(origin: impl Into<String>, message: impl Into<String>) -> Self {
        Fault::of(origin, message).into()
    }

    /// Returns the faults in the order in which they are printed; never empty.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Adds the faults of `other`, so that independent errors are reported together.
    #[must_use]
    pub fn and(mut self, other: DeckError) -> Self {
        self.faults.extend(other.faults);
        self
    }

    /// Returns all `faults` as one error, sorted by position and without repetitions; `Ok(())` if there are none.
    pub(crate) fn check(mut faults: Vec<Fault>) -> Result<(), DeckError> {
        if faults.is_empty() {
            return Ok(());
        }
        // stable sort: faults at one position keep their order, and overrides follow the file
        faults.sort_by_key(|fault| (fault.line.is_none(), fault.line, fault.column));
        faults.dedup_by(|a, b| a.line == b.line && a.column == b.column && a.message == b.message);
        Err(DeckError { faults })
    }
}

impl From<Fault> for DeckError {
    fn from(fault: Fault) -> Self {
        DeckError {
            faults: vec![fault],
        }
    }
}

impl fmt::Display for DeckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.faults.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for DeckError {}

/// Maximum number of characters of a source line in an excerpt.
const EXCERPT: usize = 100;

/// Returns line and column (from 1) of `span.start`, and the line with carets below the span.
fn locate(text: &str, span: &Range<usize>, numbered: bool) -> (usize, usize, String) {
    let start = text.floor_char_boundary(span.start);
    let end = text.floor_char_boundary(span.end).max(start);
    let Range {
        start: line_start,
        end: line_end,
    } = line_range(text, start);
    let line = text[..line_start].matches('\n').count() + 1;
    let column = text[line_start..start].chars().count() + 1;
    let carets = text[start..end.min(line_end)]
        .trim_end()
        .chars()
        .count()
        .max(1);
    let shown = &text[line_start..line_end];
    let from = if column > EXCERPT {
        column - EXCERPT / 2
    } else {
        0
    };
    // one column per character: control characters and tabs become blanks
    let window: String = shown
        .chars()
        .skip(from)
        .take(EXCERPT)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let room = EXCERPT.saturating_sub(column - 1 - from).max(1);
    let label = if numbered {
        line.to_string()
    } else {
        String::new()
    };
    let blank = " ".repeat(label.len());
    let indent = " ".repeat(column - 1 - from);
    let excerpt = format!(
        " {label} | {}\n {blank} | {indent}{}",
        window.trim_end(),
        "^".repeat(carets.min(room))
    );
    (line, column, excerpt)
}

/// Returns the range of the line of `text` that contains byte `at`.
fn line_range(text: &str, at: usize) -> Range<usize> {
    let at = text.floor_char_boundary(at);
    let start = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let end = text[at..].find('\n').map_or(text.len(), |n| at + n);
    start..end
}

/// Calls `visit` with byte, character and quotation state of the line around `at`, without its comment, until it returns a value.
fn find_in_line<T>(
    text: &str,
    at: usize,
    mut visit: impl FnMut(usize, char, bool) -> Option<T>,
) -> Option<T> {
    let line = line_range(text, at);
    let (mut quote, mut escaped) = (None, false);
    for (n, c) in text[line.clone()].char_indices() {
        if quote.is_none() && c == '#' {
            return None;
        }
        if let Some(found) = visit(line.start + n, c, quote.is_some()) {
            return Some(found);
        }
        match quote {
            _ if escaped => escaped = false,
            Some('"') if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            _ => {}
        }
    }
    None
}

/// Finds a character in the line around `at` that is invisible or resembles a character of TOML. Returns its range and its description with
/// the character to write. Strings may contain visible ones.
fn misleading_character(text: &str, at: usize) -> Option<(Range<usize>, String)> {
    find_in_line(text, at, |n, c, is_quoted| {
        // a byte order mark at the beginning of a file is allowed
        let (name, right) = resembled(c).filter(|_| n > 0 || c != '\u{feff}')?;
        if is_quoted && !is_invisible(&right) {
            return None;
        }
        let advice = match right.is_empty() {
            true => "delete it".into(),
            false => format!("write {right}"),
        };
        let found = format!("the character U+{:04X} ({name}; {advice})", u32::from(c));
        Some((n..n + c.len_utf8(), found))
    })
}

/// Returns `true` for a character that is deleted or replaced by a blank.
fn is_invisible(right: &str) -> bool {
    right.is_empty() || right == "a blank"
}

/// Returns what kind of character `c` is, and what to write for it, if it is invisible or resembles a character of TOML.
fn resembled(c: char) -> Option<(&'static str, String)> {
    let (name, right) = match c {
        '\u{a0}' => ("no-break space", "a blank"),
        '\u{202f}' => ("narrow no-break space", "a blank"),
        '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{205f}' => ("typographic space", "a blank"),
        '\u{3000}' => ("ideographic space", "a blank"),
        '\u{200b}' => ("zero-width space", ""),
        '\u{ad}' => ("soft hyphen", ""),
        '\u{feff}' => ("byte order mark", ""),
        '\u{200c}' | '\u{200d}' | '\u{2060}'..='\u{2064}' => ("zero-width joiner", ""),
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            ("mark of the writing direction", "")
        }
        '\u{2028}' | '\u{2029}' | '\u{85}' => ("line separator", "a line break"),
        '\u{2018}'..='\u{201b}' | '\u{2032}' => ("typographic quotation mark", "'"),
        '\u{201c}'..='\u{201f}' | '\u{ab}' | '\u{bb}' | '\u{2033}' => {
            ("typographic quotation mark", "\"")
        }
        '\u{2010}'..='\u{2015}' => ("typographic hyphen", "-"),
        '\u{2212}' => ("minus sign", "-"),
        '\u{ff01}'..='\u{ff5e}' => {
            let ascii = char::from_u32(u32::from(c) - 0xfee0)?;
            return Some(("full-width form", ascii.to_string()));
        }
        c if c.is_control() && !['\t', '\n', '\r'].contains(&c) => ("control character", ""),
        _ => return None,
    };
    Some((name, right.to_owned()))
}

/// Finds a number of another notation in the line around `at`, such as `1d-3`, `.5` or `1.e3`. Returns its range and the notation of TOML.
fn foreign_number(text: &str, at: usize) -> Option<(Range<usize>, String)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "+-._".contains(c);
    let mut start = None;
    let end = line_range(text, at).end;
    let check = |word: Range<usize>| {
        let right = toml_number(&text[word.clone()])?;
        Some((word, right))
    };
    let found = find_in_line(text, at, |n, c, is_quoted| {
        let inside = is_part(c) && !is_quoted;
        match (start, inside) {
            (None, true) => start = Some(n),
            (Some(first), false) => {
                start = None;
                return check(first..n);
            }
            _ => {}
        }
        None
    });
    found.or_else(|| check(start?..end))
}

/// Returns the number `word` in the notation of TOML if it is one in Fortran or C, but not in TOML.
fn toml_number(word: &str) -> Option<String> {
    let plain = word.trim_start_matches('+').to_ascii_lowercase();
    let (mantissa, exponent) = match plain.split_once(['d', 'e']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (&*plain, None),
    };
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit());
    let is_integer = exponent.is_none_or(|e| e.parse::<i32>().is_ok());
    if !is_number(whole)
        || !is_number(fraction)
        || digits.len() < 2 && !digits.starts_with(|c: char| c.is_ascii_digit())
        || !is_integer
    {
        return None;
    }
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let fraction = if fraction.is_empty() { "0" } else { fraction };
    let point = match digits.contains('.') {
        true => format!(".{fraction}"),
        false => String::new(),
    };
    let exponent = exponent.map_or_else(String::new, |e| format!("e{}", e.trim_start_matches('+')));
    let right = format!("{sign}{whole}{point}{exponent}");
    // numbers of TOML differ at most in signs and upper case
    (right != plain.replace("e+", "e")).then_some(right)
}

/// Returns the name in `known` that is most similar to `word`; `None` if no name is similar.
///
/// The distance is the optimal string alignment distance: the number of inserted, deleted, replaced or swapped adjacent
/// characters. Case is ignored, and `-` equals `_`. A name is similar if at most a third of the longer word differs (at
/// least one character is allowed), or if one word is a prefix of the other and has at least three characters.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let length = |text: &str| text.chars().count();
    let wanted = plain(word);
    if length(&wanted) > 64 {
        return None;
    }
    let mut best: Option<(usize, &'a str)> = None;
    for name in known {
        let letters = plain(name);
        let longer = length(&wanted).max(length(&letters));
        let allowed = (longer / 3).max(1);
        let mut steps = strsim::osa_distance(&wanted, &letters);
        let begins = letters.starts_with(&*wanted) || wanted.starts_with(&*letters);
        if begins && length(&wanted).min(length(&letters)) >= 3 {
            steps = steps.min(allowed);
        }
        // the edit distance of any two one-letter names is 1, which says nothing
        let unrelated = steps >= longer;
        if steps <= allowed
            && !(unrelated && steps > 0)
            && best.is_none_or(|(fewest, _)| steps < fewest)
        {
            best = Some((steps, name));
        }
    }
    best.map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_the_most_similar_name() {
        let known = ["limiter", "gamma", "riemann", "reconstruction", "left_edge"];
        for (word, meant) in [
            ("limitr", Some("limiter")),
            ("Limiter", Some("limiter")),
            ("gmama", Some("gamma")),
            ("left-edge", Some("left_edge")),
            ("recon", Some("reconstruction")),
            ("courant", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
        assert_eq!(nearest("q", ["x", "y"]), None);
        assert_eq!(nearest("limiter", known), Some("limiter"));
    }
}
