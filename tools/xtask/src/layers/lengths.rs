//! Files and functions stay short enough to be read at once, and parameters have names.
use super::Violation;
use super::source::Source;

/// Most lines of a file that are let pass without a remark; those of unit tests do not count.
const FILE: usize = 800;
/// Most lines of a function's body without blanks and comments.
const FUNCTION: usize = 60;
/// Most values of a parameter that is a tuple.
const TUPLE: usize = 2;
/// What draws pictures and what tests has lists and set-ups that a reader skims.
const EXEMPT: [&str; 2] = ["tools/plot/", "tests/"];

/// Checks the functions of product code, Rust and CUDA alike: their lengths and their parameters.
pub fn check(sources: &[Source], found: &mut Vec<Violation>) {
    for source in sources.iter().filter(|s| is_product(&s.file)) {
        for function in &source.functions {
            let name = &function.name;
            if source.code_lines(function.body.clone()) > FUNCTION {
                let message = format!("`{name}` has more than {FUNCTION} lines: split it");
                found.push(Violation::of(&source.file, function.line, message));
            }
            if function.largest_tuple > TUPLE {
                let message = format!(
                    "`{name}` takes a tuple of {} values: give them names in a structure",
                    function.largest_tuple
                );
                found.push(Violation::of(&source.file, function.line, message));
            }
        }
    }
}

/// Returns a remark for each long file of product code.
pub fn remarks(sources: &[Source]) -> impl Iterator<Item = String> + '_ {
    let product = sources.iter().filter(|s| is_product(&s.file));
    let long = product.filter(|s| s.lines.len() > FILE);
    long.map(|s| format!("note: {} has {} lines", s.file, s.lines.len()))
}

fn is_product(file: &str) -> bool {
    let exempt = EXEMPT.iter().any(|folder| file.starts_with(folder));
    !exempt && (file.contains("/src/") || file.starts_with("scenarios/"))
}
