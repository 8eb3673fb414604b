//! Campaigns of faults against the guarantees of runs and stores: `cargo xtask torture` builds this program and starts it.
//!
//! Every case follows from the seed, its campaign and its number alone; a failure prints the line that repeats it.

mod decks;
mod faults;
mod flips;
mod kills;
mod outputs;
mod programs;
mod restarts;

use nestar_tests::Scratch;
use nestar_tests::random::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A case that did not hold, in words.
type Case = Result<(), String>;
/// A case of a campaign, from its number and random numbers.
type Attack = Box<dyn Fn(u64, &mut Random) -> Case>;

/// What is attacked, how often in every minute, and how.
struct Campaign {
    name: &'static str,
    /// Share of the time.
    share: f64,
    /// Cases at most, if the time suffices.
    most: u64,
    prepare: fn(&Setting) -> Result<Attack, String>,
}

/// Where the campaigns work.
struct Setting {
    /// The `nestar` command.
    program: PathBuf,
    scratch: Scratch,
}

const CAMPAIGNS: [Campaign; 5] = [
    Campaign {
        name: "kills",
        share: 0.3,
        most: 1000,
        prepare: kills::prepare,
    },
    Campaign {
        name: "faults",
        share: 0.2,
        most: 500,
        prepare: faults::prepare,
    },
    Campaign {
        name: "flips",
        share: 0.1,
        most: 10_000,
        prepare: flips::prepare,
    },
    Campaign {
        name: "decks",
        share: 0.2,
        most: 100_000,
        prepare: decks::prepare,
    },
    Campaign {
        name: "restarts",
        share: 0.2,
        most: u64::MAX,
        prepare: restarts::prepare,
    },
];

/// What was asked for.
struct Arguments {
    program: PathBuf,
    minutes: f64,
    seed: u64,
    only: Option<String>,
    case: Option<u64>,
}

fn arguments() -> Result<Arguments, String> {
    let mut found = Arguments {
        program: PathBuf::new(),
        minutes: 10.0,
        seed: 1,
        only: None,
        case: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or(format!("{word} needs a value"))?;
        let wrong = |_| format!("{word} {value}: no number");
        match word.as_str() {
            "--program" => found.program = value.into(),
            "--minutes" => found.minutes = value.parse().map_err(|_| wrong(()))?,
            "--seed" => found.seed = value.parse().map_err(|_| wrong(()))?,
            "--only" => found.only = Some(value),
            "--case" => found.case = Some(value.parse().map_err(|_| wrong(()))?),
            _ => return Err(format!("no argument {word}")),
        }
    }
    Ok(found)
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::from(2);
        }
    };
    println!("seed {}", arguments.seed);
    let setting = Setting {
        program: arguments.program.clone(),
        scratch: Scratch::new(),
    };
    let wanted = |c: &&Campaign| arguments.only.as_ref().is_none_or(|name| name == c.name);
    let chosen: Vec<&Campaign> = CAMPAIGNS.iter().filter(wanted).collect();
    let shares: f64 = chosen.iter().map(|c| c.share).sum();
    let mut failures = 0;
    for campaign in &chosen {
        let time = Duration::from_secs_f64(60.0 * arguments.minutes * campaign.share / shares);
        failures += run(campaign, &setting, &arguments, time);
    }
    match (failures, chosen.is_empty()) {
        (0, false) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Runs a campaign until its time or its number of cases is over; how many failed.
fn run(campaign: &Campaign, setting: &Setting, arguments: &Arguments, time: Duration) -> u64 {
    let name = campaign.name;
    let case = match (campaign.prepare)(setting) {
        Ok(case) => case,
        Err(why) => {
            println!("{name}: cannot begin: {why}");
            return 1;
        }
    };
    let start = Instant::now();
    let (mut done, mut failed) = (0, 0);
    let numbers = match arguments.case {
        Some(number) => number..number + 1,
        None => 0..campaign.most,
    };
    for number in numbers {
        if start.elapsed() >= time {
            break;
        }
        // each campaign has a stream of its own
        let salt = name.bytes().fold(0, |sum: u64, b| sum * 257 + u64::from(b));
        let mut random = Random::new(arguments.seed ^ salt ^ number << 20);
        done += 1;
        let held = catch_unwind(AssertUnwindSafe(|| case(number, &mut random)));
        if let Err(why) = held.unwrap_or_else(|_| Err("a panic, see above".into())) {
            failed += 1;
            let seed = arguments.seed;
            println!("{name} {number}: {why}");
            println!("  repeat: cargo xtask torture --only {name} --seed {seed} --case {number}");
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{name}: {done} cases in {seconds:.0} s, {failed} failed");
    failed
}
