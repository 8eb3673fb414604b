//! The steps: each runs one or two programs, shows their output and says how it ended.
use crate::commands::{cargo, execute, target_directory};
use crate::{Outcome, deny, layers, python, ranks};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Where the clippy configuration of product code lies: banned float methods.
const NUMERICS_LINTS: &str = "tools/xtask/numerics";
/// The example that writes the CUDA text of every device item as `*.cu` files into the folder it is given.
const DEVICE_TEXT: (&str, &str) = ("nestar-kernels", "kernels/examples/device_text.rs");
/// Decks whose kernels are compiled as a run would, with the program that has their plugins: scalars, walls, inflow by formulas,
/// criteria; particles; boundaries of a plugin.
const SPECIALISED_DECKS: [(&str, &str); 4] = [
    ("--bin=nestar", "scenarios/double-mach.toml"),
    ("--bin=nestar", "scenarios/kelvin-helmholtz.toml"),
    ("--bin=nestar", "scenarios/plummer.toml"),
    ("--example=atmosphere", "scenarios/programs/atmosphere.toml"),
];
/// The script that compiles one `.cu` file by NVRTC.
const NVRTC_COMPILE: &str = "tools/python/nvrtc_compile.py";
/// Compute capabilities the device functions must compile for.
const ARCHITECTURES: [&str; 2] = ["compute_80", "compute_90"];

