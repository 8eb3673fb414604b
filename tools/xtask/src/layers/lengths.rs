//! Limits on the length of files and functions.
use super::Violation;
use super::source::Source;

/// Maximum number of lines in a file, without unit tests.
const FILE: usize = 400;
/// Maximum number of lines in a function body, without blank lines and comments.
const FUNCTION: usize = 40;
/// Folders without limits.
const EXEMPT: [&str; 2] = ["tools/plot/", "tests/"];

/// Checks the length of files and functions of product code in Rust and CUDA.
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
