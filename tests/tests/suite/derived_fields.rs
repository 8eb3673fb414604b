//! Derived fields in snapshots: they equal those of pictures on any ranks and devices; digests and restarts ignore them.

use super::device_runs::emulation;
use nestar::engine::data::DerivedFields;
use nestar::prelude::*;
use nestar::snapshot::{LevelHeader, Snapshot, latest, summary};
use nestar_tests::Scratch;
use nestar_tests::decks::deck;
use nestar_tests::ranks::run_on_ranks_of;
use nestar_tests::runs::{digests, quietly_into};
use std::path::Path;

const CLOUDS: &str = include_str!("../../../scenarios/koyama-inutsuka.toml");

/// A snapshot at the start and at every step, over two levels.
const SMALL: [&str; 9] = [
    "domain.cells=[32,16,8]",
    "mesh.max_level=1",
    "mesh.refine=[{criterion='formula', when='x < 6'}]",
    "output.interval=0",
    "output.steps=1",
    "output.initial=true",
    "output.final=true",
    "output.derived=[]",
    "initial.pressure='2*kelvin*if(x < 6, 100, 3000)'",
];
const ASKED: &str = "output.derived=['temperature_k','cooling_time','entropy','eastward']";

/// Where the cell is, and a little of its density.
#[device]
fn eastward<R: Real>(density: R, at: &Place<R>) -> R {
    at.centre[0] + 100.0 * R::from_i32(at.level) + 0.0 * density
}

/// Registers a derived input that depends on the position.
#[derive(Clone)]
struct East;

impl Plugin for East {
    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.derived::<eastward>("eastward", "length", GasFrame::Grid, &[], &[])
    }

    fn build(&self, _: &mut Engine) -> Result<(), Error> {
        Ok(())
    }
}

/// Runs the given number of steps on the given number of ranks.
fn run(size: usize, directory: &Path, resume: bool, settings: &[&str]) {
    let app = App::default().always(East);
    let settings = [&SMALL[..], settings].concat();
    let build = |ranks| app.simulation_on(deck(CLOUDS, &settings), ranks);
    let options = (0..size).map(|_| quietly_into(directory, resume));
    for result in run_on_ranks_of(build, options.collect()) {
        result.unwrap_or_else(|e| panic!("{e}"));
    }
}

fn last(directory: &Path) -> Snapshot {
    let (_, path) = latest(directory).expect("readable").expect("a snapshot");
    Snapshot::open(&path).unwrap_or_else(|e| panic!("{e}"))
}

/// Values of an array of a level.
fn values(snapshot: &Snapshot, level: &LevelHeader, name: &str) -> Vec<f64> {
    let read = snapshot.read(level.level, name);
    read.unwrap_or_else(|e| panic!("{e}")).to_f64()
}

/// Compares the arrays of a snapshot with the derived fields that pictures compute from its state.
fn check_values(snapshot: &Snapshot, single: bool) {
    let names = [
        "density",
        "momentum_x",
        "momentum_y",
        "momentum_z",
        "energy",
    ];
    let mut sim = nestar_tests::build(CLOUDS, &SMALL);
    let known = sim.engine().world.resource::<DerivedFields>();
    let asked = ["temperature_k", "cooling_time", "entropy"].map(String::from);
    for level in snapshot.levels() {
        let state = names.map(|name| values(snapshot, level, name));
        for (of, derived) in known.named(&asked) {
            assert_eq!(of, "gas");
            let found = values(snapshot, level, &derived.name);
            for (n, found) in found.iter().enumerate() {
                let cell: Vec<f64> = state.iter().map(|component| component[n]).collect();
                let drawn = derived.number.of_state(&cell);
                let drawn = if single {
                    f64::from(drawn as f32)
                } else {
                    drawn
                };
                let name = &derived.name;
                assert_eq!(found.to_bits(), drawn.to_bits(), "{name}: {found}, {drawn}");
            }
        }
        let origins = values(snapshot, level, "origin");
        for (n, found) in values(snapshot, level, "eastward").iter().enumerate() {
            let cell = origins[3 * (n / 512)] + (n % 8) as f64 + 0.5;
            let centre = cell * level.cell_width[0] + 100.0 * f64::from(level.level);
            assert!((found - centre).abs() < 1e-4, "{found}, {centre}");
        }
    }
}

