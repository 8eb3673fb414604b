//! Tests of each rule with valid and invalid code.
use super::{Manifest, Source, check};

/// Returns the messages for a workspace of files `(path, text)`.
fn messages(files: &[(&str, &str)]) -> Vec<String> {
    let (manifests, sources): (Vec<_>, Vec<_>) =
        files.iter().partition(|(file, _)| file.ends_with(".toml"));
    let manifests: Vec<_> = manifests
        .iter()
        .map(|(f, t)| Manifest::parse(f, t))
        .collect();
    let source = |(file, text): &(&str, &str)| match file.ends_with(".rs") {
        true => Source::rust(file, text).expect("the text is Rust"),
        false => Source::cuda(file, text),
    };
    let sources: Vec<_> = sources.iter().map(source).collect();
    check(&manifests, &sources)
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// Returns the message of a workspace with exactly one violation.
fn message(files: &[(&str, &str)]) -> String {
    let messages = messages(files);
    assert_eq!(messages.len(), 1, "{messages:?}");
    messages.into_iter().next().unwrap_or_default()
}

#[test]
fn code_lies_in_a_room() {
    assert_eq!(messages(&[("tests/src/lib.rs", "")]), [""; 0]);
    assert!(
        message(&[("utilities/src/lib.rs", "")])
            .starts_with("utilities/src/lib.rs: belongs to none of the layers")
    );
}

#[test]
fn kernels_know_no_ecs_files_or_configuration() {
    for bad in [
        "use bevy_ecs::prelude::*;",
        "use {zarrs::array, std::f64};",
        "type T = serde::de::Error;",
        "use mpi;",
        "use std::{fs::File, mem};",
        "fn f() { print!(\"{}\", toml::x()) }",
        "#[derive(serde::Serialize)] struct A;",
    ] {
        assert!(
            message(&[("kernels/src/hydro/eos.rs", bad)]).contains("kernels may not use ECS"),
            "{bad}"
        );
    }
    for good in [
        "// use serde::Serialize;",
        "const S: &str = \"serde::x\";",
        "use crate::toml::x;",
        "use std::mem;",
        "fn f(toml: u8) -> u8 { toml }",
    ] {
        assert_eq!(messages(&[("kernels/src/lib.rs", good)]), [""; 0], "{good}");
    }
    let manifest = (
        "kernels/Cargo.toml",
        "[dependencies]\nserde = { workspace = true }\n",
    );
    assert!(message(&[manifest]).starts_with("kernels/Cargo.toml:2: `kernels` depends on `serde`"));
}

#[test]
fn the_engine_names_no_physics() {
    for bad in [
        "struct HydroField;",
        "fn f() { let cooling_rate = 1; }",
        "mod gravity;",
        "/// Gravity and the like.\nstruct A;",
        "// the courant number\nstruct A;",
        "const NAME: &str = \"gas\";",
    ] {
        let text = message(&[("engine/deck/src/a.rs", bad)]);
        assert!(text.contains("the engine contains no physics"), "{bad}");
    }
    let good = "struct Hydrogen;\n#[cfg(test)]\nmod tests {\n    fn gravity() { if true { [1; 2]; } }\n}\nfn g() {}";
    assert_eq!(
        messages(&[
            ("engine/deck/src/a.rs", good),
            ("engine/deck/src/tests.rs", "fn gravity() {}")
        ]),
        [""; 0]
    );
    let after = "#[cfg(test)]\nuse x::{y};\n#[cfg(test)]\nfn f(a: [u8; 3]) { }\nfn gravity() {}";
    assert!(message(&[("engine/deck/src/a.rs", after)]).starts_with("engine/deck/src/a.rs:5:"));
}

#[test]
fn files_of_a_program_make_no_circle_beside_those_of_a_library() {
    let found = messages(&[
        ("tools/probe/src/main.rs", "mod a;\nmod b;\nfn main() {}"),
        (
            "tools/probe/src/a.rs",
            "use crate::b::Table; pub struct Limit;",
        ),
        (
            "tools/probe/src/b.rs",
            "use crate::a::Limit; pub struct Table;",
        ),
        ("tools/probe/src/lib.rs", "mod c;"),
        ("tools/probe/src/c.rs", "pub struct Free;"),
    ]);
    let circle = |a: &str, b: &str| {
        format!(
            "tools/probe/src/{a}.rs:1: uses tools/probe/src/{b}.rs, which uses this file: a cyclic dependency"
        )
    };
    assert_eq!(found, [circle("a", "b"), circle("b", "a")]);
}

#[test]
fn files_of_a_crate_make_no_circle() {
    let found = messages(&[
        (
            "engine/comm/src/lib.rs",
            "mod a; mod b; pub use a::Halo; pub use b::Peer;",
        ),
        (
            "engine/comm/src/a.rs",
            "pub struct Halo; use super::b::Peer;",
        ),
        (
            "engine/comm/src/b.rs",
            "pub struct Peer; fn f(_: super::Halo) {}",
        ),
    ]);
    let circle = |a: &str, b: &str| {
        format!(
            "engine/comm/src/{a}.rs:1: uses engine/comm/src/{b}.rs, which uses this file: a cyclic dependency"
        )
    };
    assert_eq!(found, [circle("a", "b"), circle("b", "a")]);
    let other = messages(&[
        (
            "systems/src/cooling/mod.rs",
            "mod a;\nmod b;\npub struct Rate;",
        ),
        (
            "systems/src/cooling/a.rs",
            "use super::b::Table; pub struct Limit;",
        ),
        (
            "systems/src/cooling/b.rs",
            "pub struct Table(super::a::Limit);",
        ),
    ]);
    assert!(other[0].starts_with("systems/src/cooling/a.rs:1: uses systems/src/cooling/b.rs"));
}

#[test]
fn functions_are_short() {
    let body = |lines: usize| "    f(1); // once\n\n    // more\n".repeat(lines);
    let rust = |lines| format!("fn f(a: u8) {{\n{}}}\n", body(lines));
    let cuda = |lines| {
        let body = body(lines);
        format!("namespace a {{\n__global__ void __launch_bounds__(64) f(A a) {{\n{body}}}\n}}\n")
    };
    for (file, text) in [
        ("kernels/src/a.rs", &rust as &dyn Fn(usize) -> String),
        ("kernels/src/a.cu", &cuda),
        ("kernels/src/a.cuh", &cuda),
    ] {
        assert_eq!(messages(&[(file, &text(60))]), [""; 0]);
        let long = message(&[(file, &text(61))]);
        assert!(long.contains("`f` has more than 60 lines"), "{long}");
    }
    // the body of a macro is not a function head
    let text = format!(
        "#define F(a) \\\n  void f(a)\nnamespace a {{\n{}}}\n",
        body(61)
    );
    assert_eq!(messages(&[("kernels/src/a.cuh", &text)]), [""; 0]);
}

#[test]
fn tuples_of_more_than_two_values_are_no_parameters() {
    let file = "kernels/src/a.rs";
    for good in [
        "fn f(a: (u8, u8), b: u8) {}",
        "fn f() -> (u8, u8, u8) {}",
        "#[device] fn f(u: (u8, u8, u8)) {}",
    ] {
        assert_eq!(messages(&[(file, good)]), [""; 0]);
    }
    for bad in [
        "fn f((a, b, c): (u8, u8, u8)) {}",
        "impl A { fn f(&self, a: &(u8, u8, u8)) {} }",
    ] {
        let text = message(&[(file, bad)]);
        assert!(text.contains("`f` takes a tuple of 3 values"), "{text}");
    }
}

#[test]
fn physics_folders_meet_in_the_vocabulary_only() {
    let (gravity, fields) = (
        ("systems/src/gravity/mod.rs", ""),
        ("systems/src/fields.rs", ""),
    );
    for bad in [
        "use crate::gravity::Potential;",
        "use crate::{fields::Gas, gravity};",
        "fn f() { super::super::gravity::solve() }",
        "use nestar_systems::gravity;",
    ] {
        let text = message(&[gravity, fields, ("systems/src/hydro/systems.rs", bad)]);
        assert!(
            text.starts_with("systems/src/hydro/systems.rs:1: `hydro` uses `gravity`"),
            "{text}"
        );
    }
    let good = "use crate::fields::Gas; use crate::order::Advance; use super::config; use crate::hydro::gravity; use super::gravity;";
    assert_eq!(
        messages(&[gravity, fields, ("systems/src/hydro/systems.rs", good)]),
        [""; 0]
    );
    assert_eq!(
        messages(&[
            gravity,
            (
                "systems/src/lib.rs",
                "use crate::gravity::Gravity; pub mod gravity;"
            )
        ]),
        [""; 0]
    );
}

#[test]
fn shared_modules_are_used_by_physics_modules_and_use_none() {
    let (gravity, spectral) = ("systems/src/gravity/mod.rs", "systems/src/spectral/mod.rs");
    let good = "use crate::spectral::Filter;";
    assert_eq!(messages(&[(gravity, good), (spectral, "")]), [""; 0]);
    let text = message(&[(gravity, ""), (spectral, "use crate::gravity::Potential;")]);
    let expected = "systems/src/spectral/mod.rs:1: `spectral` uses `gravity`";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn a_foreign_library_is_hidden_by_one_file() {
    for library in ["cudarc", "mpi", "parquet", "zarrs"] {
        let text = format!("fn f() {{ {library}::open() }}");
        let (a, b) = (
            ("engine/mpi/src/a.rs", text.as_str()),
            ("engine/mpi/src/b.rs", text.as_str()),
        );
        assert_eq!(
            messages(&[a, ("engine/mpi/src/c.rs", "mod mpi; use crate::mpi::x;")]),
            [""; 0]
        );
        assert!(message(&[a, b]).starts_with("engine/mpi/src/b.rs:1: "));
        let manifest = format!("[dependencies]\n{library} = \"1\"\n");
        assert!(
            message(&[
                ("engine/Cargo.toml", &manifest),
                ("tools/plot/Cargo.toml", &manifest)
            ])
            .starts_with("tools/plot")
        );
    }
}
