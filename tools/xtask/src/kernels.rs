//! The step `kernels`: NVRTC compiles the CUDA text of every device item, on all cores.
use crate::python;
use crate::{Outcome, cargo, execute, target_directory};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is built: an example that writes the CUDA text of every device item as `*.cu` files into the folder it is given, and programs
/// that check decks. All in one command for the whole workspace, so that dependencies have the features that they have in the tests
/// and nothing is compiled twice.
const BUILD: &str = "build --release --workspace --bin nestar --example device_text --example atmosphere --example decay";
/// Where the first of them stands.
const DEVICE_TEXT: &str = "examples/device_text";
/// Decks whose kernels are compiled as a run would, with the program that has their plugins: scalars, walls, inflow by formulas,
/// criteria; particles; boundaries of a plugin; functions of particles.
const SPECIALISED_DECKS: [(&str, &str); 5] = [
    ("nestar", "scenarios/double-mach.toml"),
    ("nestar", "scenarios/kelvin-helmholtz.toml"),
    ("nestar", "scenarios/plummer.toml"),
    ("examples/atmosphere", "scenarios/programs/atmosphere.toml"),
    ("examples/decay", "scenarios/programs/decay.toml"),
];
/// The script that compiles one `.cu` file by NVRTC.
const NVRTC_COMPILE: &str = "tools/python/nvrtc_compile.py";
/// The oldest architecture that the kernels support. NVRTC makes the same instructions for later ones.
const ARCHITECTURE: &str = "compute_80";

/// Writes the CUDA text of all device items and compiles each file.
pub fn run(root: &Path) -> Outcome {
    let interpreter = match python::prepare(root) {
        Ok(interpreter) => interpreter,
        Err(why) => return Outcome::Skipped(why),
    };
    let folder = target_directory(root).join("device-text");
    if let Err(e) = clear(&folder) {
        return Outcome::Failed(format!("{}: {e}", folder.display()));
    }
    let build: Vec<&str> = BUILD.split(' ').collect();
    let steps: [&dyn Fn() -> Outcome; 4] = [
        &|| execute(cargo(root, &build)),
        &|| write_all(root, &folder),
        &|| keep_sources_of_decks(root, &folder),
        &|| compile_all(root, &interpreter, &folder),
    ];
    let mut outcomes = steps.iter().map(|step| step());
    let failed = outcomes.find(|outcome| !matches!(outcome, Outcome::Passed));
    failed.unwrap_or(Outcome::Passed)
}

/// Returns the command that starts a built program.
fn program(root: &Path, name: &str) -> Command {
    let mut command = Command::new(target_directory(root).join("release").join(name));
    command.current_dir(root);
    command
}

fn write_all(root: &Path, folder: &Path) -> Outcome {
    let mut command = program(root, DEVICE_TEXT);
    command.arg(folder);
    execute(command)
}

/// Keeps the sources of all kernels that decks with many settings need, in both precisions.
fn keep_sources_of_decks(root: &Path, folder: &Path) -> Outcome {
    for (name, deck) in SPECIALISED_DECKS {
        for precision in ["single", "double"] {
            let mut command = program(root, name);
            command
                .args(["check", deck, "--set", "run.device=emulated", "--set"])
                .arg(format!("run.precision={precision}"))
                .env("NESTAR_KERNEL_SOURCES", folder)
                .stdout(Stdio::null());
            let checked = execute(command);
            if !matches!(checked, Outcome::Passed) {
                return checked;
            }
        }
    }
    Outcome::Passed
}

fn compile_all(root: &Path, interpreter: &Path, folder: &Path) -> Outcome {
    let mut texts: Vec<PathBuf> = match std::fs::read_dir(folder) {
        Ok(entries) => entries.filter_map(|e| Some(e.ok()?.path())).collect(),
        Err(e) => return Outcome::Failed(format!("{}: {e}", folder.display())),
    };
    texts.retain(|p| p.extension().is_some_and(|e| e == "cu"));
    if texts.is_empty() {
        let folder = folder.display();
        return Outcome::Failed(format!("{folder} holds no .cu file"));
    }
    // the longest first, so that all threads end together
    texts.sort_by_key(|p| std::cmp::Reverse(p.metadata().map_or(0, |m| m.len())));
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(text) = texts.get(next.fetch_add(1, Ordering::Relaxed)) {
            compile(root, interpreter, text)?;
        }
        Ok(())
    };
    let compiled: Result<(), String> = std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut ended = started.into_iter().map(|thread| thread.join());
        ended.try_for_each(|result| result.expect("the threads do not panic"))
    });
    match compiled {
        Ok(()) => println!("{} texts compiled for {ARCHITECTURE}: no fma", texts.len()),
        Err(why) => return Outcome::Failed(why),
    }
    Outcome::Passed
}

/// Compiles one text and reads the PTX itself: a fused multiply-add would break CPU = GPU bit for bit.
fn compile(root: &Path, interpreter: &Path, text: &Path) -> Result<(), String> {
    let ptx = text.with_extension("ptx");
    let mut command = Command::new(interpreter);
    command
        .current_dir(root)
        .arg(NVRTC_COMPILE)
        .arg(text)
        .args(["--arch", ARCHITECTURE, "--output"])
        .arg(&ptx);
    let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", text.display());
    let output = command.output().map_err(|e| failed(&e))?;
    let messages = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(failed(&messages));
    }
    if !messages.trim().is_empty() {
        eprintln!("{}", failed(&messages));
    }
    let code = std::fs::read_to_string(&ptx).map_err(|e| failed(&e))?;
    match fused(&code) {
        0 => Ok(()),
        n => Err(failed(&format!("{n} fused multiply-add instructions"))),
    }
}

/// Counts the fused multiply-add instructions in a PTX text.
fn fused(ptx: &str) -> usize {
    ptx.lines()
        .filter(|line| line.split("//").next().unwrap_or_default().contains("fma."))
        .count()
}

fn clear(folder: &Path) -> std::io::Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)
}

#[cfg(test)]
mod tests {
    use super::fused;

    #[test]
    fn fused_multiply_adds_are_counted_and_comments_are_not() {
        assert_eq!(
            fused("mul.rn.f64 %fd1, %fd2, %fd3;\nadd.rn.f64 %fd4, %fd1, %fd5; // not fma.rn\n"),
            0
        );
        assert_eq!(
            fused("\tfma.rn.f32 %f1, %f2, %f3, %f4;\n@%p1 fma.rn.f64 %fd1, %fd2, %fd3, %fd4;\n"),
            2
        );
    }
}
