//! Initial states: required values, positions, and the range of each precision.

use nestar::engine::Error;
use nestar::systems::hydro::initial::{InitialGas, InitialState, Primitive, PrimitiveColumns};
use nestar_tests::decks::BLAST;
use nestar_tests::{State, Stepper, build};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const SEDOV: &str = r#"
    scenario = "sedov"
    [domain]
    cells = [16, 16, 16]
    left_edge = [-0.5, -0.5, -0.5]
    right_edge = [0.5, 0.5, 0.5]
    boundary = "outflow"
    [mesh]
    max_level = 2
    refine = [{ criterion = "sphere", centre = [0.0, 0.0, 0.0], radius = 0.1 }]
"#;

/// Makes the initial state like a program that drives its own steps.
fn begun(deck: &str, settings: &[&str]) -> Result<State, Error> {
    Ok(Stepper::begin(build(deck, settings))?.state())
}

fn refused(deck: &str, settings: &[&str], words: &[&str]) {
    let Err(Error::Setup(why)) = begun(deck, settings) else {
        panic!("{settings:?} passes");
    };
    for word in words {
        assert!(why.contains(word), "no {word:?} in {why}");
    }
}

/// Thermal energy of all cells above that of the surroundings.
fn injected(state: &State, ambient: f64) -> f64 {
    let mut energy = 0.0;
    state.each_leaf_cell(|_, _, volume, u| energy += (u[4] - ambient) * volume);
    energy
}

#[test]
fn an_explosion_smaller_than_every_cell_is_refused() {
    let words = ["sedov.energy", "mesh.max_level", "criterion = \"sphere\""];
    for settings in [
        // nothing refines the root grid
        &["mesh.refine=[]"][..],
        // a region beside the explosion, and one that holds half of it
        &["sedov.centre=[0.3, 0.3, 0.3]"],
        &["sedov.centre=[0.25, 0.0, 0.0]"],
        // half of the sphere lies outside
        &[
            "sedov.centre=[0.5, 0.0, 0.0]",
            "mesh.refine=[]",
            "mesh.max_level=0",
        ],
        // less energy than the surroundings have
        &["sedov.energy=1e-9"],
    ] {
        for precision in ["run.precision=single", "run.precision=double"] {
            refused(SEDOV, &[settings, &[precision]].concat(), &words);
        }
    }
}

#[test]
fn an_explosion_is_injected_on_root_grids_refined_ones_and_between_mirrors() {
    for (settings, energy) in [
        (&[][..], 1.0),
        (&["mesh.max_level=0"], 1.0),
        (&["sedov.energy=1e30", "sedov.radius=0.05"], 1e30),
        (
            &[
                "sedov.centre=[0.5, 0.0, 0.5]",
                "domain.boundary=reflecting",
                "mesh.max_level=0",
            ],
            0.25,
        ),
    ] {
        let state = begun(SEDOV, settings).unwrap_or_else(|e| panic!("{settings:?}: {e}"));
        let found = injected(&state, 1e-5 / 0.4);
        // the heated cells have no energy of the surroundings besides
        assert!(
            (found / energy - 1.0).abs() < 1e-4,
            "{settings:?}: {found:e}"
        );
    }
}

/// Centre of the region that differs from the state in the corner of the domain.
fn centre(state: &State) -> [f64; 3] {
    let (mut sum, mut weight) = ([0.0; 3], 0.0);
    state.each_leaf_cell(|_, x, volume, u| {
        let w = (u[1] * u[1] + u[2] * u[2]) * volume;
        weight += w;
        for a in 0..3 {
            sum[a] += w * x[a];
        }
    });
    sum.map(|s| s / weight)
}

#[test]
fn centres_are_in_code_length_in_every_scenario() {
    let own = "velocity = [0, 0, 0]";
    for (scenario, half) in [("gresho", 2.0), ("isentropic-vortex", 10.0)] {
        let (left, right) = (1.0 - half, 1.0 + half);
        let edges = format!("left_edge = [{left}, {left}, 0]\nright_edge = [{right}, {right}, 1]");
        for (place, expected) in [("", [1.0, 1.0]), ("centre = [0.5, 1.5]", [0.5, 1.5])] {
            let deck = format!(
                "scenario = \"{scenario}\"\n[domain]\ncells = [32, 32, 8]\n{edges}\n[{scenario}]\n{own}\n{place}\n"
            );
            let state = begun(&deck, &[]).unwrap_or_else(|e| panic!("{scenario}: {e}"));
            let found = centre(&state);
            for a in 0..2 {
                let off = (found[a] - expected[a]).abs();
                assert!(off < 0.15, "{scenario} {place}: {found:?}");
            }
        }
    }
}

/// The blast with density, velocity and pressure in units of powers of two.
fn scaled(density: i32, velocity: i32) -> [String; 7] {
    let two = |power: i32| format!("{:e}", 2f64.powi(power));
    let of =
        |key: &str, power: i32, formula: &str| format!("initial.{key}={}*({formula})", two(power));
    [
        of("density", density, "1 + 0.2*sin(2*pi*x)*cos(2*pi*y)"),
        of(
            "pressure",
            density + 2 * velocity,
            "if((x-0.4)^2 + (y-0.55)^2 + (z-0.47)^2 < 0.0121, 10, 0.1)",
        ),
        of("velocity_x", velocity, "0.3"),
        of("velocity_y", velocity, "-0.2 + 0.1*sin(2*pi*z)"),
        of("velocity_z", velocity, "0.15"),
        "run.precision=single".into(),
        "mesh.max_level=1".into(),
    ]
}

