//! Files of the entries of a view: `views/NAME/000000.zarr`, `views/NAME/000001.zarr` and so on, with the table `entries.csv` of their
//! steps and times.

use super::file_view::FileContent;
use crate::files::{Series, write_atomically};
use nestar_engine_step::Error;
use nestar_snapshot::{SnapshotError, write_file};
use serde_json::{Map, Value};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Name of the table, and its columns.
const TABLE: &str = "entries.csv";
const COLUMNS: &str = "step,time,file";
/// Name of the file with the keys of the view that give its values their meaning.
const KEYS: &str = "view.json";
/// Ending of the names of hidden stores that are removed or replaced.
const REPLACED: &str = ".replaced";

/// Files of a view, on the first rank.
pub(super) struct FileEntries {
    folder: PathBuf,
    ending: &'static str,
    table: Series,
    /// Number of the next file.
    next: u32,
    /// Step of the latest file.
    pub latest: Option<u64>,
}

impl FileEntries {
    /// Returns `true` if a view has files in `folder`.
    pub fn exist(folder: &Path) -> bool {
        folder.join(KEYS).exists()
    }

    /// Returns the first key that differs from that of the files in `folder`, and how.
    ///
    /// # Errors
    /// The keys of the files cannot be read.
    pub fn difference(
        folder: &Path,
        keys: &Map<String, Value>,
    ) -> Result<Option<(String, String)>, Error> {
        let path = folder.join(KEYS);
        let text = fs::read_to_string(&path).map_err(Error::file("cannot read", &path))?;
        let old: Map<String, Value> = serde_json::from_str(&text)
            .map_err(|error| Error::Setup(format!("{}: {error}", path.display())))?;
        let names = old.keys().chain(keys.keys());
        let mut all = names.map(|key| (key, old.get(key), keys.get(key)));
        let differs = all.find(|(_, old, new)| old != new);
        let text = |value: Option<&Value>| value.map_or("nothing".into(), Value::to_string);
        Ok(differs.map(|(key, old, new)| {
            let why = format!("{} before, {} now", text(old), text(new));
            (key.clone(), why)
        }))
    }

    /// Creates the directory of a view, or continues its files after the step `resumed`: later ones and incomplete ones are removed.
    ///
    /// # Errors
    /// A file cannot be read, written or removed; the table of files to be continued is damaged or missing.
    pub fn open(
        folder: &Path,
        ending: &'static str,
        keys: &Map<String, Value>,
        resumed: Option<u64>,
    ) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(Error::file("cannot create the directory", folder))?;
        if resumed.is_some() {
            require_table(folder, ending)?;
        }
        write_atomically(&folder.join(KEYS), &Value::from(keys.clone()).to_string())?;
        let table = Series::open(folder, TABLE, COLUMNS, resumed)?;
        let path = folder.join(TABLE);
        let text = fs::read_to_string(&path).map_err(Error::file("cannot read", &path))?;
        let rows: Vec<&str> = text.lines().skip(1).collect();
        let latest = rows.last().and_then(|row| row.split(',').next());
        let next = rows.len() as u32;
        let kept = |name: &OsStr| is_kept(&name.to_string_lossy(), ending, next);
        let list = fs::read_dir(folder).map_err(Error::file("cannot list", folder))?;
        for entry in list {
            let entry = entry.map_err(Error::file("cannot list", folder))?;
            if !kept(&entry.file_name()) {
                remove(&entry.path())?;
            }
        }
        Ok(Self {
            folder: folder.into(),
            ending,
            table,
            next,
            latest: latest.and_then(|step| step.parse().ok()),
        })
    }

    /// Writes the next file. It gets its name when its content is on disk.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append(
        &mut self,
        time: f64,
        step: u64,
        content: FileContent,
    ) -> Result<(), SnapshotError> {
        let name = format!("{:06}.{}", self.next, self.ending);
        let path = self.folder.join(&name);
        match content {
            FileContent::Snapshot(data) => data.store(&path)?,
            FileContent::Bytes(bytes) => write_file(&path, &bytes)?,
        }
        let row = self.table.append(&format!("{step},{time:e},{name}\n"));
        let synced = row.and_then(|()| self.table.sync());
        synced.map_err(|error| SnapshotError::Request(error.to_string()))?;
        self.next += 1;
        Ok(())
    }
}

/// Fails if the table is damaged, or is missing although there are files of entries.
fn require_table(folder: &Path, ending: &str) -> Result<(), Error> {
    let is_damaged = match Series::is_damaged(folder, TABLE, COLUMNS)? {
        Some(is_damaged) => is_damaged,
        None => {
            let list = fs::read_dir(folder).map_err(Error::file("cannot list", folder))?;
            let mut names = list.filter_map(|entry| Some(entry.ok()?.file_name()));
            names.any(|name| number(&name.to_string_lossy(), ending).is_some())
        }
    };
    match is_damaged {
        false => Ok(()),
        true => Err(Error::Setup(format!(
            "{} is damaged or missing, so that the run cannot tell which files of this view to keep; restore it, or give the view another name",
            folder.join(TABLE).display()
        ))),
    }
}

