//! `nestar new`: a crate with physics of one's own.

use super::{CommandError, FAILED, INVALID_INPUT, print};
use clap::Args;
use std::path::{Path, PathBuf};

/// What to make.
#[derive(Args)]
pub struct NewArgs {
    /// Folder of the crate; its last part is the name of the program
    folder: PathBuf,
    /// Folder `tools/nestar` of a checkout of Nestar, which the crate depends on; without it: the checkout that this program was
    /// built from
    #[arg(long, value_name = "FOLDER", default_value = env!("CARGO_MANIFEST_DIR"))]
    nestar: PathBuf,
}

/// The files of the crate; `NAME` in paths and texts stands for its name, `NESTAR` for the folder of Nestar.
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

/// Makes a crate with a plugin, a deck and a test.
pub fn new(arguments: &NewArgs) -> Result<(), CommandError> {
    let folder = &arguments.folder;
    let name = name_of(folder)?;
    let nestar = std::path::absolute(&arguments.nestar).unwrap_or(arguments.nestar.clone());
    if !nestar.join("Cargo.toml").is_file() {
        let message = format!(
            "there is no Nestar in {}: give the folder tools/nestar of a checkout by --nestar",
            nestar.display()
        );
        return Err(CommandError::new(INVALID_INPUT, message));
    }
    if folder.exists() {
        let message = format!("{} exists already: nothing is written", folder.display());
        return Err(CommandError::new(INVALID_INPUT, message));
    }
    // the versions that Nestar is tested with; a folder by itself has none
    let versions = std::fs::read_to_string(nestar.join("../../Cargo.lock"));
    // the place of Nestar stands in a text of TOML
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
        "{} is made: a plugin in src/main.rs, a deck in {name}.toml, more in README.md\n  cd {}\n  cargo run --release -- run {name}.toml\n  cargo test --release\n",
        folder.display(),
        folder.display()
    ))
}

/// The name of the program, which is one of a crate.
fn name_of(folder: &Path) -> Result<String, CommandError> {
    let name = folder
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let sound = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(plain);
    match sound && name != "nestar" && name != "test" {
        true => Ok(name.to_string()),
        false => Err(CommandError::new(
            INVALID_INPUT,
            format!(
                "{name:?} is no name of a crate: letters, digits, `-` and `_`, a letter first; not `nestar` or `test`"
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
