//! Refinement by the number of particles: where there are many, and nowhere else.

use super::particles;
use nestar::engine::mesh::Topology;
use nestar_tests::Stepper;
use nestar_tests::ranks::on_ranks;
use std::collections::{BTreeMap, BTreeSet};

/// Two clouds of particles that move through gas at rest; nothing attracts. One cell in 64 of a cloud has five particles and more.
pub(crate) const CLOUDS: &str = r#"
scenario = "formula"
[initial]
density  = "1"
pressure = "1"
[domain]
cells    = [40, 24, 16]
right_edge = [2.5, 1.5, 1.0]
boundary = "periodic"
[hydro]
frozen = true
[time]
end      = 10.0
max_step = 0.01
[mesh]
max_level       = 2
regrid_interval = 1
flag_buffer     = 0
[particles.species.heavy]
initial = { kind = "random", count = 1500, seed = 3, position = ["0.4 + 0.15*(u0 + u1 + u2 - 1.5)", "0.7 + 0.3*(u3 - 0.5)", "0.5 + 0.3*(u4 - 0.5)"], velocity = ["2", "0", "0"], mass = "0.001*(1 + u5)" }
[particles.species.light]
mass    = 0.0005
initial = { kind = "random", count = 1200, seed = 4, position = ["2.1 + 0.3*u0^2", "0.2 + 1.1*u1*u2", "u3"], velocity = ["-1", "0.5", "0"] }
"#;

/// Settings with criteria, by their names.
pub(crate) const CRITERIA: [&[&str]; 4] = [
    &["particles.refine.per_patch=[60, 30]"],
    &["particles.refine.per_cell=[7, 3]", "run.precision=single"],
    &["particles.refine.mass_per_cell=0.006"],
    &[
        "particles.refine.per_patch=[90]",
        "particles.refine.per_cell=5",
        "mesh.flag_buffer=2",
    ],
];

/// Patches of a level that have children, by their indices.
fn refined(stepper: &mut Stepper, level: usize) -> BTreeSet<[i32; 3]> {
    let topology = stepper.0.engine().world.resource::<Topology>();
    let rows = topology.rows(level).iter();
    let rows = rows.filter(|&&row| !topology.is_leaf(row));
    rows.map(|&row| topology.index(row)).collect()
}

/// Numbers of particles by the cell of a level that contains them.
fn in_cells(stepper: &mut Stepper, cells: i32) -> BTreeMap<[i32; 3], usize> {
    let mut numbers = BTreeMap::new();
    for name in ["heavy", "light"] {
        for particle in particles(stepper, name) {
            let cell = particle
                .position
                .map(|x| (x * f64::from(cells)).floor() as i32);
            *numbers.entry(cell).or_default() += 1;
        }
    }
    numbers
}

/// Sums over the patches, or their octants, that contain cells.
fn over(numbers: &BTreeMap<[i32; 3], usize>, width: i32) -> BTreeMap<[i32; 3], usize> {
    let mut sums = BTreeMap::new();
    for (cell, number) in numbers {
        *sums.entry(cell.map(|i| i.div_euclid(width))).or_default() += number;
    }
    sums
}

/// Those with more than a number.
fn above(numbers: &BTreeMap<[i32; 3], usize>, most: usize) -> BTreeSet<[i32; 3]> {
    let numbers = numbers.iter().filter(|(_, number)| **number > most);
    numbers.map(|(index, _)| *index).collect()
}

#[test]
fn patches_with_many_particles_are_refined_and_no_others() {
    let settings = ["particles.refine.per_patch=[60]", "mesh.max_level=1"];
    let mut stepper = Stepper::new(CLOUDS, &settings);
    for _ in 0..4 {
        let patches = over(&in_cells(&mut stepper, 16), 8);
        let many = above(&patches, 60);
        assert!(many.len() > 2 && many.len() < patches.len());
        assert_eq!(refined(&mut stepper, 0), many);
        stepper.steps(6);
    }
    let settings = ["particles.refine.per_cell=[6]", "mesh.max_level=1"];
    let mut stepper = Stepper::new(CLOUDS, &settings);
    for _ in 0..4 {
        let full = above(&in_cells(&mut stepper, 16), 6);
        let patches: BTreeSet<_> = full.iter().map(|cell| cell.map(|i| i / 8)).collect();
        assert!(full.len() > 3);
        assert_eq!(refined(&mut stepper, 0), patches);
        stepper.steps(6);
    }
}

/// Refined patches are removed once they are empty enough, and patches that would only be kept are not refined.
#[test]
fn patches_stay_refined_while_they_hold_particles() {
    let many = "particles.refine.per_patch=[60]";
    let kept = "particles.refine.kept_per_patch=[9]";
    let mut stepper = Stepper::new(CLOUDS, &[many, kept, "mesh.max_level=1"]);
    let mut before = refined(&mut stepper, 0);
    let (mut stayed, mut went) = (0, 0);
    for _ in 0..60 {
        stepper.steps(1);
        let numbers = in_cells(&mut stepper, 16);
        let full = above(&over(&numbers, 8), 60);
        let some: BTreeSet<_> = above(&over(&numbers, 4), 9);
        let some: BTreeSet<_> = some
            .iter()
            .map(|child| child.map(|i| i.div_euclid(2)))
            .collect();
        let now: BTreeSet<_> = full
            .union(&before.intersection(&some).copied().collect())
            .copied()
            .collect();
        assert_eq!(refined(&mut stepper, 0), now);
        stayed += now.difference(&full).count();
        went += before.difference(&now).count();
        before = now;
    }
    assert!(stayed > 10 && went > 2, "{stayed} {went}");
}

#[test]
fn particle_criteria_refine_identically_on_all_ranks() {
    for settings in CRITERIA {
        let patches = |ranks: usize| {
            let settings = [settings, &["particles.refine.kept_per_patch=5"]].concat();
            let found = on_ranks(ranks, CLOUDS, &settings, |stepper| {
                stepper.steps(8);
                [0, 1].map(|level| refined(stepper, level))
            });
            let mut all = [BTreeSet::new(), BTreeSet::new()];
            for found in found {
                all.iter_mut()
                    .zip(found)
                    .for_each(|(all, found)| all.extend(found));
            }
            all
        };
        let one = patches(1);
        assert!(one.iter().all(|refined| refined.len() > 2), "{one:?}");
        assert_eq!(one, patches(3));
    }
}
