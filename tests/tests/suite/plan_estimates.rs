//! `nestar plan` predicts the initial hierarchy of a run exactly, without its fields.

use crate::decks::{reduced, shipped};
use crate::dye::SPREADING;
use crate::particles::criteria::{CLOUDS, CRITERIA};
use nestar::engine::mesh::NewRows;
use nestar::engine::step::memory::MemoryGuard;
use nestar::entities::Topology;
use nestar::prelude::*;
use nestar::systems::order::{Flag, Initialise};
use nestar_tests::build;
use nestar_tests::decks::BLAST;

/// The places of all patches, level by level along the curve.
fn places(sim: &Engine) -> Vec<Vec<[i32; 3]>> {
    let topology = sim.world.resource::<Topology>();
    let level = |level| topology.rows(level).iter().map(|&row| topology.index(row));
    let levels = 0..=topology.max_level;
    levels.map(|l| level(l).collect()).collect()
}

/// The predicted and the actual initial hierarchy, or the message of either.
fn both(make: impl Fn() -> Simulation) -> [Result<Vec<Vec<[i32; 3]>>, String>; 2] {
    let foresee = |sim: &mut Engine| {
        sim.preview_hierarchy(|_| ())
            .map(|found| assert!(!found.is_truncated))
    };
    let begin = |sim: &mut Engine| sim.finish_setup().and_then(|()| sim.initialise());
    let found = |work: &(dyn Fn(&mut Engine) -> Result<(), Error> + Sync)| {
        let found = make().with(|sim| work(sim).map(|()| places(sim)));
        found.map_err(|error| error.to_string())
    };
    [found(&foresee), found(&begin)]
}

/// Patches by level of a hierarchy that both find.
fn agreed(name: &str, make: impl Fn() -> Simulation) -> Vec<usize> {
    let [foreseen, begun] = both(make).map(|found| found.unwrap_or_else(|e| panic!("{name}: {e}")));
    let counts = |places: &[Vec<[i32; 3]>]| places.iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(counts(&foreseen), counts(&begun), "{name}");
    assert_eq!(foreseen, begun, "{name}");
    counts(&foreseen)
}

#[test]
fn plans_predict_the_initial_hierarchy_of_every_shipped_deck() {
    for path in shipped() {
        agreed(&path.display().to_string(), || reduced(&path, 16));
    }
}

/// Gas with floors after sources that run as a part of the step of their own.
const FLOORS_AND_SOURCES: [&str; 4] = [
    "units={ length_cgs = 3e21, mass_cgs = 2e43, time_cgs = 3e15 }",
    "hydro.mean_molecular_weight=0.6",
    "cooling={ split = true, table = { temperature_k = [1e4, 1e6], lambda = [1e-23, 3e-23] } }",
    "floors={ temperature_k = 1 }",
];

#[test]
fn plans_include_systems_that_plugins_add_last() {
    agreed("floors", || build(BLAST, &FLOORS_AND_SOURCES));
    let mut sim = build(BLAST, &FLOORS_AND_SOURCES);
    let foreseen = sim.with(|sim| {
        sim.preview_hierarchy(|_| ())?;
        sim.finish_setup()
    });
    foreseen.expect("a preview, then the setup, as in `nestar check`");
}

const WALLS: &str =
    "domain.boundary={ x = [\"reflecting\", \"outflow\"], y = \"diode\", z = \"outflow\" }";
const ODD: &str = "domain.cells=[24, 16, 40]";

#[test]
fn plans_use_the_criteria_buffers_boundaries_and_nesting_of_the_run() {
    let refine = |criteria: &str| format!("mesh.refine=[{{ criterion = {criteria} }}]");
    let lohner = refine("\"lohner\", field = \"ln(pressure)\", threshold = 0.5");
    let gradient = refine("\"gradient\", field = \"fraction_dye\", threshold = [0.3, 0.2, 0.1]");
    let threshold = refine("\"threshold\", field = \"density\", threshold = 1.15");
    let vorticity = refine("\"vorticity\", threshold = 0.05");
    let formula =
        refine("\"formula\", when = \"level < 2 && abs(x - 0.3*y) < 2*width && z < 0.4\"");
    let sphere = refine("\"sphere\", centre = [0.02, 0.9, 0.5], radius = 0.01");
    let (deep, wide) = ("mesh.max_level=3", "mesh.flag_buffer=8");
    let (bare, single) = ("mesh.flag_buffer=0", "run.precision=single");
    for settings in [
        &[ODD, deep, &lohner][..],
        &[ODD, WALLS, deep, bare, &lohner, single],
        &[WALLS, deep, &gradient, "mesh.flag_buffer=[1, 3, 5]"],
        &[ODD, wide, &threshold, "initial.samples=2"],
        &[WALLS, bare, &vorticity, "mesh.prolongation=minmod"],
        &[ODD, deep, bare, &formula],
        &["mesh.max_level=4", wide, &sphere],
        &["domain.cells=[88, 80, 80]", "mesh.max_level=1", bare],
        &["run.out_of_memory=cap", "run.memory_limit=9", deep],
    ] {
        let counts = agreed(&format!("{settings:?}"), || build(BLAST, settings));
        assert!(counts[1] > 0, "{settings:?}: {counts:?}");
    }
}

