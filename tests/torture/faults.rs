//! System calls that fail at any moment: a message and a status, no damaged snapshot, and a resumed run that ends like an
//! undisturbed one. A preloaded library intercepts the calls.

use super::programs::Program;
use super::{Attack, Case, Setting};
use nestar_tests::random::Random;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Numbers of errors: input and output, no space, no quota, read-only, too many files, no memory.
const ERRORS: [i32; 6] = [5, 28, 122, 30, 24, 12];
/// Exit statuses of a run that cannot go on: failed, refused, or without memory.
const STATUSES: [i32; 3] = [1, 2, 4];

pub fn prepare(setting: &Setting) -> Result<Attack, String> {
    let library = compile(setting.scratch.path())?;
    let mut attacked = Vec::new();
    for program in Program::prepare_all(setting, "faults")? {
        let calls = count(&program, &library)?;
        println!(
            "faults: {calls} calls of a run of {} can fail",
            program.deck.name
        );
        attacked.push((program, calls));
    }
    Ok(Box::new(move |_, random| {
        let (program, calls) = &attacked[random.below(attacked.len() as u64) as usize];
        fault(program, &library, *calls, random)
    }))
}

/// Builds the library with the C compiler that the linker needs anyway.
fn compile(folder: &Path) -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("torture/faults.c");
    let library = folder.join("faults.so");
    let status = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .status();
    match status {
        Ok(status) if status.success() => Ok(library),
        Ok(status) => Err(format!("cc: {status}")),
        Err(error) => Err(format!("cc: {error}")),
    }
}

/// How many calls a run makes.
fn count(program: &Program, library: &Path) -> Result<u64, String> {
    let file = program.folder.join("calls");
    let status = program
        .run("counted", &[])
        .env("LD_PRELOAD", library)
        .env("NESTAR_FAULT_COUNT", &file)
        .status();
    status.map_err(|e| e.to_string())?;
    let text = std::fs::read_to_string(&file).map_err(|e| format!("no count: {e}"))?;
    text.trim()
        .parse()
        .map_err(|e| format!("count {text}: {e}"))
}

fn fault(program: &Program, library: &Path, calls: u64, random: &mut Random) -> Case {
    let output = "run";
    program.remove(output);
    let at = 1 + random.below(calls);
    let number = random.pick(&ERRORS);
    // a disk that is full stays full
    let lasting = random.below(2);
    let ended = program
        .run(output, &[])
        .env("LD_PRELOAD", library)
        .env("NESTAR_FAULT_AT", at.to_string())
        .env("NESTAR_FAULT_ERROR", number.to_string())
        .env("NESTAR_FAULT_LASTS", lasting.to_string())
        .stderr(Stdio::piped())
        .output()
        .map_err(|e| e.to_string())?;
    let name = &program.deck.name;
    let what = format!("{name}: call {at} with error {number}, lasting {lasting}");
    let told = String::from_utf8_lossy(&ended.stderr);
    match ended.status.code() {
        Some(0) => {}
        Some(code) if STATUSES.contains(&code) && told.contains("error: ") => {}
        _ => return Err(format!("{what}: {}: {told}", ended.status)),
    }
    if told.contains("panicked") {
        return Err(format!("{what}: a panic: {told}"));
    }
    let named = |why: String| format!("{what}: {why}; it had told: {told}");
    program.require_whole(output).map_err(named)?;
    program.require_end(output).map_err(named)
}
