//! `cargo xtask`: the contributor's commands. Continuous integration runs the same ones.
mod browser;
mod deny;
mod installation;
mod kernels;
mod layers;
mod python;
mod ranks;
mod steps;
mod template;
mod torture;
mod wheel;
mod words;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
cargo xtask COMMAND

  check            every step below except bench, book, order, template, wheel and torture, each timed; all failures are reported
  test [ARGS…]     prepares what the tests need, then cargo test --release --workspace [ARGS…]; without ARGS, ranks as well
  ranks [ARGS…]    prepares an MPI, then the tests of ranks that it connects
  fmt              formatting (cargo fmt --check)
  words            retired words, long sentences in documents, and files that are not named by nouns
  layers           layering rules of ARCHITECTURE.md
  deny             licences, banned and doubled crates, sources (cargo-deny, which it installs where it can), unless the
                   dependencies are those of the last check
  clippy           lints for all targets, then the numerics lints for product code
  docs             rustdoc, warnings are errors
  kernels          compiles the CUDA text of every device function by NVRTC; no fused multiply-add may appear
  python           prepares the Python environment of tests and kernels and prints its interpreter
  bench            cell updates per second: the patch solver by method and lane type, then whole programs
  book             makes web pages of docs/ in target/book by mdBook, which it installs if it is missing
  order            the resolved order of a step of scenarios/sedov.toml
  template         makes a crate by `nestar new`, then builds, checks, runs and tests it; not part of check: it builds all
                   dependencies once more
  wheel            builds the wheel with program and Python package in target/wheels, and follows the installation page with it;
                   not part of check: it builds the program once more, with zig
  restarts [ARGS…] the campaign `restarts` of torture: every shipped deck, stopped and resumed on other ranks and devices
  torture [ARGS…]  kills, injected faults, flipped bits, odd decks and restarts, for --minutes N (10) from --seed S (1); --only CAMPAIGN
                   and --case N repeat one; --sanitize: tests under the sanitizer of addresses, --miri: tests of the
                   mesh kernels in Miri (nightly toolchain)
";

/// Result of a step.
pub enum Outcome {
    /// The step ran and found nothing wrong.
    Passed,
    /// The step could not run here, with the reason.
    Skipped(String),
    /// The step failed, with the reason in one line.
    Failed(String),
}

fn main() -> ExitCode {
    let root = workspace_root();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, rest)) = arguments.split_first() else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    if matches!(command.as_str(), "help" | "--help" | "-h") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    if !rest.is_empty() && !["test", "ranks", "restarts", "torture"].contains(&command.as_str()) {
        eprintln!("error: `cargo xtask {command}` takes no arguments\n\n{USAGE}");
        return ExitCode::from(2);
    }
    match run(command, rest, &root) {
        Some(Outcome::Passed) => ExitCode::SUCCESS,
        Some(Outcome::Skipped(why)) => {
            println!("skipped: {why}");
            ExitCode::SUCCESS
        }
        Some(Outcome::Failed(why)) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("error: no command `{command}`\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Runs one command; `None` where there is no such command.
fn run(command: &str, rest: &[String], root: &Path) -> Option<Outcome> {
    Some(match command {
        "check" => steps::check(root),
        "test" => steps::test(root, rest),
        "ranks" => ranks::test(root, rest),
        "fmt" => steps::format(root),
        "words" => words::run(root),
        "layers" => layers::run(root),
        "deny" => deny::run(root),
        "clippy" => steps::clippy(root),
        "docs" => steps::docs(root),
        "kernels" => kernels::run(root),
        "python" => match python::prepare(root) {
            Ok(interpreter) => {
                println!("{}", interpreter.display());
                Outcome::Passed
            }
            Err(why) => Outcome::Failed(why),
        },
        "bench" => steps::bench(root),
        "book" => steps::book(root),
        "order" => steps::order(root),
        "template" => template::template(root),
        "wheel" => wheel::wheel(root),
        "restarts" => torture::campaign(root, "restarts", rest),
        "torture" => torture::torture(root, rest),
        _ => return None,
    })
}

/// Returns the folder of the workspace that this program was built from.
fn workspace_root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest
        .ancestors()
        .nth(2)
        .unwrap_or(manifest)
        .to_path_buf()
}

/// Returns the target directory of cargo.
fn target_directory(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |d| root.join(d))
}

/// Returns the command that runs cargo with these arguments in the root of the repository.
fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).args(arguments);
    command
}

/// Runs a program with its output on the terminal.
fn execute(mut command: Command) -> Outcome {
    let shown = shown(&command);
    println!("$ {shown}");
    match command.status() {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(status) => Outcome::Failed(format!("{shown}: {status}")),
        Err(e) => Outcome::Failed(format!("{shown}: {e}")),
    }
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let arguments = command.get_args().map(|a| a.to_string_lossy());
    std::iter::once(program)
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}
