//! Every choice of the table `[hydro]`, in both precisions, with every kind of boundary.

use nestar::App;
use nestar::engine::step::Remarks;
use nestar_tests::Stepper;
use nestar_tests::choices;
use nestar_tests::decks::{BLAST, deck};
use std::collections::BTreeMap;

/// A small blast on an adaptive mesh, near faces of every kind.
const ALL_FACES: &str = r#"
scenario = "formula"
[initial]
density    = "1 + 0.1*cos(2*pi*z)"
pressure   = "if((x-0.6)^2 + (y-0.3)^2 + (z-0.5)^2 < 0.03, 5, 0.5)"
velocity_x = "0.4"
scalars    = { dye = "x" }
[inflow.x_lower]
density    = "1 + 0.1*cos(2*pi*z)"
pressure   = "0.5 + 0.1*sin(20*t)"
velocity_x = "0.4"
scalars    = { dye = "0.5" }
[domain]
cells    = [16, 16, 8]
boundary = { x = ["inflow", "diode"], y = ["reflecting", "outflow"], z = "periodic" }
[time]
end = 1.0
[mesh]
max_level = 1
regrid_interval = 1
flag_buffer = 1
refine = [{ criterion = "gradient", field = "pressure", threshold = 0.5 }]
[hydro]
scalars = ["dye"]
"#;

/// Runs all choices in one precision; returns what differs between them, by a few values.
fn run_all(precision: &str) -> BTreeMap<String, Vec<u64>> {
    let precision = format!("run.precision={precision}");
    let run = |method| {
        let choice = choices::settings(&method);
        let mut settings: Vec<&str> = choice.iter().map(String::as_str).collect();
        settings.push(&precision);
        let state = Stepper::new(ALL_FACES, &settings).steps(2).state();
        state
            .physical()
            .unwrap_or_else(|e| panic!("{settings:?}: {e}"));
        assert!(state.counts()[1] > 0);
        let mut values = Vec::new();
        state.each_leaf_cell(|_, _, _, u| values.push(u[0].to_bits()));
        (choice.join(" "), values)
    };
    choices::all().into_iter().map(run).collect()
}

/// All choices run, stay physical, and are choices: no two give the same bits.
fn all_differ(precision: &str) {
    let found: Vec<(String, Vec<u64>)> = run_all(precision).into_iter().collect();
    for (n, (name, values)) in found.iter().enumerate() {
        for (other, theirs) in &found[..n] {
            assert_ne!(values, theirs, "{name} and {other} give the same bits");
        }
    }
}

/// A reconstruction without half steps is refused with schemes that need them.
#[test]
fn weno_needs_stages() {
    for scheme in ["muscl-hancock", "vl", "ctu"] {
        let scheme = format!("hydro.scheme={scheme}");
        let settings = [&scheme, "hydro.reconstruction=weno-z"];
        let refused = App::default().simulation(deck(ALL_FACES, &settings));
        let error = refused.map(|_| ()).expect_err("refused").to_string();
        assert!(error.contains("hydro.reconstruction"), "{error}");
    }
}

#[test]
fn flattening_is_refused_with_the_van_leer_scheme() {
    let settings = ["hydro.scheme=vl", "hydro.flattening=true"];
    let refused = App::default().simulation(deck(ALL_FACES, &settings));
    let error = refused.map(|_| ()).expect_err("refused").to_string();
    assert!(error.contains("hydro.flattening"), "{error}");
    let mut plain = Stepper::new(ALL_FACES, &[]);
    let mut flattened = Stepper::new(ALL_FACES, &["hydro.flattening=true"]);
    let difference = plain
        .steps(2)
        .state()
        .difference(&flattened.steps(2).state());
    assert!(difference.is_some(), "flattening changes nothing");
}

/// The corrections of corner transport upwind know the gas alone.
#[test]
fn dual_energy_and_magnetic_fields_are_refused_with_corner_transport_upwind() {
    for (setting, key) in [
        ("hydro.dual_energy=true", "hydro.dual_energy"),
        ("mhd.method=glm", "hydro.scheme"),
    ] {
        let refused = App::default().simulation(deck(ALL_FACES, &["hydro.scheme=ctu", setting]));
        let error = refused.map(|_| ()).expect_err("refused").to_string();
        assert!(
            error.contains(key) && error.contains("correction of states"),
            "{error}"
        );
    }
}

