//! The watchdog: it ends a run that stands still, and no other.

use nestar::engine::comm::{DiagnosticColumns, Ranks};
use nestar::prelude::*;
use nestar_tests::Scratch;
use nestar_tests::ranks::run_with;
use std::process::{Command, Stdio};
use std::time::Duration;

const SETTINGS: [&str; 3] = ["time.max_steps=1", "mesh.max_level=1", "run.watchdog=0.6"];

/// Stands still on level 1 of the second rank.
struct Oversleeper;

fn sleep_on_level_1(clock: Res<LevelClock>, ranks: Res<Ranks>) {
    if clock.level == 1 && ranks.rank() == 1 {
        std::thread::sleep(Duration::from_secs(60));
    }
}

impl Plugin for Oversleeper {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.system_in(Advance::Sources, sleep_on_level_1);
        Ok(())
    }
}

/// The program that the watchdog ends, in the directory that the other test names.
#[test]
#[ignore = "a program that another test starts"]
fn program() {
    let Some(directory) = std::env::var_os("NESTAR_TEST_WATCHDOG") else {
        return;
    };
    let ended = run_with(directory.as_ref(), false, 2, &SETTINGS, |sim| {
        sim.add(Oversleeper)
    });
    panic!("the run ended by itself: {ended:?}");
}

#[test]
fn a_run_that_stands_still_ends_and_names_rank_level_and_system() {
    let scratch = Scratch::new();
    let ended = Command::new(std::env::current_exe().expect("this program"))
        .args(["--ignored", "--exact", "--nocapture", "watchdog::program"])
        .env("NESTAR_TEST_WATCHDOG", scratch.run())
        .stdout(Stdio::null())
        .output()
        .expect("the program starts");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(5), "{told}");
    let wanted = "no system has begun for 0.6 s: rank 1 of 2, level 1, system `sleep_on_level_1`";
    assert!(told.contains(wanted), "{told}");
    assert!(told.contains("--resume"), "{told}");
}

/// Takes longer for the diagnostics of the initial state than the watchdog allows for a system.
struct SlowOutput;

impl Plugin for SlowOutput {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        DiagnosticColumns::add_number(&mut sim.world, "slow", |world| {
            if world.resource::<nestar::engine::mesh::Levels>().time(0) == 0.0 {
                std::thread::sleep(Duration::from_secs(1));
            }
            0.0
        });
        Ok(())
    }
}

#[test]
fn slow_output_is_no_standstill() {
    let scratch = Scratch::new();
    let ended = run_with(&scratch.run(), false, 1, &SETTINGS, |sim| {
        sim.add(SlowOutput)
    });
    ended.unwrap_or_else(|e| panic!("{e}"));
}
