//! Runs killed at any moment and resumed until they end: no snapshot is lost or differs from that of an undisturbed run.

use super::programs::Program;
use super::{Attack, Setting};
use nestar_tests::random::Random;
use std::cell::Cell;
use std::process::Stdio;
use std::time::Duration;

pub fn prepare(setting: &Setting) -> Result<Attack, String> {
    let program = Program::prepare(&setting.program, setting.scratch.path().join("kills"))?;
    let start = std::time::Instant::now();
    let status = program.run("timed", &[]).status();
    status.map_err(|e| e.to_string())?;
    let whole = start.elapsed();
    // one run after another is killed again and again
    let kept = Cell::new(0);
    Ok(Box::new(move |random| {
        let wait = whole.mul_f64(random.between(0.0, 0.7));
        kept.set(kill(&program, wait, random, kept.get())?);
        Ok(())
    }))
}

/// Kills a run after `wait`; returns its number of snapshots, of which it had `kept` before.
fn kill(
    program: &Program,
    wait: Duration,
    random: &mut Random,
    kept: usize,
) -> Result<usize, String> {
    let output = "run";
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
    if now < kept {
        return Err(format!("{kept} snapshots have become {now}"));
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
