//! Runs killed at any moment and resumed until they end: no snapshot is lost, and neither snapshots nor views, pictures and tables
//! differ from those of an undisturbed run.

use super::programs::Program;
use super::{Attack, Setting};
use nestar_tests::random::Random;
use std::cell::Cell;
use std::process::Stdio;

pub fn prepare(setting: &Setting) -> Result<Attack, String> {
    let programs = Program::prepare_all(setting, "kills")?;
    // one run after another is killed again and again
    let stored: Vec<Cell<usize>> = programs.iter().map(|_| Cell::new(0)).collect();
    Ok(Box::new(move |_, random| {
        let n = random.below(programs.len() as u64) as usize;
        let now = kill(&programs[n], random, stored[n].get());
        let now = now.map_err(|why| format!("{}: {why}", programs[n].deck.name))?;
        stored[n].set(now);
        Ok(())
    }))
}

/// Kills a run at a random time and returns its number of snapshots. There were `stored` snapshots before.
fn kill(program: &Program, random: &mut Random, stored: usize) -> Result<usize, String> {
    let output = "run";
    let wait = program.duration.mul_f64(random.between(0.0, 0.7));
    let ranks: &[&str] = match random.below(4) {
        0 => &["--resume", "--ranks", "2"],
        _ => &["--resume"],
    };
    let mut command = program.run(output, ranks);
    let child = command.stderr(Stdio::null()).spawn();
    let mut child = child.map_err(|e| e.to_string())?;
    std::thread::sleep(wait);
    child.kill().map_err(|e| e.to_string())?;
    let status = child.wait().map_err(|e| e.to_string())?;
    let now = program.require_whole(output)?;
    if now < stored {
        return Err(format!("{stored} snapshots have become {now}"));
    }
    if status.success() {
        program.require_end(output)?;
        program.remove(output);
        return Ok(0);
    }
    match status.code() {
        None => Ok(now),
        Some(code) => Err(format!("it ended by itself with status {code}")),
    }
}
