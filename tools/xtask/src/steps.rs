//! The steps: each runs one or two programs, shows their output and says how it ended.

use crate::installation::{missing, provide};
use crate::{Outcome, browser, deny, kernels, layers, python, ranks, words};
use crate::{cargo, execute};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Where the clippy configuration of product code lies: banned float methods.
const NUMERICS_LINTS: &str = "tools/xtask/numerics";
/// Names of the examples that the tests of the command line run, one a line. The tests refuse to run any other.
const EXAMPLES: &str = include_str!("../../nestar/tests/cli/examples.txt");

/// Runs all steps, the cheapest first. Continues after a failure and prints a table at the end.
pub fn check(root: &Path) -> Outcome {
    type Step = (&'static str, fn(&Path) -> Outcome);
    let steps: [Step; 8] = [
        ("fmt", format),
        ("words", words::run),
        ("layers", layers::run),
        ("deny", deny::run),
        ("clippy", clippy),
        ("docs", docs),
        ("kernels", kernels::run),
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

/// Prepares and runs the tests. Without a usable Python or browser the tests that need it print why they were skipped.
pub fn test(root: &Path, arguments: &[String]) -> Outcome {
    if arguments.is_empty() && !has_compiler() {
        let why = "tests on the emulated device need a C++ compiler: install g++, or name one by NESTAR_CXX";
        return Outcome::Failed(why.into());
    }
    // it is loaded while others compile
    let browser = std::thread::spawn(browser::prepare);
    // first, so that the closing lines are those of all other tests
    let connected = match arguments {
        [] => ranks::test(root, &[]),
        _ => Outcome::Passed,
    };
    let interpreter = python::prepare(root);
    if let Err(why) = &interpreter {
        println!("note: tests that need Python are skipped: {why}");
    }
    let browser = browser
        .join()
        .unwrap_or_else(|_| Err("it cannot be prepared".into()));
    if let Err(why) = &browser {
        println!("note: tests that need a browser are skipped: {why}");
    }
    let mut outcome = match connected {
        Outcome::Skipped(why) => {
            println!("note: tests of ranks are skipped: {why}");
            Outcome::Passed
        }
        other => other,
    };
    for part in parts(arguments) {
        let mut command = cargo(root, &part);
        if let Ok(interpreter) = &interpreter {
            command.env(python::VARIABLE, interpreter);
        }
        if let Ok(browser) = &browser {
            command.env(browser::VARIABLE, browser);
        }
        if let failed @ Outcome::Failed(_) = execute(command) {
            outcome = failed;
        }
    }
    outcome
}

/// Returns `true` if the emulated device finds a compiler: that of `NESTAR_CXX`, or one of the usual names.
fn has_compiler() -> bool {
    let given = std::env::var("NESTAR_CXX")
        .ok()
        .filter(|name| !name.is_empty());
    let names = given.map_or_else(
        || vec!["c++".into(), "g++".into(), "clang++".into()],
        |name| vec![name],
    );
    names.iter().any(|name| {
        let mut version = Command::new(name);
        version
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    })
}

/// Returns the arguments of cargo: those given; or all tests, with only the examples that they start.
fn parts(arguments: &[String]) -> Vec<Vec<&str>> {
    const TEST: [&str; 4] = ["test", "--release", "--workspace", "--no-fail-fast"];
    if !arguments.is_empty() {
        let arguments = arguments.iter().map(String::as_str);
        return vec![TEST.into_iter().chain(arguments).collect()];
    }
    let examples = EXAMPLES.lines().flat_map(|name| ["--example", name]);
    let build = ["build", "--release", "--workspace"].into_iter();
    vec![
        build.chain(examples).collect(),
        [&TEST[..], &["--tests"]].concat(),
        [&TEST[..], &["--doc"]].concat(),
    ]
}

/// Checks the formatting of every crate.
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

/// Builds the rustdoc of every crate.
pub fn docs(root: &Path) -> Outcome {
    let mut command = cargo(root, &["doc", "--release", "--workspace", "--no-deps"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    execute(command)
}

/// Prints the order of a step.
pub fn order(root: &Path) -> Outcome {
    execute(cargo(
        root,
        &[
            "run",
            "--quiet",
            "--release",
            "-p",
            "nestar-cli",
            "--",
            "order",
            "scenarios/sedov.toml",
        ],
    ))
}

/// Benchmark of the patch solver, by method and SIMD type.
const PATCH: [&str; 6] = [
    "run",
    "--release",
    "-p",
    "nestar-kernels",
    "--example",
    "patch_speed",
];
/// Cases of `nestar bench`.
const PROGRAM: [&str; 7] = [
    "run",
    "--quiet",
    "--release",
    "-p",
    "nestar-cli",
    "--",
    "bench",
];

/// Runs the benchmark of the patch solver, and `nestar bench` with `--device auto`.
pub fn bench(root: &Path) -> Outcome {
    let outcomes = [&PATCH[..], &PROGRAM].map(|arguments| execute(cargo(root, arguments)));
    let failed = outcomes
        .into_iter()
        .find(|outcome| matches!(outcome, Outcome::Failed(_)));
    failed.unwrap_or(Outcome::Passed)
}

/// Builds the book into `target/book`. Installs mdBook from crates.io if it is missing.
pub fn book(root: &Path) -> Outcome {
    let mut version = Command::new("mdbook");
    version.arg("--version");
    if !provide(root, "mdbook", version) {
        return Outcome::Failed(missing("mdbook"));
    }
    let mut command = Command::new("mdbook");
    command.current_dir(root).args(["build", "docs"]);
    execute(command)
}
