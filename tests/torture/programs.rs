//! The `nestar` command as an attacked process, and checks of its directory afterwards.

use super::Setting;
use nestar::snapshot::{self, PlainArray, Snapshot, read_array};
use nestar_tests::runs::digests;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A small run with levels that come and go, a passive scalar and five views.
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

/// Arrays by the name of the view and the array.
type ViewArrays = BTreeMap<String, PlainArray>;

/// Reads all arrays of the views of a run.
fn view_arrays(run: &Path) -> Result<ViewArrays, String> {
    let mut arrays = ViewArrays::new();
    let folders = |of: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(of).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        // a run that was killed at its begin has not written all of them
        paths
            .filter(|path| path.join("zarr.json").exists())
            .collect()
    };
    let name = |path: &Path| {
        path.file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    for view in folders(&run.join("views")) {
        for array in folders(&view) {
            let values = read_array(&view, &name(&array));
            let values = values.map_err(|e| format!("a view is damaged: {e}"))?;
            arrays.insert(format!("{}/{}", name(&view), name(&array)), values);
        }
    }
    Ok(arrays)
}

/// The `nestar` command with a deck, and the snapshots of an undisturbed run.
pub struct Program {
    pub deck: SmallDeck,
    pub folder: PathBuf,
    program: PathBuf,
    /// Digests of the snapshots of an undisturbed run.
    whole: Vec<(String, String)>,
    /// Arrays of the views of an undisturbed run.
    views: ViewArrays,
    /// Duration of the undisturbed run.
    pub duration: Duration,
}

impl Program {
    /// Runs a deck undisturbed; `folder` contains its outputs.
    pub fn prepare(program: &Path, folder: PathBuf, deck: SmallDeck) -> Result<Self, String> {
        std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
        let mut this = Self {
            deck,
            folder,
            program: program.to_path_buf(),
            whole: Vec::new(),
            views: ViewArrays::new(),
            duration: Duration::ZERO,
        };
        let start = Instant::now();
        let ended = this.run("whole", &[]).output().map_err(|e| e.to_string())?;
        if !ended.status.success() {
            let told = String::from_utf8_lossy(&ended.stderr).into_owned();
            let name = &this.deck.name;
            return Err(format!(
                "the undisturbed run of {name} ends with {}: {told}",
                ended.status
            ));
        }
        this.duration = start.elapsed();
        this.whole = digests(&this.folder.join("whole"));
        this.views = view_arrays(&this.folder.join("whole"))?;
        Ok(this)
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
        let mut command = Command::new(&self.program);
        command
            .current_dir(&self.folder)
            .arg("run")
            .arg(&self.deck.path)
            .args(["--quiet", "--output", output])
            .args(
                self.deck
                    .settings
                    .iter()
                    .flat_map(|setting| ["--set", setting]),
            )
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
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
        self.require_views(output)?;
        Ok(complete.len())
    }

    /// The entries of each view are the first ones of the undisturbed run.
    fn require_views(&self, output: &str) -> Result<(), String> {
        for (name, found) in view_arrays(&self.folder.join(output))? {
            let whole = &self.views[&name];
            let begins = whole.values.len() >= found.values.len()
                && (whole.values.iter().zip(&found.values))
                    .all(|(a, b)| a.to_bits() == b.to_bits());
            if !begins || whole.shape[1..] != found.shape[1..] {
                return Err(format!("{name} is not that of the undisturbed run"));
            }
        }
        Ok(())
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
        for (name, found) in view_arrays(&self.folder.join(output))? {
            if found.shape != self.views[&name].shape {
                let entries = [found.shape, self.views[&name].shape.clone()];
                return Err(format!("{name} has the shapes {entries:?}"));
            }
        }
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
