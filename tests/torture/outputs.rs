//! What a run writes besides snapshots: series and files of views, and tables of diagnostics.

use super::Case;
use nestar::snapshot::{self, PlainArray, Snapshot, read_array};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Table of the files of a view.
const ENTRIES: &str = "entries.csv";

/// Everything that an undisturbed run has written besides snapshots.
pub struct Outputs {
    /// Arrays of the series by the name of the view and the array.
    arrays: BTreeMap<String, PlainArray>,
    /// Content of all files of the views by their path; in place of a store in a view of snapshots, its digest.
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// The file `diagnostics.units.csv`.
    units: Vec<u8>,
    /// Columns and steps of `diagnostics.csv`.
    table: Table,
}

/// Columns and steps of a table, without a last row that is not complete.
#[derive(Debug, PartialEq)]
struct Table {
    columns: String,
    steps: Vec<u64>,
}

impl Outputs {
    /// Reads the outputs of an undisturbed run.
    pub fn read(run: &Path) -> Result<Self, String> {
        Ok(Self {
            arrays: arrays(run)?,
            files: files(run)?,
            units: std::fs::read(run.join("diagnostics.units.csv")).map_err(|e| e.to_string())?,
            table: table(&run.join("diagnostics.csv"))?.ok_or("no diagnostics.csv")?,
        })
    }

    /// Nothing that a run has written so far is damaged, and all of it is what the undisturbed run wrote first.
    pub fn require_begin(&self, run: &Path) -> Case {
        for (name, found) in arrays(run)? {
            let whole = self.arrays.get(&name);
            let whole = whole.ok_or_else(|| format!("{name} is new"))?;
            let begins = whole.values.len() >= found.values.len()
                && (whole.values.iter().zip(&found.values))
                    .all(|(a, b)| a.to_bits() == b.to_bits());
            if !begins || whole.shape[1..] != found.shape[1..] {
                return Err(format!("{name} is not that of the undisturbed run"));
            }
        }
        for (path, found) in files(run)? {
            // a series is checked by its arrays, and its files that wait for their names say nothing
            if is_of_series(&path) || is_hidden(&path) || path.ends_with(ENTRIES) {
                continue;
            }
            if self.files.get(&path) != Some(&found) {
                let path = path.display();
                return Err(format!("views/{path} is not that of the undisturbed run"));
            }
        }
        self.require_entries(run)?;
        self.require_tables(run)
    }

    /// The table of each view of files begins like that of the undisturbed run, and all files in it are there.
    fn require_entries(&self, run: &Path) -> Case {
        let views = run.join("views");
        for path in self.files.keys().filter(|path| path.ends_with(ENTRIES)) {
            let Ok(found) = std::fs::read(views.join(path)) else {
                continue;
            };
            let end = found.iter().rposition(|byte| *byte == b'\n');
            let rows = &found[..end.map_or(0, |end| end + 1)];
            if !self.files[path].starts_with(rows) {
                let (path, text) = (path.display(), String::from_utf8_lossy(&found));
                return Err(format!(
                    "views/{path} is not that of the undisturbed run: {text}"
                ));
            }
            let folder = views.join(path.parent().unwrap_or(Path::new("")));
            for row in String::from_utf8_lossy(rows).lines().skip(1) {
                let name = row.rsplit(',').next().unwrap_or_default();
                if !folder.join(name).exists() {
                    return Err(format!("{} lacks {name}", folder.display()));
                }
            }
        }
        Ok(())
    }

    /// The units are those of the undisturbed run, and the rows of the diagnostics have neither gaps nor duplicates.
    fn require_tables(&self, run: &Path) -> Case {
        if let Ok(found) = std::fs::read(run.join("diagnostics.units.csv"))
            && found != self.units
        {
            let text = String::from_utf8_lossy(&found);
            return Err(format!(
                "diagnostics.units.csv is not that of the undisturbed run: {text}"
            ));
        }
        match table(&run.join("diagnostics.csv"))? {
            Some(found) if !self.table.begins_with(&found) => {
                Err(format!("diagnostics.csv has the steps {:?}", found.steps))
            }
            _ => Ok(()),
        }
    }

