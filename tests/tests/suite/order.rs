//! The order of a step, and the cost of everything except the physics.

use super::decks::shipped;
use nestar::engine::step::{Activity, Phase, RunCounters, SystemNamed};
use nestar::prelude::*;
use nestar_tests::decks::{BLAST, deck};
use nestar_tests::{Stepper, golden};
use std::path::Path;
use std::time::Instant;

fn described(mut sim: Simulation) -> String {
    let text = sim.with(nestar::order::describe);
    text.unwrap_or_else(|e| panic!("{e}"))
}

/// Shipped decks: hydrodynamics, gravity of gas, gas and particles with gravity, tracers, chemistry.
const DECKS: [&str; 5] = [
    "sedov",
    "evrard",
    "cluster-merger",
    "tracers",
    "primordial-cooling",
];

#[test]
fn the_order_of_a_step_matches_the_golden_files() {
    for name in DECKS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
        let path = folder.join(format!("{name}.toml"));
        let sim = Simulation::from_deck(path).unwrap_or_else(|e| panic!("{e}"));
        golden::compare(&format!("order-{name}.txt"), &described(sim));
    }
}

/// Every shipped deck has an unambiguous order, in which no two systems have the same name.
#[test]
fn systems_have_unique_names() {
    for path in shipped() {
        let sim = Simulation::from_deck(&path).unwrap_or_else(|e| panic!("{e}"));
        let text = described(sim);
        let mut names: Vec<&str> = text.lines().filter_map(system_name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{}:\n{text}", path.display());
    }
}

/// The name of the system in a line of the order.
fn system_name(line: &str) -> Option<&str> {
    let (_, system) = line.strip_prefix("  ")?.rsplit_once("  ")?;
    system.trim_start().split(": ").next()
}

#[device]
fn heat<R: Real>(u: Conserved<R>, at: &Place<R>, rate: R) -> Conserved<R> {
    let mut v = u;
    v.energy = u.energy + rate * u.density * at.dt;
    v
}

#[device]
fn down<R: Real>(u: &FaceStencil<R, Conserved<R>>, face: &Face<R>) -> Conserved<R> {
    let (mut below, above) = (u.at(-1), u.at(0));
    below.energy = (below.energy - above.energy) / face.width;
    below
}

#[device]
fn patience<R: Real>(u: Conserved<R>) -> R {
    u.density
}

#[device]
fn steep<R: Real>(u: &Stencil<R, Conserved<R>>) -> bool {
    u.at(1, 0, 0).density > 2.0 * u.at(-1, 0, 0).density
}

/// One function of each kind that runs in a step.
#[derive(Clone)]
struct Warm;

impl Plugin for Warm {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.initial::<Gas, heat>([0.1]);
        sim.split_source::<Gas, heat>([1.0]);
        sim.source::<Gas, heat>([2.0]);
        sim.flux::<Gas, down>([]);
        sim.limit::<Gas, patience>("warming", []);
        sim.criterion::<Gas, steep>([]);
        Ok(())
    }
}

/// Each is listed by its kind and by its function or name.
#[test]
fn the_order_of_a_step_names_the_functions_of_plugins() {
    let app = App::default().always(Warm);
    let sim = app.simulation(deck(BLAST, &[]));
    let sim = sim.unwrap_or_else(|e| panic!("{e}"));
    golden::compare("order-plugin.txt", &described(sim));
}

/// Orders systems of a plugin among each other and beside those of another plugin.
struct Storm;

fn rain(_: Write<Gas>) {}

fn thunder(_: Write<Gas>) {}

fn lightning(_: Write<Gas>) {}

fn wind(_: Write<Gas>) {}

impl Plugin for Storm {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.chain_in(Advance::Sources, (lightning, thunder, rain));
        let first = SystemNamed("source heat".into());
        sim.system_in(Advance::Sources, wind)
            .before(lightning)
            .before(first);
        Ok(())
    }
}

