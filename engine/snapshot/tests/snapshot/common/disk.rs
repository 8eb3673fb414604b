//! A small disk that tests fill, and numbers that do not compress.

use super::Folder;
use std::path::PathBuf;
use std::process::Command;

/// A file system of 1 MiB.
pub struct SmallDisk(pub PathBuf);

impl SmallDisk {
    /// Mounts it in a folder; `None`, with a message, where that is forbidden.
    pub fn mount(folder: &Folder) -> Option<Self> {
        let path = folder.0.join("disk");
        std::fs::create_dir(&path).unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(&path)
            .output();
        let reason = match mount {
            Ok(output) if output.status.success() => return Some(Self(path)),
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_string(),
            Err(error) => error.to_string(),
        };
        eprintln!("skipped: no tmpfs can be mounted here: {reason}");
        None
    }

    /// Writes a file that leaves less than a page free, and returns its path.
    pub fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut bytes = 1 << 20;
        while bytes > 0 {
            let more = std::fs::read(&path).unwrap_or_default().len() + bytes;
            if std::fs::write(&path, vec![7; more]).is_err() {
                std::fs::write(&path, vec![7; more - bytes]).unwrap();
                bytes /= 2;
            }
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Returns finite numbers with random bits.
pub fn random(count: usize) -> Vec<f64> {
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        f64::from_bits(state >> 2)
    };
    (0..count).map(|_| next()).collect()
}
