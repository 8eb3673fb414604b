//! Tests of ranks connected by MPI, one per case and number of ranks. The program starts itself with an MPI launcher.
//!
//! The launcher is `NESTAR_MPIEXEC`, by default `mpiexec`; `cargo xtask test` installs one if it is missing.

mod directory;
mod failures;
mod launcher;
mod place;
mod role;
mod runs;
mod transport;

use launcher::Launcher;
use std::process::ExitCode;
use std::time::Instant;

/// Name and function of a test.
struct Case {
    name: String,
    work: Box<dyn Fn(&Launcher)>,
}

impl Case {
    fn new(name: impl Into<String>, work: impl Fn(&Launcher) + 'static) -> Self {
        Self {
            name: name.into(),
            work: Box::new(work),
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(status) = role::of(&arguments) {
        return status;
    }
    let topics = [
        transport::cases(),
        failures::cases(),
        runs::cases(),
        directory::cases(),
    ];
    let cases: Vec<Case> = topics.into_iter().flatten().collect();
    // arguments as of the standard test harness: words are filters, options are ignored
    let words: Vec<&String> = arguments
        .iter()
        .filter(|word| !word.starts_with('-'))
        .collect();
    let wanted = |case: &&Case| words.is_empty() || words.iter().any(|w| case.name.contains(*w));
    let chosen: Vec<&Case> = cases.iter().filter(wanted).collect();
    if arguments.iter().any(|word| word == "--list") {
        chosen
            .iter()
            .for_each(|case| println!("{}: test", case.name));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", chosen.len());
    let (launcher, start) = (Launcher::find(), Instant::now());
    let passed = chosen.iter().filter(|case| passes(case, &launcher)).count();
    let failed = chosen.len() - passed;
    println!(
        "\ntest result: {}. {passed} passed; {failed} failed; 0 ignored; 0 measured; {} filtered out; finished in {:.2}s\n",
        if failed == 0 { "ok" } else { "FAILED" },
        cases.len() - chosen.len(),
        start.elapsed().as_secs_f64()
    );
    ExitCode::from(u8::from(failed > 0) * 101)
}

fn passes(case: &Case, launcher: &Launcher) -> bool {
    let work = std::panic::AssertUnwindSafe(|| (case.work)(launcher));
    let passed = std::panic::catch_unwind(work).is_ok();
    println!(
        "test {} ... {}",
        case.name,
        if passed { "ok" } else { "FAILED" }
    );
    passed
}
