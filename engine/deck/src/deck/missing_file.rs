//! Error message for a missing deck file.

use crate::nearest::nearest;
use std::path::Path;

/// Returns the message about a missing file, with the most similar name in its folder.
pub(super) fn message(path: &Path) -> String {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let Ok(entries) = std::fs::read_dir(folder) else {
        return format!("no such file, and no folder {}", folder.display());
    };
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    // the order of entries is undefined, and ties go to the first name
    names.sort();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match nearest(&name, names.iter().map(String::as_str)) {
        Some(near) => format!(
            "no such file; did you mean {}?",
            path.with_file_name(near).display()
        ),
        None => "no such file".to_string(),
    }
}
