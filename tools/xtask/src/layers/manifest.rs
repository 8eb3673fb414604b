//! Parser of manifests: dependencies.

/// A crate's `Cargo.toml`.
pub struct Manifest {
    /// Path of the manifest, relative to the workspace.
    pub file: String,
    /// Names and lines of all dependencies, including those of tests and build scripts.
    pub dependencies: Vec<(String, usize)>,
}

impl Manifest {
    /// Parses the forms `name = …`, `name.workspace = true` and `[dependencies.name]`.
    pub fn parse(file: &str, text: &str) -> Self {
        let mut manifest = Self {
            file: file.to_string(),
            dependencies: Vec::new(),
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
            } else if let Some((key, _)) = line.split_once('=')
                && lists_dependencies(&section)
            {
                let name = key.trim().split('.').next().unwrap_or(key);
                manifest.dependencies.push((unquoted(name), index + 1));
            }
        }
        manifest
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

#[cfg(test)]
mod tests {
    use super::Manifest;

    #[test]
    fn dependencies_are_read() {
        let text = "[package]\nname = \"nestar-engine\" # it\n[dependencies]\nserde = \"1\"\nbevy_ecs.workspace = true\n\
                    [target.'cfg(unix)'.dependencies]\nlibc = { version = \"0.2\" }\n[dependencies.mpi]\nversion = \"0.8\"\n\
                    [features]\nx = []\n";
        let manifest = Manifest::parse("engine/Cargo.toml", text);
        let names: Vec<_> = manifest
            .dependencies
            .iter()
            .map(|(n, l)| (n.as_str(), *l))
            .collect();
        assert_eq!(
            names,
            [("serde", 4), ("bevy_ecs", 5), ("libc", 7), ("mpi", 8)]
        );
    }
}
