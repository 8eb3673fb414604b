//! `cargo xtask layers`: checks the layering rules of ARCHITECTURE.md in all manifests and source files.
//!
//! Cargo itself refuses a crate that uses a higher one. The rules here concern what a manifest does not say; uses are read
//! from the paths in the code, including those outside `use` items.
mod cycles;
mod rules;
mod source;

use crate::Outcome;
use source::{Manifest, Source};
use std::fmt;
use std::path::{Path, PathBuf};

/// Source files.
const ENDINGS: [&str; 3] = [".rs", ".cu", ".cuh"];

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// Path relative to the workspace.
    file: String,
    /// Line number from 1; 0 for the whole file.
    line: usize,
    /// Description of the violation and its remedy.
    message: String,
}

impl Violation {
    fn of(file: &str, line: usize, message: String) -> Self {
        Self {
            file: file.to_string(),
            line,
            message,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}: {}", self.file, self.message),
        }
    }
}

/// Checks the workspace at `root` and prints all violations.
pub fn run(root: &Path) -> Outcome {
    let (manifests, sources) = match read(root) {
        Ok(files) => files,
        Err(why) => return Outcome::Failed(why),
    };
    let mut violations = rules::check(&manifests, &sources);
    violations.sort();
    violations.dedup();
    for violation in &violations {
        eprintln!("{violation}");
    }
    for remark in rules::remarks(&sources) {
        println!("{remark}");
    }
    println!(
        "{} manifests, {} source files",
        manifests.len(),
        sources.len()
    );
    match violations.len() {
        0 => Outcome::Passed,
        n => Outcome::Failed(format!(
            "{n} violations of layering rules (see ARCHITECTURE.md)"
        )),
    }
}

fn read(root: &Path) -> Result<(Vec<Manifest>, Vec<Source>), String> {
    let mut paths = Vec::new();
    walk(root, root, &mut paths).map_err(|e| format!("{}: {e}", root.display()))?;
    paths.sort();
    let (mut manifests, mut sources) = (Vec::new(), Vec::new());
    for path in &paths {
        let text = std::fs::read_to_string(root.join(path))
            .map_err(|e| format!("{}: {e}", path.display()))?;
        let name = path.to_string_lossy().replace('\\', "/");
        if name == "Cargo.toml" {
            continue;
        } else if name.ends_with("Cargo.toml") {
            manifests.push(Manifest::parse(&name, &text));
        } else if name.ends_with(".rs") {
            sources.push(Source::rust(&name, &text)?);
        } else {
            sources.push(Source::cuda(&name, &text));
        }
    }
    Ok((manifests, sources))
}

/// Collects all manifests and source files in `folder`, except in hidden folders and in output of builds and runs.
fn walk(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        if name.starts_with('.') || (folder == root && matches!(&*name, "target" | "out")) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            walk(root, &path, found)?;
        } else if name == "Cargo.toml" || ENDINGS.iter().any(|end| name.ends_with(end)) {
            found.push(path.strip_prefix(root).unwrap_or(&path).to_path_buf());
        }
    }
    Ok(())
}