#[test]
fn derived_fields_in_snapshots_are_identical_on_ranks_and_devices() {
    for precision in ["run.precision=double", "run.precision=single"] {
        let settings = [ASKED, precision, "time.max_steps=2"];
        let alone = Scratch::new();
        run(1, &alone.run(), false, &settings);
        let snapshot = last(&alone.run());
        assert_eq!(snapshot.levels().count(), 2, "nothing is refined");
        check_values(&snapshot, precision.ends_with("single"));
        let mut others = vec![(3, "run.device=cpu")];
        if emulation() {
            others.push((2, "run.device=emulated"));
        }
        for (ranks, device) in others {
            let other = Scratch::new();
            run(
                ranks,
                &other.run(),
                false,
                &[&settings[..], &[device]].concat(),
            );
            assert_eq!(digests(&other.run()), digests(&alone.run()));
            let other = last(&other.run());
            for (level, name) in
                (0..2).flat_map(|n| snapshot.fields(n).into_iter().map(move |f| (n, &f.name)))
            {
                let [one, two] = [&snapshot, &other].map(|s| s.read(level, name).expect("there"));
                assert!(
                    one.bytes() == two.bytes(),
                    "{name}: {ranks} ranks, {device}"
                );
            }
        }
    }
}

#[test]
fn digests_and_restarts_ignore_derived_fields() {
    let (with, without) = (Scratch::new(), Scratch::new());
    run(1, &with.run(), false, &[ASKED, "time.max_steps=1"]);
    run(1, &without.run(), false, &["time.max_steps=3"]);
    // goes on without, then with other ones
    run(1, &with.run(), true, &["time.max_steps=2"]);
    let mach = "output.derived=['mach','velocity_x']";
    run(2, &with.run(), true, &[mach, "time.max_steps=3"]);
    assert_eq!(digests(&with.run()), digests(&without.run()));
    let snapshot = last(&with.run());
    let fields = snapshot.fields(1).into_iter();
    let derived: Vec<_> = fields.filter(|field| field.derived).collect();
    let names: Vec<&str> = derived.iter().map(|field| &*field.name).collect();
    assert_eq!(names, ["mach", "velocity_x"]);
    let text = summary(&snapshot).unwrap_or_else(|e| panic!("{e}"));
    let lines = || text.lines().filter(|line| line.ends_with(", derived"));
    assert!(lines().any(|line| line.starts_with("velocity_x")), "{text}");
    assert_eq!(lines().count(), 2, "{text}");
}

#[test]
fn derived_fields_have_units() {
    let scratch = Scratch::new();
    run(1, &scratch.run(), false, &[ASKED, "time.max_steps=1"]);
    let snapshot = last(&scratch.run());
    let header = |name: &str| {
        let mut fields = snapshot.fields(0).into_iter();
        fields
            .find(|field| field.name == name)
            .expect("it is there")
    };
    let (density, energy) = (header("density"), header("energy"));
    let entropy = energy.cgs_factor / density.cgs_factor.powf(5.0 / 3.0);
    for (name, units, factor, cgs_units) in [
        ("temperature_k", "K", 1.0, "K"),
        ("cooling_time", "time", 3.155_76e13, "s"),
        ("eastward", "length", 3.085_677_581_491_367_3e18, "cm"),
        (
            "entropy",
            &*header("entropy").units,
            entropy,
            &*header("entropy").cgs_units,
        ),
    ] {
        let found = header(name);
        assert!(found.derived && found.is_per_cell(), "{name}");
        assert_eq!((&*found.units, &*found.cgs_units), (units, cgs_units));
        assert!((found.cgs_factor / factor - 1.0).abs() < 1e-12, "{found:?}");
    }
    assert!(!density.derived);
    assert_eq!(
        [&*density.cgs_units, &*energy.cgs_units],
        ["g/cm**3", "g/(cm*s**2)"]
    );
    assert_eq!(
        header("entropy").long_name,
        "pressure over density to the power gamma"
    );
}

#[test]
fn unknown_derived_fields_are_refused_with_their_line() {
    let refused = |names: &str| {
        let own = "derived   = [\"temperature_k\", \"cooling_time\"]";
        let text = CLOUDS.replace(own, &format!("derived = {names}"));
        let mut sim = nestar_tests::build(&text, &[]);
        sim.engine()
            .finish_setup()
            .expect_err("refused")
            .to_string()
    };
    let why = refused("[\"mach\", \"temperatur_k\"]");
    assert!(why.contains("test:45:"), "{why}");
    assert!(
        why.contains("`output.derived[1]` must be one of \"cooling_time\", \"entropy\", \"mach\""),
        "{why}"
    );
    assert!(why.contains("did you mean \"temperature_k\""), "{why}");
    let why = refused("[\"mach\", \"mach\"]");
    assert!(why.contains("\"mach\" is listed twice"), "{why}");
    let why = refused("[\"density\"]");
    assert!(
        why.contains("snapshots always contain \"density\""),
        "{why}"
    );
}
