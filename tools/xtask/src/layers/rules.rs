//! The rules; each is a function that returns the violations.

use super::source::{Manifest, Source};
use super::{Violation, cycles};

/// Folders of the workspace, lowest layer first.
const ROOMS: [&str; 6] = [
    "kernels",
    "engine",
    "systems",
    "scenarios",
    "tools",
    "tests",
];
/// Crates that kernels may not use: ECS, communication, files, configuration, device drivers.
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
/// Parts of the standard library that kernels may not use.
const NOT_IN_KERNELS_STD: [&str; 4] = ["fs", "env", "net", "process"];
/// Words of physics that may not occur in the engine, which uses the metadata of fields instead.
const PHYSICS: [&str; 17] = [
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
    "pressure",
    "temperature",
    "cosmology",
    "cosmological",
];
/// Folder of the engine's unit system, which may name physical quantities such as density.
const UNITS: &str = "engine/deck/src/units/";
/// External crates that may be used by one crate and in one file only.
const ONE_FILE: [&str; 4] = ["cudarc", "mpi", "parquet", "zarrs"];
/// Files that may use more than one physics module.
const MEETING_PLACES: [&str; 8] = [
    "births",
    "fields",
    "order",
    "declare",
    "register",
    "subcycling",
    "units",
    "word",
];
/// Folders shared by all physics modules.
const SERVICES: [&str; 2] = ["spectral", "spheres"];

/// Returns all violations, in no particular order.
pub fn check(manifests: &[Manifest], sources: &[Source]) -> Vec<Violation> {
    let mut found = Vec::new();
    rooms(manifests, sources, &mut found);
    kernels(manifests, sources, &mut found);
    engine(sources, &mut found);
    physics(sources, &mut found);
    one_file(manifests, sources, &mut found);
    cycles::check(sources, &mut found);
    lengths(sources, &mut found);
    found
}

fn report(found: &mut Vec<Violation>, file: &str, line: usize, message: String) {
    found.push(Violation::of(file, line, message));
}

/// Returns `true` if a file belongs to a layer.
fn has_room(file: &str) -> bool {
    let first = file.split('/').next().unwrap_or_default();
    ROOMS.contains(&first)
}

/// Checks that each file belongs to a layer.
fn rooms(manifests: &[Manifest], sources: &[Source], found: &mut Vec<Violation>) {
    let files = manifests
        .iter()
        .map(|m| &m.file)
        .chain(sources.iter().map(|s| &s.file));
    for file in files.filter(|file| !has_room(file)) {
        report(
            found,
            file,
            0,
            format!(
                "belongs to none of the layers {}: move it into one",
                ROOMS.join(", ")
            ),
        );
    }
}

/// Checks that kernels use only views, scalars and parameter structs.
fn kernels(manifests: &[Manifest], sources: &[Source], found: &mut Vec<Violation>) {
    const ADVICE: &str = "kernels may not use ECS, ranks, files, configuration or devices: pass a view or a parameter struct";
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

/// Checks that code, strings and comments of the engine contain no words of physics, except in the unit system.
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
                let advice = "the engine contains no physics; move it to `systems` or use a field's metadata";
                let message = format!("contains `{part}`: {advice}");
                report(found, &source.file, n + 1, message);
            }
        }
    }
}

/// Splits an identifier into words: `CoolingRate` and `cooling_rate` are both `cooling`, `rate`.
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

/// Checks that physics modules do not use each other.
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
                    "`{home}` uses `{other}` (`{}`): physics modules may use each other in births.rs, fields.rs, order.rs, declare.rs, register.rs, subcycling.rs, units.rs and word.rs of systems/src only",
                    path.join("::")
                ),
            );
        }
    }
}

/// Returns the folder in `systems/src` that a path in module `place` refers to.
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

/// Checks that `cudarc`, `mpi`, `parquet` and `zarrs` are each used by one crate and in one file.
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
                    format!("`{library}` is used here and in {first}: use it in one file only"),
                );
            }
        }
    }
}

/// Most lines of a file that are let pass without a remark; those of unit tests do not count.
const FILE: usize = 800;
/// Most lines of a function's body without blanks and comments.
const FUNCTION: usize = 60;
/// Most values of a parameter that is a tuple.
const TUPLE: usize = 2;
/// What draws pictures and what tests has lists and set-ups that a reader skims.
const EXEMPT: [&str; 2] = ["tools/plot/", "tests/"];

/// Checks the functions of product code, Rust and CUDA alike: their lengths and their parameters.
fn lengths(sources: &[Source], found: &mut Vec<Violation>) {
    for source in sources.iter().filter(|s| is_product(&s.file)) {
        for function in &source.functions {
            let name = &function.name;
            if source.code_lines(function.body.clone()) > FUNCTION {
                let message = format!("`{name}` has more than {FUNCTION} lines: split it");
                found.push(Violation::of(&source.file, function.line, message));
            }
            if function.largest_tuple > TUPLE {
                let message = format!(
                    "`{name}` takes a tuple of {} values: give them names in a structure",
                    function.largest_tuple
                );
                found.push(Violation::of(&source.file, function.line, message));
            }
        }
    }
}

/// Returns a remark for each long file of product code.
pub fn remarks(sources: &[Source]) -> impl Iterator<Item = String> + '_ {
    let product = sources.iter().filter(|s| is_product(&s.file));
    let long = product.filter(|s| s.lines.len() > FILE);
    long.map(|s| format!("note: {} has {} lines", s.file, s.lines.len()))
}

fn is_product(file: &str) -> bool {
    let exempt = EXEMPT.iter().any(|folder| file.starts_with(folder));
    !exempt && (file.contains("/src/") || file.starts_with("scenarios/"))
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
