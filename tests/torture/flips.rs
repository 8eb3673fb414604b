//! Flipped bits and bytes in any file of a store are detected. Impossible numbers in metadata without checksums cause neither
//! a panic nor a large allocation.

use super::programs::Program;
use super::{Attack, Case, Setting};
use nestar::snapshot::{self, Snapshot, SnapshotError};
use nestar_tests::random::Random;
use std::path::{Path, PathBuf};

pub fn prepare(setting: &Setting) -> Result<Attack, String> {
    let mut stores = Vec::new();
    for program in Program::prepare_all(setting, "flips")? {
        let store = snapshot::latest(&program.folder.join("whole")).map_err(|e| e.to_string())?;
        let (_, store) = store.ok_or("no snapshot")?;
        let mut files = Vec::new();
        list(&store, &mut files);
        println!(
            "flips: {} files of a store of {}",
            files.len(),
            program.deck.name
        );
        stores.push((store, files));
    }
    Ok(Box::new(move |_, random| {
        let (store, files) = &stores[random.below(stores.len() as u64) as usize];
        // small files are as many as large ones
        let file = &files[random.below(files.len() as u64) as usize];
        let bytes = std::fs::read(file).map_err(|e| e.to_string())?;
        let outcome = match random.below(8) {
            0 => number(store, random),
            _ => flip(store, file, &bytes, random),
        };
        std::fs::write(file, &bytes).map_err(|e| e.to_string())?;
        outcome
    }))
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        match path.is_dir() {
            true => list(&path, files),
            false => files.push(path),
        }
    }
}

/// Everything that commands read of a store.
fn used(store: &Path) -> Result<(), SnapshotError> {
    let snapshot = Snapshot::open(store)?;
    snapshot.verify(|_| ())?;
    snapshot::summary(&snapshot)?;
    snapshot::digest(&snapshot).map(|_| ())
}

fn flip(store: &Path, file: &Path, bytes: &[u8], random: &mut Random) -> Case {
    let mut changed = bytes.to_vec();
    let at = random.below(bytes.len() as u64) as usize;
    let how = match random.below(5) {
        0 => {
            changed.truncate(at);
            format!("cut at byte {at}")
        }
        1 => {
            changed[at] = changed[at].wrapping_add(1 + random.below(255) as u8);
            format!("another byte {at}")
        }
        _ => {
            let bit = random.below(8);
            changed[at] ^= 1 << bit;
            format!("bit {bit} of byte {at} flipped")
        }
    };
    std::fs::write(file, &changed).map_err(|e| e.to_string())?;
    match used(store) {
        Err(_) => Ok(()),
        Ok(()) => Err(format!("{}: {how}, and nobody noticed", file.display())),
    }
}

/// A number of the root's metadata becomes another, in a store as versions without checksums of metadata wrote it.
fn number(store: &Path, random: &mut Random) -> Case {
    let (file, sums) = (store.join("zarr.json"), store.join("checksums"));
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|e| e.to_string());
    let (text, lines) = (read(&file)?, read(&sums)?);
    let digits: Vec<(usize, usize)> = numbers(&text);
    let (from, to) = random.pick(&digits);
    let new = random.pick(&[
        "0",
        "-1",
        "4294967296",
        "1152921504606846976",
        "18446744073709551615",
        "1e308",
    ]);
    let changed = format!("{}{new}{}", &text[..from], &text[to..]);
    let changed = changed.replace("\"checksums\"", "\"unchecked\"");
    let write = |path: &Path, text: &str| std::fs::write(path, text).map_err(|e| e.to_string());
    write(&file, &changed)?;
    std::fs::remove_file(&sums).map_err(|e| e.to_string())?;
    // an error or not, as the number may mean little
    let _ = used(store);
    write(&file, &text)?;
    write(&sums, &lines)
}

/// Positions of numbers in a JSON text.
fn numbers(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let (mut found, mut at, mut quoted) = (Vec::new(), 0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'"' => quoted = !quoted,
            b'0'..=b'9' | b'-' if !quoted => {
                let end = (at..bytes.len()).find(|&n| !b"0123456789+-.eE".contains(&bytes[n]));
                let end = end.unwrap_or(bytes.len());
                found.push((at, end));
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    found
}
