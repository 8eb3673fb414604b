//! The book: mdBook makes web pages of the documents in `docs/`.
use crate::Outcome;
use crate::commands::{cargo, execute};
use std::path::Path;
use std::process::{Command, Stdio};

/// Builds the book into `target/book`. Installs mdBook from crates.io if it is missing.
pub fn book(root: &Path) -> Outcome {
    if !is_installed() {
        println!("mdbook is not installed: installs it, which takes minutes");
        let install = execute(cargo(root, &["install", "--quiet", "--locked", "mdbook"]));
        if !matches!(install, Outcome::Passed) {
            return install;
        }
    }
    let mut command = Command::new("mdbook");
    command.current_dir(root).args(["build", "docs"]);
    execute(command)
}

fn is_installed() -> bool {
    let mut command = Command::new("mdbook");
    let status = command
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}
