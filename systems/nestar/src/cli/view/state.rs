//! The state of a run, from the files in its directory.

use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Bytes of the end of the log that are shown.
const LOG_TAIL: u64 = 48 << 10;
/// A run without a lock on this machine that has written in this time may be at work on another one.
const RECENT: Duration = Duration::from_secs(60);

/// End of the log of a run.
#[derive(Default)]
pub struct Log {
    /// Bytes of the whole log.
    pub size: u64,
    /// The last lines.
    pub lines: Vec<String>,
}

impl Log {
    /// Reads the end of a log; no file is an empty log.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(path: &Path) -> Result<Self, String> {
        let fault = |error| format!("cannot read run.log: {error}");
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(fault(error)),
        };
        let size = file.metadata().map_err(fault)?.len();
        let start = size.saturating_sub(LOG_TAIL);
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(start)).map_err(fault)?;
        file.take(LOG_TAIL).read_to_end(&mut bytes).map_err(fault)?;
        let text = String::from_utf8_lossy(&bytes);
        // the first line may be cut
        let lines = text.lines().skip(usize::from(start > 0));
        Ok(Self {
            size,
            lines: lines.map(String::from).collect(),
        })
    }

    /// Returns how the run has ended by its last messages: a word, and the message.
    fn end(&self) -> Option<(&'static str, &str)> {
        let last = self.lines.iter().rev().take(3);
        let ends = [
            ("done: ", "finished"),
            ("interrupted ", "interrupted"),
            ("error: ", "failed"),
        ];
        last.flat_map(|line| ends.map(|(begin, word)| (line, begin, word)))
            .find(|(line, begin, _)| line.starts_with(begin))
            .map(|(line, _, word)| (word, line.as_str()))
    }
}

/// Returns `true` if a process on this machine holds the lock of the run. The lock itself is not touched: a run that starts must find
/// it free.
fn is_locked(directory: &Path) -> bool {
    let Ok(lock) = File::open(directory.join(".lock")) else {
        return false;
    };
    let Ok(inode) = lock.metadata().map(|lock| lock.ino()) else {
        return false;
    };
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    has_lock(&locks, device(&lock).as_deref(), inode)
}

/// Returns `true` if the text of `/proc/locks` has an exclusive lock on a file: its number, and that of its device if it is known.
fn has_lock(locks: &str, device: Option<&str>, inode: u64) -> bool {
    let inode = inode.to_string();
    let is_file = |word: &&str| {
        let of_device = device.is_none_or(|device| word.starts_with(&format!("{device}:")));
        word.matches(':').count() == 2 && word.rsplit(':').next() == Some(&inode) && of_device
    };
    locks.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.contains(&"FLOCK") && words.contains(&"WRITE") && words.iter().any(is_file)
    })
}

/// Returns the device of an open file in the notation of `/proc/locks`. It is that of the mount: some file systems report another one for
/// the file.
fn device(file: &File) -> Option<String> {
    let about = format!("/proc/self/fdinfo/{}", file.as_raw_fd());
    let about = std::fs::read_to_string(about).ok()?;
    let mount = about
        .lines()
        .find_map(|line| line.strip_prefix("mnt_id:"))?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    device_of_mount(&mounts, mount.trim())
}

/// Returns the device of a mount by the text of `/proc/self/mountinfo`, which has decimal numbers.
fn device_of_mount(mounts: &str, mount: &str) -> Option<String> {
    let numbers = mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        (words.next() == Some(mount))
            .then(|| words.nth(1))
            .flatten()
    })?;
    let (major, minor) = numbers.split_once(':')?;
    let [major, minor]: [u32; 2] = [major.parse().ok()?, minor.parse().ok()?];
    Some(format!("{major:02x}:{minor:02x}"))
}

/// Returns the process that holds a run on a file system without locks, unless it is known to be gone.
fn marked(directory: &Path) -> Option<String> {
    let holder = std::fs::read_to_string(directory.join(".running")).ok()?;
    let here = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let (process, host) = holder.strip_prefix("process ")?.split_once(" on ")?;
    let is_gone = host == here.trim() && !Path::new("/proc").join(process).exists();
    (!is_gone).then_some(holder)
}

