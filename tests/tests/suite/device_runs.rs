//! Whole runs on a device against the CPU's, by the digests of their snapshots. The device is the emulated one: the kernels
//! themselves, compiled by the C++ compiler.

use nestar::engine::device::ComputeDevice;
use nestar::engine::run::{RunOptions, Silent};
use nestar::prelude::*;
use nestar_deck::Deck;
use nestar_tests::decks::{BLAST, HALF, SYMMETRIC};
use nestar_tests::devices;
use nestar_tests::runs::{digests, run_into};
use nestar_tests::{Scratch, build};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Whether kernels can be compiled here.
pub fn emulation() -> bool {
    let opened = devices::open();
    if let Err(why) = &opened {
        println!("skipped: {why}");
    }
    opened.is_ok()
}

/// Devices and numbers of ranks that are compared with one rank on the CPU; those of the CPU first.
pub fn places(cpu: &[usize], device: &[usize]) -> Vec<(&'static str, usize)> {
    let device = if emulation() { device } else { &[] };
    let on = |device, sizes: &[usize]| sizes.iter().map(move |&n| (device, n)).collect::<Vec<_>>();
    [on("run.device=cpu", cpu), on(devices::SETTING, device)].concat()
}

/// Snapshots at the start, at every second root step and at the end.
const OUTPUT: [&str; 3] = ["output.initial=true", "output.final=true", "output.steps=2"];

fn with<'a>(settings: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [&OUTPUT[..], &[HALF], settings, more].concat()
}

/// The last entry of a column of a run's diagnostics.
fn last(directory: &Path, column: &str) -> String {
    let table = std::fs::read_to_string(directory.join("diagnostics.csv"));
    let table = table.expect("the run has diagnostics");
    let (names, values) = (table.lines().next(), table.lines().last());
    let mut pairs = names
        .unwrap_or("")
        .split(',')
        .zip(values.unwrap_or("").split(','));
    let found = pairs.find(|(name, _)| *name == column);
    found.expect("there is such a column").1.to_owned()
}

/// Compares the snapshots of `text` on both kinds of device; returns `true` if no cell was corrected or no step retried.
pub fn agree(text: &str, settings: &[&str]) -> bool {
    if !emulation() {
        return false;
    }
    let [cpu, device] = ["run.device=cpu", "run.device=emulated"].map(|device| {
        let scratch = Scratch::new();
        run_into(&scratch.run(), false, text, &with(settings, &[device]))
            .unwrap_or_else(|e| panic!("{device}: {e}"));
        let counts = ["first_order_cells", "retried_steps"].map(|name| last(&scratch.run(), name));
        (digests(&scratch.run()), counts)
    });
    assert!(cpu.0.len() > 2, "{cpu:?}");
    assert_eq!(cpu, device, "{settings:?}");
    cpu.1.iter().any(|count| count == "0")
}

#[test]
fn an_adaptive_blast_with_a_scalar_is_identical_on_the_device() {
    agree(BLAST, &["time.max_steps=3"]);
    agree(
        BLAST,
        &[
            "time.max_steps=3",
            "run.precision=single",
            "time.levels=halved",
        ],
    );
}

#[test]
fn corrected_states_are_identical_on_the_device() {
    agree(BLAST, &["time.max_steps=3", "hydro.scheme=ctu"]);
}

#[test]
fn runge_kutta_stages_are_identical_on_the_device() {
    agree(BLAST, &["time.max_steps=3", "hydro.scheme=rk2"]);
    agree(
        BLAST,
        &[
            "time.max_steps=3",
            "hydro.scheme=rk3",
            "hydro.reconstruction=weno-z",
            "run.precision=single",
            "time.levels=halved",
        ],
    );
}

#[test]
fn walls_and_odd_domains_are_identical_on_the_device() {
    let odd = [
        "time.max_steps=4",
        "domain.cells=[8, 24, 16]",
        "domain.right_edge=[0.5, 1.5, 0.5]",
        "domain.boundary={ x = [\"reflecting\", \"outflow\"], y = \"diode\", z = \"periodic\" }",
    ];
    agree(SYMMETRIC, &odd);
}

/// Strong rarefaction and explosion that make a high-order step unphysical: cells are corrected and steps retried.
#[test]
fn corrected_and_retried_steps_are_identical_on_the_device() {
    let hard = [
        "initial.density=if((x-0.5)^2 + (y-0.5)^2 + (z-0.5)^2 < 0.05, 10, 0.01)",
        "initial.pressure=if((x-0.5)^2 + (y-0.5)^2 + (z-0.5)^2 < 0.002, 1e4, 1e-4)",
        "initial.velocity_x=if(x < 0.5, -20, 20)",
        "initial.velocity_y=if(y < 0.3, -15, 15)",
        "hydro.reconstruction=ppm",
        "time.courant=0.9",
        "time.max_steps=4",
    ];
    assert!(!agree(BLAST, &hard), "the case is too easy");
    // single precision holds no colder gas
    let single = [
        "hydro.scheme=vl",
        "initial.pressure=if((x-0.5)^2 + (y-0.5)^2 + (z-0.5)^2 < 0.002, 1e4, 1e-2)",
        "run.precision=single",
        "time.max_steps=3",
    ];
    let easy = agree(BLAST, &[&hard[..], &single].concat());
    assert!(!easy, "the case is too easy");
}