#[test]
fn plans_evaluate_user_criteria_on_user_fields() {
    for settings in [
        &["run.precision=double"][..],
        &[ODD, WALLS, "mesh.max_level=3"],
    ] {
        let alone = agreed("gas", || build(BLAST, settings));
        let with = agreed("ink", || {
            let sim = build(BLAST, settings).add(SPREADING);
            sim.unwrap_or_else(|e| panic!("{e}"))
        });
        assert_ne!(alone, with);
    }
}

#[test]
fn plans_evaluate_particle_criteria_on_initial_particles() {
    for settings in CRITERIA {
        for deep in ["mesh.max_level=2", "mesh.max_level=4"] {
            let settings = [settings, &[deep]].concat();
            let counts = agreed(&format!("{settings:?}"), || build(CLOUDS, &settings));
            assert!(counts[1] > 0 && counts[2] > 0, "{settings:?}: {counts:?}");
        }
    }
}

#[test]
fn plans_refuse_initial_states_that_runs_refuse() {
    for settings in [
        &["initial.density=x - 0.01"][..],
        &["initial.density=1e-30*(1 + x)", "run.precision=single"],
        &["mesh.refine=[{ criterion = \"formula\", when = \"sqrt(x - 0.5)\" }]"],
    ] {
        let [foreseen, begun] = both(|| build(BLAST, settings));
        let [foreseen, begun] = [foreseen, begun].map(|found| found.expect_err("a refusal"));
        // several patches are wrong: which is told does not matter
        let words = |message: &str| message.split("(x, y, z)").next().map(str::to_string);
        assert_eq!(words(&foreseen), words(&begun));
    }
}

#[test]
fn plans_apply_the_memory_limit_like_a_run() {
    let settings = [
        "run.out_of_memory=cap",
        "run.memory_limit=6",
        "mesh.max_level=3",
    ];
    let mut sim = build(BLAST, &settings);
    sim.with(|sim| sim.preview_hierarchy(|_| ()))
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(sim.engine().world.resource::<MemoryGuard>().capped > 0);
}

/// Even gas, refined everywhere.
const EVEN: &str = r#"
scenario = "formula"
[initial]
density = "1"
pressure = "1"
[domain]
cells = [136, 64, 64]
[time]
end = 1.0
[mesh]
max_level = 1
refine = [{ criterion = "formula", when = "density > 0" }]
"#;

/// Number of patches of level 1 whose state was computed.
#[derive(Resource, Default)]
struct Computed(usize);

fn count_computed(new: Res<NewRows>, mut computed: ResMut<Computed>) {
    computed.0 += new.rows.len() * new.level;
}

#[test]
fn a_large_finest_level_is_computed_in_part() {
    let mut sim = build(EVEN, &[]);
    sim.engine().world.init_resource::<Computed>();
    sim.engine().system_in(Initialise::State, count_computed);
    let found = sim.with(|sim| sim.preview_hierarchy(|_| ()));
    let found = found.unwrap_or_else(|e: Error| panic!("{e}"));
    assert_eq!(found.finest_sample, 2);
    let world = &sim.engine().world;
    let patches = world.resource::<Topology>().count(1);
    assert_eq!(patches, 8 * 17 * 8 * 8);
    assert_eq!(world.resource::<Computed>().0, patches / 2);
    let ratio = found.steps[1] / found.steps[0];
    assert!((ratio - 0.5).abs() < 1e-12, "{ratio}");
}

/// A criterion that looks at the whole hierarchy.
fn everywhere(topology: Res<Topology>, gas: Read<Gas>) {
    for row in 0..topology.capacity() as u32 {
        std::hint::black_box(gas.own().row::<f64>(row));
    }
}

#[test]
fn a_criterion_that_reads_beyond_its_halo_is_detected() {
    let settings = ["domain.cells=[96, 96, 96]", "mesh.max_level=1"];
    let mut sim = build(BLAST, &settings);
    sim.engine().system_in(Flag::Criteria, everywhere);
    let refused = sim
        .with(|sim| sim.preview_hierarchy(|_| ()))
        .expect_err("a refusal");
    let message = refused.to_string();
    assert!(
        message.contains("everywhere` reads patches far from"),
        "{message}"
    );
}