/// Systems of plugins run in the order of the program, unless a plugin states otherwise.
#[test]
fn plugins_order_their_systems() {
    let sim = App::default()
        .always(Warm)
        .simulation(deck(BLAST, &[]))
        .and_then(|sim| sim.add(Storm));
    let mut sim = sim.unwrap_or_else(|e| panic!("{e}"));
    let order = sim.with(|sim| sim.finish_setup().map(|()| sim.order(Phase::Advance)));
    let order = order.unwrap_or_else(|e| panic!("{e}")).into_iter();
    let sources = order.filter(|system| system.set.as_deref() == Some("Sources"));
    let names: Vec<String> = sources.map(|system| system.name).collect();
    let wanted = [
        "wind",
        "source heat",
        "fluxes down",
        "lightning",
        "thunder",
        "rain",
    ];
    assert_eq!(names, wanted);
}

/// A box of 16^3 patches with a refined slab that moves by half a patch between two regrids.
const LARGE: &str = r#"
scenario = "formula"
[initial]
density = "1 + 0.1*sin(2*pi*x)"
pressure = "1"
velocity_x = "1"
[domain]
cells = [128, 128, 128]
[time]
end = 10.0
[mesh]
max_level = 1
regrid_interval = 4
flag_buffer = 4
refine = [{ criterion = "formula", when = "abs(x - 0.3 - 12*t) < 0.11" }]
[run]
precision = "single"
"#;

/// Patches of level 1, and the share of regrids and halo exchanges in the time of `steps` root steps.
fn share_of_mesh(settings: &[&str], steps: usize) -> (usize, f64) {
    let mut stepper = Stepper::new(LARGE, settings);
    stepper.steps(4);
    let activity = stepper.0.engine().world.resource::<Activity>().clone();
    activity.reset();
    stepper.steps(steps);
    let times = activity.times();
    println!("{times:?}");
    let all: f64 = times.iter().map(|(_, seconds)| seconds).sum();
    let mesh = times
        .iter()
        .filter(|(name, _)| matches!(&**name, "mesh" | "regrid"));
    let mesh: f64 = mesh.map(|(_, seconds)| seconds).sum();
    (stepper.state().counts()[1], mesh / all)
}

#[test]
fn tree_updates_are_a_small_part_of_a_step() {
    let (patches, mesh) = share_of_mesh(&["run.audit=false"], 4);
    println!("{patches} patches: mesh {:.2}%", 100.0 * mesh);
    assert!(patches > 4000, "{patches}");
    // the figure of the benchmark is 2%; a shared machine may disturb either part
    assert!(mesh < 0.06, "{mesh}");
}

#[test]
#[ignore = "needs 2 GB: the same with more than 20,000 patches on each level"]
fn tree_work_is_a_small_part_of_a_step_of_20000_patches() {
    let settings = [
        "run.audit=false",
        "run.threads=2",
        "domain.cells=[224,224,224]",
    ];
    let (patches, mesh) = share_of_mesh(&settings, 8);
    println!("{patches} patches: mesh {:.2}%", 100.0 * mesh);
    assert!(patches > 20_000, "{patches}");
    assert!(mesh < 0.02, "{mesh}");
}

/// A level step of a tiny mesh is all overhead: schedules, look-ups, thread pool.
#[test]
fn the_overhead_of_a_level_step_is_small() {
    let mut stepper = Stepper::new(
        LARGE,
        &[
            "domain.cells=[8,8,8]",
            "mesh.max_level=0",
            "run.audit=false",
        ],
    );
    stepper.steps(20);
    let begin = Instant::now();
    stepper.steps(200);
    let each = begin.elapsed().as_secs_f64() / 200.0;
    println!("a root step of one patch: {:.1} us", 1e6 * each);
    assert!(each < 2e-3, "{each} s");
    let counters: RunCounters = stepper.counters();
    assert_eq!(counters.cell_updates, 220 * 512);
}
