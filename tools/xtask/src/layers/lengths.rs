//! Files and functions stay short enough to be read at once.
use super::Violation;
use super::source::Source;

/// Most lines of a file, all of them counted but those of unit tests.
const FILE: usize = 400;
/// Most lines of a function's body without blanks and comments.
const FUNCTION: usize = 40;
/// What draws pictures and what tests has lists and set-ups that a reader skims.
const EXEMPT: [&str; 2] = ["tools/plot/", "tests/"];

/// Lengths of files and functions of product code, Rust and CUDA alike.
pub fn check(sources: &[Source], found: &mut Vec<Violation>) {
    for source in sources.iter().filter(|s| is_product(&s.file)) {
        if source.lines.len() > FILE {
            let message = format!("has more than {FILE} lines: split it by what it does");
            found.push(Violation::of(&source.file, 0, message));
        }
        for function in &source.functions {
            if source.code_lines(function.body.clone()) > FUNCTION {
                let name = &function.name;
                let message = format!("`{name}` has more than {FUNCTION} lines: split it");
                found.push(Violation::of(&source.file, function.line, message));
            }
        }
    }
}

fn is_product(file: &str) -> bool {
    let exempt = EXEMPT.iter().any(|folder| file.starts_with(folder));
    !exempt && (file.contains("/src/") || file.starts_with("scenarios/"))
}