/// A run started on the CPU resumes on a device, and vice versa.
#[test]
fn a_run_may_change_its_device() {
    if !emulation() {
        return;
    }
    let whole = Scratch::new();
    let all = with(&["time.max_steps=6"], &["run.device=cpu"]);
    run_into(&whole.run(), false, BLAST, &all).unwrap_or_else(|e| panic!("{e}"));
    let wanted = digests(&whole.run()).pop();
    for [first, then] in [["cpu", "emulated"], ["emulated", "cpu"]] {
        let scratch = Scratch::new();
        for (device, steps, resume) in [(first, 3, false), (then, 6, true)] {
            let settings = [
                format!("time.max_steps={steps}"),
                format!("run.device={device}"),
            ];
            let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
            run_into(&scratch.run(), resume, BLAST, &with(&settings, &[]))
                .unwrap_or_else(|e| panic!("{e}"));
        }
        let found = digests(&scratch.run()).pop();
        let digest = |last: &Option<(String, String)>| last.as_ref().map(|(_, d)| d.clone());
        assert_eq!(digest(&found), digest(&wanted), "{first}, then {then}");
    }
}

/// An undefined inflow formula is reported with its position, as on the CPU.
#[test]
fn an_undefined_inflow_gives_the_same_error_on_cpu_and_device() {
    if !emulation() {
        return;
    }
    let [cpu, device] = ["run.device=cpu", "run.device=emulated"].map(|device| {
        let scratch = Scratch::new();
        let inflow = [
            "domain.boundary={ x = [\"inflow\", \"outflow\"], y = \"periodic\", z = \"periodic\" }",
            "inflow.x_lower.density=1 + t",
            "inflow.x_lower.pressure=sqrt(0.004 - t)",
            "mesh.max_level=0",
            "run.threads=1",
        ];
        let settings = with(&inflow, &[device]);
        match run_into(&scratch.run(), false, SYMMETRIC, &settings) {
            Ok(_) => panic!("the run ended well"),
            Err(error) => error.to_string(),
        }
    });
    assert!(cpu.contains("inflow.x_lower"), "{cpu}");
    assert_eq!(
        cpu.split(" at ").next(),
        device.split(" at ").next(),
        "{cpu}\n{device}"
    );
}

/// Linear drag as a user plugin.
#[device]
fn drag<R: Real>(u: Conserved<R>, rate: R, dt: R) -> Conserved<R> {
    let keep = exp(-rate * dt);
    let kinetic = kinetic_energy(u);
    let mut v = u;
    v.momentum = [
        keep * u.momentum[0],
        keep * u.momentum[1],
        keep * u.momentum[2],
    ];
    v.energy = u.energy - kinetic * (1.0 - keep * keep);
    v
}

struct Drag;

impl Plugin for Drag {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let system = |clock: Res<LevelClock>, rows: LevelRows, mut gas: Write<Gas>| {
            gas.update::<drag>(&rows, (), &[10.0, clock.dt]);
        };
        sim.system_in(Advance::Sources, system);
        Ok(())
    }
}

/// A user source term runs on the device of the data, without device code written by hand.
#[test]
fn a_user_source_term_is_identical_on_the_device() {
    if !emulation() {
        return;
    }
    let [cpu, device] = ["run.device=cpu", "run.device=emulated"].map(|device| {
        let scratch = Scratch::new();
        let sim = build(BLAST, &with(&["time.max_steps=3"], &[device]));
        let mut sim = sim.add(Drag).unwrap_or_else(|e| panic!("{e}"));
        let on_device = sim
            .engine()
            .world
            .resource::<ComputeDevice>()
            .device
            .is_some();
        assert_eq!(on_device, device.ends_with("emulated"));
        sim.run_with(RunOptions {
            output: Some(scratch.run()),
            resume: false,
            stop: Arc::new(AtomicBool::new(false)),
            snapshot: Arc::default(),
            observer: Box::new(Silent),
            build: nestar::App::default().build_info(),
        })
        .unwrap_or_else(|e| panic!("{device}: {e}"));
        digests(&scratch.run())
    });
    assert_eq!(cpu, device);
}

/// All compilations of a run start together, before the first step, so that they overlap.
#[test]
fn decks_compile_all_programs_before_the_first_step() {
    if !emulation() {
        return;
    }
    let settings = [
        "run.device=emulated",
        "domain.cells=[16,16,16]",
        "mesh.max_level=1",
        "time.max_steps=1",
    ];
    let more = ["constants.n=500", "constants.cells=16"];
    let decks: [(&str, &[&str]); 5] = [
        ("cluster-merger", &more),
        ("plummer", &more[..1]),
        ("primordial-cooling", &[]),
        ("cooling-blast", &[]),
        ("tracers", &[]),
    ];
    for (name, more) in decks {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
        let mut deck = Deck::read(folder.join(format!("{name}.toml"))).expect("it is shipped");
        for setting in settings.iter().chain(more) {
            deck.set(setting).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
        let mut sim = Simulation::new(deck).unwrap_or_else(|e| panic!("{name}: {e}"));
        let device = sim
            .engine()
            .world
            .resource::<ComputeDevice>()
            .device
            .clone();
        let device = device.expect("the deck asks for it");
        sim.with(|engine| engine.finish_setup())
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let before = device.counters().compilations;
        let scratch = Scratch::new();
        let summary = sim.run_with(RunOptions {
            output: Some(scratch.run()),
            resume: false,
            stop: Arc::new(AtomicBool::new(false)),
            snapshot: Arc::default(),
            observer: Box::new(Silent),
            build: nestar::App::default().build_info(),
        });
        assert_eq!(summary.unwrap_or_else(|e| panic!("{name}: {e}")).step, 1);
        let late = device.counters().compilations - before;
        assert!(before > 2 && late == 0, "{name}: {late} after {before}");
    }
}
