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
        Fault {
            origin: source.name.clone(),
            line: source.is_file.then_some(line),
            column: Some(column),
            message: message.into(),
            excerpt,
        }
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
    let start = floor_boundary(text, span.start);
    let end = floor_boundary(text, span.end).max(start);
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
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

/// Returns the last character boundary at or before `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Returns the name in `known` that is most similar to `word`; `None` if no name is similar.
///
/// The distance is the optimal string alignment distance: the number of inserted, deleted, replaced or swapped adjacent
/// characters. Case is ignored, and `-` equals `_`. A name is similar if at most a third of the longer word differs (at
/// least one character is allowed), or if one word is a prefix of the other and has at least three characters.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain =
        |text: &str| -> Vec<char> { text.to_lowercase().replace('-', "_").chars().collect() };
    let wanted = plain(word);
    if wanted.len() > 64 {
        return None;
    }
    let mut best: Option<(usize, &'a str)> = None;
    for name in known {
        let letters = plain(name);
        let allowed = (wanted.len().max(letters.len()) / 3).max(1);
        let mut steps = distance(&wanted, &letters);
        let begins = letters.starts_with(&wanted) || wanted.starts_with(&letters);
        if begins && wanted.len().min(letters.len()) >= 3 {
            steps = steps.min(allowed);
        }
        // the edit distance of any two one-letter names is 1, which says nothing
        let unrelated = steps >= wanted.len().max(letters.len());
        if steps <= allowed
            && !(unrelated && steps > 0)
            && best.is_none_or(|(fewest, _)| steps < fewest)
        {
            best = Some((steps, name));
        }
    }
    best.map(|(_, name)| name)
}

/// Returns the optimal string alignment distance, keeping three rows of the table.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replace = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replace.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
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
