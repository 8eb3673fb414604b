//! Accelerations and heating by formulas of the deck: exact solutions, bitwise equality, messages.

use super::device_runs::places;
use nestar::Simulation;
use nestar_tests::decks::{BLAST, HALF, deck};
use nestar_tests::ranks::{joined, on_ranks_of, run_with};
use nestar_tests::runs::digests;
use nestar_tests::{Scratch, Stepper, build};

/// Uniform gas that moves, in a periodic box with a refined corner; its dye does not fill the box.
const UNIFORM: &str = r#"
scenario = "formula"
[constants]
g = "1/2"
[initial]
density    = "2"
pressure   = "0.6"
velocity_x = "-0.1"
velocity_z = "0.3"
scalars    = { dye = "exp(-60*(x - 0.4)^2)" }
[domain]
cells = [16, 8, 8]
right_edge = [1.0, 0.5, 0.5]
[time]
end = 0.5
[mesh]
max_level = 1
refine = [{ criterion = "box", left = [0.0, 0.0, 0.0], right = [0.25, 0.25, 0.25] }]
[hydro]
gamma = "5/3"
scalars = ["dye"]
"#;

/// Density, velocity and internal energy of a volume in all cells at the deck's end, and the mean place of the dye along x.
fn end(settings: &[&str]) -> (Vec<[f64; 5]>, f64) {
    let state = Stepper::new(UNIFORM, settings).finish().state();
    let (mut cells, mut moment) = (Vec::new(), [0.0; 2]);
    state.each_leaf_cell(|_, x, volume, u| {
        let v = [1, 2, 3].map(|c| u[c] / u[0]);
        let kinetic = 0.5 * (u[1] * v[0] + u[2] * v[1] + u[3] * v[2]);
        cells.push([u[0], v[0], v[1], v[2], u[4] - kinetic]);
        moment[0] += volume * u[5];
        moment[1] += volume * u[5] * x[0];
    });
    (cells, moment[1] / moment[0])
}

/// The largest difference to `exact` in all cells.
fn error(cells: &[[f64; 5]], exact: [f64; 5]) -> f64 {
    let errors = cells.iter().flat_map(|u| u.iter().zip(&exact));
    errors
        .map(|(u, exact)| (u - exact).abs())
        .fold(0.0, f64::max)
}

const FALL: [&str; 3] = [
    "sources.acceleration_x=g",
    "sources.acceleration_y=-3*g",
    "sources.acceleration_z=0.1",
];

#[test]
fn free_fall_has_the_exact_velocity_and_position_and_internal_energy() {
    let exact = [2.0, -0.1 + 0.25, -0.75, 0.3 + 0.05, 0.9];
    for split in [true, false] {
        let split = format!("sources.split={split}");
        let (cells, _) = end(&[&FALL[..], &[&split]].concat());
        let error = error(&cells, exact);
        assert!(error < 2e-13, "{split}: {error:e}");
    }
}

/// Where dyed gas stands that falls from rest: half of g t^2 further if half of the kick comes first, and less by half a step's
/// velocity if the whole of it comes last.
#[test]
fn split_sources_move_falling_gas_to_the_exact_position() {
    let settings = [
        "sources.acceleration_x=g",
        "initial.velocity_x=0",
        "mesh.max_level=0",
        "domain.cells=[128, 8, 8]",
        "time.max_step=0.005",
    ];
    let place = |more| end(&[&settings[..], &[more]].concat()).1;
    let start = end(&[
        "mesh.max_level=0",
        "domain.cells=[128, 8, 8]",
        "time.end=0.0",
    ])
    .1;
    let exact = start + 0.5 * 0.5 * 0.25;
    let split = (place("sources.split=true") - exact).abs();
    let whole = (place("sources.split=false") - exact).abs();
    assert!(split < 1e-5 && whole > 3e-4, "{split:e} and {whole:e}");
}

/// Velocity by an acceleration cos(9 t): its error falls to a quarter with half the step.
#[test]
fn time_dependent_accelerations_are_of_second_order() {
    for split in ["sources.split=true", "sources.split=false"] {
        let error = |step: &str| {
            let settings = [
                "sources.acceleration_y=cos(9*t)",
                "mesh.max_level=0",
                step,
                split,
            ];
            let (cells, _) = end(&settings);
            (cells[0][2] - (4.5f64).sin() / 9.0).abs()
        };
        let ratio = error("time.max_step=0.01") / error("time.max_step=0.005");
        assert!((ratio - 4.0).abs() < 0.1, "{split}: {ratio}");
    }
}

