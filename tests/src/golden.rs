//! Golden texts in `tests/golden`. `NESTAR_BLESS=1` rewrites them.

use std::path::Path;

/// Returns `true` if golden texts are rewritten instead of compared.
pub fn are_written() -> bool {
    std::env::var_os("NESTAR_BLESS").is_some()
}

/// Compares `found` with the golden file `name`.
///
/// # Panics
/// If they differ, with the first line that does; or if the file cannot be read or written.
pub fn compare(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(name);
    if are_written() {
        std::fs::create_dir_all(path.parent().expect("the file is in a folder"))
            .expect("the folder can be made");
        std::fs::write(&path, found).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let advice = "review the change, then write the file anew with NESTAR_BLESS=1; if that changes nothing, a restart is at fault";
    for (n, (found, kept)) in found.lines().zip(kept.lines()).enumerate() {
        assert_eq!(found, kept, "{name}, line {}: {advice}", n + 1);
    }
    assert_eq!(
        found.lines().count(),
        kept.lines().count(),
        "{name}: {advice}"
    );
}
