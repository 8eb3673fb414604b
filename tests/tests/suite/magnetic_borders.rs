//! Magnetic fields on cell faces at the faces of the domain: boundaries that change at a restart.

use nestar_tests::runs::{digests, run_into};
use nestar_tests::Scratch;

/// A field that differs between opposite faces of the domain.
const OPEN: &str = r#"
scenario = "formula"
[initial]
density    = "1"
pressure   = "1"
vector_potential_z = "0.1*x*y"
[domain]
cells      = [16, 8, 8]
boundary   = "outflow"
[time]
max_steps = 1
end       = 1.0
[mesh]
[mhd]
method = "ct"
[output]
final = true
"#;

/// Faces that become periodic must hold the same field. A run that changes its boundaries otherwise continues.
#[test]
fn faces_that_become_periodic_are_compared() {
    let scratch = Scratch::new();
    let go = |resume: bool, text: &str, settings: &[&str]| {
        run_into(scratch.path(), resume, text, settings).map_err(|e| e.to_string())
    };
    go(false, OPEN, &[]).unwrap_or_else(|e| panic!("{e}"));
    let more = "time.max_steps=2";
    let refused =
        |text: &str, settings: &[&str]| go(true, text, settings).map(|_| ()).expect_err("refused");
    // a deck with other boundaries needs consent
    let why = refused(&OPEN.replace("\"outflow\"", "\"periodic\""), &[more]);
    assert!(why.contains("--set domain.boundary"), "{why}");
    let why = refused(OPEN, &[more, "domain.boundary=periodic"]);
    assert!(
        why.contains("magnetic_y_face on the periodic face"),
        "{why}"
    );
    assert!(why.contains("keep the `domain.boundary`"), "{why}");
    // along z the field is the same on both faces
    let along_z = "domain.boundary={ x = \"outflow\", y = \"outflow\", z = \"periodic\" }";
    go(true, OPEN, &[more, along_z]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(digests(scratch.path()).len(), 3);
}
