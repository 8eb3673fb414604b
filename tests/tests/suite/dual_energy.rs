//! The dual energy formalism: cold gas that moves fast keeps its temperature on all ranks and devices.

use crate::device_runs::emulation;
use nestar_tests::ranks::{joined, on_ranks};
use nestar_tests::runs::{digests, run_into};
use nestar_tests::{Scratch, State, Stepper};

const COLD: &str = include_str!("../../../scenarios/cold-patch.toml");
const SMALL: [&str; 3] = [
    "domain.cells=[16,16,8]",
    "domain.right_edge=[1.0,1.0,0.5]",
    "initial.density=0.55 - 0.45*tanh((sqrt((x-0.5)^2 + (y-0.5)^2) - 0.22)/0.05)",
];

/// Largest distance of the pressure from 1, and the least temperature, by the internal energy or by the total one.
fn extremes(state: &State, dual: bool) -> [f64; 2] {
    let mut found = [0.0f64, f64::MAX];
    state.each_leaf_cell(|_, _, _, u| {
        let kinetic = 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0];
        let pressure = (2.0 / 3.0) * if dual { u[5] } else { u[4] - kinetic };
        found = [
            found[0].max((pressure - 1.0).abs()),
            found[1].min(pressure / u[0]),
        ];
    });
    found
}

#[test]
fn a_cold_patch_keeps_its_temperature_across_levels() {
    for precision in ["run.precision=single", "run.precision=double"] {
        let settings = [&SMALL[..], &[precision]].concat();
        let state = Stepper::new(COLD, &settings).finish().state();
        let [pressure, least] = extremes(&state, true);
        println!("{precision}: pressure off by {pressure:e}, temperature {least}");
        assert!(pressure < 0.01, "{precision}: {pressure}");
        assert!((least - 1.0).abs() < 0.03, "{precision}: {least}");
    }
    // without it the pressure is soon far off
    let settings = [
        &SMALL[..],
        &["hydro.dual_energy=false", "run.precision=single"],
    ]
    .concat();
    let mut without = Stepper::new(COLD, &settings);
    let heated = extremes(&without.steps(6).state(), false);
    println!("without: {heated:?}");
    assert!(heated[0] > 5e-3, "{heated:?}");
}

/// With sources, scalars, an inflow and a wall.
const EVERYTHING: [&str; 10] = [
    "hydro.scalars=[\"dye\",\"rest\"]",
    "hydro.scalar_sets=[[\"dye\",\"rest\"]]",
    "initial.scalars={ dye = \"if(x < 0.5, 1, 0)\", rest = \"if(x < 0.5, 0, 1)\" }",
    "domain.boundary={ x = [\"inflow\", \"outflow\"], y = \"reflecting\", z = [\"diode\", \"outflow\"] }",
    "inflow.x_lower={ density = \"1\", pressure = \"1\", velocity_x = \"v\", scalars = { rest = \"1\" } }",
    "sources.acceleration_y=-40",
    "sources.heating=0.1*density*temperature",
    "hydro.reconstruction=ppm",
    "mesh.regrid_interval=2",
    "time.end=1.0",
];

#[test]
fn cold_gas_is_identical_on_ranks_and_devices() {
    let cases = [
        ("run.precision=double", "muscl-hancock", "plm"),
        ("run.precision=single", "muscl-hancock", "ppm"),
        ("run.precision=single", "rk2", "plm"),
    ];
    for (precision, scheme, method) in cases {
        let scheme = format!("hydro.scheme={scheme}");
        let method = format!("hydro.reconstruction={method}");
        let run = |size: usize, device: &str| {
            let chosen = [precision, &scheme, &method, device];
            let settings = [&SMALL[..], &EVERYTHING, &chosen].concat();
            joined(on_ranks(size, COLD, &settings, |stepper| {
                stepper.steps(3).state()
            }))
        };
        let alone = run(1, "run.device=cpu");
        assert_eq!(alone.difference(&run(3, "run.device=cpu")), None);
        if emulation() {
            assert_eq!(alone.difference(&run(1, "run.device=emulated")), None);
            assert_eq!(alone.difference(&run(2, "run.device=emulated")), None);
        }
    }
}

/// A warm clump that collapses in cold, fast gas: gravity changes both energies correctly.
#[test]
fn falling_cold_gas_is_identical_on_devices() {
    if !emulation() {
        return;
    }
    for force in ["gravity.force=gradient", "gravity.force=stress"] {
        let run = |device: &str| {
            let settings = ["gravity.constant=300", force, "time.end=1.0", device];
            let settings = [&SMALL[..], &settings].concat();
            Stepper::new(COLD, &settings).steps(2).state()
        };
        let [cpu, emulated] = ["cpu", "emulated"].map(|d| run(&format!("run.device={d}")));
        assert_eq!(cpu.difference(&emulated), None, "{force}");
    }
}

/// Heating by a tenth of the internal energy of accelerated gas at Mach 300: less than one part in a thousand is lost.
#[test]
fn sources_heat_cold_gas() {
    let settings = [
        &SMALL[..],
        &[
            "run.precision=double",
            "initial.density=1",
            "sources.heating=1.5*0.1*v",
            "sources.acceleration_y=7*v",
        ],
    ]
    .concat();
    let state = Stepper::new(COLD, &settings).finish().state();
    let [pressure, least] = extremes(&state, true);
    assert!(
        (pressure - 0.1).abs() < 1e-4 && (least - 1.1).abs() < 1e-4,
        "{pressure} {least}"
    );
}

#[test]
fn a_resumed_run_restores_its_internal_energy() {
    let scratch = Scratch::new();
    let run = |name: &str, resume: bool, more: &[&str]| {
        let settings = [&SMALL[..], &["output.final=true", "time.end=1.0"], more].concat();
        let directory = scratch.path().join(name);
        run_into(&directory, resume, COLD, &settings).unwrap_or_else(|e| panic!("{e}"));
        digests(&directory).pop().expect("a snapshot").1
    };
    let whole = run("whole", false, &["time.max_steps=6"]);
    run("parts", false, &["time.max_steps=3"]);
    assert_eq!(run("parts", true, &["time.max_steps=6"]), whole);
    // from a run without it
    let without = "hydro.dual_energy=false";
    run("added", false, &["time.max_steps=1", without]);
    let kinetic = "0.5*(momentum_x^2 + momentum_y^2 + momentum_z^2)/density";
    let added = format!("run.added.internal_energy=energy - {kinetic}");
    run("added", true, &["time.max_steps=2", &added]);
}

#[test]
fn dual_energy_is_refused_with_the_van_leer_scheme() {
    let text = match nestar::Simulation::new(nestar_tests::decks::deck(COLD, &["hydro.scheme=vl"]))
    {
        Err(error) => error.to_string(),
        Ok(_) => "nothing is wrong".into(),
    };
    assert!(
        text.contains("dual_energy") && text.contains("\"vl\""),
        "{text}"
    );
}
