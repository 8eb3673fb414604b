//! A level that is removed: its correction on the coarser level is removed with it.

use super::LUMP;
use nestar_tests::runs::{digests, quietly_into};
use nestar_tests::{Scratch, Stepper, build};

/// The lump bursts, and the level on it is gone after six steps.
const BURSTING: [&str; 3] = [
    "initial.pressure=\"0.5 + 40*exp(-((x-0.4)^2+(y-0.55)^2+(z-0.47)^2)/0.01)\"",
    "mesh.max_level=1",
    "mesh.refine=[{ criterion = \"threshold\", field = \"density\", threshold = 2.0 }]",
];

#[test]
fn a_removed_level_leaves_no_correction_on_the_coarser_level() {
    let counts = |steps| Stepper::new(LUMP, &BURSTING).steps(steps).state().counts();
    assert!(counts(5).len() > 1 && counts(5)[1] > 0, "{:?}", counts(5));
    assert!(counts(6).get(1).is_none_or(|&n| n == 0), "{:?}", counts(6));
    // a restart knows of nothing that the level added
    let run = |parts: &[&str]| {
        let scratch = Scratch::new();
        for (n, steps) in parts.iter().enumerate() {
            let settings = [&BURSTING[..], &["output.final=true", steps]].concat();
            let run = build(LUMP, &settings).run_with(quietly_into(&scratch.run(), n > 0));
            run.unwrap_or_else(|e| panic!("{e}"));
        }
        digests(&scratch.run()).pop().expect("there is a snapshot")
    };
    let parts = run(&["time.max_steps=6", "time.max_steps=8"]);
    assert_eq!(parts.1, run(&["time.max_steps=8"]).1);
}