/// Every step, cheapest first; goes on after a failure and ends with one table.
pub fn check(root: &Path) -> Outcome {
    type Step = (&'static str, fn(&Path) -> Outcome);
    let steps: [Step; 7] = [
        ("fmt", format),
        ("layers", layers::run),
        ("deny", deny::deny),
        ("clippy", clippy),
        ("docs", docs),
        ("kernels", kernels),
        ("test", |root| test(root, &[])),
    ];
    let mut table = String::new();
    let mut failed = Vec::new();
    for (name, step) in steps {
        println!("== {name}");
        let start = Instant::now();
        let (word, why) = match step(root) {
            Outcome::Passed => ("ok", String::new()),
            Outcome::Skipped(why) => ("skipped", why),
            Outcome::Failed(why) => {
                failed.push(name);
                ("FAILED", why)
            }
        };
        let seconds = start.elapsed().as_secs_f64();
        table += format!("{name:<8} {word:<8} {seconds:>7.1} s  {why}").trim_end();
        table.push('\n');
    }
    println!("\n{table}");
    if failed.is_empty() {
        Outcome::Passed
    } else {
        Outcome::Failed(format!("failed: {}", failed.join(", ")))
    }
}

/// The contributor's test command. Without a usable Python the tests that need it print why they were skipped.
pub fn test(root: &Path, arguments: &[String]) -> Outcome {
    // first, so that the closing lines are those of all other tests
    let connected = match arguments {
        [] => ranks::test(root, &[]),
        _ => Outcome::Passed,
    };
    if let Outcome::Skipped(why) = &connected {
        println!("note: tests of ranks are skipped: {why}");
    }
    let mut command = cargo(
        root,
        &["test", "--release", "--workspace", "--no-fail-fast"],
    );
    command.args(arguments);
    match python::prepare(root) {
        Ok(interpreter) => {
            command.env(python::VARIABLE, interpreter);
        }
        Err(why) => println!("note: tests that need Python are skipped: {why}"),
    }
    match (execute(command), connected) {
        (Outcome::Passed, Outcome::Failed(why)) => Outcome::Failed(why),
        (all, _) => all,
    }
}

/// Formatting of every crate.
pub fn format(root: &Path) -> Outcome {
    execute(cargo(root, &["fmt", "--all", "--check"]))
}

/// All warnings of clippy for all targets, then for what builds with MPI only; then, for product code only (neither tests nor
/// pictures), the banned float methods: a test may compare with the platform's `exp`, a kernel may not call it.
pub fn clippy(root: &Path) -> Outcome {
    let everything = "clippy --release --workspace --all-targets -- -D warnings";
    let everything: Vec<&str> = everything.split(' ').collect();
    let product = "clippy --release --workspace --no-deps --exclude nestar-plot --exclude nestar-tests --lib --bins \
                   -- -A clippy::all -D clippy::disallowed_methods";
    let product: Vec<&str> = product.split(' ').collect();
    match execute(cargo(root, &everything)) {
        Outcome::Passed => {}
        other => return other,
    }
    match ranks::clippy(root) {
        Outcome::Passed => {}
        Outcome::Skipped(why) => println!("note: code that needs MPI is not linted: {why}"),
        other => return other,
    }
    let mut command = cargo(root, &product);
    command.env("CLIPPY_CONF_DIR", root.join(NUMERICS_LINTS));
    execute(command)
}

/// rustdoc of every crate.
pub fn docs(root: &Path) -> Outcome {
    let mut command = cargo(root, &["doc", "--release", "--workspace", "--no-deps"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    execute(command)
}

/// Writes the CUDA text of all device items and compiles each file for every architecture.
pub fn kernels(root: &Path) -> Outcome {
    let (package, example) = DEVICE_TEXT;
    for needed in [example, NVRTC_COMPILE] {
        if !root.join(needed).is_file() {
            return Outcome::Failed(format!("{needed} is missing"));
        }
    }
    let interpreter = match python::prepare(root) {
        Ok(interpreter) => interpreter,
        Err(why) => return Outcome::Skipped(why),
    };
    let folder = target_directory(root).join("device-text");
    if let Err(e) = clear(&folder) {
        return Outcome::Failed(format!("{}: {e}", folder.display()));
    }
    let name = Path::new(example)
        .file_stem()
        .and_then(|s| s.to_str())
        .unwrap_or_default();
    let mut command = cargo(
        root,
        &[
            "run",
            "--quiet",
            "--release",
            "-p",
            package,
            "--example",
            name,
            "--",
        ],
    );
    command.arg(&folder);
    let written = execute(command);
    if !matches!(written, Outcome::Passed) {
        return written;
    }
    match keep_sources_of_decks(root, &folder) {
        Outcome::Passed => compile_all(root, &interpreter, &folder),
        other => other,
    }
}

/// Keeps the sources of all kernels that decks with many settings need, in both precisions.
fn keep_sources_of_decks(root: &Path, folder: &Path) -> Outcome {
    for (program, deck) in SPECIALISED_DECKS {
        for precision in ["single", "double"] {
            let run = ["run", "--quiet", "--release", "-p", "nestar", program, "--"];
            let mut command = cargo(root, &run);
            command
                .args(["check", deck, "--set", "run.device=emulated", "--set"])
                .arg(format!("run.precision={precision}"))
                .env("NESTAR_KERNEL_SOURCES", folder)
                .stdout(std::process::Stdio::null());
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
    texts.sort();
    if texts.is_empty() {
        return Outcome::Failed(format!(
            "{} holds no .cu file: {} wrote none",
            folder.display(),
            DEVICE_TEXT.1
        ));
    }
    for text in &texts {
        for architecture in ARCHITECTURES {
            if let Err(why) = compile(root, interpreter, text, architecture) {
                return Outcome::Failed(why);
            }
        }
    }
    println!(
        "{} texts compiled for {}: no fma",
        texts.len(),
        ARCHITECTURES.join(" and ")
    );
    Outcome::Passed
}

/// Compiles one text and reads the PTX itself: a fused multiply-add would break CPU = GPU bit for bit.
fn compile(root: &Path, interpreter: &Path, text: &Path, architecture: &str) -> Result<(), String> {
    let ptx = text.with_extension(format!("{architecture}.ptx"));
    let mut command = Command::new(interpreter);
    command
        .current_dir(root)
        .arg(NVRTC_COMPILE)
        .arg(text)
        .args(["--arch", architecture, "--output"])
        .arg(&ptx);
    if let Outcome::Failed(why) = execute(command) {
        return Err(why);
    }
    let code = std::fs::read_to_string(&ptx).map_err(|e| format!("{}: {e}", ptx.display()))?;
    match fused(&code) {
        0 => Ok(()),
        n => Err(format!(
            "{} has {n} fused multiply-add instructions",
            ptx.display()
        )),
    }
}

/// Number of fused multiply-add instructions in a PTX text.
fn fused(ptx: &str) -> usize {
    ptx.lines()
        .filter(|line| line.split("//").next().unwrap_or_default().contains("fma."))
        .count()
}

/// The resolved order of a step.
pub fn order(root: &Path) -> Outcome {
    execute(cargo(
        root,
        &[
            "run",
            "--quiet",
            "--release",
            "-p",
            "nestar",
            "--",
            "order",
            "scenarios/sedov.toml",
        ],
    ))
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
