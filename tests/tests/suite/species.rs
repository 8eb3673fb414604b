//! Passive scalars: bounds of each scalar, and sets of mass fractions.

use crate::device_runs::places;
use nestar::prelude::*;
use nestar_tests::decks::deck;
use nestar_tests::norms::totals;
use nestar_tests::ranks::{joined, on_ranks};
use nestar_tests::{State, Stepper};

/// A ball and layers that are carried obliquely by turning gas of uneven density; `rest` is what the others leave.
const SPECIES: &str = r#"
scenario = "formula"
[initial]
density    = "1 + 0.8*sin(2*pi*(x+y))"
pressure   = "1"
velocity_x = "1 + sin(2*pi*y)"
velocity_y = "0.7 + sin(2*pi*z)"
velocity_z = "-0.4 + sin(2*pi*x)"
[initial.scalars]
ball  = "if((x-0.5)^2 + (y-0.5)^2 + (z-0.5)^2 < 0.06, 1, 0)"
layer = "if((x-0.5)^2 + (y-0.5)^2 + (z-0.5)^2 < 0.06, 0, if(x + z < 0.9, 0.3, 0.01*y))"
dye   = "if((x-0.3)^2 + (y-0.5)^2 + (z-0.6)^2 < 0.06, 1, 0)"
rest  = "if((x-0.5)^2 + (y-0.5)^2 + (z-0.5)^2 < 0.06, 0, 1 - if(x + z < 0.9, 0.3, 0.01*y))"
[domain]
cells = [16, 16, 16]
[time]
end = 10.0
[mesh]
max_level = 1
regrid_interval = 2
refine = [{ criterion = "gradient", field = "density", threshold = 0.3 }]
[hydro]
scalars = ["ball", "layer", "dye", "rest"]
scalar_sets = [["ball", "rest", "layer"]]
"#;

/// How far shares leave [0, 1], and how far those of the set are from 1 in sum.
fn faults(state: &State) -> [f64; 2] {
    let mut found = [0.0f64; 2];
    state.each_leaf_cell(|_, _, _, u| {
        let shares = [5, 6, 7, 8].map(|c| u[c] / u[0]);
        let beyond = shares.map(|x| (-x).max(x - 1.0));
        found[0] = beyond.into_iter().fold(found[0], f64::max);
        found[1] = found[1].max((shares[0] + shares[1] + shares[3] - 1.0).abs());
    });
    found
}

/// The worst [`faults`] of some steps, and the change of what the domain holds.
fn worst(settings: &[&str], steps: usize) -> ([f64; 2], f64) {
    let mut stepper = Stepper::new(SPECIES, settings);
    let before = stepper.0.with(|sim| totals(sim));
    let mut found = [0.0f64; 2];
    for _ in 0..steps / 2 {
        let [beyond, sum] = faults(&stepper.steps(2).state());
        found = [found[0].max(beyond), found[1].max(sum)];
    }
    let after = stepper.0.with(|sim| totals(sim));
    let change = before.iter().zip(after).map(|(a, b)| (a - b).abs());
    (found, change.fold(0.0, f64::max))
}

/// Shares left [0, 1] by 4e-3 (7e-3 with the scheme of van Leer), and their sum was off by up to 7e-2.
#[test]
fn mass_fractions_in_oblique_flows_keep_their_bounds_and_sum() {
    for scheme in ["hydro.scheme=muscl-hancock", "hydro.scheme=vl"] {
        for method in ["hydro.reconstruction=plm", "hydro.reconstruction=ppm"] {
            let (faults, change) = worst(&[scheme, method], 24);
            let sound = faults.into_iter().all(|fault| fault < 1e-13) && change < 1e-13;
            assert!(sound, "{scheme} {method}: {faults:?}, totals {change:e}");
        }
    }
}

/// The same in gas with strong shocks, whose cells are corrected.
#[test]
fn mass_fractions_in_strong_shocks_keep_their_bounds_and_sum() {
    let cold = [
        "initial.pressure=if((x-0.2)^2+(y-0.3)^2+(z-0.4)^2 < 0.02, 100, 1e-3)",
        "initial.density=if(sin(9*x+7*y)*cos(8*z) > 0.3, 50, 0.1)",
        "hydro.limiter=van-leer",
    ];
    for scheme in ["hydro.scheme=muscl-hancock", "hydro.scheme=vl"] {
        let settings = [&cold[..], &[scheme]].concat();
        let (faults, _) = worst(&settings, 12);
        assert!(faults.iter().all(|f| *f < 1e-12), "{scheme}: {faults:?}");
        let single = [&settings[..], &["run.precision=single"]].concat();
        let (faults, _) = worst(&single, 12);
        assert!(faults.iter().all(|f| *f < 1e-5), "single: {faults:?}");
    }
}

#[test]
fn scalar_sets_are_identical_on_ranks_and_devices() {
    // ranks in one precision, devices in the other
    for (precision, place) in [
        ("run.precision=double", places(&[3], &[])),
        ("run.precision=single", places(&[], &[2])),
    ] {
        let run = |size: usize, device: &str| {
            let settings = [precision, "hydro.scheme=vl", device];
            joined(on_ranks(size, SPECIES, &settings, |stepper| {
                stepper.steps(3).state()
            }))
        };
        let alone = run(1, "run.device=cpu");
        for (device, size) in place {
            assert_eq!(alone.difference(&run(size, device)), None, "{device}");
        }
    }
}

#[test]
fn invalid_scalar_sets_are_refused_by_name() {
    let refused = |settings: &[&str], parts: &[&str]| {
        let text = Simulation::new(deck(SPECIES, settings))
            .and_then(|mut sim| sim.with(|sim| sim.finish_setup().and_then(|()| sim.initialise())))
            .map_or_else(|error| error.to_string(), |_| "nothing is wrong".into());
        for part in parts {
            assert!(text.contains(part), "{settings:?}: {text}");
        }
    };
    refused(
        &["hydro.scalar_sets=[[\"ball\", \"smoke\"]]"],
        &["\"smoke\" is not in"],
    );
    refused(
        &["hydro.scalar_sets=[[\"ball\", \"rest\"], [\"dye\", \"ball\"]]"],
        &["\"ball\" already belongs to a set"],
    );
    refused(&["hydro.scalar_sets=[[\"ball\"]]"], &["at least two"]);
    refused(
        &["initial.scalars.layer=0.2"],
        &["(x, y, z) =", "layer = 0.2", "sum to 1"],
    );
    for value in ["-7", "5.0", "-1e-3"] {
        let dye = format!("initial.scalars.dye={value}");
        refused(
            &[&dye],
            &["(x, y, z) =", "`initial.scalars.dye` is", "0 and 1"],
        );
    }
    refused(&["hydro.quantities=[\"smoke\"]"], &["\"smoke\" is not in"]);
    refused(&["hydro.quantities=[\"ball\"]"], &["belongs to a set"]);
    let inflow = [
        "domain.boundary={ x = [\"inflow\", \"outflow\"], y = \"periodic\", z = \"periodic\" }",
        "inflow.x_lower={ density = \"1\", pressure = \"1\", velocity_x = \"1\", scalars = { rest = \"0.9\" } }",
    ];
    refused(
        &inflow,
        &["inflow.x_lower", "rest = 0.9", "in sum 0.9", "sum to 1"],
    );
    let much = inflow[1].replace("rest = \"0.9\"", "rest = \"1\", dye = \"1.2\"");
    refused(
        &[inflow[0], &much],
        &["`inflow.x_lower.scalars.dye` is 1.2", "0 and 1"],
    );
}