/// Returns the time since the latest of these files was written.
fn age(directory: &Path) -> Option<Duration> {
    let files = ["run.log", "diagnostics.csv", "snapshots"];
    let times = files
        .iter()
        .filter_map(|file| directory.join(file).metadata().ok()?.modified().ok());
    SystemTime::now().duration_since(times.max()?).ok()
}

/// Returns the state of a run: a word and a text.
pub fn state(directory: &Path, log: &Log) -> Value {
    let state = |word: &str, text: String| json!({ "word": word, "text": text });
    if !directory.is_dir() {
        let path = directory.display();
        return state("missing", format!("the directory {path} has gone"));
    }
    if is_locked(directory) {
        return state("running", "at work on this machine".into());
    }
    if let Some(holder) = marked(directory) {
        return state("running", holder);
    }
    let age = age(directory);
    if let Some((word, message)) = log.end() {
        return state(word, message.into());
    }
    match age {
        None => state("empty", "the directory has no files of a run yet".into()),
        Some(age) if age < RECENT => {
            state("running", format!("last written {} s ago", age.as_secs()))
        }
        Some(age) => state(
            "stopped",
            format!(
                "no process on this machine is at work here, and the log has no last message: it was killed, or runs elsewhere; last written {} ago",
                humantime::format_duration(Duration::from_secs(age.as_secs()))
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{Log, device_of_mount, has_lock, state};
    use std::fs::File;

    #[test]
    fn a_lock_belongs_to_a_file_of_a_device() {
        let locks = "1: POSIX  ADVISORY  WRITE 9 08:01:7 0 EOF\n2: FLOCK  ADVISORY  WRITE 9 103:1f:42 0 EOF\n\
                     3: -> FLOCK  ADVISORY  READ 9 08:01:5 0 EOF\n";
        assert!(has_lock(locks, Some("103:1f"), 42) && has_lock(locks, None, 42));
        for (device, inode) in [("103:2f", 42), ("08:01", 7), ("08:01", 5), ("103:1f", 4)] {
            assert!(!has_lock(locks, Some(device), inode), "{device}:{inode}");
        }
        let mounts =
            "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 22 259:31 /a /mnt rw - xfs /dev/b rw\n";
        assert_eq!(device_of_mount(mounts, "30").as_deref(), Some("103:1f"));
        assert_eq!(device_of_mount(mounts, "22").as_deref(), Some("08:01"));
        assert_eq!(device_of_mount(mounts, "2"), None);
    }

    #[test]
    fn the_state_follows_lock_and_log() {
        let name = format!("nestar-view-state-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let word = |log: &str| {
            let lines = log.lines().map(String::from).collect();
            let log = Log { size: 0, lines };
            state(&directory, &log)["word"]
                .as_str()
                .unwrap_or_default()
                .to_string()
        };
        assert_eq!(word(""), "missing");
        std::fs::create_dir_all(&directory).expect("a directory");
        assert_eq!(word(""), "empty");
        let lock = File::create(directory.join(".lock")).expect("the lock");
        lock.try_lock().expect("the lock is free");
        assert_eq!(word("done: step 3"), "running");
        drop(lock);
        assert_eq!(word("step 3\ndone: step 3, time 1"), "finished");
        assert_eq!(
            word("interrupted at step 4; continue with\n  nestar run"),
            "interrupted"
        );
        assert_eq!(word("error: no memory"), "failed");
        std::fs::write(directory.join("run.log"), "step 1\n").expect("a log");
        assert_eq!(word("step 1"), "running");
        let marker = directory.join(".running");
        std::fs::write(&marker, "process 1 on elsewhere").expect("a marker");
        assert_eq!(word("done: step 3"), "running");
        std::fs::remove_dir_all(&directory).expect("the directory");
    }
}
