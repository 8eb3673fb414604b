//! The `nestar` command as an attacked process, and checks of its directory afterwards.

use nestar::snapshot::{self, Snapshot};
use nestar_tests::runs::digests;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A small run with levels that come and go, a passive scalar, and a snapshot at every step.
pub const DECK: &str = r#"
scenario = "formula"
[initial]
density    = "1 + 0.2*sin(2*pi*x)*cos(2*pi*y)"
pressure   = "if((x-0.4)^2 + (y-0.55)^2 + (z-0.47)^2 < 0.0121, 10, 0.1)"
velocity_x = "0.3"
scalars    = { dye = "if(x < 0.5, 1, 0.25)" }
[domain]
cells = [16, 16, 16]
[time]
end = 1.0
max_steps = 6
[mesh]
max_level = 1
regrid_interval = 2
flag_buffer = 2
refine = [{ criterion = "gradient", field = "pressure", threshold = 0.4 }]
[hydro]
scalars = ["dye"]
[output]
steps = 1
[run]
device = "cpu"
threads = 1
"#;

/// What is attacked.
pub struct Program {
    pub program: PathBuf,
    pub place: PathBuf,
    /// Digests of the snapshots of an undisturbed run.
    whole: Vec<(String, String)>,
}

impl Program {
    /// Writes the deck into `place` and runs it undisturbed.
    pub fn prepare(program: &Path, place: PathBuf) -> Result<Self, String> {
        std::fs::create_dir_all(&place).map_err(|e| e.to_string())?;
        std::fs::write(place.join("deck.toml"), DECK).map_err(|e| e.to_string())?;
        let mut this = Self {
            program: program.to_path_buf(),
            place,
            whole: Vec::new(),
        };
        let status = this.run("whole", &[]).status().map_err(|e| e.to_string())?;
        if !status.success() {
            return Err(format!("the undisturbed run ends with {status}"));
        }
        this.whole = digests(&this.place.join("whole"));
        Ok(this)
    }

    /// A run into the directory `output`.
    pub fn run(&self, output: &str, more: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .current_dir(&self.place)
            .args(["run", "deck.toml", "--quiet", "--output", output])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    /// Nothing under a final name is damaged, and all of it is what the undisturbed run wrote.
    pub fn require_whole(&self, output: &str) -> Result<usize, String> {
        let complete =
            snapshot::list_complete(&self.place.join(output)).map_err(|e| e.to_string())?;
        for path in &complete {
            let opened = Snapshot::open(path).and_then(|s| {
                s.verify(|_| ())?;
                snapshot::digest(&s)
            });
            let digest = opened.map_err(|e| format!("a snapshot is damaged: {e}"))?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            if !self.whole.contains(&(name.to_string(), digest)) {
                return Err(format!(
                    "{} is not that of the undisturbed run",
                    path.display()
                ));
            }
        }
        Ok(complete.len())
    }

    /// Resumes an attacked run without further faults; it must end like an undisturbed run.
    pub fn require_end(&self, output: &str) -> Result<(), String> {
        let ended = self
            .run(output, &["--resume"])
            .output()
            .map_err(|e| e.to_string())?;
        if !ended.status.success() {
            let err = String::from_utf8_lossy(&ended.stderr).into_owned();
            return Err(format!("it does not resume: {}: {err}", ended.status));
        }
        let count = self.require_whole(output)?;
        match count == self.whole.len() {
            true => Ok(()),
            false => Err(format!(
                "{count} snapshots in place of {}",
                self.whole.len()
            )),
        }
    }

    pub fn remove(&self, output: &str) {
        // what cannot be removed is in the way of the next case, which tells
        let _ = std::fs::remove_dir_all(self.place.join(output));
    }
}
