//! Forces between two bodies beside faces of levels: action equals reaction.

use super::forces::{SPACE, bodies, size};
use super::particles;
use nestar_tests::Stepper;
use nestar_tests::random::Random;

/// Width of a root cell. Level 1 covers the cube from -0.5 to 0.5.
const CELL: f64 = 1.0 / 16.0;

/// Accelerations of bodies at rest.
fn accelerations(places: &[[f64; 3]], settings: &[&str]) -> Vec<[f64; 3]> {
    let all: Vec<_> = places.iter().map(|&place| (place, [0.0; 3])).collect();
    let all = bodies(&all);
    let settings = [&[&*all], settings].concat();
    let all = particles(&mut Stepper::new(SPACE, &settings), "star");
    all.iter().map(|star| star.acceleration).collect()
}

/// Sum of the forces of two bodies on each other, relative to one of them. What each body feels alone is left out.
fn unbalance(places: [[f64; 3]; 2], settings: &[&str]) -> f64 {
    let pair = accelerations(&places, settings);
    let alone = places.map(|place| accelerations(&[place], settings)[0]);
    let of = |n: usize| [0, 1, 2].map(|a: usize| pair[n][a] - alone[n][a]);
    let (first, second) = (of(0), of(1));
    size([0, 1, 2].map(|a: usize| first[a] + second[a])) / size(first)
}

/// Two places at a distance of `cells` root cells in a random direction; `depth` tells how many root cells the first one lies
/// inside the upper faces of level 1 along one to three axes.
fn pair(random: &mut Random, number: usize, depth: f64, cells: f64) -> [[f64; 3]; 2] {
    let mut first = [(); 3].map(|()| random.between(-0.1, 0.1));
    for place in first.iter_mut().take(1 + number % 3) {
        *place = 0.5 - depth * CELL;
    }
    loop {
        let way = [(); 3].map(|()| random.between(-1.0, 1.0));
        let length = size(way);
        if (0.1..1.0).contains(&length) && way.iter().take(1 + number % 3).all(|x| *x > 0.1) {
            let second = [0, 1, 2].map(|a| first[a] + way[a] * cells * CELL / length);
            return [first, second];
        }
    }
}

#[test]
fn action_equals_reaction_across_faces_of_a_level() {
    let mut random = Random::new(11);
    for (cloud, depth, cells) in [
        ("cic", 2.3, 6.0),
        ("tsc", 2.6, 7.0),
        ("cic", 1.2, 4.0),
        ("cic", -0.7, 3.0),
    ] {
        let cloud = format!("particles.cloud=\"{cloud}\"");
        for number in 0..3 {
            let places = pair(&mut random, number, depth, cells);
            let found = unbalance(places, &["mesh.max_level=1", &cloud]);
            assert!(found < 1e-5, "{cloud} {places:?}: {found:e}");
        }
    }
}

#[test]
fn action_nearly_equals_reaction_between_bodies_in_a_finer_level() {
    let mut random = Random::new(12);
    for (cloud, most) in [("cic", 4e-3), ("tsc", 2e-3)] {
        let cloud = format!("particles.cloud=\"{cloud}\"");
        for number in 0..3 {
            let [first, second] = pair(&mut random, number, 2.2, 2.0);
            // towards the middle
            let second = [0, 1, 2].map(|a| 2.0 * first[a] - second[a]);
            let found = unbalance([first, second], &["mesh.max_level=1", &cloud]);
            assert!(found < most, "{cloud} {first:?}: {found:e}");
        }
    }
}
