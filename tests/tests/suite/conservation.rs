//! Mass, momentum, energy and scalars of a periodic run are conserved to round-off.

use super::cosmology::digests_of;
use super::device_runs::places;
use nestar::engine::comm::cells_repaired_between_levels;
use nestar::kernels::mesh::parameters::RepairedCells;
use nestar_tests::Stepper;
use nestar_tests::decks::{BLAST, HALF};
use nestar_tests::norms::{magnitudes, totals};

/// Largest drift of any component, relative to the sum of its magnitudes.
fn drift(steps: usize, settings: &[&str]) -> f64 {
    let mut stepper = Stepper::new(BLAST, &[&[HALF], settings].concat());
    let scale = magnitudes(&stepper.state());
    let before = stepper.0.with(|s| totals(s));
    stepper.steps(steps);
    let after = stepper.0.with(|s| totals(s));
    let repaired = cells_repaired_between_levels(&stepper.0.engine().world);
    assert_eq!(
        repaired.expect("the host does not fail"),
        RepairedCells::default()
    );
    stepper.state().physical().unwrap_or_else(|e| panic!("{e}"));
    let relative = (0..before.len()).map(|c| (after[c] - before[c]).abs() / scale[c]);
    relative.fold(0.0, f64::max)
}

fn conserves(steps: usize, settings: &[&str]) {
    let drift = drift(steps, settings);
    assert!(drift <= 1e-13, "{settings:?}: drift {drift:e}");
}

#[test]
fn adaptive_steps_conserve() {
    conserves(10, &[]);
}

#[test]
fn halved_steps_conserve() {
    conserves(8, &["time.levels=halved"]);
}

#[test]
fn shared_steps_conserve() {
    conserves(8, &["time.levels=shared"]);
}

#[test]
fn regrids_at_every_step_conserve() {
    conserves(
        10,
        &[
            "mesh.regrid_interval=1",
            "mesh.flag_buffer=0",
            "mesh.prolongation=van-leer",
        ],
    );
}

#[test]
fn three_levels_with_ppm_conserve() {
    conserves(
        4,
        &[
            "mesh.max_level=3",
            "hydro.reconstruction=ppm",
            "hydro.scheme=vl",
        ],
    );
}

#[test]
fn three_levels_with_corrected_states_conserve() {
    conserves(4, &["mesh.max_level=3", "hydro.scheme=ctu"]);
    let settings = [
        "time.levels=halved",
        "mesh.regrid_interval=1",
        "hydro.scheme=ctu",
        "hydro.reconstruction=ppm",
    ];
    conserves(4, &settings);
}

#[test]
fn three_levels_with_stages_conserve() {
    for scheme in ["hydro.scheme=rk2", "hydro.scheme=rk3"] {
        conserves(4, &["mesh.max_level=3", scheme]);
        conserves(6, &["time.levels=halved", "mesh.regrid_interval=1", scheme]);
    }
}

#[test]
fn single_precision_conserves() {
    let drift = drift(10, &["run.precision=single"]);
    assert!(drift <= 3e-6, "drift {drift:e}");
}

/// A jet of thin gas leaves the coarse cells beside a refined block. The finer level takes more from some of them than they have.
const EMPTIED: &str = r#"
scenario = "formula"

[initial]
density    = "if(abs(x - 0.53) < 0.04, 1e-5, 10^(-6*random(1)))"
pressure   = "1e-2"
velocity_x = "if(x > 0.5, 60, -60)"
velocity_y = "60*(random(3) - 0.5)"
velocity_z = "60*(random(4) - 0.5)"

[domain]
cells = [16, 16, 16]

[time]
end = 1e-3

[mesh]
max_level   = 1
flag_buffer = 0

[[mesh.refine]]
criterion = "box"
left      = [0, 0, 0]
right     = [0.5, 0.5, 1]
level     = 1
"#;

/// Mass, momentum and energy are conserved, and states stay physical, where corrections would empty coarse cells.
#[test]
fn corrections_that_would_empty_cells_conserve() {
    for settings in [&[][..], &["hydro.dual_energy=true"]] {
        let mut stepper = Stepper::new(EMPTIED, settings);
        let scale = magnitudes(&stepper.state());
        let before = stepper.0.with(|s| totals(s));
        stepper.finish();
        let after = stepper.0.with(|s| totals(s));
        let repaired = cells_repaired_between_levels(&stepper.0.engine().world);
        assert!(repaired.expect("the host does not fail").corrections > 0);
        stepper.state().physical().unwrap_or_else(|e| panic!("{e}"));
        for c in 0..4 {
            let drift = (after[c] - before[c]).abs() / scale[c];
            assert!(drift < 1e-13, "{settings:?}, component {c}: {drift:e}");
        }
        let gain = (after[4] - before[4]) / scale[4];
        println!("{settings:?}: energy gained {gain:e}");
        // repairs keep the pressure of cold gas, which adds energy; the internal energy of cold gas has its own equation
        let is_conserved = gain > -1e-13 && gain < 1e-3;
        assert!(is_conserved || !settings.is_empty(), "{gain:e}");
    }
    for precision in ["run.precision=double", "run.precision=single"] {
        let output = ["output.final=true", "output.steps=4", precision];
        let reference = digests_of(EMPTIED, &output, 1);
        for (device, ranks) in places(&[2], &[1]) {
            let settings = [&output[..], &[device]].concat();
            assert_eq!(digests_of(EMPTIED, &settings, ranks), reference, "{device}");
        }
    }
}

#[test]
fn a_domain_of_one_patch_conserves() {
    conserves(12, &["domain.cells=[8,8,8]"]);
}

#[test]
fn an_oblong_domain_with_oblong_cells_conserves() {
    conserves(
        10,
        &["domain.cells=[8,16,24]", "domain.right_edge=[1.0,1.25,0.9]"],
    );
}

#[test]
fn five_levels_conserve() {
    let settings = [
        "mesh.max_level=5",
        "domain.cells=[8,8,8]",
        "initial.pressure=if((x-0.4)^2 + (y-0.55)^2 + (z-0.47)^2 < 0.0009, 1000, 0.1)",
        "mesh.refine[0].threshold=1.0",
        "mesh.refine[1].radius=0.04",
        "mesh.refine[1].level=5",
        "mesh.flag_buffer=1",
    ];
    // a root step is dozens of steps of the finest level
    conserves(1, &settings);
}
