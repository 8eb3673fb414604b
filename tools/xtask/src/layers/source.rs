//! A Rust file as the rules see it: identifiers and paths with their lines, without comments, strings and unit tests.

/// A Rust file.
pub struct Source {
    /// Relative to the workspace, with `/`.
    pub file: String,
    /// Identifiers outside unit tests.
    pub words: Vec<(String, usize)>,
    /// Paths `a::b::c` outside unit tests, groups `a::{b, c}` expanded, and lone names in `use` and `extern crate`.
    pub paths: Vec<(Vec<String>, usize)>,
}

impl Source {
    /// Reads a file's text.
    pub fn parse(file: &str, text: &str) -> Self {
        let mut tokens = tokens(text);
        if is_test_file(file) {
            tokens.clear();
        }
        let tokens = without_unit_tests(&tokens);
        let words = tokens
            .iter()
            .filter(|t| t.is_word())
            .map(|t| (t.text.clone(), t.line))
            .collect();
        Self {
            file: file.to_string(),
            words,
            paths: paths(&tokens),
        }
    }
}

/// Unit tests in files of their own: `tests.rs` or a folder `tests` below `src`.
fn is_test_file(file: &str) -> bool {
    let inside = file.split_once("/src/").map_or("", |(_, inside)| inside);
    inside
        .split('/')
        .any(|part| part == "tests" || part == "tests.rs")
}

#[derive(Clone)]
struct Token {
    text: String,
    line: usize,
}

impl Token {
    fn is_word(&self) -> bool {
        self.text
            .starts_with(|c: char| c.is_alphabetic() || c == '_')
    }
}

/// Words, `::` and single characters of punctuation.
fn tokens(text: &str) -> Vec<Token> {
    let text = blanked(text);
    let (mut tokens, mut line, mut rest) = (Vec::new(), 1, text.as_str());
    while let Some(c) = rest.chars().next() {
        let length = match c {
            c if c.is_alphanumeric() || c == '_' => rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            c => c.len_utf8(),
        };
        if c == '\n' {
            line += 1;
        }
        if !c.is_whitespace() {
            tokens.push(Token {
                text: rest[..length].to_string(),
                line,
            });
        }
        rest = &rest[length..];
    }
    tokens
}

/// The text with comments, strings and character literals replaced by blanks; lines stay where they are.
fn blanked(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while !rest.is_empty() {
        let skip = literal_or_comment(rest, out.chars().next_back());
        let length = if skip > 0 {
            skip
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        let (piece, after) = rest.split_at(length);
        if skip > 0 {
            out.extend(piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        } else {
            out.push_str(piece);
        }
        rest = after;
    }
    out
}

/// Bytes of the comment, string or character literal at the start of `rest`; 0 where there is none.
fn literal_or_comment(rest: &str, before: Option<char>) -> usize {
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment(rest);
    }
    if rest.starts_with('"') {
        return quoted(rest, '"');
    }
    let prefix = rest
        .find(|c: char| !matches!(c, 'b' | 'c' | 'r'))
        .unwrap_or(0);
    if !in_word && prefix > 0 && prefix <= 2 && rest[..prefix].contains('r') {
        let hashes = rest[prefix..].bytes().take_while(|b| *b == b'#').count();
        if rest[prefix + hashes..].starts_with('"') {
            let open = prefix + hashes + 1;
            let close = format!("\"{}", "#".repeat(hashes));
            return rest[open..]
                .find(&close)
                .map_or(rest.len(), |at| open + at + close.len());
        }
    }
    if rest.starts_with('\'') {
        character(rest)
    } else {
        0
    }
}

/// A nested `/* … */`.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// A literal between two `mark`s, with escapes.
fn quoted(rest: &str, mark: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == mark => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// A character literal; 0 for a lifetime.
fn character(rest: &str) -> usize {
    let mut after = rest.chars().skip(1);
    match (after.next(), after.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => quoted(rest, '\''),
        _ => 0,
    }
}

/// Leaves out every item behind `#[cfg(test)]`.
fn without_unit_tests(tokens: &[Token]) -> Vec<Token> {
    const ATTRIBUTE: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut kept, mut at) = (Vec::with_capacity(tokens.len()), 0);
    while at < tokens.len() {
        let matches = tokens.len() >= at + ATTRIBUTE.len()
            && (0..ATTRIBUTE.len()).all(|i| tokens[at + i].text == ATTRIBUTE[i]);
        if matches {
            at = item_end(tokens, at + ATTRIBUTE.len());
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// Where the item that starts at `at` ends: behind its `;` or its closing brace.
fn item_end(tokens: &[Token], mut at: usize) -> usize {
    let mut depth = 0usize;
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            "{" | "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "}" if depth <= 1 => return at + 1,
            "}" => depth -= 1,
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at
}

fn paths(tokens: &[Token]) -> Vec<(Vec<String>, usize)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let imports = match tokens[at].text.as_str() {
            "use" => true,
            "crate" => at > 0 && tokens[at - 1].text == "extern",
            _ => false,
        };
        let continues = at > 1 && follows(tokens, at - 1, "::") && ends_segment(&tokens[at - 2]);
        if imports {
            at = tree(tokens, at + 1, &[], &mut found);
        } else if tokens[at].is_word() && !continues && follows(tokens, at + 1, "::") {
            at = tree(tokens, at, &[], &mut found);
        } else {
            at += 1;
        }
    }
    found
}

/// What stands before the `::` inside a path; a path that starts with `::` has something else there.
fn ends_segment(token: &Token) -> bool {
    token.text == ">"
        || (token.is_word() && !matches!(token.text.as_str(), "return" | "in" | "else" | "match"))
}

fn follows(tokens: &[Token], at: usize, text: &str) -> bool {
    tokens.get(at).is_some_and(|t| t.text == text)
}

/// Reads one path or use tree behind `prefix`; where it ends.
fn tree(
    tokens: &[Token],
    mut at: usize,
    prefix: &[String],
    found: &mut Vec<(Vec<String>, usize)>,
) -> usize {
    let line = tokens.get(at).map_or(0, |t| t.line);
    let mut path = prefix.to_vec();
    if follows(tokens, at, "::") {
        at += 1;
    }
    while let Some(token) = tokens.get(at) {
        if token.text == "{" {
            return group(tokens, at + 1, &path, found);
        }
        if !token.is_word() {
            break;
        }
        path.push(token.text.clone());
        at += 1;
        if !follows(tokens, at, "::") {
            break;
        }
        at += 1;
    }
    if path.len() > prefix.len() {
        found.push((path, line));
    }
    at
}

/// Reads `a, b::c, d as e}` behind `prefix`; where it ends.
fn group(
    tokens: &[Token],
    mut at: usize,
    prefix: &[String],
    found: &mut Vec<(Vec<String>, usize)>,
) -> usize {
    while at < tokens.len() && tokens[at].text != "}" {
        let end = if tokens[at].is_word() || tokens[at].text == "{" {
            tree(tokens, at, prefix, found)
        } else {
            at + 1
        };
        // `as name` gives a name, it names no path
        at = if follows(tokens, end, "as") {
            end + 2
        } else {
            end
        };
    }
    at + 1
}
