//! `nestar new`: creates a crate for additional physics.

use super::{CommandError, FAILED, INVALID_INPUT, print};
use clap::Args;
use std::path::{Path, PathBuf};

/// Arguments of `nestar new`.
#[derive(Args)]
pub struct NewArgs {
    /// Folder of the new crate; its last part is the name of the program
    folder: PathBuf,
    /// Folder `systems/nestar` of the checkout of Nestar that the crate depends on; default: the checkout that this program was
    /// built from
    #[arg(long, value_name = "FOLDER", default_value = env!("CARGO_MANIFEST_DIR"))]
    nestar: PathBuf,
}

/// Files of the crate; `NAME` in paths and texts is replaced by its name, `NESTAR` by the folder of Nestar.
const FILES: [(&str, &str); 7] = [
    ("Cargo.toml", include_str!("../../template/Cargo.toml.txt")),
    ("build.rs", include_str!("../../template/build.rs")),
    ("src/main.rs", include_str!("../../template/src/main.rs")),
    ("NAME.toml", include_str!("../../template/deck.toml")),
    ("README.md", include_str!("../../template/README.md")),
    (
        ".cargo/config.toml",
        include_str!("../../template/config.toml.txt"),
    ),
    (".gitignore", include_str!("../../template/gitignore.txt")),
];

/// Creates a crate with a plugin, a deck and a test.
pub fn new(arguments: &NewArgs) -> Result<(), CommandError> {
    let folder = &arguments.folder;
    let name = name_of(folder)?;
    let nestar = std::path::absolute(&arguments.nestar).unwrap_or(arguments.nestar.clone());
    if !nestar.join("Cargo.toml").is_file() {
        let message = format!(
            "no checkout of Nestar in {}: set --nestar to its folder systems/nestar",
            nestar.display()
        );
        return Err(CommandError::new(INVALID_INPUT, message));
    }
    if folder.exists() {
        let message = format!("{} already exists; nothing was written", folder.display());
        return Err(CommandError::new(INVALID_INPUT, message));
    }
    // use the dependency versions that Nestar is tested with, if they are available
    let versions = std::fs::read_to_string(nestar.join("../../Cargo.lock"));
    // escape the path for TOML
    let nestar = nestar
        .display()
        .to_string()
        .replace('\\', "\\\\")
        .replace('"', "\\\"");
    for (path, text) in FILES {
        let text = text.replace("NAME", &name).replace("NESTAR", &nestar);
        write(&folder.join(path.replace("NAME", &name)), &text)?;
    }
    if let Ok(versions) = versions {
        write(&folder.join("Cargo.lock"), &versions)?;
    }
    print(&format!(
        "created {}: plugin in src/main.rs, deck in {name}.toml, instructions in README.md\n  cd {}\n  cargo run --release -- run {name}.toml\n  cargo test --release\n",
        folder.display(),
        folder.display()
    ))
}

/// Returns the name of the program, which must be a valid name of a crate.
fn name_of(folder: &Path) -> Result<String, CommandError> {
    let name = folder
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let valid = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(plain);
    match valid && name != "nestar" && name != "test" {
        true => Ok(name.to_string()),
        false => Err(CommandError::new(
            INVALID_INPUT,
            format!(
                "{name:?} is not a valid crate name: use letters, digits, `-` and `_`, beginning with a letter; not `nestar` or `test`"
            ),
        )),
    }
}

fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    let folder = path.parent().unwrap_or(Path::new(""));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, text))
        .map_err(|e| CommandError::new(FAILED, format!("cannot write {}: {e}", path.display())))
}
