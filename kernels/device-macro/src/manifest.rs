//! Finds the name by which the crate being compiled knows a package.
//!
//! The file is shared by the macros of decks and of device functions. It reads the manifest itself, because the libraries
//! that do so bring a parser of TOML, with other features than the program's, and everything would be compiled twice.

/// Returns the identifier of `package` in the crate being compiled, if that depends on it or is it.
///
/// A dependency that is renamed in the manifest of a whole workspace is not found.
pub fn identifier(package: &str) -> Option<String> {
    let variable = |name: &str| std::env::var(name).ok();
    if variable("CARGO_PKG_NAME").is_some_and(|name| name == package) {
        return Some(package.replace('-', "_"));
    }
    let path = std::path::Path::new(&variable("CARGO_MANIFEST_DIR")?).join("Cargo.toml");
    find(&std::fs::read_to_string(path).ok()?, package)
}

/// Searches the tables of dependencies of a manifest.
fn find(manifest: &str, package: &str) -> Option<String> {
    // the dependency whose own table is read: its key, and the package that it names
    let mut own: Option<(&str, &str)> = None;
    let mut in_list = false;
    let found = |(key, named): (&str, &str)| (named == package).then(|| key.replace('-', "_"));
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            if let Some(name) = own.take().and_then(found) {
                return Some(name);
            }
            let header = header.split(']').next().unwrap_or_default();
            in_list = header.ends_with("dependencies");
            let (table, key) = header.rsplit_once('.').unwrap_or_default();
            own = table.ends_with("dependencies").then_some((key, key));
        } else if let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
            let key = key.trim().trim_end_matches(".workspace").trim_matches('"');
            if in_list {
                let named = renamed(value).unwrap_or(key);
                if let Some(name) = found((key, named)) {
                    return Some(name);
                }
            } else if let Some((_, named)) = own.as_mut().filter(|_| key == "package") {
                *named = value.split('"').nth(1).unwrap_or_default();
            }
        }
    }
    own.and_then(found)
}

/// The package of an inline table `{ package = "name", … }`.
fn renamed(value: &str) -> Option<&str> {
    let (_, after) = value.split_once("package")?;
    after.trim_start().strip_prefix('=')?.split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn dependencies_are_found_under_every_spelling() {
        let cases = [
            ("[dependencies]\nnestar-device = \"1\"\n", "nestar_device"),
            (
                "[dev-dependencies]\nnestar-device.workspace = true",
                "nestar_device",
            ),
            (
                "[dependencies]\nlanes = { path = \"p\", package = \"nestar-device\" }",
                "lanes",
            ),
            (
                "[target.'cfg(unix)'.dependencies]\nnestar-device = { path = \"p\" }",
                "nestar_device",
            ),
            (
                "[dependencies.nestar-device]\npath = \"p\"\n[lib]",
                "nestar_device",
            ),
            (
                "[dependencies.my-lanes]\npackage = \"nestar-device\"\n",
                "my_lanes",
            ),
        ];
        for (manifest, name) in cases {
            assert_eq!(
                find(manifest, "nestar-device").as_deref(),
                Some(name),
                "{manifest}"
            );
        }
    }

    #[test]
    fn other_tables_and_packages_are_not_taken_for_dependencies() {
        let cases = [
            "[package]\nname = \"x\"\n[features]\nnestar-device = []\n",
            "[dependencies]\nnestar-device = { package = \"another\" }\n",
            "[dependencies]\n# nestar-device = \"1\"\nnestar-device-macro = \"1\"\n",
        ];
        for manifest in cases {
            assert_eq!(find(manifest, "nestar-device"), None, "{manifest}");
        }
    }
}
