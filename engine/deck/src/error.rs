//! Errors that point at their place in a deck.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A text that values were read from: the deck's file or one command-line override.
#[derive(Debug)]
pub(crate) struct SourceText {
    /// What messages call it: the file's path, or `--set` and the argument.
    pub name: String,
    /// The whole text.
    pub text: String,
    /// A file has lines; an override is one argument that its name already shows.
    pub is_file: bool,
}

/// A stretch of bytes in a source.
#[derive(Clone, Debug)]
pub(crate) struct SourceSpan {
    pub source: Arc<SourceText>,
    pub span: Range<usize>,
}

/// One mistake in a deck or in an override, with its place.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The file's path, or `--set` and the argument; empty if the fault belongs to neither.
    pub origin: String,
    /// Line in the file, from 1; `None` if the fault has no place in a file.
    pub line: Option<usize>,
    /// Column in characters, from 1; `None` if the fault has no place.
    pub column: Option<usize>,
    /// What is wrong and what would be right.
    pub message: String,
    /// The source line with a caret range below it; empty if the fault has no place.
    pub excerpt: String,
}

impl Fault {
    /// A fault at `place`.
    pub(crate) fn at(place: &SourceSpan, message: impl Into<String>) -> Self {
        let source = &place.source;
        let (line, column, excerpt) = locate(&source.text, &place.span, source.is_file);
        Fault {
            origin: source.name.clone(),
            line: source.is_file.then_some(line),
            column: Some(column),
            message: message.into(),
            excerpt,
        }
    }

    /// A fault of a whole file or argument.
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

/// Everything found wrong in a deck, in the order of the places.
///
/// `Display` gives `file:line:column: message` and the source line with a caret range for each fault.
#[derive(Clone, Debug)]
pub struct DeckError {
    faults: Vec<Fault>,
}

impl DeckError {
    /// An error without a place, for example of a file that cannot be read.
    #[must_use]
    pub fn new(origin: impl Into<String>, message: impl Into<String>) -> Self {
        Fault::of(origin, message).into()
    }

    /// The faults, in the order in which they are printed; never empty.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Adds the faults of `other`, so that independent mistakes are reported together.
    #[must_use]
    pub fn and(mut self, other: DeckError) -> Self {
        self.faults.extend(other.faults);
        self
    }

    /// `Ok(())` if `faults` is empty; otherwise all of them in the order of their places, without repetitions.
    pub(crate) fn check(mut faults: Vec<Fault>) -> Result<(), DeckError> {
        if faults.is_empty() {
            return Ok(());
        }
        // Stable: faults at one place stay in the order in which they were found, and overrides follow the file.
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

/// Longest stretch of a source line that an excerpt shows, in characters.
const EXCERPT: usize = 100;

/// Line and column (from 1) of `span.start`, and the line with carets below the part of the span that lies in it.
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
    // One character a column, whatever the terminal does with tabs and control characters.
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

/// The last character boundary at or before `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
