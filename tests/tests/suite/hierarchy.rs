//! The patch hierarchy: what is refined, what is not, and its invariants.

use bevy_ecs::prelude::*;
use nestar::engine::mesh::{Topology, audit};
use nestar::engine::step::Read;
use nestar::engine::{Engine, Error, Plugin};
use nestar::systems::fields::Gas;
use nestar::systems::order::Advance;
use nestar_tests::probe::Probe;
use nestar_tests::random::Random;
use nestar_tests::{Stepper, build};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Gas at rest in the unit cube: the mesh alone moves.
const STILL: &str = r#"
scenario = "formula"
[initial]
density = "1"
pressure = "0.6"
[domain]
cells = [16, 16, 16]
[time]
end = 10.0
[mesh]
max_level = 1
"#;

/// A probe that audits the hierarchy before every step of every level.
fn auditor() -> (Probe, Arc<Mutex<Vec<String>>>) {
    Probe::new(|_, topology| audit(topology).err().map(|e| e.to_string()))
}

/// A random criterion: a region that moves, appears, vanishes, or stays.
fn criterion(random: &mut Random) -> String {
    let place = [0; 3].map(|_| random.between(0.0, 1.0));
    let velocity = [0; 3].map(|_| random.between(-2.0, 2.0));
    let size = random.between(0.02, 0.3);
    let [x, y, z] = place;
    let [u, v, w] = velocity;
    let period = random.between(0.05, 0.2);
    match random.below(4) {
        0 => format!(
            r#"{{ criterion = "formula", when = "(x-{x}-{u}*t)^2 + (y-{y}-{v}*t)^2 + (z-{z}-{w}*t)^2 < {}" }}"#,
            size * size
        ),
        1 => format!(
            r#"{{ criterion = "formula", when = "abs(x*{u} + y*{v} + z*{w} - {x} - {y}*t) < {}" }}"#,
            0.2 * size
        ),
        2 => format!(
            r#"{{ criterion = "formula", when = "sin(2*pi*t/{period}) > 0 and (x-{x})^2 + (y-{y})^2 < {}" }}"#,
            size * size
        ),
        _ => format!(
            r#"{{ criterion = "sphere", centre = [{x}, {y}, {z}], radius = {size}, level = {} }}"#,
            1 + random.below(3)
        ),
    }
}

/// A random hierarchy that changes as the run goes; an audit before every step of every level.
fn random_case(seed: u64) {
    let mut random = Random::new(seed);
    let max_level = random.below(4);
    let cells = [0; 3].map(|_| 8 * (1 + random.below(3)));
    let list = |random: &mut Random, low, most| -> Vec<u64> {
        (0..max_level).map(|_| low + random.below(most)).collect()
    };
    let (buffers, intervals) = (list(&mut random, 0, 9), list(&mut random, 1, 4));
    let criteria: Vec<String> = (0..1 + random.below(3))
        .map(|_| criterion(&mut random))
        .collect();
    let boundary = random.pick(&["periodic", "outflow", "reflecting"]);
    let settings = [
        format!("mesh.max_level={max_level}"),
        format!("domain.cells={cells:?}"),
        format!("mesh.flag_buffer={buffers:?}"),
        format!("mesh.regrid_interval={intervals:?}"),
        format!("mesh.refine=[{}]", criteria.join(", ")),
        format!("domain.boundary={boundary}"),
        format!(
            "time.levels={}",
            random.pick(&["adaptive", "halved", "shared"])
        ),
    ];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let (probe, found) = auditor();
    let sim = build(STILL, &settings)
        .add(probe)
        .unwrap_or_else(|e| panic!("{e}"));
    Stepper::of(sim).steps(if max_level == 3 { 5 } else { 10 });
    let found = found.lock().expect("the list is whole");
    assert!(found.is_empty(), "seed {seed}, {settings:?}: {}", found[0]);
}

#[test]
fn random_hierarchies_pass_the_audit_at_every_step() {
    for seed in 0..12 {
        random_case(seed);
    }
}

