//! Each rule holds for the good case and fails for the bad one.
use super::{Manifest, Source, check};

/// Messages for a workspace of files given as `(path, text)`.
fn messages(files: &[(&str, &str)]) -> Vec<String> {
    let (manifests, sources): (Vec<_>, Vec<_>) =
        files.iter().partition(|(file, _)| file.ends_with(".toml"));
    let manifests: Vec<_> = manifests
        .iter()
        .map(|(f, t)| Manifest::parse(f, t))
        .collect();
    let sources: Vec<_> = sources.iter().map(|(f, t)| Source::parse(f, t)).collect();
    check(&manifests, &sources)
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// The one message of a workspace with one fault.
fn message(files: &[(&str, &str)]) -> String {
    let messages = messages(files);
    assert_eq!(messages.len(), 1, "{messages:?}");
    messages.into_iter().next().unwrap_or_default()
}

const ENGINE: (&str, &str) = ("engine/Cargo.toml", "[package]\nname = \"nestar-engine\"\n");
const KERNELS: (&str, &str) = (
    "kernels/Cargo.toml",
    "[package]\nname = \"nestar-kernels\"\n",
);
const FACADE: (&str, &str) = (
    "tools/nestar/Cargo.toml",
    "[package]\nname = \"nestar\"\n[[example]]\npath = \"../../scenarios/drag.rs\"\n",
);

#[test]
fn code_lies_in_a_room() {
    assert_eq!(messages(&[("tests/src/lib.rs", "")]), [""; 0]);
    assert!(
        message(&[("utilities/src/lib.rs", "")])
            .starts_with("utilities/src/lib.rs: lies in none of the rooms")
    );
}

#[test]
fn a_manifest_depends_downwards_only() {
    let up = (
        "kernels/Cargo.toml",
        "[package]\nname = \"nestar-kernels\"\n[dev-dependencies]\nnestar-engine.workspace = true\n",
    );
    assert!(
        message(&[ENGINE, up]).starts_with(
            "kernels/Cargo.toml:4: `kernels` may not name `nestar-engine` of `engine`"
        )
    );
    let down = (
        "engine/Cargo.toml",
        "[package]\nname = \"nestar-engine\"\n[dependencies]\nnestar-kernels.workspace = true\n",
    );
    assert_eq!(messages(&[KERNELS, down]), [""; 0]);
}

#[test]
fn code_names_downwards_only() {
    let code = "fn f() {\n    ::nestar_engine::run();\n}";
    assert!(
        message(&[ENGINE, ("kernels/src/lib.rs", code)])
            .starts_with("kernels/src/lib.rs:2: `kernels` may not name")
    );
    assert_eq!(messages(&[ENGINE, ("systems/src/lib.rs", code)]), [""; 0]);
}

#[test]
fn an_example_beside_the_scenarios_belongs_to_the_crate_that_lists_it() {
    assert_eq!(
        messages(&[FACADE, ("scenarios/drag.rs", "use nestar::prelude::*;")]),
        [""; 0]
    );
    assert_eq!(
        messages(&[FACADE, ("scenarios/sod.rs", "use nestar::prelude::*;")]).len(),
        1
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
    ] {
        assert!(
            message(&[("kernels/src/hydro/eos.rs", bad)]).contains("kernels know no ECS"),
            "{bad}"
        );
    }
    for good in [
        "// use serde::Serialize;",
        "let s = \"serde::x\";",
        "use crate::toml::x;",
        "use std::mem;",
        "let e = r#\"std::fs \"toml::x\"#;",
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
        "let cooling_rate = 1;",
        "mod gravity;",
    ] {
        assert!(
            message(&[("engine/src/a.rs", bad)]).contains("the engine names no physics"),
            "{bad}"
        );
    }
    let good = "/// Gravity and the like.\nstruct Hydrogen; const NAME: &str = \"gravity\"; 'g: { let c = 'h'; }\n\
                #[cfg(test)]\nmod tests {\n    fn gravity() { if true { [1; 2]; } }\n}\nfn g() {}";
    assert_eq!(
        messages(&[
            ("engine/src/a.rs", good),
            ("engine/src/tests.rs", "fn gravity() {}")
        ]),
        [""; 0]
    );
    let after = "#[cfg(test)]\nuse x::{y};\n#[cfg(test)]\nfn f(a: [u8; 3]) { }\nfn gravity() {}";
    assert!(message(&[("engine/deck/src/a.rs", after)]).starts_with("engine/deck/src/a.rs:5:"));
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
            text.starts_with("systems/src/hydro/systems.rs:1: `hydro` names `gravity`"),
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
fn a_foreign_library_is_hidden_by_one_file() {
    for library in ["cudarc", "mpi", "zarrs"] {
        let text = format!("fn f() {{ {library}::open() }}");
        let (a, b) = (
            ("engine/src/a.rs", text.as_str()),
            ("engine/src/b.rs", text.as_str()),
        );
        assert_eq!(
            messages(&[a, ("engine/src/c.rs", "mod mpi; use crate::mpi::x;")]),
            [""; 0]
        );
        assert!(message(&[a, b]).starts_with("engine/src/b.rs:1: "));
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
