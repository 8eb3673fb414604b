//! Restarts whose fields have other components than the snapshot: refused by default, allowed by name.

use crate::device_runs::emulation;
use nestar::Simulation;
use nestar::engine::Error;
use nestar::engine::data::{Field, FieldSpec};
use nestar::engine::mesh::NewRows;
use nestar::prelude::*;
use nestar::snapshot::{Snapshot, latest};
use nestar_tests::Scratch;
use nestar_tests::decks::{BLAST, HALF};
use nestar_tests::ranks::{run_on_ranks, run_with};
use nestar_tests::runs::{digests, quietly_into, run_into};
use std::path::Path;

const FIRST: [&str; 3] = [HALF, "time.max_steps=2", "output.final=true"];
const SECOND: [&str; 3] = [HALF, "time.max_steps=4", "output.final=true"];
const TWO: [&str; 2] = [
    "hydro.scalars=[\"smoke\",\"dye\"]",
    "run.added.scalar_smoke=0",
];

/// The values of an array of a run's latest snapshot, level by level, bit for bit.
fn bits(directory: &Path, name: &str) -> Vec<Vec<u64>> {
    let (_, path) = latest(directory).expect("readable").expect("a snapshot");
    let snapshot = Snapshot::open(&path).unwrap_or_else(|e| panic!("{e}"));
    let level = |level| {
        let values = snapshot.read(level, name);
        let values = values.unwrap_or_else(|e| panic!("{e}")).into_f64();
        values.into_iter().map(f64::to_bits).collect()
    };
    (0..snapshot.levels().len() as u8).map(level).collect()
}

/// The gas with its dye.
fn gas(directory: &Path) -> Vec<Vec<Vec<u64>>> {
    let names = ["density", "momentum_x", "momentum_y", "momentum_z"];
    let names = names.into_iter().chain(["energy", "scalar_dye"]);
    names.map(|name| bits(directory, name)).collect()
}

/// A run of two steps in a new directory.
fn begun(scratch: &Scratch, name: &str, settings: &[&str]) -> std::path::PathBuf {
    let directory = scratch.path().join(name);
    let settings = [&FIRST, settings].concat();
    run_into(&directory, false, BLAST, &settings).unwrap_or_else(|e| panic!("{e}"));
    directory
}

fn resumed(directory: &Path, size: usize, settings: &[&str]) -> Result<(), Error> {
    let settings = [&SECOND, settings].concat();
    let options = (0..size).map(|_| quietly_into(directory, true)).collect();
    let mut results = run_on_ranks(BLAST, &settings, options);
    results.swap_remove(0).map(|_| ())
}

fn refusal(directory: &Path, settings: &[&str], parts: &[&str]) {
    let text = match resumed(directory, 1, settings) {
        Err(error @ (Error::Setup(_) | Error::Deck(_) | Error::Snapshot(_))) => error.to_string(),
        other => panic!("{settings:?}: {other:?}"),
    };
    for part in parts {
        assert!(text.contains(part), "{settings:?}: {text}");
    }
}

/// The column `name` of the diagnostics, row by row.
fn column(directory: &Path, name: &str) -> Vec<f64> {
    let text = std::fs::read_to_string(directory.join("diagnostics.csv")).expect("a file");
    let mut rows = text.lines();
    let head: Vec<&str> = rows.next().expect("a head").split(',').collect();
    let n = head.iter().position(|own| *own == name).expect(name);
    let value = |row: &str| row.split(',').nth(n).expect("a value").parse();
    rows.map(|row| value(row).expect("a number")).collect()
}

