//! `cargo xtask words`: the vocabulary of the project, checked in code, comments, file names and documents.
//!
//! `retired.txt` lists the words that the project does not use, each with the word that replaces it. Documents are checked for
//! long sentences and broken links as well.
mod glossary;
mod prose;

use crate::Outcome;
use glossary::Glossary;
use std::path::Path;
use std::process::Command;

/// The list of retired words.
const RETIRED: &str = "tools/xtask/src/words/retired.txt";

/// Checks all files that git tracks below `root` and prints what is wrong.
pub fn run(root: &Path) -> Outcome {
    match findings(root) {
        Err(why) => Outcome::Failed(why),
        Ok(found) if found.is_empty() => Outcome::Passed,
        Ok(found) => {
            for finding in &found {
                eprintln!("{finding}");
            }
            Outcome::Failed(format!("{} places to reword (see {RETIRED})", found.len()))
        }
    }
}

fn findings(root: &Path) -> Result<Vec<String>, String> {
    let read =
        |file: &str| std::fs::read_to_string(root.join(file)).map_err(|e| format!("{file}: {e}"));
    let glossary = Glossary::parse(&read(RETIRED)?)?;
    let mut found = Vec::new();
    for file in tracked(root)? {
        if !root.join(&file).exists() {
            continue;
        }
        if is_code(&file) {
            glossary.check_file_name(&file, &mut found);
            glossary.check_code(&file, &read(&file)?, &mut found);
        } else if prose::is_document(&file) {
            let text = read(&file)?;
            glossary.check_text(&file, &text, &mut found);
            prose::check(&file, &text, &mut found);
            prose::check_links(root, &file, &text, &mut found);
        } else if file.ends_with(".md") && !file.contains("/template/") {
            prose::check_links(root, &file, &read(&file)?, &mut found);
        }
    }
    Ok(found)
}

/// Returns the files that git tracks, and new ones that it does not ignore.
fn tracked(root: &Path) -> Result<Vec<String>, String> {
    let mut command = Command::new("git");
    command
        .current_dir(root)
        .args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let output = command.output().map_err(|e| format!("git ls-files: {e}"))?;
    let names = String::from_utf8_lossy(&output.stdout);
    Ok(names.lines().map(str::to_string).collect())
}

fn is_code(file: &str) -> bool {
    [".rs", ".cu", ".cuh"]
        .iter()
        .any(|ending| file.ends_with(ending))
}
