//! The floors inside the engine: who names whom, module by module and file by file.
use super::Violation;
use super::source::{Named, Source};
use std::collections::{BTreeMap, BTreeSet};

/// The crate whose inside is checked.
const ENGINE: &str = "engine/src/";
/// Its modules, from the ground up: a module may name those before it, never those behind it.
const FLOORS: [&str; 6] = ["mesh", "device", "field", "ranks", "step", "run"];

/// Every file on a floor, no arrow upwards, no circle of files.
pub fn check(sources: &[Source], found: &mut Vec<Violation>) {
    let engine = sources.iter().filter(|s| s.file.starts_with(ENGINE));
    let modules: BTreeMap<Vec<String>, &Source> = engine
        .map(|source| (module(&source.file), source))
        .collect();
    for (module, source) in modules.iter().filter(|(module, _)| !module.is_empty()) {
        if floor(module).is_none() {
            let message = format!("lies on none of the floors {}", FLOORS.join(" <- "));
            found.push(Violation::of(&source.file, 0, message));
        }
    }
    let arrows = arrows(&modules);
    for ((from, to), line) in &arrows {
        if let (Some(a), Some(b)) = (floor(from), floor(to))
            && b > a
        {
            let (a, b) = (FLOORS[a], FLOORS[b]);
            let to = &modules[to].file;
            let message = format!("`{a}` may not name `{b}` above it ({to})");
            found.push(Violation::of(&modules[from].file, *line, message));
        }
    }
    circles(&modules, &arrows, found);
}

/// `engine/src/mesh/nesting.rs` is `mesh::nesting`, `engine/src/mesh/mod.rs` is `mesh`.
fn module(file: &str) -> Vec<String> {
    let inside = file.strip_prefix(ENGINE).unwrap_or(file);
    let inside = inside.strip_suffix(".rs").unwrap_or(inside);
    inside
        .split('/')
        .filter(|part| !matches!(*part, "mod" | "lib"))
        .map(str::to_string)
        .collect()
}

fn floor(module: &[String]) -> Option<usize> {
    let name = module.first()?;
    FLOORS.iter().position(|floor| floor == name)
}

type Modules<'a> = BTreeMap<Vec<String>, &'a Source>;
/// From a module to one that it names, and the first line where it does.
type Arrows = BTreeMap<(Vec<String>, Vec<String>), usize>;

/// All arrows between files. A submodule is a part of its parent: it may name that. What a module only shows to others from
/// its own submodules is not named by itself.
fn arrows(modules: &Modules) -> Arrows {
    let mut arrows = Arrows::new();
    for (from, source) in modules.iter().filter(|(from, _)| !from.is_empty()) {
        for path in &source.paths {
            let Some(to) = definer(modules, from, &path.segments, 0) else {
                continue;
            };
            let shown = path.import.as_ref().is_some_and(|i| i.public) && to.starts_with(from);
            if !from.starts_with(&to) && !shown {
                arrows.entry((from.clone(), to)).or_insert(path.line);
            }
        }
    }
    arrows
}

/// The module in whose file stands what `path` means in `module`, also where others show it on; none for other crates.
fn definer(
    modules: &Modules,
    module: &[String],
    path: &[String],
    depth: usize,
) -> Option<Vec<String>> {
    let source = modules.get(module)?;
    let Some((first, rest)) = path.split_first() else {
        return Some(module.to_vec());
    };
    if depth > 16 {
        return None;
    }
    let follow = |module: &[String], path: &[String]| definer(modules, module, path, depth + 1);
    match first.as_str() {
        "crate" => return follow(&[], rest),
        "self" => return follow(module, rest),
        "super" => return follow(&module[..module.len().checked_sub(1)?], rest),
        _ => {}
    }
    if source.modules.contains(first) {
        return follow(&[module, std::slice::from_ref(first)].concat(), rest);
    }
    if source.items.contains(first) {
        return Some(module.to_vec());
    }
    let imported = |path: &&Named| path.import.as_ref().is_some_and(|i| i.name == *first);
    if let Some(import) = source.paths.iter().find(imported) {
        // an import of a crate's own name would lead back here
        let own = import.segments.first() == Some(first);
        return if own {
            None
        } else {
            follow(module, &[&import.segments, rest].concat())
        };
    }
    if module.is_empty() {
        let defines = |(_, source): &(&Vec<String>, &&Source)| source.macros.contains(first);
        return modules.iter().find(defines).map(|(m, _)| m.clone());
    }
    None
}

/// Arrows on a floor between modules of which each can be reached from the other; a circle over several floors has an arrow
/// upwards.
fn circles(modules: &Modules, arrows: &Arrows, found: &mut Vec<Violation>) {
    let level = |(from, to): &(Vec<String>, Vec<String>)| from.first() == to.first();
    let arrows: Arrows = arrows
        .iter()
        .filter(|(arrow, _)| level(arrow))
        .map(|(arrow, line)| (arrow.clone(), *line))
        .collect();
    for ((from, to), line) in &arrows {
        if reached(&arrows, to).contains(from) {
            let to = &modules[to].file;
            let message = format!("names {to}, which needs this file: a circle");
            found.push(Violation::of(&modules[from].file, *line, message));
        }
    }
}

/// All that `start` needs, directly or by others.
fn reached<'a>(arrows: &'a Arrows, start: &'a Vec<String>) -> BTreeSet<&'a Vec<String>> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![start]);
    while let Some(module) = open.pop() {
        for ((_, to), _) in arrows
            .range((module.clone(), Vec::new())..)
            .take_while(|((from, _), _)| from == module)
        {
            if reached.insert(to) {
                open.push(to);
            }
        }
    }
    reached
}
