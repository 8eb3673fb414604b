//! One simulation on several ranks is bitwise that of one rank.

use nestar::engine::comm::cells_repaired_between_levels;
use nestar::engine::mesh::Topology;
use nestar_tests::decks::{BLAST, HALF, SYMMETRIC};
use nestar_tests::norms::totals;
use nestar_tests::random::Random;
use nestar_tests::ranks::{joined, on_ranks};
use nestar_tests::{State, Stepper};

/// The state of a run after some steps, as one rank sees it.
struct End {
    state: State,
    /// What must be the same on all ranks: the counters and totals of the run.
    common: (Vec<u64>, Vec<u64>),
    /// Own patches.
    patches: usize,
}

fn end(stepper: &mut Stepper, steps: usize) -> End {
    stepper.steps(steps);
    let counters = stepper.counters();
    let repaired = stepper.0.with(|s| cells_repaired_between_levels(&s.world));
    let repaired = repaired.expect("the ranks add up");
    let counts = vec![
        counters.cell_updates,
        counters.level_steps,
        counters.regrids,
        counters.retried_steps,
        counters.fallback_cells,
        repaired.averages,
        repaired.corrections,
    ];
    let sums = stepper.0.with(|s| totals(s));
    let state = stepper.state();
    End {
        patches: state.counts().iter().sum(),
        state,
        common: (counts, sums.into_iter().map(f64::to_bits).collect()),
    }
}

/// Compares runs on `sizes` ranks with one of a single rank; returns the ends of the largest.
fn same(text: &str, settings: &[&str], steps: usize, sizes: &[usize]) -> Vec<End> {
    let alone = end(&mut Stepper::new(text, settings), steps);
    let mut last = Vec::new();
    for &size in sizes {
        let mut ends = on_ranks(size, text, settings, |stepper| end(stepper, steps));
        for end in &ends {
            assert_eq!(end.common, alone.common, "{size} ranks, {settings:?}");
        }
        let states = ends.iter().map(|end| end.state.clone()).collect();
        if let Some(difference) = alone.state.difference(&joined(states)) {
            panic!("{size} ranks, {settings:?}: {difference}");
        }
        std::mem::swap(&mut last, &mut ends);
    }
    last
}

/// Strong rarefaction and explosion that make a high-order step unphysical.
const HARD: &[&str] = &[
    "initial.density=if((x-0.5)^2 + (y-0.5)^2 + (z-0.5)^2 < 0.05, 10, 0.01)",
    "initial.pressure=if((x-0.5)^2 + (y-0.5)^2 + (z-0.5)^2 < 0.002, 1e4, 1e-4)",
    "initial.velocity_x=if(x < 0.5, -20, 20)",
    "initial.velocity_y=if(y < 0.3, -15, 15)",
    "hydro.reconstruction=ppm",
    "time.courant=0.9",
];

/// Steps were retried and cells corrected.
fn was_hard(ends: &[End]) {
    let counts = &ends[0].common.0;
    assert!(counts[3] > 0 && counts[4] > 0, "the case is too easy");
}

const UNIFORM: &[&str] = &["mesh.max_level=0", "domain.cells=[32,32,32]"];

#[test]
fn a_uniform_blast_is_the_same_on_any_number_of_ranks() {
    same(BLAST, UNIFORM, 2, &[3, 8]);
}

#[test]
fn an_adaptive_blast_is_the_same_on_any_number_of_ranks() {
    same(BLAST, &[HALF], 4, &[1, 2, 7]);
}

#[test]
fn shared_time_steps_are_identical_on_several_ranks() {
    same(
        BLAST,
        &[HALF, "time.levels=halved", "run.precision=single"],
        4,
        &[3],
    );
    same(
        BLAST,
        &[HALF, "time.levels=shared", "mesh.regrid_interval=1"],
        4,
        &[4],
    );
}

#[test]
fn runge_kutta_stages_are_identical_on_several_ranks() {
    same(BLAST, &[HALF, "hydro.scheme=rk2"], 3, &[5]);
    let settings = [
        "hydro.scheme=rk3",
        "hydro.reconstruction=weno-z",
        "mesh.max_level=3",
        "mesh.regrid_interval=1",
        "run.precision=single",
    ];
    same(BLAST, &[&[HALF], &settings[..]].concat(), 2, &[3]);
    let hard = [HARD, &[HALF, "hydro.scheme=rk3", "time.courant=0.5"]].concat();
    same(BLAST, &hard, 3, &[3]);
}

#[test]
fn walls_and_odd_root_grids_are_identical_on_several_ranks() {
    let walls =
        "domain.boundary={ x = [\"outflow\", \"reflecting\"], y = \"periodic\", z = \"diode\" }";
    let odd = ["domain.cells=[24,8,40]", walls, "hydro.scheme=vl"];
    same(BLAST, &odd, 3, &[2, 5]);
    same(SYMMETRIC, &["run.precision=single"], 3, &[8]);
}