#[test]
fn heating_raises_the_internal_energy_by_its_rate() {
    let settings = ["sources.heating=0.3*density", "sources.acceleration_x=0.2"];
    let (cells, _) = end(&settings);
    let exact = [2.0, 0.0, 0.0, 0.3, 0.9 + 0.5 * 0.6];
    let error = error(&cells, exact);
    assert!(error < 2e-13, "{error:e}");
}

#[test]
fn accelerated_gas_crosses_at_most_one_cell_per_step() {
    let settings = ["sources.acceleration_z=1e4", "mesh.max_level=0"];
    let mut stepper = Stepper::new(UNIFORM, &settings);
    let report = stepper.try_step().unwrap_or_else(|e| panic!("{e}"));
    let longest = (0.5f64 / 8.0 / 1e4).sqrt();
    assert_eq!((report.limiter, report.dt), ("acceleration", longest));
    let free = [&settings[..], &["sources.limit=0"]].concat();
    let report = Stepper::new(UNIFORM, &free).try_step();
    assert_eq!(report.unwrap_or_else(|e| panic!("{e}")).limiter, "courant");
}

/// Formulas that use every available name.
const RICH: [&str; 4] = [
    "sources.acceleration_x=0.2*sin(2*pi*y + t) - 0.1*velocity_x*fraction_dye",
    "sources.acceleration_y=if(mach > 0.5, -0.3, 0.1)/(1 + r)",
    "sources.acceleration_z=temperature*width",
    "sources.heating=0.1*density*exp(-temperature) - 0.01*pressure^2*level",
];

/// Formulas cost more than all else: one level.
const SMALL: [&str; 2] = [HALF, "mesh.max_level=1"];

#[test]
fn formula_sources_are_identical_on_ranks_and_devices() {
    for (precision, split) in [
        ("run.precision=double", "sources.split=true"),
        ("run.precision=single", "sources.split=false"),
    ] {
        let run = |device, size| {
            let settings = [&RICH[..], &SMALL, &[precision, split, device]].concat();
            let build = |ranks| Simulation::with_ranks(deck(BLAST, &settings), ranks);
            joined(on_ranks_of(size, build, |stepper| stepper.steps(3).state()))
        };
        let alone = run("run.device=cpu", 1);
        for (device, size) in places(&[2], &[2]) {
            let difference = alone.difference(&run(device, size));
            assert_eq!(difference, None, "{device}, {size} ranks, {split}");
        }
    }
}

#[test]
fn a_run_with_sources_continues_from_its_snapshot() {
    let of = |directory: &Scratch, resume, steps: &str| {
        let settings = [&RICH[..], &SMALL, &[steps]].concat();
        let run = run_with(&directory.run(), resume, 1, &settings, Ok);
        run.unwrap_or_else(|e| panic!("{e}"));
        digests(&directory.run()).pop().expect("a snapshot").1
    };
    let (whole, parts) = (Scratch::new(), Scratch::new());
    let once = of(&whole, false, "time.max_steps=4");
    of(&parts, false, "time.max_steps=2");
    assert_eq!(once, of(&parts, true, "time.max_steps=4"));
}

/// What the first step says, on every device the same.
fn message(settings: &[&str]) -> String {
    let mut messages = places(&[1], &[1]).into_iter().map(|(device, _)| {
        let settings = [settings, &[device]].concat();
        let mut stepper = Stepper::of(build(UNIFORM, &settings));
        stepper.try_step().expect_err("a fault").to_string()
    });
    let first = messages.next().expect("there is a device");
    messages.for_each(|other| assert_eq!(other, first));
    first
}

#[test]
fn non_finite_sources_are_reported() {
    let found = message(&["sources.acceleration_y=sqrt(x - 0.2)"]);
    let named = "the formula sources.acceleration_y = \"sqrt(x - 0.2)\" is not a finite number at (x, y, z) = [";
    assert!(
        found.contains(named) && found.contains("], t = 0"),
        "{found}"
    );
    let cold = ["sources.heating=if(x > 0.5, -1e4, 0)", "mesh.max_level=0"];
    let found = message(&cold);
    for words in [
        "`sources` has failed in cell [0, 0, 0] of patch [1, 0, 0] on level 0, where `gas` is [2.0, -0.2, 0.0, 0.6, 0.9999",
        " at (x, y, z) = [0.53125, ",
        "; it gives [2.0, -0.2, 0.0, 0.6, -",
    ] {
        assert!(found.contains(words), "{found}");
    }
    let wrong = Simulation::new(deck(UNIFORM, &["sources.heating=densty"]));
    let found = wrong.err().expect("refused").to_string();
    assert!(
        found.contains("sources.heating") && found.contains("density"),
        "{found}"
    );
}
