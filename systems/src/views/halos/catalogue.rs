//! Properties of groups of particles.

use super::friends;
use super::space::{Space, squared};
use super::spheres::{PointGrid, Sphere};
use crate::views::points::MassPoint;
use rayon::prelude::*;

/// Factor by which the sphere around the centre of a group shrinks in a step (Power et al. 2003).
const SHRINKS: f64 = 0.9;
/// Particles among which the one with the lowest potential is found.
const CORE: usize = 128;
/// Least particles in a shrinking sphere.
const LEAST_CORE: usize = 16;
/// Softening length of potentials over the linking length.
const SOFTENING: f64 = 0.1;

/// How groups are found.
#[derive(Clone, Debug)]
pub struct Search {
    /// The box.
    pub space: Space,
    /// Largest distance of friends.
    pub linking_length: f64,
    /// Least particles of a group.
    pub least: usize,
    /// Mean densities of spheres; the last one limits the circular velocity.
    pub densities: Vec<f64>,
}

/// A group of particles.
#[derive(Clone, Debug, PartialEq)]
pub struct Halo {
    /// Identity of the particle with the least one, and the number of its species.
    pub identity: [u64; 2],
    /// Number of particles.
    pub number: u64,
    /// Mass of the particles.
    pub mass: f64,
    /// Position of the particle with the lowest potential in the core.
    pub position: [f64; 3],
    /// Centre of mass.
    pub centre_of_mass: [f64; 3],
    /// Mean velocity.
    pub velocity: [f64; 3],
    /// Spheres of the mean densities around `position`.
    pub spheres: Vec<Sphere>,
    /// Largest mass within a radius over this radius.
    pub steepest: f64,
    /// Distance of the nearest particle of a species that forms no groups from `position`, if there is one within half of the box.
    pub nearest_other: Option<f64>,
}

/// Returns all groups of the first `particles` points, by descending mass, then by identity. Spheres contain all points.
pub fn catalogue(points: &[MassPoint], particles: usize, search: &Search) -> Vec<Halo> {
    let own = &points[..particles];
    let positions: Vec<[f64; 3]> = own.par_iter().map(|point| point.position).collect();
    let space = &search.space;
    let groups = friends::groups(&positions, space, search.linking_length, search.least);
    drop(positions);
    let grid = PointGrid::new(points, space);
    let others = points[particles..].iter().filter(|point| !point.is_gas());
    let others: Vec<MassPoint> = others.copied().collect();
    let others = PointGrid::new(&others, space);
    let halo = |members: Vec<u32>| {
        let members = members.iter().map(|&n| points[n as usize]);
        let mut halo = halo(members.collect(), &grid, search);
        halo.nearest_other = others.nearest(halo.position);
        halo
    };
    let mut halos: Vec<Halo> = groups.into_par_iter().map(halo).collect();
    halos.par_sort_unstable_by(|a, b| {
        let masses = b.mass.total_cmp(&a.mass);
        masses.then(a.identity.cmp(&b.identity))
    });
    halos
}

/// Returns the properties of a group. All sums are in the order of the identities.
fn halo(mut members: Vec<MassPoint>, grid: &PointGrid, search: &Search) -> Halo {
    let space = &search.space;
    members.sort_unstable_by_key(|member| member.identity);
    let first = members[0];
    // relative to one of them, because the group may cross the border of the box
    for member in &mut members {
        member.position = space.separation(first.position, member.position);
    }
    let mass: f64 = members.iter().map(|member| member.mass).sum();
    let mean = mean_of(&members, |member| member.position);
    let place = |relative: [f64; 3]| {
        space.inside([0, 1, 2].map(|axis| first.position[axis] + relative[axis]))
    };
    let velocity = mean_of(&members, |member| member.velocity);
    let number = members.len() as u64;
    let core = core(members, mean);
    let lowest = lowest(&core, SOFTENING * search.linking_length);
    let position = place(lowest.position);
    let around = grid.surroundings(position, &search.densities, mass);
    Halo {
        identity: first.identity,
        number,
        mass,
        position,
        centre_of_mass: place(mean),
        velocity,
        spheres: around.spheres,
        steepest: around.steepest,
        nearest_other: None,
    }
}

/// Returns the mean of a vector, weighted by mass.
fn mean_of(members: &[MassPoint], vector: impl Fn(&MassPoint) -> [f64; 3]) -> [f64; 3] {
    let (mut sum, mut mass) = ([0.0; 3], 0.0);
    for member in members {
        let own = vector(member);
        for axis in 0..3 {
            sum[axis] += member.mass * own[axis];
        }
        mass += member.mass;
    }
    sum.map(|sum| sum / mass)
}

/// Returns the particles in a sphere that shrinks around its centre of mass until few are inside.
fn core(mut inside: Vec<MassPoint>, mut centre: [f64; 3]) -> Vec<MassPoint> {
    let distance =
        |a: [f64; 3], b: &MassPoint| squared([0, 1, 2].map(|axis| b.position[axis] - a[axis]));
    let most = |inside: &[MassPoint], centre| {
        let all = inside.iter().map(|member| distance(centre, member));
        all.fold(0.0, f64::max)
    };
    let mut radius_squared = most(&inside, centre);
    let mut moved = false;
    while inside.len() > CORE {
        radius_squared *= SHRINKS * SHRINKS;
        let near = |member: &&MassPoint| distance(centre, member) <= radius_squared;
        let kept: Vec<MassPoint> = inside.iter().filter(near).copied().collect();
        if kept.len() >= LEAST_CORE {
            centre = mean_of(&kept, |member| member.position);
            (inside, moved) = (kept, false);
            continue;
        }
        inside.sort_by(|a, b| distance(centre, a).total_cmp(&distance(centre, b)));
        if moved {
            inside.truncate(CORE);
        } else {
            // there is a gap at the centre, as between two clumps
            centre = inside[0].position;
            moved = true;
        }
    }
    inside.sort_unstable_by_key(|member| member.identity);
    inside
}

/// Returns the particle with the lowest potential of these particles.
fn lowest(core: &[MassPoint], softening: f64) -> MassPoint {
    let depth = |own: &MassPoint| {
        let others = core
            .iter()
            .filter(|other| other.identity != own.identity)
            .map(|other| {
                let way = [0, 1, 2].map(|axis| other.position[axis] - own.position[axis]);
                other.mass / (squared(way) + softening * softening).sqrt()
            });
        others.sum::<f64>()
    };
    let mut best = (core[0], depth(&core[0]));
    for own in &core[1..] {
        let depth = depth(own);
        if depth > best.1 {
            best = (*own, depth);
        }
    }
    best.0
}