/// Returns the number of an entry by the name of its file.
fn number(name: &str, ending: &str) -> Option<u32> {
    let number = name.strip_suffix(ending)?.strip_suffix('.')?;
    let is_number = number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| number.parse().ok())?
}

/// Returns `false` for files of a view after the number `next` and for incomplete ones.
fn is_kept(name: &str, ending: &str, next: u32) -> bool {
    let incomplete = [".partial", REPLACED];
    if name.starts_with('.') && incomplete.iter().any(|end| name.ends_with(end)) {
        return false;
    }
    number(name, ending).is_none_or(|number| number < next)
}

/// Removes the file or the store of an entry. A store loses its name first, so that a killed run leaves no part of it under that name.
fn remove(path: &Path) -> Result<(), Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let removed = match path.is_dir() && !path.is_symlink() {
        true if !name.starts_with('.') => {
            let hidden = path.with_file_name(format!(".{name}{REPLACED}"));
            if_present(fs::remove_dir_all(&hidden))
                .and_then(|()| fs::rename(path, &hidden))
                .and_then(|()| fs::remove_dir_all(&hidden))
        }
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
    // a hidden store may have gone before its turn
    if_present(removed).map_err(Error::file("cannot remove", path))
}

/// Accepts that there is nothing to remove.
fn if_present(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Converts the error of an entry that cannot be made.
pub(super) fn unmade(name: &str, why: &str) -> SnapshotError {
    SnapshotError::Request(format!("the view `{name}` cannot be drawn: {why}"))
}

#[cfg(test)]
mod tests {
    use super::{FileContent, FileEntries};
    use serde_json::Map;
    use std::path::Path;

    fn names(folder: &Path) -> Vec<String> {
        let list = std::fs::read_dir(folder).expect("a folder");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            let name = entry.expect("an entry").file_name();
            name.to_string_lossy().into_owned()
        };
        let mut names: Vec<String> = list.map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn resumed_entries_have_neither_gaps_nor_duplicates() {
        let folder = std::env::temp_dir().join(format!("nestar-entries-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let keys = Map::from_iter([("view_axis".to_string(), "z".into())]);
        let mut entries = FileEntries::open(&folder, "png", &keys, None).expect("created");
        for step in 0..4 {
            let content = FileContent::Bytes(vec![step as u8]);
            entries.append(0.1, step, content).expect("written");
        }
        drop(entries);
        // a file without its row, half of another one, and a file of the user
        std::fs::write(folder.join("2026.png"), "x").expect("written");
        std::fs::write(folder.join("000004.png"), "x").expect("written");
        std::fs::write(folder.join(".000005.png.partial"), "x").expect("written");
        std::fs::create_dir(folder.join(".000004.png.replaced")).expect("a directory");
        std::fs::create_dir_all(folder.join("000007.png/level_0")).expect("a directory");
        std::fs::create_dir(folder.join(".000007.png.replaced")).expect("a directory");
        let resumed = FileEntries::open(&folder, "png", &keys, Some(2)).expect("continued");
        assert_eq!((resumed.next, resumed.latest), (3, Some(2)));
        let kept = [
            "000000.png",
            "000001.png",
            "000002.png",
            "2026.png",
            "entries.csv",
            "view.json",
        ];
        assert_eq!(names(&folder), kept);
        assert!(matches!(FileEntries::difference(&folder, &keys), Ok(None)));
        let other = Map::from_iter([("view_axis".to_string(), "x".into())]);
        let found = FileEntries::difference(&folder, &other).expect("read");
        let why = "\"z\" before, \"x\" now";
        assert_eq!(found, Some(("view_axis".into(), why.into())));
        drop(resumed);
        // a table that does not tell the files is an error, and nothing is removed
        let whole = std::fs::read_to_string(folder.join("entries.csv")).expect("a table");
        for damaged in [
            Some(whole.replace("step,", "steps,")),
            Some(whole.replacen("0,1e-1", "x", 1)),
            None,
        ] {
            match damaged {
                Some(text) => std::fs::write(folder.join("entries.csv"), text).expect("written"),
                None => std::fs::remove_file(folder.join("entries.csv")).expect("removed"),
            }
            for _ in 0..2 {
                let refused = FileEntries::open(&folder, "png", &keys, Some(2));
                let why = refused.map(|_| ()).expect_err("refused").to_string();
                assert!(why.contains("entries.csv is damaged or missing"), "{why}");
            }
            assert!(folder.join("000002.png").exists());
        }
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