#[test]
fn deep_hierarchies_are_the_same_on_several_ranks() {
    let deep = [
        HALF,
        "mesh.max_level=3",
        "mesh.regrid_interval=1",
        "run.imbalance=1.0",
    ];
    same(BLAST, &deep, 2, &[5]);
}

#[test]
fn corrected_and_retried_steps_are_identical_on_several_ranks() {
    let hard = [HARD, &[HALF]].concat();
    let ends = same(BLAST, &hard, 4, &[8]);
    was_hard(&ends);
}

#[test]
fn random_refinement_is_the_same_on_several_ranks() {
    let mut random = Random::new(11);
    for _ in 0..3 {
        let mut sphere = |level: u32| {
            let [x, y, z] = [0; 3].map(|_| random.between(0.0, 1.0));
            let radius = random.between(0.05, 0.3) / f64::from(level);
            format!(
                "{{ criterion = \"sphere\", centre = [{x}, {y}, {z}], radius = {radius}, level = {level} }}"
            )
        };
        let spheres = [sphere(1), sphere(2), sphere(3)].join(", ");
        let refine = format!(
            "mesh.refine=[{spheres}, {{ criterion = \"gradient\", field = \"density\", threshold = 0.3 }}]"
        );
        let size = 2 + random.below(6) as usize;
        same(BLAST, &[HALF, "mesh.max_level=3", &refine], 2, &[size]);
    }
}

/// A regrid of the finest level changes which copies a rank keeps of the level below: those of coarser patches, whose children
/// came or went as copies, must know.
#[test]
fn removed_halo_patches_are_children_of_no_patch() {
    let settings = [
        "domain.cells=[24,8,16]",
        "domain.right_edge=[3,1,2]",
        "domain.boundary=reflecting",
        "time.levels=shared",
        "mesh.max_level=3",
        "mesh.regrid_interval=1",
        "mesh.refine=[{ criterion = \"threshold\", field = \"fraction_dye\", threshold = 0.3 }, \
         { criterion = \"gradient\", field = \"pressure\", threshold = 0.996 }]",
        "initial.samples=1",
        "initial.velocity_x=18.4",
        "initial.velocity_y=-15.2",
        "initial.velocity_z=4*(1+0.5*sin(6*x))",
        "initial.density=1+0.3*sin(7*x)*cos(5*y)",
        "initial.pressure=if((x-0.5)^2+(y-0.5)^2+(z-0.5)^2 < 0.0152, 3, 0.5)",
        "initial.scalars={ dye = \"if((x-0.45)^2+(y-0.4)^2+(z-0.6)^2 < 0.0304, 1, 0)\" }",
        "run.imbalance=1.5",
    ];
    same(BLAST, &settings, 3, &[4, 9]);
}

#[test]
fn the_partition_of_patches_follows_the_flow() {
    let ends = same(BLAST, &["domain.cells=[32,32,32]"], 1, &[4]);
    let patches: Vec<usize> = ends.iter().map(|end| end.patches).collect();
    let (most, all) = (
        patches.iter().max().copied().unwrap_or(0),
        patches.iter().sum::<usize>(),
    );
    assert!(4 * most <= all + all / 5, "{patches:?}");
}

/// A rank holds its part and what that touches, not the whole hierarchy.
#[test]
fn the_memory_of_a_rank_is_little_more_than_its_part() {
    let settings = ["mesh.max_level=0", "domain.cells=[128,128,128]"];
    let held = on_ranks(8, BLAST, &settings, |stepper| {
        let topology = stepper.0.engine().world.resource::<Topology>();
        (
            topology.rows(0).len(),
            topology.copies(0).len(),
            topology.capacity(),
        )
    });
    for (own, copies, rows) in held {
        assert_eq!(own, 512);
        // a cube of 8^3 patches has 10^3 - 8^3 around it
        assert!(
            copies <= 488 && rows <= 1000 + 728,
            "{copies} copies, {rows} rows"
        );
    }
}

#[test]
fn ranks_on_devices_are_identical() {
    if !crate::device_runs::emulation() {
        return;
    }
    let device = "run.device=emulated";
    same(BLAST, &[HALF, device], 2, &[3]);
    same(
        BLAST,
        &[
            HALF,
            device,
            "run.precision=single",
            "mesh.regrid_interval=1",
        ],
        2,
        &[2],
    );
    let hard = [HARD, &[HALF, device]].concat();
    let ends = same(BLAST, &hard, 4, &[3]);
    was_hard(&ends);
}
