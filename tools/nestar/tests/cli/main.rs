//! Tests of the command line: exit statuses, messages and files.

mod answers;
mod bench;
mod book;
mod directories;
mod limits;
mod pictures;
mod plan;
mod programs;
mod python;
mod refusals;
mod replay;
mod runs;
mod scaling;
mod units;
mod view;

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// Deck of a small adaptive blast wave with 2 levels and 12 root steps.
const BLAST: &str = r#"
scenario = "formula"

[initial]
density  = "1"
pressure = "if(r < 0.2, 10, 0.1)"

[domain]
cells      = [16, 16, 16]
left_edge  = [-0.5, -0.5, -0.5]
right_edge = [0.5, 0.5, 0.5]

[time]
end       = 1.0
max_steps = 12

[mesh]
max_level       = 1
regrid_interval = 2
[[mesh.refine]]
criterion = "gradient"
field     = "pressure"
threshold = 0.3

[output]
directory = "run"
"#;

/// Particle species for `BLAST`, in lattices of 512 and 64.
const SPECIES: &str = r#"
[particles.species]
dark = { mass = 1e-6, initial = { kind = "lattice", points = [8, 8, 8] } }
dye  = { moved_by = "gas", initial = { kind = "lattice", points = [4, 4, 4] } }
"#;

/// Temporary directory in which the program runs, removed on drop.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nestar-cli-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }

    /// Creates a directory with the deck `deck.toml`.
    fn with(deck: &str) -> Self {
        let place = Self::new();
        place.write("deck.toml", deck);
        place
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).expect("a file in the temporary directory");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nestar"));
        command.current_dir(&self.0).args(arguments);
        command
    }

    /// Runs the program and waits for its end.
    fn nestar(&self, arguments: &[&str]) -> Outcome {
        Outcome::of(
            self.command(arguments)
                .output()
                .expect("the program starts"),
        )
    }

    /// Returns the digest of the latest snapshot of a run.
    fn digest(&self, run: &str) -> String {
        let outcome = self.nestar(&["digest", run]);
        outcome.has_status(0);
        let digest = outcome.out.split_whitespace().next().unwrap_or_default();
        assert_eq!(digest.len(), 64, "{}", outcome.out);
        digest.to_string()
    }

    /// Returns the names of the snapshots of a run, including incomplete ones.
    fn snapshots(&self, run: &str) -> Vec<String> {
        let folder = self.0.join(run).join("snapshots");
        let entries = std::fs::read_dir(&folder).expect("the run has snapshots");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into()
            })
            .collect();
        names.sort();
        names
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Exit status and output of a program.
#[derive(Debug)]
struct Outcome {
    status: Option<i32>,
    out: String,
    err: String,
}

impl Outcome {
    fn of(output: Output) -> Self {
        Self {
            status: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into(),
            err: String::from_utf8_lossy(&output.stderr).into(),
        }
    }

    #[track_caller]
    fn has_status(&self, status: i32) -> &Self {
        assert_eq!(self.status, Some(status), "{}\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    fn complains(&self, texts: &[&str]) -> &Self {
        let is_error = |line: &str| line.starts_with("error: ");
        assert_eq!(
            self.err.lines().filter(|l| is_error(l)).count(),
            1,
            "{}",
            self.err
        );
        self.tells(texts)
    }

    #[track_caller]
    fn prints(&self, texts: &[&str]) -> &Self {
        for text in texts {
            assert!(self.out.contains(text), "no {text:?} in\n{}", self.out);
        }
        self
    }

    #[track_caller]
    fn tells(&self, texts: &[&str]) -> &Self {
        for text in texts {
            assert!(self.err.contains(text), "no {text:?} in\n{}", self.err);
        }
        self
    }
}
