//! Ranks of a test, which are started by the test program itself.

use crate::launcher::{Launcher, Outcome};
use crate::{runs, transport};
use nestar::mpi::{JobStatus, Launch};
use std::process::ExitCode;

/// First argument of a rank; its role and arguments of the role follow.
const RANK: &str = "--rank";
/// Output of a rank on success.
const DONE: &str = "done";

/// Starts this program on `size` ranks, and checks that all of them succeed.
pub fn play(launcher: &Launcher, size: usize, role: &str, particulars: &str) -> Outcome {
    let program = std::env::current_exe().expect("this program has a path");
    let program = program.to_str().expect("a path of plain letters");
    let arguments = [RANK, role, particulars];
    let outcome = launcher.run(&std::env::temp_dir(), size, program, &arguments);
    outcome.has_status(0);
    let done = outcome.out.lines().filter(|line| *line == DONE).count();
    assert_eq!(done, size, "{}\n{}", outcome.out, outcome.err);
    outcome
}

/// Runs the role given by the arguments, if there is one.
pub fn of(arguments: &[String]) -> Option<ExitCode> {
    match arguments {
        [rank, role, particulars] if rank == RANK => Some(rank_of(role, particulars)),
        _ => None,
    }
}

fn rank_of(role: &str, particulars: &str) -> ExitCode {
    let launch = match particulars {
        transport::DIVIDED => Launch::with_messages_of(transport::SHORT),
        _ => Launch::start(),
    };
    let launch = launch.unwrap_or_else(|e| panic!("{e}"));
    let ranks = launch.ranks();
    let work = || match role {
        "talk" => transport::talk(ranks.communicator()),
        _ => runs::run(&ranks, particulars),
    };
    // as in a run, calls are made by a thread that did not initialise MPI
    let ended = std::thread::scope(|scope| scope.spawn(work).join());
    match launch.conclude(ended.is_err()) {
        JobStatus::Done => println!("{DONE}"),
        JobStatus::Failed { .. } => return ExitCode::FAILURE,
        JobStatus::Unresponsive => launch.end_all(1),
    }
    ExitCode::SUCCESS
}