/// Three steps of the scaled blast in single precision, in the units of the other one; or the refusal.
fn outcome(density: i32, velocity: i32) -> Result<State, String> {
    let settings = scaled(density, velocity);
    let mut settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let end = format!("time.end={:e}", 2f64.powi(-velocity));
    settings.push(&end);
    let begun = Stepper::begin(build(BLAST, &settings));
    let mut state = begun.map_err(|e| e.to_string())?.steps(3).state();
    let powers = [density, density + velocity, density + 2 * velocity];
    let factor = |c: usize| 2f64.powi(-powers[[0, 1, 1, 1, 2, 0][c]]);
    for patch in state.levels.iter_mut().flat_map(|level| level.values_mut()) {
        for (n, value) in patch.values.iter_mut().enumerate() {
            *value *= factor(n / 512);
        }
    }
    Ok(state)
}

#[test]
fn single_precision_outside_its_range_is_refused_and_right_inside() {
    let right = outcome(0, 0).expect("units near 1 are held");
    let mut passed = Vec::new();
    let scales = (-130..=130).step_by(10);
    let cases = scales.flat_map(|s| [(s, 0), (0, s), (s, -s / 2), (-s, s)]);
    for (density, velocity) in cases {
        match outcome(density, velocity) {
            Ok(mut state) => {
                state.clocks.clone_from(&right.clocks);
                assert_eq!(state.difference(&right), None, "2^{density}, 2^{velocity}");
                passed.push((density, velocity));
            }
            Err(why) => {
                let drowned = why.contains("lost in round-off");
                assert!(drowned || why.contains("units.length_cgs"), "{why}");
                assert!(why.contains("run.precision = \"double\""), "{why}");
            }
        }
    }
    // 1e-12 to 1e12 in density is an honest range, and 1e-9 to 1e9 in velocity
    for inside in [(-40, 0), (40, 0), (0, -30), (0, 30)] {
        assert!(
            passed.contains(&inside),
            "{inside:?} is refused: {passed:?}"
        );
    }
}

#[test]
fn cgs_densities_are_refused_in_single_and_run_in_double_precision() {
    let cgs = ["initial.density=1.7e-24", "initial.pressure=1e-24"];
    let single = [&cgs[..], &["run.precision=single"]].concat();
    refused(BLAST, &single, &["the square of the density", "double"]);
    begun(BLAST, &cgs).unwrap_or_else(|e| panic!("{e}"));
    // gas at rest has no small velocity
    let rest = ["velocity_x=0", "velocity_y=0", "velocity_z=0"].map(|v| format!("initial.{v}"));
    let mut rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    rest.push("run.precision=single");
    begun(BLAST, &rest).unwrap_or_else(|e| panic!("{e}"));
}

fn refusal(settings: &[&str]) -> String {
    let made = nestar::Simulation::new(nestar_tests::decks::deck(SEDOV, settings));
    made.err().expect("refused").to_string()
}

#[test]
fn cells_that_numbers_cannot_describe_are_refused() {
    for (setting, words) in [
        (
            "domain.right_edge=[1e300, 0.5, 0.5]",
            [
                "domain.right_edge=[1e300",
                "must be between 1e-100 and 1e100",
            ],
        ),
        (
            "domain.right_edge=[0.5, 1e9, 0.5]",
            [
                "along y",
                "more than 1e6 times as wide as along another axis",
            ],
        ),
        (
            "domain.right_edge=[0.5, 0.5, -0.4999999999]",
            ["along x", "more than 1e6 times"],
        ),
    ] {
        let why = refusal(&[setting]);
        for word in words {
            assert!(why.contains(word), "{setting}: no {word:?} in {why}");
        }
    }
    let far = [
        "domain.left_edge=[1e14, -0.5, -0.5]",
        "domain.right_edge=[1.00000000000001e14, 0.5, 0.5]",
    ];
    let why = refusal(&far);
    assert!(why.contains("move the origin into the domain"), "{why}");
}

/// A state with a plane discontinuity that counts the points at which it is evaluated.
struct Counted {
    points: Arc<AtomicUsize>,
    tells: bool,
}

impl InitialState for Counted {
    fn fill(&self, columns: &mut PrimitiveColumns) {
        self.points.fetch_add(columns.len(), Ordering::Relaxed);
        for n in 0..columns.len() {
            let [x, y, z] = columns.point(n);
            let dense = x + 0.3 * y + 0.1 * z < 0.55;
            columns.states[n] = Primitive {
                density: if dense { 1.7 } else { 0.3 },
                velocity: [0.1, 0.2, 0.3],
                pressure: 1.1,
            };
        }
    }

    fn samples(&self) -> usize {
        3
    }

    fn is_uniform(&self, low: [f64; 3], high: [f64; 3]) -> bool {
        let sum = |[x, y, z]: [f64; 3]| x + 0.3 * y + 0.1 * z;
        self.tells && (sum(high) < 0.549 || sum(low) > 0.551)
    }
}

/// A state that tells where it is uniform is evaluated at few points there, and the cells have the same bits.
#[test]
fn uniform_layers_of_a_state_are_evaluated_in_one_row() {
    let run = |tells: bool| {
        let points = Arc::new(AtomicUsize::new(0));
        let state = Counted {
            points: points.clone(),
            tells,
        };
        let mut sim = build(BLAST, &["mesh.max_level=1"]);
        sim.with(|sim| sim.world.insert_resource(InitialGas(Box::new(state))));
        let mut stepper = Stepper::of(sim);
        let state = stepper.state();
        (state, points.load(Ordering::Relaxed))
    };
    let ((all, points), (few, fewer)) = (run(false), run(true));
    assert_eq!(all.difference(&few), None);
    assert!(fewer < points / 2, "{fewer} of {points}");
}
