//! The rules, each a function from the files to what breaks it.
use super::Violation;
use super::manifest::Manifest;
use super::source::Source;
use super::{floors, lengths};

/// The rooms of the house, from the ground up: a room may name those before it, never those behind it.
const ROOMS: [&str; 6] = [
    "kernels",
    "engine",
    "systems",
    "scenarios",
    "tools",
    "tests",
];
/// Crates that kernels do not know: no ECS, no ranks, no files, no configuration, no device driver.
const NOT_IN_KERNELS: [&str; 10] = [
    "bevy_ecs",
    "mpi",
    "parquet",
    "zarrs",
    "toml",
    "serde",
    "serde_json",
    "schemars",
    "clap",
    "cudarc",
];
/// Parts of the standard library that kernels do not use.
const NOT_IN_KERNELS_STD: [&str; 4] = ["fs", "env", "net", "process"];
/// Words, and parts of identifiers, that say physics. The engine is told what it needs by the metadata of fields.
const PHYSICS: [&str; 13] = [
    "gas",
    "density",
    "gamma",
    "courant",
    "hydro",
    "hydrodynamics",
    "gravity",
    "cooling",
    "magnetic",
    "mhd",
    "riemann",
    "chemistry",
    "supernova",
];
/// Where the engine says what people call sizes: a code density is one.
const UNITS: &str = "engine/deck/src/units/";
/// Foreign crates that one crate and one file hide from all others.
const ONE_FILE: [&str; 4] = ["cudarc", "mpi", "parquet", "zarrs"];
/// Where physics folders meet.
const MEETING_PLACES: [&str; 6] = [
    "fields",
    "order",
    "declare",
    "register",
    "subcycling",
    "units",
];
/// Folders that serve all physics folders and name none of them.
const SERVICES: [&str; 2] = ["spectral", "spheres"];

/// Everything that breaks a rule, in no particular order.
pub fn check(manifests: &[Manifest], sources: &[Source]) -> Vec<Violation> {
    let mut found = Vec::new();
    rooms(manifests, sources, &mut found);
    directions(manifests, sources, &mut found);
    kernels(manifests, sources, &mut found);
    engine(sources, &mut found);
    physics(sources, &mut found);
    one_file(manifests, sources, &mut found);
    floors::check(sources, &mut found);
    lengths::check(sources, &mut found);
    found
}

fn report(found: &mut Vec<Violation>, file: &str, line: usize, message: String) {
    found.push(Violation::of(file, line, message));
}

/// The number of the room that a file lies in.
fn room(file: &str) -> Option<usize> {
    let first = file.split('/').next().unwrap_or_default();
    ROOMS.iter().position(|room| *room == first)
}

/// Code lies in a room.
fn rooms(manifests: &[Manifest], sources: &[Source], found: &mut Vec<Violation>) {
    let files = manifests
        .iter()
        .map(|m| &m.file)
        .chain(sources.iter().map(|s| &s.file));
    for file in files.filter(|file| room(file).is_none()) {
        report(
            found,
            file,
            0,
            format!(
                "lies in none of the rooms {}: move it into one",
                ROOMS.join(", ")
            ),
        );
    }
}

/// kernels <- engine <- systems <- scenarios <- tools, and tests see all; in manifests and in code.
fn directions(manifests: &[Manifest], sources: &[Source], found: &mut Vec<Violation>) {
    for manifest in manifests {
        for (name, line) in &manifest.dependencies {
            let Some(target) = manifests.iter().find(|m| m.name == *name) else {
                continue;
            };
            direction(
                &manifest.file,
                &manifest.file,
                &target.file,
                name,
                *line,
                found,
            );
        }
    }
    for source in sources {
        // an example may lie beside the scenarios and be a target of the program's crate
        let owner = manifests
            .iter()
            .find(|m| m.targets.contains(&source.file))
            .map_or(&source.file, |m| &m.file);
        for path in source.whole_paths() {
            let name = &path.segments[0];
            let Some(target) = manifests.iter().find(|m| m.crate_name() == *name) else {
                continue;
            };
            direction(&source.file, owner, &target.file, name, path.line, found);
        }
    }
}

fn direction(
    file: &str,
    owner: &str,
    target: &str,
    name: &str,
    line: usize,
    found: &mut Vec<Violation>,
) {
    if let (Some(from), Some(to)) = (room(owner), room(target))
        && to > from
    {
        let (from, to) = (ROOMS[from], ROOMS[to]);
        report(
            found,
            file,
            line,
            format!(
                "`{from}` may not name `{name}` of `{to}`: the order is {}",
                ROOMS.join(" <- ")
            ),
        );
    }
}

