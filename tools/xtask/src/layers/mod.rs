//! `cargo xtask layers`: the house rules of ARCHITECTURE.md, checked on every manifest and source file.
//!
//! A house rule that only prose states rots. These rules read the text: manifests say which crate may be used, and the
//! paths in the code (`use` lines and all others) say which is.
mod floors;
mod lengths;
mod manifest;
mod rules;
mod source;

use crate::Outcome;
use manifest::Manifest;
use source::Source;
use std::fmt;
use std::path::{Path, PathBuf};

/// Source files.
const ENDINGS: [&str; 3] = [".rs", ".cu", ".cuh"];

/// A broken rule and where it is broken.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// Relative to the workspace.
    file: String,
    /// From 1; 0 for the whole file.
    line: usize,
    /// What is wrong and what to do.
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

/// Checks the workspace at `root` and prints what is wrong.
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
    for remark in lengths::remarks(&sources) {
        println!("{remark}");
    }
    println!(
        "{} manifests, {} source files",
        manifests.len(),
        sources.len()
    );
    match violations.len() {
        0 => Outcome::Passed,
        n => Outcome::Failed(format!("{n} house rules broken (see ARCHITECTURE.md)")),
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

/// All manifests and Rust files below `folder`; hidden folders and what builds and runs leave behind are not read.
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
