//! Groups against all pairs, whatever the order of the points, and spheres of known profiles.

use super::catalogue::{Halo, Search, catalogue};
use super::friends::groups;
use super::space::Space;
use crate::views::points::MassPoint;

const UNIT: Space = Space {
    left: [0.0; 3],
    lengths: [1.0; 3],
    periodic: [true; 3],
};

/// Random numbers in 0..1.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a point in a unit sphere, with a density that rises towards the centre.
    fn in_sphere(&mut self, power: i32) -> [f64; 3] {
        loop {
            let point = [0, 1, 2].map(|_| 2.0 * self.next() - 1.0);
            let radius = point.iter().map(|x| x * x).sum::<f64>().sqrt();
            if radius <= 1.0 {
                return point.map(|x| x * radius.powi(power));
            }
        }
    }
}

/// Uniform points, and clumps of many sizes and densities that also cross the borders.
fn clustered(count: usize, space: &Space, seed: u64) -> Vec<[f64; 3]> {
    let mut random = Random(seed);
    let mut points: Vec<[f64; 3]> = Vec::new();
    while points.len() < count {
        let centre = [0, 1, 2].map(|a| space.left[a] + random.next() * space.lengths[a]);
        let size = 0.3 * random.next().powi(4);
        let members = (1.0 + 400.0 * random.next().powi(3)) as usize;
        for _ in 0..members {
            let offset = random.in_sphere(2);
            let point = [0, 1, 2].map(|a| centre[a] + size * offset[a]);
            let wrapped = [0, 1, 2].map(|a| {
                let (left, length) = (space.left[a], space.lengths[a]);
                match space.periodic[a] {
                    true => left + (point[a] - left).rem_euclid(length),
                    false => point[a].clamp(left, left + length),
                }
            });
            points.push(wrapped);
        }
    }
    points.truncate(count);
    points
}

/// Returns the least number of each point's group, by tests of all pairs.
fn by_pairs(points: &[[f64; 3]], space: &Space, length: f64) -> Vec<usize> {
    let mut labels: Vec<usize> = vec![usize::MAX; points.len()];
    for first in 0..points.len() {
        if labels[first] != usize::MAX {
            continue;
        }
        labels[first] = first;
        let mut waiting = vec![first];
        while let Some(one) = waiting.pop() {
            for other in first + 1..points.len() {
                let near = || space.distance_squared(points[one], points[other]) <= length * length;
                if labels[other] == usize::MAX && near() {
                    labels[other] = first;
                    waiting.push(other);
                }
            }
        }
    }
    labels
}

/// Returns the least number of each point's group; points of no group have their own.
fn labels(count: usize, groups: &[Vec<u32>]) -> Vec<usize> {
    let mut labels: Vec<usize> = (0..count).collect();
    for group in groups {
        let least = *group.iter().min().expect("a member");
        for &member in group {
            labels[member as usize] = least as usize;
        }
    }
    labels
}

#[test]
fn groups_are_those_of_all_pairs() {
    let long = Space {
        left: [-0.5, 2.0, 0.0],
        lengths: [1.5, 0.7, 1.0],
        periodic: [true, false, true],
    };
    for (space, seed) in [(UNIT, 1), (long, 2)] {
        let points = clustered(10_000, &space, seed);
        for length in [0.004, 0.015] {
            let expected = by_pairs(&points, &space, length);
            let found = groups(&points, &space, length, 2);
            assert!(labels(points.len(), &found) == expected, "{length}");
            let sizes = |least: usize| groups(&points, &space, length, least).len();
            let large = found.iter().filter(|group| group.len() >= 20).count();
            assert!(large > 3, "{large} groups of {length}");
            assert_eq!(sizes(20), large);
        }
    }
    // few points in a box that is hardly larger than the linking length
    let mut random = Random(3);
    let few: Vec<[f64; 3]> = (0..9).map(|_| [0, 1, 2].map(|_| random.next())).collect();
    for length in [0.05, 0.2, 0.3, 0.45, 0.6, 1.0] {
        let found = groups(&few, &UNIT, length, 1);
        assert_eq!(labels(9, &found), by_pairs(&few, &UNIT, length), "{length}");
    }
}

