//! Parser of manifests: name, dependencies, and targets with a path.

/// A crate's `Cargo.toml`.
pub struct Manifest {
    /// Path of the manifest, relative to the workspace.
    pub file: String,
    /// Package name.
    pub name: String,
    /// Names and lines of all dependencies, including those of tests and build scripts.
    pub dependencies: Vec<(String, usize)>,
    /// Files of targets with a `path`, relative to the workspace.
    pub targets: Vec<String>,
}

impl Manifest {
    /// Parses the forms `name = …`, `name.workspace = true` and `[dependencies.name]`.
    pub fn parse(file: &str, text: &str) -> Self {
        let mut manifest = Self {
            file: file.to_string(),
            name: String::new(),
            dependencies: Vec::new(),
            targets: Vec::new(),
        };
        let mut section = String::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if let Some(header) = line.strip_prefix('[') {
                section = header.trim_matches(['[', ']']).to_string();
                if let Some((_, name)) = section
                    .rsplit_once('.')
                    .filter(|(table, _)| lists_dependencies(table))
                {
                    manifest.dependencies.push((unquoted(name), index + 1));
                }
            } else if let Some((key, value)) = line.split_once('=') {
                manifest.entry(&section, key.trim(), value.trim(), index + 1);
            }
        }
        manifest
    }

    fn entry(&mut self, section: &str, key: &str, value: &str, line: usize) {
        if lists_dependencies(section) {
            let name = key.split('.').next().unwrap_or(key);
            self.dependencies.push((unquoted(name), line));
        } else if section == "package" && key == "name" {
            self.name = unquoted(value);
        } else if key == "path" && matches!(section, "lib" | "bin" | "example" | "test" | "bench") {
            let folder = self.file.rsplit_once('/').map_or("", |(folder, _)| folder);
            self.targets.push(joined(folder, &unquoted(value)));
        }
    }

    /// Returns the name of the crate in code.
    pub fn crate_name(&self) -> String {
        self.name.replace('-', "_")
    }
}

/// Returns `true` for sections of dependencies, such as `target.'cfg(unix)'.dependencies`.
fn lists_dependencies(section: &str) -> bool {
    let last = section.rsplit('.').next().unwrap_or(section);
    matches!(
        last,
        "dependencies" | "dev-dependencies" | "build-dependencies"
    )
}

fn unquoted(text: &str) -> String {
    text.trim_matches(['"', '\'']).to_string()
}

/// Returns `folder/path` with `..` resolved.
fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|p| !p.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::Manifest;

    #[test]
    fn names_dependencies_and_targets_are_read() {
        let text = "[package]\nname = \"nestar-engine\" # it\n[dependencies]\nserde = \"1\"\nbevy_ecs.workspace = true\n\
                    [target.'cfg(unix)'.dependencies]\nlibc = { version = \"0.2\" }\n[dependencies.mpi]\nversion = \"0.8\"\n\
                    [features]\nx = []\n[[example]]\nname = \"drag\"\npath = \"../scenarios/./drag.rs\"\n";
        let manifest = Manifest::parse("engine/Cargo.toml", text);
        assert_eq!(manifest.crate_name(), "nestar_engine");
        let names: Vec<_> = manifest
            .dependencies
            .iter()
            .map(|(n, l)| (n.as_str(), *l))
            .collect();
        assert_eq!(
            names,
            [("serde", 4), ("bevy_ecs", 5), ("libc", 7), ("mpi", 8)]
        );
        assert_eq!(manifest.targets, ["scenarios/drag.rs"]);
    }
}
