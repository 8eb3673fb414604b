//! Temporary directories of jobs.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_nestar");

/// Temporary directory with the deck `deck.toml`, removed on drop.
pub struct Place(pub PathBuf);

impl Place {
    pub fn new(name: &str, deck: &str) -> Self {
        let path = std::env::temp_dir().join(format!("nestar-mpi-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary directory");
        std::fs::write(path.join("deck.toml"), deck).expect("a file in it");
        Self(path)
    }

    /// Checks all snapshots of a run, and returns the digest of the latest.
    pub fn digest(&self, run: &str) -> String {
        let mut latest = String::new();
        for name in self.snapshots(run) {
            let mut command = Command::new(PROGRAM);
            command.current_dir(&self.0);
            command.args(["digest", &format!("{run}/snapshots/{name}")]);
            let output = command.output().expect("the program starts");
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            latest = said.split_whitespace().next().unwrap_or_default().into();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(latest.len(), 64, "{name}: {said}{errors}");
        }
        latest
    }

    /// Returns the names of the complete snapshots of a run.
    pub fn snapshots(&self, run: &str) -> Vec<String> {
        let mut names = self.names(run);
        names.retain(|name| !name.starts_with('.'));
        names
    }

    /// Returns the names of all entries in the snapshot folder of a run, if it exists.
    pub fn names(&self, run: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.join(run).join("snapshots"));
        let entries = entries.into_iter().flatten();
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            let name = entry.expect("an entry").file_name();
            name.to_string_lossy().into_owned()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }

    /// Returns the number of root steps in the diagnostics.
    pub fn steps(&self, run: &str) -> usize {
        let table = self.0.join(run).join("diagnostics.csv");
        let rows = std::fs::read_to_string(table).map_or(0, |text| text.lines().count());
        // header and initial state
        rows.saturating_sub(2)
    }

    /// Waits until a run has completed some root steps.
    pub fn wait_for_steps(&self, run: &str, steps: usize) {
        wait_until(&format!("{steps} root steps"), || self.steps(run) >= steps);
    }

    /// Waits until a run has a snapshot.
    pub fn wait_for_snapshot(&self, run: &str) {
        wait_until("a snapshot", || !self.snapshots(run).is_empty());
    }
}

fn wait_until(what: &str, happened: impl Fn() -> bool) {
    let start = Instant::now();
    while !happened() {
        let patience = start.elapsed() < Duration::from_secs(60);
        assert!(patience, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
