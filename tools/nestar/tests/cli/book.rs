//! The decks and commands of README and the book are those of the program.

use crate::{Outcome, Place};
use nestar::App;
use nestar::deck::Deck;
use std::path::{Path, PathBuf};

/// A block of code of a document.
struct Block {
    /// File and line, for messages.
    place: String,
    language: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All blocks of README and of the pages in `docs/`.
fn blocks(language: &str) -> Vec<Block> {
    let mut files = vec![root().join("README.md")];
    for entry in std::fs::read_dir(root().join("docs")).expect("the folder of the book") {
        let path = entry.expect("an entry").path();
        files.extend(path.extension().is_some_and(|e| e == "md").then_some(path));
    }
    files.sort();
    let mut blocks = files
        .iter()
        .flat_map(|file| blocks_of(file))
        .collect::<Vec<_>>();
    blocks.retain(|block| block.language == language);
    blocks
}

fn blocks_of(file: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(file).expect("a document");
    let (mut blocks, mut open) = (Vec::new(), false);
    for (n, line) in text.lines().enumerate() {
        if let Some(language) = line.strip_prefix("```") {
            if !open {
                blocks.push(Block {
                    place: format!("{}:{}", file.display(), n + 1),
                    language: language.to_string(),
                    text: String::new(),
                });
            }
            open = !open;
        } else if let (true, Some(block)) = (open, blocks.last_mut()) {
            block.text += line;
            block.text.push('\n');
        }
    }
    assert!(!open, "{}: a block of code does not end", file.display());
    blocks
}

#[test]
fn decks_of_the_book_have_known_tables_keys_and_values() {
    let decks = blocks("toml");
    assert!(decks.len() > 15, "{} decks were found", decks.len());
    let wrong: Vec<String> = decks
        .iter()
        .filter_map(|block| {
            let checked = Deck::parse(&block.place, &block.text);
            let checked = checked.and_then(|deck| App::default().check(&deck));
            checked.err().map(|e| format!("{}\n{e}", block.place))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The arguments of the commands of a block that start the program.
fn commands(block: &Block) -> Vec<Vec<String>> {
    let whole = block.text.replace("\\\n", " ");
    let lines = whole.lines().filter_map(|line| {
        let line = line.split(" #").next().unwrap_or_default().trim();
        // output to a file
        let line = line.split(" > ").next().unwrap_or_default();
        let line = line
            .strip_prefix("nestar ")
            .or_else(|| line.strip_prefix("cargo run --release -- "));
        line.map(words)
    });
    lines.collect()
}

/// Splits a line at blanks outside single quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quoted, mut open) = (Vec::new(), false, false);
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => open = false,
            c => {
                if !open {
                    words.push(String::new());
                    open = true;
                }
                words.last_mut().expect("one is open").push(c);
            }
        }
    }
    words
}

#[test]
fn commands_of_the_book_have_known_options() {
    let place = Place::new();
    let mut count = 0;
    for block in blocks("sh") {
        for mut arguments in commands(&block) {
            // options before it are read, and refused if they are unknown
            arguments.push("--help".into());
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let Outcome { status, err, .. } = place.nestar(&arguments);
            assert_eq!(status, Some(0), "{}: {arguments:?}\n{err}", block.place);
            count += 1;
        }
    }
    assert!(count > 15, "{count} commands were found");
}

#[test]
#[cfg(unix)]
fn the_first_page_of_the_book_can_be_followed() {
    let place = Place::new();
    let scenarios = root().join("scenarios").canonicalize().expect("the decks");
    std::os::unix::fs::symlink(scenarios, place.0.join("scenarios")).expect("a link");
    let page = blocks_of(&root().join("docs/start.md"));
    let mut ran = 0;
    for block in page.iter().filter(|block| block.language == "sh") {
        for mut arguments in commands(block) {
            if arguments[0] == "run" || arguments[0] == "sweep" {
                // a small run shows the same
                for setting in [
                    "time.max_steps=1",
                    "mesh.max_level=1",
                    "domain.cells=[16,16,16]",
                ] {
                    arguments.extend(["--set".into(), setting.into()]);
                }
            }
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let Outcome { status, out, err } = place.nestar(&arguments);
            assert_eq!(
                status,
                Some(0),
                "{}: {arguments:?}\n{out}\n{err}",
                block.place
            );
            ran += 1;
        }
    }
    assert!(ran > 5, "{ran} commands were run");
}
