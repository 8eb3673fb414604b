//! Tabulated profiles in potentials and initial states.

use nestar_tests::{Scratch, Stepper};
use std::fmt::Write as _;

/// Gas in hydrostatic balance in the field of a halo.
const HALO: &str = r#"
scenario = "formula"
[constants]
T = 2
[initial]
samples  = 2
density  = "exp(-halo(sqrt(x^2 + y^2 + z^2 + 0.01))/T)"
pressure = "T*exp(-halo(sqrt(x^2 + y^2 + z^2 + 0.01))/T)"
[domain]
cells = [16, 16, 16]
left_edge  = [-0.5, -0.5, -0.5]
right_edge = [0.5, 0.5, 0.5]
boundary = "reflecting"
[time]
end = 0.05
[external]
potential = "halo(sqrt(r^2 + 0.01))"
"#;

/// A profile -1 / sqrt(r^2 + 0.04) from 0.2 to 0.6, as a file with the mass within each radius.
fn profile(rows: u32) -> String {
    let mut text = String::from("# a Plummer sphere\nradius, potential, mass\n");
    for n in 0..=rows {
        let r = 0.2 + 0.4 * f64::from(n) / f64::from(rows);
        let square = r * r + 0.04;
        let mass = r.powi(3) / (square * square.sqrt());
        // writing to a string cannot fail
        let _ = writeln!(text, "{r:e}, {:e}, {mass:e}", -1.0 / square.sqrt());
    }
    text
}

/// Momenta at the end of the deck with `halo` in place of the profile, by cells.
fn momenta(halo: &str, rows: u32) -> Vec<f64> {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("halo.csv"), profile(rows)).expect("a file");
    let path = scratch.path().join("halo.csv");
    let settings = [
        format!("tables.halo={halo}").replace("FILE", &path.display().to_string()),
        "external.limit=0".into(),
    ];
    let settings = settings.each_ref().map(String::as_str);
    let mut found = Vec::new();
    let state = Stepper::new(HALO, &settings).steps(3).state();
    state.each_leaf_cell(|_, _, _, u| found.extend(&u[1..4]));
    found
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f64::max)
}

/// A potential from a file, or from the mass inside radii, moves the gas like a finer table: with an error that falls with the
/// third power of the rows' distance and more.
#[test]
fn potentials_from_tables_converge() {
    let ends = "below = \"core\", above = \"kepler\"";
    let file = "file = \"FILE\", x = \"radius\", interpolation = \"spline\"";
    let given = format!("{{ {file}, y = \"potential\", {ends} }}");
    let exact = momenta(&given, 800);
    let errors = [16, 32].map(|rows| distance(&momenta(&given, rows), &exact));
    assert!(errors[0] / errors[1] > 6.0, "{errors:?}");
    let mass = format!("{{ {file}, y = \"mass/radius^2\", integral = true, {ends} }}");
    // another zero of the potential is another density throughout
    let fine = momenta(&mass, 800);
    let errors = [16, 32].map(|rows| distance(&momenta(&mass, rows), &fine));
    assert!(errors[0] / errors[1] > 6.0, "{errors:?}");
}