#[test]
fn adding_a_scalar_on_resume_changes_no_bit_of_the_gas() {
    let scratch = Scratch::new();
    let whole = begun(&scratch, "whole", &[]);
    resumed(&whole, 1, &[]).unwrap_or_else(|e| panic!("{e}"));
    let mut cases = vec![(1, "run.device=cpu"), (3, "run.device=cpu")];
    if emulation() {
        cases.push((2, "run.device=emulated"));
    }
    for (size, device) in cases {
        let name = format!("{size}-{device}");
        let directory = begun(&scratch, &name, &[]);
        let settings = [&TWO[..], &[device]].concat();
        resumed(&directory, size, &settings).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(gas(&directory) == gas(&whole), "{name}");
        let smoke = bits(&directory, "scalar_smoke");
        assert!(smoke.iter().flatten().all(|bits| *bits == 0), "{name}");
        // what the totals have drifted since the start of the run before
        for drift in ["drift_density", "drift_scalar_dye", "drift_scalar_smoke"] {
            let drift = column(&directory, drift);
            assert!(drift.iter().all(|drift| drift.abs() < 1e-13), "{name}");
        }
        assert_eq!(column(&directory, "step"), [3.0, 4.0]);
        // it goes on with the same words, and without them
        for settings in [&settings[..], &[TWO[0]]] {
            resumed(&directory, 1, settings).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
}

#[test]
fn a_scalar_added_by_formula_is_identical_on_all_ranks() {
    let scratch = Scratch::new();
    let formula = "run.added.scalar_smoke=if(x + 2*y > 1, 0.25*scalar_dye, density*z)";
    let settings = [TWO[0], formula];
    let run = |size: usize, settings: &[&str]| {
        let directory = begun(&scratch, &format!("{size}-{}", settings.len()), &[]);
        resumed(&directory, size, settings).unwrap_or_else(|e| panic!("{e}"));
        digests(&directory).pop()
    };
    let alone = run(1, &settings);
    assert_eq!(alone, run(3, &settings), "3 ranks");
    if emulation() {
        let on_device = [&settings[..], &["run.device=emulated"]].concat();
        assert_eq!(alone, run(2, &on_device));
    }
    // a fraction of 1 stays one
    let directory = begun(&scratch, "one", &[]);
    let settings = [TWO[0], "run.added.scalar_smoke=density"];
    resumed(&directory, 2, &settings).unwrap_or_else(|e| panic!("{e}"));
    let values = |name| {
        bits(&directory, name)
            .into_iter()
            .flatten()
            .map(f64::from_bits)
    };
    let mut pairs = values("density").zip(values("scalar_smoke"));
    assert!(pairs.all(|(rho, smoke)| (smoke / rho - 1.0).abs() < 1e-13));
}

/// A magnetic field is added to gas by numbers, the same in cells and on faces. A formula could have a divergence.
#[test]
fn a_uniform_magnetic_field_is_added_to_gas() {
    let scratch = Scratch::new();
    let with_field = |faces_x: &'static str| {
        [
            "mhd.method=ct",
            "hydro.dual_energy=false",
            "run.reset_states=[\"account_mhd\"]",
            "run.added.magnetic_x=0.1",
            "run.added.magnetic_y=0",
            "run.added.magnetic_z=0",
            faces_x,
            "run.added.magnetic_y_face=0",
            "run.added.magnetic_z_face=0",
        ]
    };
    let directory = begun(&scratch, "field", &[]);
    refusal(
        &directory,
        &with_field("run.added.magnetic_x_face=0.1*x"),
        &["run.added.magnetic_x_face", "give a number"],
    );
    refusal(
        &directory,
        &with_field("run.added.magnetic_x_face=0.2"),
        &["differ by up to 1.0e-1 from the field in cells"],
    );
    resumed(&directory, 2, &with_field("run.added.magnetic_x_face=0.1"))
        .unwrap_or_else(|e| panic!("{e}"));
    let divergence = column(&directory, "divergence_error");
    assert!(
        divergence.iter().all(|divergence| *divergence < 1e-13),
        "{divergence:?}"
    );
    let energies = column(&directory, "energy_magnetic");
    assert!(
        energies
            .iter()
            .all(|energy| (0.0049..0.01).contains(energy)),
        "{energies:?}"
    );
}

#[test]
fn scalars_in_another_order_are_restored_and_totalled_by_name() {
    let scratch = Scratch::new();
    let two = "initial.scalars={ dye = \"if(x < 0.5, 1, 0.25)\", smoke = \"0.125\" }";
    let first = ["hydro.scalars=[\"dye\",\"smoke\"]", two];
    let whole = begun(&scratch, "whole", &first);
    resumed(&whole, 1, &first).unwrap_or_else(|e| panic!("{e}"));
    let directory = begun(&scratch, "other", &first);
    // the deck itself has another order, without an override
    let text = BLAST.replace("[\"dye\"]", "[\"smoke\", \"dye\"]");
    let settings = [&SECOND[..], &[two]].concat();
    let error = run_into(&directory, true, &text, &settings).expect_err("refused");
    let why = error.to_string();
    assert!(
        why.contains("hydro.scalars = [\"smoke\", \"dye\"] (was"),
        "{why}"
    );
    assert!(why.contains("--set hydro.scalars="), "{why}");
    let meant = ["hydro.scalars=[\"smoke\",\"dye\"]", two];
    resumed(&directory, 2, &meant).unwrap_or_else(|e| panic!("{e}"));
    assert!(gas(&directory) == gas(&whole));
    assert_eq!(
        bits(&directory, "scalar_smoke"),
        bits(&whole, "scalar_smoke")
    );
    for name in ["drift_scalar_dye", "drift_scalar_smoke", "total_scalar_dye"] {
        assert_eq!(
            column(&directory, name),
            column(&whole, name)[3..],
            "{name}"
        );
    }
}

#[test]
fn scalars_are_dropped_and_renamed() {
    let scratch = Scratch::new();
    let whole = begun(&scratch, "whole", &[]);
    resumed(&whole, 1, &[]).unwrap_or_else(|e| panic!("{e}"));
    let none = ["hydro.scalars=[]", "initial.scalars={}"];
    let directory = begun(&scratch, "dropped", &[]);
    refusal(
        &directory,
        &none,
        &[
            "it holds scalar_dye, which this run does not have",
            "--set 'run.dropped=[\"scalar_dye\"]'",
        ],
    );
    let dropped = [&none[..], &["run.dropped=[\"scalar_dye\"]"]].concat();
    resumed(&directory, 2, &dropped).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(bits(&directory, "energy"), bits(&whole, "energy"));
    assert_eq!(
        column(&directory, "total_energy"),
        column(&whole, "total_energy")[3..]
    );
    resumed(&directory, 1, &dropped).unwrap_or_else(|e| panic!("{e}"));
    let directory = begun(&scratch, "renamed", &[]);
    let renamed = [
        "hydro.scalars=[\"ink\"]",
        "initial.scalars={}",
        "run.dropped=[\"scalar_dye\"]",
        "run.added.scalar_ink=scalar_dye",
    ];
    resumed(&directory, 3, &renamed).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(bits(&directory, "scalar_ink"), bits(&whole, "scalar_dye"));
}

/// A deck that lists the added scalars suffices: no override repeats the list.
#[test]
fn a_deck_that_names_what_it_adds_needs_no_override() {
    let scratch = Scratch::new();
    let directory = begun(&scratch, "run", &[]);
    let text = BLAST.replace("[\"dye\"]", "[\"dye\", \"smoke\"]");
    let text = format!("{text}[run]\nadded = {{ scalar_smoke = 0.1 }}\n");
    let other = format!("{text}[units]\nlength_cgs = 2.0\n");
    let error = run_into(&directory, true, &other, &SECOND).expect_err("refused");
    let why = error.to_string();
    assert!(
        why.contains("units.length_cgs") && !why.contains("scalars"),
        "{why}"
    );
    run_into(&directory, true, &text, &SECOND).unwrap_or_else(|e| panic!("{e}"));
    let total = column(&directory, "total_scalar_smoke");
    assert!(
        total.iter().all(|total| (total - 0.1).abs() < 1e-13),
        "{total:?}"
    );
}

#[test]
fn meaningless_field_changes_are_refused_by_name() {
    let scratch = Scratch::new();
    let directory = begun(&scratch, "run", &[]);
    let two = TWO[0];
    refusal(
        &directory,
        &[two],
        &[
            "it lacks `scalar_smoke` of the field `gas`",
            "--set run.added.scalar_smoke=0",
        ],
    );
    let cases: [(&[&str], &[&str]); 11] = [
        (
            &[two, "run.added.scalar_smok=0"],
            &["scalar_smok", "did you mean `scalar_smoke`?"],
        ),
        (
            &["run.added.scalar_dye=0"],
            &["the snapshot has `scalar_dye`"],
        ),
        (&["run.dropped=[\"density\"]"], &["this run has `density`"]),
        (&["run.dropped=[\"scalar_ink\"]"], &["scalar_ink"]),
        (
            &[
                "hydro.scalars=[]",
                "initial.scalars={}",
                "run.dropped=[\"scalar_dy\"]",
            ],
            &["did you mean \"scalar_dye\"?"],
        ),
        (
            &[two, "run.added.scalar_smoke=densty"],
            &["densty", "did you mean `density`?"],
        ),
        (
            &[two, "run.added.scalar_smoke=1/(x - x)"],
            &["\"1/(x - x)\" is inf in a cell"],
        ),
        (
            &[two, "run.added.scalar_smoke=-7"],
            &[
                "the fraction of smoke is -",
                "between 0 and 1",
                "hydro.quantities",
            ],
        ),
        (
            &[two, "run.added.scalar_smoke=1.001*density"],
            &["the fraction of smoke is 1.00"],
        ),
        (
            &[two, "run.added.scalar_smoke=initial"],
            &["the snapshot holds `density`"],
        ),
        (
            &[two, TWO[1], "hydro.gamma=1.5", "domain.cells=[16,16,24]"],
            &["[16, 16, 24]"],
        ),
    ];
    for (settings, parts) in cases {
        refusal(&directory, settings, parts);
    }
}

#[test]
fn changed_scalar_sets_sum_to_one_or_are_refused() {
    let scratch = Scratch::new();
    let set = "hydro.scalar_sets=[[\"dye\",\"smoke\"]]";
    let half = ["initial.scalars={ dye = \"0.5 + 0.25*x\" }"];
    for single in [&[][..], &["run.precision=single"]] {
        let name = format!("run-{}", single.len());
        let directory = begun(&scratch, &name, &[&half[..], single].concat());
        let with = |added| [&[TWO[0], set, added], single].concat();
        for size in [1, 2] {
            let settings = with("run.added.scalar_smoke=0.5*density");
            let error = resumed(&directory, size, &settings).expect_err("the sum is not 1");
            let why = error.to_string();
            assert!(
                why.contains("smoke = 0.5") && why.contains("sum to 1"),
                "{why}"
            );
        }
        let settings = with("run.added.scalar_smoke=density - scalar_dye");
        resumed(&directory, 1, &settings).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// Two numbers in cells.
struct Ink;
/// A vector on faces.
struct Wind;

impl Field for Ink {
    const NAME: &'static str = "ink";
}
impl Field for Wind {
    const NAME: &'static str = "wind";
}

struct Extras;

impl Plugin for Extras {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_field::<Ink>(FieldSpec {
            in_totals: true,
            ..FieldSpec::cells(&["ink", "water"])
        })?;
        sim.register_field::<Wind>(FieldSpec::faces(["wind_x", "wind_y", "wind_z"]))?;
        let fill = |new: Res<NewRows>, mut ink: Write<Ink>| {
            ink.store(&new.rows, &vec![0.75; new.rows.len() * 1024])
        };
        sim.system_in(Initialise::State, fill);
        Ok(())
    }
}

#[test]
fn fields_of_a_plugin_are_added_and_dropped() {
    let scratch = Scratch::new();
    let whole = begun(&scratch, "whole", &[]);
    resumed(&whole, 1, &[]).unwrap_or_else(|e| panic!("{e}"));
    let with = |sim: Simulation| sim.add(Extras);
    let added = "run.added={ ink = \"initial\", water = 2, wind_x = \"x\", wind_y = \"initial\", wind_z = \"x*z\" }";
    let settings = [HALF, "time.max_steps=2", added];
    let mut digest = None;
    for size in [1, 3] {
        let directory = begun(&scratch, &format!("run-{size}"), &[]);
        let error = run_with(&directory, true, size, &settings[..2], with).expect_err("refused");
        let why = error.to_string();
        assert!(
            why.contains("it lacks `wind_z` of the field `wind`"),
            "{why}"
        );
        // the end is reached: nothing but what was restored is written
        run_with(&directory, true, size, &settings, with).unwrap_or_else(|e| panic!("{e}"));
        let longer = [HALF, "time.max_steps=4", added];
        run_with(&directory, true, size, &longer, with).unwrap_or_else(|e| panic!("{e}"));
        assert!(gas(&directory) == gas(&whole), "{size} ranks");
        let all = |name, value: f64| {
            let found = bits(&directory, name).into_iter().flatten();
            found
                .map(f64::from_bits)
                .all(|found| (found - value).abs() < 1e-14)
        };
        assert!(all("ink", 0.75) && all("water", 2.0) && all("wind_y", 0.0));
        let root: Vec<f64> = bits(&directory, "wind_x")[0]
            .iter()
            .map(|b| f64::from_bits(*b))
            .collect();
        let faces: Vec<f64> = (0..9).map(|i| f64::from(i) / 16.0).collect();
        // the first is one with the last of the domain
        assert_eq!(root[1..9], faces[1..], "faces of the first patch");
        let own = digests(&directory).pop();
        assert_eq!(digest.get_or_insert(own.clone()), &own, "{size} ranks");
        let error =
            run_with(&directory, true, size, &[HALF, "time.max_steps=5"], Ok).expect_err("refused");
        let why = error.to_string();
        let names = "\"ink\", \"water\", \"wind_x\", \"wind_y\", \"wind_z\"";
        let way = format!("run.dropped=[{names}]");
        assert!(why.contains(&way), "{why}");
        let dropped = [HALF, "time.max_steps=5", &way];
        run_with(&directory, true, size, &dropped, Ok).unwrap_or_else(|e| panic!("{e}"));
    }
}