/// Kernels take views, scalars and parameter structs.
fn kernels(manifests: &[Manifest], sources: &[Source], found: &mut Vec<Violation>) {
    const ADVICE: &str = "kernels know no ECS, ranks, files, configuration or devices: pass a view or a parameter struct";
    for manifest in manifests.iter().filter(|m| m.file.starts_with("kernels/")) {
        for (name, line) in manifest
            .dependencies
            .iter()
            .filter(|(n, _)| NOT_IN_KERNELS.contains(&n.as_str()))
        {
            report(
                found,
                &manifest.file,
                *line,
                format!("`kernels` depends on `{name}`; {ADVICE}"),
            );
        }
    }
    let product = |file: &str| {
        // the attribute reads the manifest of the crate that uses it, at compile time
        let compiled = !file.starts_with("kernels/device-macro/");
        compiled
            && file.starts_with("kernels/")
            && file.contains("/src/")
            && !file.contains("/src/bin/")
    };
    for source in sources.iter().filter(|s| product(&s.file)) {
        for path in source.whole_paths() {
            let (line, path) = (path.line, &path.segments);
            let standard = path[0] == "std"
                && path
                    .get(1)
                    .is_some_and(|m| NOT_IN_KERNELS_STD.contains(&m.as_str()));
            if standard || NOT_IN_KERNELS.contains(&path[0].as_str()) {
                report(
                    found,
                    &source.file,
                    line,
                    format!("`{}` in kernels; {ADVICE}", path.join("::")),
                );
            }
        }
    }
}

/// The engine names no physics: neither its code nor its strings and comments, but for the table of units.
fn engine(sources: &[Source], found: &mut Vec<Violation>) {
    let engine = |s: &&Source| {
        let product = s.file.starts_with("engine/") && s.file.contains("/src/");
        product && !s.file.starts_with(UNITS)
    };
    for source in sources.iter().filter(engine) {
        for (n, line) in source.lines.iter().enumerate() {
            let words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            let parts = words.flat_map(parts);
            for part in parts.filter(|part| PHYSICS.contains(&part.as_str())) {
                let advice = "the engine names no physics; move it to `systems` or take the name from a field's metadata";
                let message = format!("says `{part}`: {advice}");
                report(found, &source.file, n + 1, message);
            }
        }
    }
}

/// `CoolingRate` and `cooling_rate` are both `cooling`, `rate`.
fn parts(word: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut lower = false;
    for c in word.chars() {
        if c == '_' || (c.is_uppercase() && lower) {
            parts.push(String::new());
        }
        lower = c.is_lowercase() || c.is_numeric();
        if c != '_'
            && let Some(last) = parts.last_mut()
        {
            last.extend(c.to_lowercase());
        }
    }
    parts
}

/// One physics folder never names another.
fn physics(sources: &[Source], found: &mut Vec<Violation>) {
    let module = |file: &str| -> Vec<String> {
        let inside = file
            .strip_prefix("systems/src/")
            .and_then(|f| f.strip_suffix(".rs"))
            .unwrap_or_default();
        inside
            .split('/')
            .filter(|p| !p.is_empty() && *p != "mod")
            .map(str::to_string)
            .collect()
    };
    let plugin = |name: &str| name != "lib" && !MEETING_PLACES.contains(&name);
    let homes: Vec<String> = sources
        .iter()
        .filter_map(|s| module(&s.file).into_iter().next())
        .filter(|n| plugin(n) && !SERVICES.contains(&n.as_str()))
        .collect();
    for source in sources {
        let place = module(&source.file);
        let Some(home) = place.first().filter(|name| plugin(name)) else {
            continue;
        };
        for path in source.whole_paths() {
            let (line, path) = (path.line, &path.segments);
            let Some(other) = named_folder(&place, path).filter(|n| n != home && homes.contains(n))
            else {
                continue;
            };
            report(
                found,
                &source.file,
                line,
                format!(
                    "`{home}` names `{other}` (`{}`): physics folders meet in fields.rs, order.rs, declare.rs, register.rs, subcycling.rs and units.rs of systems/src only",
                    path.join("::")
                ),
            );
        }
    }
}

/// The folder below `systems/src` that a path in module `place` leads to.
fn named_folder(place: &[String], path: &[String]) -> Option<String> {
    match path[0].as_str() {
        "crate" | "nestar_systems" => path.get(1).cloned(),
        "super" => {
            let up = path.iter().take_while(|p| *p == "super").count();
            if up < place.len() {
                place.first().cloned()
            } else {
                path.get(up).cloned()
            }
        }
        _ => None,
    }
}

/// `cudarc`, `mpi`, `parquet` and `zarrs` each have one crate that depends on them and one file that names them.
fn one_file(manifests: &[Manifest], sources: &[Source], found: &mut Vec<Violation>) {
    for library in ONE_FILE {
        let belongs = |name: &str| {
            name == library
                || name
                    .strip_prefix(library)
                    .is_some_and(|n| n.starts_with(['_', '-']))
        };
        let crates = manifests.iter().filter_map(|m| {
            m.dependencies
                .iter()
                .find(|(n, _)| belongs(n))
                .map(|(_, line)| (m.file.clone(), *line))
        });
        let files = sources.iter().filter_map(|s| {
            s.whole_paths()
                .find(|p| belongs(&p.segments[0]))
                .map(|p| (s.file.clone(), p.line))
        });
        for places in [crates.collect::<Vec<_>>(), files.collect()] {
            for (file, line) in places.iter().skip(1) {
                let first = &places[0].0;
                report(
                    found,
                    file,
                    *line,
                    format!(
                        "`{library}` is named here and in {first}: one file hides it, call that one"
                    ),
                );
            }
        }
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
