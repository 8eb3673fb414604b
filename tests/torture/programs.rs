//! The `nestar` command as an attacked process, and checks of its directory afterwards.

use super::Setting;
use super::outputs::Outputs;
use nestar::snapshot::{self, Snapshot};
use nestar_tests::runs::digests;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A small run with levels that come and go, a passive scalar, reductions in the diagnostics, and seven views.
const DECK: &str = r#"
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
[[output.view]]
name = "cut"
kind = "slice"
axis = "z"
position = 0.47
steps = 1
fields = ["density", "fraction_dye"]
[[output.view]]
name = "column"
kind = "projection"
axis = "x"
steps = 1
fields = ["density"]
[[output.view]]
name = "shells"
kind = "profile"
centre = [0.4, 0.55, 0.47]
bins = 8
steps = 1
fields = ["pressure"]
[[output.view]]
name = "phases"
kind = "pdf"
fields = ["density", "pressure"]
bins = [4, 4]
ranges = [[0.1, 3.0], [0.05, 20.0]]
steps = 1
[[output.view]]
name = "probe"
kind = "point"
position = [0.4, 0.55, 0.47]
steps = 1
fields = ["density"]
[[output.view]]
name = "part"
kind = "snapshot"
region = { left = [0.2, 0.3, 0.2], right = [0.7, 0.8, 0.7] }
steps = 1
fields = ["density", "pressure"]
[[output.view]]
name = "drawn"
kind = "picture"
axis = "z"
position = 0.47
width = 300
steps = 1
fields = ["pressure"]
[[diagnostics]]
name = "hot_mass"
formula = "density"
reduction = "integral"
where = "pressure > 1"
[run]
device = "cpu"
threads = 1
"#;

/// Settings of a small run of a shipped deck, with a snapshot at every step.
const SMALL: [&str; 7] = [
    "time.max_steps=6",
    "output.steps=1",
    "output.interval=0.0",
    "output.wall_interval=0.0",
    "run.device=cpu",
    "run.threads=1",
    "mesh.max_level=1",
];

/// A small deck that is run and disturbed.
pub struct SmallDeck {
    pub name: String,
    path: PathBuf,
    settings: Vec<String>,
}

impl SmallDeck {
    /// Returns a shipped deck at reduced size; `more` are further settings.
    pub fn shipped(path: &Path, more: &[String]) -> Self {
        Self {
            name: path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            path: path.to_path_buf(),
            settings: SMALL
                .map(String::from)
                .iter()
                .chain(more)
                .cloned()
                .collect(),
        }
    }

    /// Returns the command of a run in `folder` into the directory `output`.
    fn command(&self, program: &Path, folder: &Path, output: &str) -> Command {
        let mut command = Command::new(program);
        let settings = self.settings.iter().flat_map(|setting| ["--set", setting]);
        command
            .current_dir(folder)
            .arg("run")
            .arg(&self.path)
            .args(["--quiet", "--output", output])
            .args(settings)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }
}

/// Writes or finds the decks of the campaigns: gas, gravity with particles, tracers, chemistry.
pub fn decks(folder: &Path) -> Result<Vec<SmallDeck>, String> {
    std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
    let gas = folder.join("gas.toml");
    std::fs::write(&gas, DECK).map_err(|e| e.to_string())?;
    let mut decks = vec![SmallDeck {
        name: "gas".into(),
        path: gas,
        settings: Vec::new(),
    }];
    for (name, more) in [
        (
            "cluster-merger",
            &["constants.n=2000", "constants.cells=16"][..],
        ),
        ("tracers", &["domain.cells=[16,16,8]"]),
        ("primordial-cooling", &["time.max_step=0.01"]),
    ] {
        let more: Vec<String> = more.iter().map(|&s| s.into()).collect();
        decks.push(SmallDeck::shipped(
            &scenarios().join(name).with_extension("toml"),
            &more,
        ));
    }
    Ok(decks)
}

/// Returns the folder of the shipped decks.
pub fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios")
}

/// The `nestar` command with a deck, and the snapshots of an undisturbed run.
pub struct Program {
    pub deck: SmallDeck,
    pub folder: PathBuf,
    program: PathBuf,
    /// Digests of the snapshots of an undisturbed run.
    whole: Vec<(String, String)>,
    /// What an undisturbed run has written besides.
    outputs: Outputs,
    /// Duration of the undisturbed run.
    pub duration: Duration,
}

impl Program {
    /// Runs a deck undisturbed; `folder` contains its outputs.
    pub fn prepare(program: &Path, folder: PathBuf, deck: SmallDeck) -> Result<Self, String> {
        std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
        let start = Instant::now();
        let mut command = deck.command(program, &folder, "whole");
        let ended = command.output().map_err(|e| e.to_string())?;
        if !ended.status.success() {
            let told = String::from_utf8_lossy(&ended.stderr).into_owned();
            let name = &deck.name;
            return Err(format!(
                "the undisturbed run of {name} ends with {}: {told}",
                ended.status
            ));
        }
        let duration = start.elapsed();
        let whole = folder.join("whole");
        Ok(Self {
            program: program.to_path_buf(),
            whole: digests(&whole),
            outputs: Outputs::read(&whole)?,
            duration,
            deck,
            folder,
        })
    }

    /// Prepares a run of every deck of the campaigns.
    pub fn prepare_all(setting: &Setting, campaign: &str) -> Result<Vec<Self>, String> {
        let folder = setting.scratch.path().join(campaign);
        let of = |deck: SmallDeck| {
            let folder = folder.join(&deck.name);
            Self::prepare(&setting.program, folder, deck)
        };
        decks(&folder)?.into_iter().map(of).collect()
    }

    /// Returns the command of a run into the directory `output`.
    pub fn run(&self, output: &str, more: &[&str]) -> Command {
        let mut command = self.deck.command(&self.program, &self.folder, output);
        command.args(more);
        command
    }

    /// Nothing under a final name is damaged, and all of it is what the undisturbed run wrote.
    pub fn require_whole(&self, output: &str) -> Result<usize, String> {
        let complete =
            snapshot::list_complete(&self.folder.join(output)).map_err(|e| e.to_string())?;
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
        self.outputs.require_begin(&self.folder.join(output))?;
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
        self.outputs.require_all(&self.folder.join(output))?;
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
        let _ = std::fs::remove_dir_all(self.folder.join(output));
    }
}