/// For each cell of a level-0 grid of `n` cells an axis: `true` if it lies in a refined patch.
fn refined_cells(topology: &Topology, level: usize) -> impl Fn([i32; 3]) -> bool + use<> {
    let refined: std::collections::BTreeSet<[i32; 3]> = topology
        .rows(level)
        .iter()
        .filter(|&&row| !topology.is_leaf(row))
        .map(|&row| topology.index(row))
        .collect();
    move |cell: [i32; 3]| refined.contains(&cell.map(|c| c.div_euclid(8)))
}

/// Exactly a flagged box and its buffer are refined; the box spans an edge of the periodic domain.
#[test]
fn refinement_buffers_have_exactly_the_requested_width() {
    for buffer in 0..=8 {
        // cells 21..=26 along x; 0 and 31 along y, over the edge; 12 along z
        let when =
            "x > 21/32 and x < 27/32 and (y < 1/32 or y > 31/32) and z > 12/32 and z < 13/32";
        let settings = [
            "domain.cells=[32,32,32]".to_string(),
            format!("mesh.flag_buffer={buffer}"),
            format!(r#"mesh.refine=[{{ criterion = "formula", when = "{when}" }}]"#),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let mut stepper = Stepper::new(STILL, &settings);
        let topology = stepper.0.engine().world.resource::<Topology>();
        // the domain is periodic, so a patch may be reached from either side
        let within = |low: i32, high: i32, patch: i32| {
            let reached = (low - buffer).div_euclid(8)..=(high + buffer).div_euclid(8);
            [-4, 0, 4]
                .iter()
                .any(|shift| reached.contains(&(patch + shift)))
        };
        for &row in topology.rows(0) {
            let [x, y, z] = topology.index(row);
            let wanted = within(21, 26, x) && within(31, 32, y) && within(12, 12, z);
            assert_eq!(
                !topology.is_leaf(row),
                wanted,
                "buffer {buffer}: patch {:?}",
                [x, y, z]
            );
        }
    }
}

/// A sphere that moves by less than the buffer between two regrids is refined at every step of level 0.
#[test]
fn a_moving_region_is_always_refined_within_its_buffer() {
    for (buffer, interval) in [(2, 2), (4, 4), (8, 8)] {
        // the Courant step is 0.4/3 of a cell of 1/32 at sound speed 1: `interval` steps at speed 7 are less than the buffer
        let region = r#"mesh.refine=[{ criterion = "formula", when = "(x-0.2-7*t)^2 + (y-0.5)^2 + (z-0.5)^2 < 0.01" }]"#;
        let settings = [
            "domain.cells=[32,32,32]".to_string(),
            format!("mesh.flag_buffer={buffer}"),
            format!("mesh.regrid_interval={interval}"),
            region.to_string(),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let (probe, found) = Probe::new(|clock, topology| {
            if clock.level > 0 {
                return None;
            }
            let refined = refined_cells(topology, 0);
            let flagged = |c: [i32; 3]| {
                let [x, y, z] = c.map(|i| (f64::from(i) + 0.5) / 32.0);
                (x - 0.2 - 7.0 * clock.time).powi(2) + (y - 0.5).powi(2) + (z - 0.5).powi(2) < 0.01
            };
            let mut cells = (0..32 * 32 * 32).map(|n| [n % 32, n / 32 % 32, n / 1024]);
            cells
                .find(|c| flagged(*c) && !refined(*c))
                .map(|c| format!("t = {}: cell {c:?} is coarse", clock.time))
        });
        let sim = build(STILL, &settings)
            .add(probe)
            .unwrap_or_else(|e| panic!("{e}"));
        let mut stepper = Stepper::of(sim);
        stepper.steps(18);
        assert!(
            stepper.time() * 7.0 > 0.4,
            "the region has moved far: {}",
            stepper.time()
        );
        let found = found.lock().expect("the list is whole");
        assert!(found.is_empty(), "buffer {buffer}: {}", found[0]);
    }
}

#[test]
fn patches_that_no_criterion_flags_are_removed() {
    let region = r#"mesh.refine=[{ criterion = "formula", when = "t < 0.02 and (x-0.4)^2 + (y-0.5)^2 + (z-0.5)^2 < 0.02" }]"#;
    let mut stepper = Stepper::new(
        STILL,
        &["mesh.max_level=3", "mesh.regrid_interval=1", region],
    );
    let before = stepper.state().counts();
    assert!(before[3] > 0, "{before:?}");
    while stepper.time() < 0.02 {
        stepper.steps(1);
    }
    stepper.steps(5);
    assert_eq!(stepper.state().counts(), [8, 0, 0, 0]);
}

/// Every leaf cell of the initial hierarchy has the initial condition at its own centre: nothing was interpolated.
#[test]
fn the_initial_hierarchy_is_built_from_the_initial_condition() {
    let density = r#"initial.density="1 + exp(-((x-0.31)^2 + (y-0.52)^2 + (z-0.47)^2)/0.0004)""#;
    let refine =
        r#"mesh.refine=[{ criterion = "sphere", centre = [0.31, 0.52, 0.47], radius = 0.05 }]"#;
    let state = Stepper::new(STILL, &["mesh.max_level=4", density, refine]).state();
    assert!(state.counts()[4] > 0);
    let mut peak = 0.0f64;
    state.each_leaf_cell(|level, [x, y, z], _, u| {
        let r = (x - 0.31).powi(2) + (y - 0.52).powi(2) + (z - 0.47).powi(2);
        let exact = 1.0 + (-r / 0.0004).exp();
        assert!(
            (u[0] - exact).abs() < 1e-13,
            "level {level}: {} instead of {exact}",
            u[0]
        );
        peak = peak.max(u[0]);
    });
    assert!(
        peak > 1.98,
        "the peak, narrower than a root cell, is resolved: {peak}"
    );
}

/// Covered cells hold the averages of the cells that cover them.
#[test]
fn covered_cells_hold_averages_of_finer_cells() {
    let state = Stepper::new(nestar_tests::decks::BLAST, &[])
        .steps(3)
        .state();
    let mut covered = 0;
    for level in 0..2 {
        for (index, patch) in state.levels[level].iter().filter(|(_, p)| !p.leaf) {
            for n in 0..patch.values.len() {
                let (c, cell) = (n / 512, n % 512);
                let at = [cell % 8, cell / 8 % 8, cell / 64];
                let mut sum = 0.0;
                for part in 0..8 {
                    let fine: [usize; 3] = std::array::from_fn(|a| 2 * at[a] + (part >> a & 1));
                    let child: [i32; 3] =
                        std::array::from_fn(|a| 2 * index[a] + (fine[a] / 8) as i32);
                    let [i, j, k] = fine.map(|f| f % 8);
                    sum += state.levels[level + 1][&child].values[c * 512 + i + 8 * j + 64 * k];
                }
                let (mean, value) = (sum / 8.0, patch.values[n]);
                assert!(
                    (mean - value).abs() <= 1e-14 * (1.0 + value.abs()),
                    "{mean} {value}"
                );
                covered += 1;
            }
        }
    }
    assert!(covered > 10_000);
}

/// A feature that crosses the box many times needs no more rows than the largest number of patches at one time.
#[test]
fn rows_are_recycled() {
    let region = r#"mesh.refine=[{ criterion = "formula", when = "abs(x - 0.5 - 0.4*sin(40*t)) < 0.05 and abs(y - 0.5) < 0.2" }]"#;
    let most = Arc::new(AtomicUsize::new(0));
    let seen = most.clone();
    let (probe, _) = Probe::new(move |_, topology| {
        seen.fetch_max(topology.patches(), Ordering::Relaxed);
        None
    });
    let sim = build(
        STILL,
        &[
            "mesh.max_level=2",
            "mesh.regrid_interval=1",
            "mesh.flag_buffer=1",
            region,
        ],
    )
    .add(probe)
    .unwrap_or_else(|e| panic!("{e}"));
    let mut stepper = Stepper::of(sim);
    stepper.steps(40);
    let topology = stepper.0.engine().world.resource::<Topology>();
    let (most, capacity) = (most.load(Ordering::Relaxed), topology.capacity());
    let created = topology.rows(2).iter().max().copied().unwrap_or(0) as usize;
    assert!(
        capacity <= most,
        "{capacity} rows for at most {most} patches at a time"
    );
    assert!(created < capacity);
}

#[test]
fn every_number_of_levels_runs() {
    for max_level in 0..=5 {
        let level = format!("mesh.max_level={max_level}");
        // a criterion sees the centres of cells: the outer sphere holds one of the coarsest, the inner one of every other
        let refine = r#"mesh.refine=[
            { criterion = "sphere", centre = [0.3, 0.5, 0.5], radius = 0.1, level = 2 },
            { criterion = "sphere", centre = [0.3, 0.5, 0.5], radius = 0.03 },
        ]"#;
        let settings = [
            level.as_str(),
            "domain.cells=[8,8,8]",
            "mesh.flag_buffer=1",
            refine,
        ];
        let (probe, found) = auditor();
        let sim = build(STILL, &settings)
            .add(probe)
            .unwrap_or_else(|e| panic!("{e}"));
        let mut stepper = Stepper::of(sim);
        let state = stepper.steps(1).state();
        assert!(
            state.counts().iter().all(|n| *n > 0),
            "{:?}",
            state.counts()
        );
        assert!(found.lock().expect("the list is whole").is_empty());
        // gas at rest stays bitwise at rest under any refinement
        state.each_leaf_cell(|_, _, _, u| assert_eq!(u[1..4], [0.0; 3]));
    }
}

/// Records the weight of the newer coarse bank in the ghosts of level 1, before each of its steps.
struct Weights(Arc<Mutex<Vec<f64>>>);

impl Plugin for Weights {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let list = self.0.clone();
        sim.system_in(
            Advance::Exchange,
            move |gas: Read<Gas, 1>| -> Result<(), Error> {
                let gas = gas.get(1)?;
                if gas.level() == 1 {
                    let weight = gas.ghosts::<f64>().weight;
                    list.lock().expect("the list is whole").push(weight);
                }
                Ok(())
            },
        );
        Ok(())
    }
}

/// Coarse ghosts are interpolated to the time of the fine step: with halved steps, from the old values first, then from
/// the middle.
#[test]
fn coarse_ghosts_are_interpolated_in_time() {
    let refine =
        r#"mesh.refine=[{ criterion = "sphere", centre = [0.3, 0.5, 0.5], radius = 0.1 }]"#;
    let list = Arc::new(Mutex::new(Vec::new()));
    let sim = build(STILL, &["time.levels=halved", refine])
        .add(Weights(list.clone()))
        .unwrap_or_else(|e| panic!("{e}"));
    Stepper::of(sim).steps(3);
    let found = list.lock().expect("the list is whole");
    assert_eq!(found.len(), 6);
    for (n, weight) in found.iter().enumerate() {
        let expected = 0.5 * (n % 2) as f64;
        assert!((weight - expected).abs() < 1e-12, "{found:?}");
    }
}

/// A point that requests the finest of six levels gets it at the start, although each level between is made by requests
/// that propagate level by level.
#[test]
fn a_point_is_refined_to_the_finest_level_at_the_start() {
    let point = "mesh.refine=[{criterion=\"sphere\",centre=[0.31,0.47,0.71],radius=0.000001}]";
    for buffer in ["mesh.flag_buffer=0", "mesh.flag_buffer=1"] {
        let mut stepper = Stepper::new(STILL, &["mesh.max_level=6", point, buffer]);
        let topology = stepper.0.engine().world.resource::<Topology>();
        assert_eq!(topology.finest(), 6, "{buffer}");
    }
}