    /// A run that has ended has written all that the undisturbed run wrote, and nothing else.
    pub fn require_all(&self, run: &Path) -> Case {
        self.require_begin(run)?;
        let found = files(run)?;
        let odd = (self.files.keys().chain(found.keys()))
            .find(|path| self.files.get(*path) != found.get(*path));
        if let Some(path) = odd {
            let [whole, own] = [&self.files, &found].map(|files| files.contains_key(path));
            let path = path.display();
            return Err(match (whole, own) {
                (true, false) => format!("views/{path} is missing"),
                (false, true) => format!("views/{path} is left over"),
                _ => format!("views/{path} is not that of the undisturbed run"),
            });
        }
        if !run.join("diagnostics.units.csv").exists() {
            return Err("diagnostics.units.csv is missing".into());
        }
        match table(&run.join("diagnostics.csv"))? {
            Some(found) if found == self.table => Ok(()),
            found => Err(format!("diagnostics.csv has {found:?}")),
        }
    }
}

impl Table {
    fn begins_with(&self, other: &Self) -> bool {
        self.columns == other.columns && self.steps.starts_with(&other.steps)
    }
}

/// Reads the steps of a table; `None` without a file.
fn table(path: &Path) -> Result<Option<Table>, String> {
    let Ok(text) = std::fs::read_to_string(path) else {
        return Ok(None);
    };
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let mut lines = whole.lines();
    let columns = lines.next().unwrap_or_default().to_string();
    let count = columns.split(',').count();
    let step = |line: &str| {
        let step = line.split(',').next().and_then(|word| word.parse().ok());
        let step = step.filter(|_| line.split(',').count() == count);
        step.ok_or_else(|| format!("{}: a damaged row: {line}", path.display()))
    };
    let steps = lines.map(step).collect::<Result<_, _>>()?;
    Ok(Some(Table { columns, steps }))
}

/// Returns the paths in a folder, sorted; none if it cannot be read.
fn list(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Reads all arrays of the series of a run.
fn arrays(run: &Path) -> Result<BTreeMap<String, PlainArray>, String> {
    let mut arrays = BTreeMap::new();
    let groups = |of: &Path| {
        list(of)
            .into_iter()
            .filter(|own| own.join("zarr.json").exists())
    };
    for view in groups(&run.join("views")).filter(|view| !is_hidden(Path::new(&name(view)))) {
        for array in groups(&view) {
            let values = read_array(&view, &name(&array));
            let values = values.map_err(|e| format!("a view is damaged: {e}"))?;
            arrays.insert(format!("{}/{}", name(&view), name(&array)), values);
        }
    }
    Ok(arrays)
}

/// Reads all files of the views of a run.
fn files(run: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, String> {
    let views = run.join("views");
    let (mut files, mut waiting) = (BTreeMap::new(), vec![views.clone()]);
    while let Some(folder) = waiting.pop() {
        for path in list(&folder) {
            let inside = path.strip_prefix(&views).unwrap_or(&path).to_path_buf();
            let is_store = inside.extension().is_some_and(|end| end == "zarr")
                && inside.components().count() == 2;
            if is_store && !is_hidden(&inside) {
                files.insert(inside, digest(&path)?.into_bytes());
            } else if path.is_dir() {
                waiting.push(path);
            } else {
                let bytes = std::fs::read(&path).map_err(|e| format!("{inside:?}: {e}"))?;
                files.insert(inside, bytes);
            }
        }
    }
    Ok(files)
}

/// Checks a store and returns its digest.
fn digest(path: &Path) -> Result<String, String> {
    let digest = Snapshot::open(path).and_then(|store| {
        store.verify(|_| ())?;
        snapshot::digest(&store)
    });
    digest.map_err(|e| format!("a store of a view is damaged: {e}"))
}

/// Returns `true` for files of a series.
fn is_of_series(path: &Path) -> bool {
    let first = path.components().next();
    first.is_some_and(|first| first.as_os_str().to_string_lossy().ends_with(".zarr"))
}

/// Returns `true` for files and directories that are not complete, and for what they contain.
fn is_hidden(path: &Path) -> bool {
    path.components().any(|part| {
        let name = part.as_os_str().to_string_lossy();
        name.starts_with('.') && name.len() > 1 || name.ends_with(".partial")
    })
}
