//! Every shipped deck, stopped at a random time and resumed on other ranks and devices: the snapshots are those of an
//! undisturbed run.

use super::programs::{Program, SmallDeck, scenarios};
use super::{Attack, Case, Setting};
use nestar::Simulation;
use nestar_deck::Deck;
use nestar_tests::random::Random;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Largest number of root cells along an axis.
const CELLS: u32 = 16;

pub fn prepare(setting: &Setting) -> Result<Attack, String> {
    let folder = setting.scratch.path().join("restarts");
    let program = setting.program.clone();
    let decks = shipped()?;
    println!("restarts: {} decks", decks.len());
    Ok(Box::new(move |number, random| {
        let path = &decks[number as usize % decks.len()];
        let deck = SmallDeck::shipped(path, &[cells(path)?]);
        let program = Program::prepare(&program, folder.join(&deck.name), deck)?;
        let outcome = restart(&program, random);
        let _ = std::fs::remove_dir_all(&program.folder);
        outcome.map_err(|why| format!("{}: {why}", program.deck.name))
    }))
}

/// Returns the paths of the shipped decks, sorted by name.
pub fn shipped() -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(scenarios()).map_err(|e| e.to_string())?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| {
        path.extension().is_some_and(|e| e == "toml") && !path.ends_with("Cargo.toml")
    });
    paths.sort();
    Ok(paths)
}

/// Returns the setting that limits the root cells of a deck.
fn cells(path: &Path) -> Result<String, String> {
    let mut deck = Deck::read(path).map_err(|e| e.to_string())?;
    deck.set("run.device=cpu").map_err(|e| e.to_string())?;
    let mut sim = Simulation::new(deck).map_err(|e| e.to_string())?;
    let cells = sim.engine().settings.domain.cells;
    Ok(format!("domain.cells={:?}", cells.map(|n| n.min(CELLS))))
}

/// Stops a run by a signal at a random time, twice, and resumes it on other ranks and devices.
fn restart(program: &Program, random: &mut Random) -> Case {
    let output = "run";
    for _ in 0..2 {
        let ranks = random.pick(&["1", "2", "3"]);
        let device = random.pick(&["run.device=cpu", "run.device=emulated"]);
        let more = ["--resume", "--ranks", ranks, "--set", device];
        let child = program.run(output, &more).stderr(Stdio::piped()).spawn();
        let child = child.map_err(|e| e.to_string())?;
        std::thread::sleep(program.duration.mul_f64(random.between(0.1, 0.9)));
        let signal = random.pick(&["-TERM", "-INT", "-KILL"]);
        let _ = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .stderr(Stdio::null())
            .status();
        let ended = child.wait_with_output().map_err(|e| e.to_string())?;
        let told = String::from_utf8_lossy(&ended.stderr);
        if told.contains("error: ") || told.contains("panicked") {
            return Err(format!("{more:?} {signal}: {}: {told}", ended.status));
        }
        program.require_whole(output)?;
    }
    program.require_end(output)
}
