//! Cyclic dependencies between the files of a crate.
use super::Violation;
use super::source::{Named, Source};
use std::collections::{BTreeMap, BTreeSet};

/// Checks that files of a crate have no cyclic dependencies.
pub fn check(sources: &[Source], found: &mut Vec<Violation>) {
    let mut crates: BTreeMap<&str, Modules> = BTreeMap::new();
    for source in sources {
        if let Some((root, inside)) = split(&source.file) {
            let modules = crates.entry(root).or_default();
            modules.insert(module(inside), source);
        }
    }
    for mut modules in crates.into_values() {
        if let Some(program) = split_program(&mut modules) {
            circles(&program, &arrows(&program), found);
        }
        circles(&modules, &arrows(&modules), found);
    }
}

/// Splits off the modules of a program, `main.rs` and its modules; its folder may also contain a library.
fn split_program<'a>(modules: &mut Modules<'a>) -> Option<Modules<'a>> {
    let main = modules.remove(&vec!["main".to_string()])?;
    let of_main = |module: &[String]| module.first().is_some_and(|top| main.modules.contains(top));
    let mut program: Modules = modules
        .extract_if(.., |module, _| of_main(module))
        .collect();
    program.insert(Vec::new(), main);
    Some(program)
}

/// Returns the module folder of the crate of a file, and the file's path in it.
fn split(file: &str) -> Option<(&str, &str)> {
    let (root, _) = file.split_once("/src/")?;
    let inside = &file[root.len() + "/src/".len()..];
    inside
        .ends_with(".rs")
        .then_some((&file[..file.len() - inside.len()], inside))
}

/// Returns the module path of a file: `halo::split` for `halo/split.rs`, `halo` for `halo/mod.rs`.
fn module(inside: &str) -> Vec<String> {
    let inside = inside.strip_suffix(".rs").unwrap_or(inside);
    inside
        .split('/')
        .filter(|part| !matches!(*part, "mod" | "lib"))
        .map(str::to_string)
        .collect()
}

type Modules<'a> = BTreeMap<Vec<String>, &'a Source>;
/// Dependencies from a module to another, with the first line of each.
type Arrows = BTreeMap<(Vec<String>, Vec<String>), usize>;

/// Returns all dependencies between files. A submodule may use its parent, and re-exports from own submodules are ignored.
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

/// Resolves `path` in `module`, through re-exports, to the module that defines it; `None` for other crates.
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
        // an import of the crate's own name would recurse forever
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

/// Reports dependencies that are part of a cycle.
fn circles(modules: &Modules, arrows: &Arrows, found: &mut Vec<Violation>) {
    for ((from, to), line) in arrows {
        if reached(arrows, to).contains(from) {
            let to = &modules[to].file;
            let message = format!("uses {to}, which uses this file: a cyclic dependency");
            found.push(Violation::of(&modules[from].file, *line, message));
        }
    }
}

/// Returns all modules that `start` uses, directly or indirectly.
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