/// Choices that make no sense together are refused with the key.
#[test]
fn characteristic_variables_need_slopes() {
    for reconstruction in ["constant", "ppm"] {
        let settings = [
            format!("hydro.reconstruction={reconstruction}"),
            "hydro.variables=characteristic".to_string(),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let refused = App::default().simulation(deck(ALL_FACES, &settings));
        let error = refused.map(|_| ()).expect_err("refused").to_string();
        assert!(error.contains("hydro.variables"), "{error}");
    }
}

#[test]
fn all_choices_run_in_double_precision() {
    all_differ("double");
}

#[test]
fn all_choices_run_in_single_precision() {
    all_differ("single");
}

/// Single precision follows double precision.
#[test]
fn the_precisions_agree() {
    let run = |precision| Stepper::new(ALL_FACES, &[precision]).steps(4).state();
    let (single, double) = (run("run.precision=single"), run("run.precision=double"));
    assert_eq!(single.counts(), double.counts());
    let mut most = 0.0f64;
    for (level, patches) in double.levels.iter().enumerate() {
        for (index, patch) in patches {
            for (a, b) in patch.values.iter().zip(&single.levels[level][index].values) {
                most = most.max((a - b).abs());
            }
        }
    }
    assert!(most > 0.0 && most < 1e-4, "largest difference {most:e}");
}

/// What an inflow face brings in is what its formulas say.
#[test]
fn inflow_has_the_state_of_the_deck() {
    let text = r#"
        scenario = "formula"
        [initial]
        density = "1"
        pressure = "1"
        velocity_y = "2"
        [inflow.y_lower]
        density = "1 + 0.5*sin(10*t)^2"
        pressure = "1"
        velocity_y = "2"
        [domain]
        cells = [8, 32, 8]
        right_edge = [0.25, 1.0, 0.25]
        boundary = { x = "periodic", y = ["inflow", "outflow"], z = "periodic" }
        [time]
        end = 0.4
        [mesh]
        [hydro]
    "#;
    let mut stepper = Stepper::new(text, &[]);
    let state = stepper.finish().state();
    let t = stepper.time();
    let mut most = 0.0f64;
    state.each_leaf_cell(|_, [_, y, _], _, u| {
        // density is carried along at the uniform velocity and pressure
        let entered = t - y / 2.0;
        let exact = if entered > 0.0 {
            1.0 + 0.5 * (10.0 * entered).sin().powi(2)
        } else {
            1.0
        };
        most = most.max((u[0] - exact).abs());
    });
    assert!(most < 0.05, "largest error {most}");
}

/// Mirrors keep the mass, outflow loses it, and a diode keeps out what outflow lets in.
#[test]
fn boundaries_transmit_and_reflect_as_specified() {
    let text = r#"
        scenario = "formula"
        [initial]
        density = "1"
        pressure = "1"
        velocity_x = "0.5"
        [domain]
        cells = [32, 8, 8]
        right_edge = [1.0, 0.25, 0.25]
        [time]
        end = 0.05
        [mesh]
        [hydro]
    "#;
    let mass = |kind: &str| {
        let boundary =
            format!(r#"domain.boundary={{ x = "{kind}", y = "periodic", z = "periodic" }}"#);
        let mut stepper = Stepper::new(text, &[&boundary]);
        stepper.finish();
        stepper.0.with(|s| nestar_tests::norms::totals(s)[0]) / 0.0625
    };
    assert!((mass("reflecting") - 1.0).abs() < 1e-14);
    assert!(
        (mass("outflow") - 1.0).abs() < 1e-14,
        "as much enters as leaves: {}",
        mass("outflow")
    );
    let diode = mass("diode");
    assert!(
        diode < 0.98 && diode > 0.9,
        "gas leaves to the right and none enters: {diode}"
    );
}

#[test]
fn limiters_without_effect_are_told() {
    let remarks = |settings: &[&str]| {
        let mut run = Stepper::new(BLAST, settings);
        run.0.engine().world.resource::<Remarks>().0.join("\n")
    };
    let of_limiter = "hydro.limiter has no effect";
    let of_theta = "hydro.minmod_theta has no effect";
    for (settings, told, silent) in [
        (
            &["hydro.reconstruction=constant", "hydro.limiter=minmod"][..],
            of_limiter,
            of_theta,
        ),
        (
            &["hydro.reconstruction=ppm", "hydro.limiter=minmod"],
            "hydro.reconstruction = \"ppm\" with hydro.scheme = \"muscl-hancock\"",
            of_theta,
        ),
        (
            &["hydro.limiter=van-leer", "hydro.minmod_theta=1.2"],
            of_theta,
            of_limiter,
        ),
        (
            &["hydro.limiter=minmod", "hydro.minmod_theta=1.2"],
            "",
            "no effect",
        ),
        (
            &[
                "hydro.reconstruction=ppm",
                "hydro.scheme=vl",
                "hydro.limiter=van-leer",
            ],
            "",
            "no effect",
        ),
    ] {
        let found = remarks(settings);
        assert!(
            found.contains(told) && !found.contains(silent),
            "{settings:?}: {found}"
        );
    }
}
