//! Self-force of particles near the border of an isolated box: zero on the root level, and zero from two root cells on for
//! finer levels that touch the border.

use super::forces::{SPACE, bodies, size};
use super::particles;
use nestar::engine::step::Remarks;
use nestar_tests::Stepper;

/// A box with root cells of width 1.
const BOX: [&str; 2] = [
    "domain.left_edge=[0, 0, 0]",
    "domain.right_edge=[32, 32, 32]",
];
/// Level 1 in the middle, a patch of the root level away from all faces.
const APART: [&str; 2] = [
    "mesh.max_level=1",
    "mesh.refine=[{ criterion = \"box\", left = [9, 9, 9], right = [23, 23, 23] }]",
];
/// Finer levels in a corner.
const CORNER: &str = "mesh.refine=[{ criterion = \"box\", left = [0, 0, 0], right = [9, 9, 9], level = 1 }, \
    { criterion = \"box\", left = [0, 0, 0], right = [5, 5, 5] }]";
const IN_THE_CORNER: [[&str; 2]; 2] = [["mesh.max_level=1", CORNER], ["mesh.max_level=2", CORNER]];

const CLOUDS: [&str; 3] = ["ngp", "cic", "tsc"];

fn at_rest(cloud: &str, settings: &[&str], place: [f64; 3]) -> Stepper {
    let cloud = format!("particles.cloud=\"{cloud}\"");
    let body = bodies(&[(place, [0.0; 3])]);
    Stepper::new(SPACE, &[&BOX, settings, &[&*cloud, &*body]].concat())
}

/// Level of a particle at rest at a given position, and its self-acceleration relative to that by a neighbour of its mass at a distance
/// of two cells of this level.
fn felt(cloud: &str, settings: &[&str], place: [f64; 3]) -> (usize, f64) {
    let star = particles(&mut at_rest(cloud, settings, place), "star").swap_remove(0);
    let two_cells = 2.0 * 0.5_f64.powi(star.level as i32);
    let felt = size(star.acceleration) * two_cells * two_cells / star.mass;
    (star.level, felt)
}

/// Places beside a face, in an edge and in a corner, the nearest `near` root cells away.
fn places(near: f64) -> [[f64; 3]; 3] {
    let far = 4.62;
    [
        [near, far, far - 0.13],
        [near, near + 0.09, far],
        [near, near + 0.09, near + 0.17],
    ]
}

#[test]
fn a_root_level_particle_has_no_self_force_at_an_isolated_border() {
    for (cloud, near) in [("ngp", 1.03), ("cic", 1.03), ("cic", 1.8), ("tsc", 1.03)] {
        for place in places(near) {
            let (level, felt) = felt(cloud, &APART, place);
            assert!(level == 0 && felt < 1e-5, "{cloud} {place:?}: {felt:e}");
        }
    }
}

#[test]
fn a_particle_two_root_cells_from_an_isolated_border_has_no_self_force_on_any_level() {
    for (n, settings) in IN_THE_CORNER.iter().enumerate() {
        for (cloud, near) in [("ngp", 2.0), ("cic", 2.0), ("tsc", 2.0)] {
            for place in places(near) {
                let (level, felt) = felt(cloud, settings, place);
                assert_eq!(level, n + 1);
                assert!(felt < 1e-3, "{cloud}, level {level}, {place:?}: {felt:e}");
            }
        }
    }
}

/// Known self-force near the border: larger than elsewhere, smaller than the force of a neighbour at three cells.
#[test]
fn the_self_force_nearer_to_an_isolated_border_on_finer_levels_is_bounded() {
    for (n, settings) in IN_THE_CORNER.iter().enumerate() {
        let cell = 0.5_f64.powi(n as i32 + 1);
        for cloud in CLOUDS {
            for place in places(1.02 * cell) {
                let (level, felt) = felt(cloud, settings, place);
                let range = 1e-3..0.45;
                assert!(
                    range.contains(&felt),
                    "{cloud}, level {level}, {place:?}: {felt:e}"
                );
            }
        }
    }
}

#[test]
fn a_remark_says_that_finer_levels_touch_an_isolated_border() {
    let told = |settings: &[&str]| {
        let mut run = at_rest("cic", settings, [16.0; 3]);
        let remarks = run.0.engine().world.resource::<Remarks>();
        remarks
            .0
            .iter()
            .filter(|text| text.contains("touch the boundary"))
            .count()
    };
    assert_eq!(told(&APART), 0);
    assert_eq!(told(&IN_THE_CORNER[0]), 1);
    assert_eq!(told(&IN_THE_CORNER[1]), 1);
}