#[test]
fn pairs_at_exactly_the_linking_length_are_friends() {
    let length = 0.0625;
    let row: Vec<[f64; 3]> = (0..16).map(|n| [0.0, f64::from(n) * length, 0.5]).collect();
    assert_eq!(groups(&row, &UNIT, length, 16).len(), 1);
    assert_eq!(groups(&row, &UNIT, length * (1.0 - 1e-15), 2).len(), 0);
}

fn search(length: f64, densities: &[f64]) -> Search {
    Search {
        space: UNIT,
        linking_length: length,
        least: 20,
        densities: densities.to_vec(),
    }
}

fn masses(points: &[[f64; 3]]) -> Vec<MassPoint> {
    let of = |(n, position): (usize, &[f64; 3])| MassPoint {
        position: *position,
        velocity: position.map(|x| 2.0 * x - 1.0),
        mass: 1.0 / points.len() as f64,
        identity: [7 * n as u64 + 3, 0],
    };
    points.iter().enumerate().map(of).collect()
}

#[test]
fn catalogues_do_not_depend_on_the_order_of_particles_and_threads() {
    let points = masses(&clustered(20_000, &UNIT, 4));
    let search = search(0.006, &[600.0, 200.0]);
    let expected = catalogue(&points, points.len(), &search);
    assert!(expected.len() > 20);
    assert!(expected.windows(2).all(|pair| pair[0].mass >= pair[1].mass));
    let mut shuffled = points;
    for turn in 1..4usize {
        let mut random = Random(turn as u64);
        for n in (1..shuffled.len()).rev() {
            shuffled.swap(n, (random.next() * (n + 1) as f64) as usize);
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(turn).build();
        let found = pool
            .expect("threads")
            .install(|| catalogue(&shuffled, shuffled.len(), &search));
        assert!(found == expected, "turn {turn}");
    }
}

/// Returns a cluster of 4000 particles around a corner of the box, whose enclosed mass grows with the radius as an isothermal sphere's.
fn isothermal(centre: [f64; 3], scale: f64) -> Vec<MassPoint> {
    let mut random = Random(5);
    let count = 4000;
    let point = |n: usize| {
        // mass within a radius is proportional to it
        let radius = scale * (n as f64 + 0.5) / count as f64;
        let way = random.in_sphere(0);
        let norm = radius / way.iter().map(|x| x * x).sum::<f64>().sqrt();
        [0, 1, 2].map(|a| (centre[a] + norm * way[a]).rem_euclid(1.0))
    };
    let points: Vec<[f64; 3]> = (0..count).map(point).collect();
    masses(&points)
}

#[test]
fn a_group_across_the_border_is_one_with_its_properties() {
    let centre = [0.002, 0.999, 0.0];
    let points = isothermal(centre, 0.02);
    let all = catalogue(&points, points.len(), &search(0.006, &[1e7, 1e6]));
    let [halo]: [Halo; 1] = all.try_into().expect("one group");
    assert_eq!((halo.number, halo.identity), (4000, [3, 0]));
    assert!((halo.mass - 1.0).abs() < 1e-12);
    let off = |point: [f64; 3]| UNIT.distance_squared(point, centre).sqrt();
    assert!(off(halo.centre_of_mass) < 1e-3, "{:?}", halo.centre_of_mass);
    assert!(off(halo.position) < 1e-3, "{:?}", halo.position);
    // mass 1 within 0.02: the density 3 M/(4 pi r^3) is that of the sphere at the radius sqrt(3 * 50/(4 pi density))
    for (sphere, density) in halo.spheres.iter().zip([1e7, 1e6]) {
        let expected = (3.0 * 50.0 / (4.0 * std::f64::consts::PI * density)).sqrt();
        assert!(
            (sphere.radius / expected - 1.0).abs() < 0.05,
            "{sphere:?} {expected}"
        );
        let volume = 4.0 / 3.0 * std::f64::consts::PI * sphere.radius.powi(3);
        assert!((sphere.mass / (volume * density) - 1.0).abs() < 1e-12);
        let inside = points.iter().filter(|point| {
            UNIT.distance_squared(point.position, halo.position) <= sphere.radius.powi(2)
        });
        let mass: f64 = inside.map(|point| point.mass).sum();
        assert!((sphere.mass - mass).abs() < 1e-12, "{} {mass}", sphere.mass);
    }
    assert!(
        (halo.steepest / 50.0 - 1.0).abs() < 0.2,
        "{}",
        halo.steepest
    );
    // velocities are linear in the position in the box
    let mean = |a: usize| points.iter().map(|point| point.velocity[a]).sum::<f64>() / 4000.0;
    for axis in 0..3 {
        assert!((halo.velocity[axis] - mean(axis)).abs() < 1e-12);
    }
}

#[test]
fn the_centre_of_two_clumps_is_in_one_of_them() {
    let [mut one, other] = [[0.3, 0.5, 0.5], [0.36, 0.5, 0.5]].map(|at| isothermal(at, 0.02));
    let bridge = (0..30).map(|n| MassPoint {
        position: [0.32 + 0.001 * f64::from(n), 0.5, 0.5],
        mass: 1e-6,
        ..MassPoint::default()
    });
    one.extend(other.into_iter().chain(bridge));
    for (n, point) in one.iter_mut().enumerate() {
        point.identity = [n as u64, 0];
    }
    let all = catalogue(&one, one.len(), &search(0.003, &[1e6]));
    assert_eq!(all.len(), 1);
    let off = |x: f64| UNIT.distance_squared(all[0].position, [x, 0.5, 0.5]).sqrt();
    assert!(off(0.3).min(off(0.36)) < 2e-3, "{:?}", all[0].position);
}

/// Gas and members of groups do not count, nor does a particle farther than half of the box.
#[test]
fn the_nearest_other_particle_is_found() {
    let members = isothermal([0.5; 3], 0.02);
    let groups = members.len();
    let nearest = |others: &[([f64; 3], u64)]| {
        let mut points = members.clone();
        points.extend(others.iter().map(|&(position, species)| MassPoint {
            position,
            identity: [0, species],
            ..members[0]
        }));
        let all = catalogue(&points, groups, &search(0.003, &[2e6]));
        assert_eq!(all.len(), 1);
        (all[0].nearest_other, all[0].position)
    };
    let gas = ([0.5, 0.5, 0.53], u64::MAX);
    let corner = ([0.99, 0.99, 0.99], 1);
    assert_eq!(nearest(&[gas, corner]).0, None);
    let (found, centre) = nearest(&[gas, corner, ([0.5, 0.8, 0.5], 1), ([0.5, 0.1, 0.5], 1)]);
    let way = [0.5 - centre[0], 0.8 - centre[1], 0.5 - centre[2]];
    let expected = way.iter().map(|x| x * x).sum::<f64>().sqrt();
    let found = found.expect("a particle");
    assert!((found - expected).abs() < 1e-14, "{found} {expected}");
}

#[test]
fn spheres_contain_points_that_are_in_no_group() {
    let mut points = isothermal([0.5; 3], 0.02);
    let groups = points.len();
    // as much mass again in another form, at the same places
    let others = points.clone().into_iter().map(|point| MassPoint {
        identity: [point.identity[0], 1],
        ..point
    });
    points.extend(others);
    let densities = [2e6];
    let [with, without] = [points.len(), groups].map(|count| {
        let all = catalogue(&points[..count], groups, &search(0.003, &densities));
        assert_eq!(all.len(), 1);
        all[0].clone()
    });
    assert_eq!((with.mass, with.position), (without.mass, without.position));
    let radius = with.spheres[0].radius / without.spheres[0].radius;
    assert!((radius - 2.0f64.sqrt()).abs() < 0.05, "{radius}");
}

#[test]
fn small_boxes_with_few_particles_have_groups() {
    let mut random = Random(6);
    for periodic in [[true; 3], [false; 3]] {
        let points: Vec<[f64; 3]> = (0..5).map(|_| [0, 1, 2].map(|_| random.next())).collect();
        let wide = Search {
            space: Space { periodic, ..UNIT },
            least: 2,
            ..search(1.0, &[200.0, 0.05])
        };
        let all = catalogue(&masses(&points), 5, &wide);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].number, 5);
        assert!(all[0].spheres[0].radius > 0.0);
        assert!(
            all[0].spheres[1].radius.is_nan() == periodic[0],
            "{:?}",
            all[0].spheres
        );
    }
}
