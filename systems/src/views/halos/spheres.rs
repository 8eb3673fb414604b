//! Spheres around points whose mean density is a given one (Lacey & Cole 1994).

use super::space::{Space, squared};
use crate::views::points::MassPoint;
use rayon::prelude::*;

/// Mean number of points in a cell.
const POINTS: f64 = 4.0;
/// Points inside the smallest sphere that counts: fewer have a density by chance.
pub const FEW: usize = 10;
/// Factor by which a sphere is widened beyond its expected radius.
const WIDER: f64 = 1.25;

/// Points by cells of a coarse grid.
pub struct PointGrid<'a> {
    points: &'a [MassPoint],
    space: &'a Space,
    /// Cells along each axis.
    counts: [u64; 3],
    /// First entry of each cell, x fastest, and the number of entries.
    starts: Vec<u32>,
    /// Points by cell.
    entries: Vec<u32>,
}

/// A point around a centre.
#[derive(Clone, Copy, Debug)]
struct Around {
    distance_squared: f64,
    identity: [u64; 2],
    mass: f64,
}

/// A sphere of a given mean density.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sphere {
    /// Radius; NaN if there is none.
    pub radius: f64,
    /// Mass; NaN if there is none.
    pub mass: f64,
}

impl Sphere {
    /// No sphere.
    const NONE: Self = Self {
        radius: f64::NAN,
        mass: f64::NAN,
    };
}

/// What is found around a centre.
#[derive(Clone, Debug, PartialEq)]
pub struct Surroundings {
    /// Spheres of each of the densities.
    pub spheres: Vec<Sphere>,
    /// Largest mass within a radius over this radius, up to the radius of the last sphere.
    pub steepest: f64,
}

impl<'a> PointGrid<'a> {
    /// Sorts points into cells. There are fewer than 2^32.
    pub fn new(points: &'a [MassPoint], space: &'a Space) -> Self {
        let volume: f64 = space.lengths.iter().product();
        let cells = (points.len() as f64 / POINTS).max(1.0);
        let width = nestar_device::math::pow(volume / cells, 1.0 / 3.0);
        let counts = space.lengths.map(|length| (length / width) as u64 + 1);
        let cell = |point: &MassPoint| {
            let [x, y, z] = space.cell(point.position, counts);
            ((z * counts[1] + y) * counts[0] + x) as u32
        };
        let places: Vec<u32> = points.par_iter().map(cell).collect();
        let mut starts = vec![0u32; counts.iter().product::<u64>() as usize + 1];
        for &place in &places {
            starts[place as usize + 1] += 1;
        }
        for n in 1..starts.len() {
            starts[n] += starts[n - 1];
        }
        let mut entries = vec![0u32; points.len()];
        let mut next = starts.clone();
        for (n, &place) in places.iter().enumerate() {
            let at = &mut next[place as usize];
            entries[*at as usize] = n as u32;
            *at += 1;
        }
        Self {
            points,
            space,
            counts,
            starts,
            entries,
        }
    }

    /// Returns the points in a sphere by distance.
    fn around(&self, centre: [f64; 3], radius: f64) -> Vec<Around> {
        let of_axis = |axis: usize| -> Vec<[u64; 2]> {
            let width = self.space.lengths[axis] / self.counts[axis] as f64;
            let cell = |x: f64| ((x - self.space.left[axis]) / width).floor() as i64;
            let ends = [
                cell(centre[axis] - radius) - 1,
                cell(centre[axis] + radius) + 1,
            ];
            self.space.ranges(axis, self.counts[axis], ends).collect()
        };
        let [xs, ys, zs] = [0, 1, 2].map(of_axis);
        let mut found = Vec::new();
        let all = |ranges: Vec<[u64; 2]>| ranges.into_iter().flat_map(|[a, b]| a..=b);
        let ys: Vec<u64> = all(ys).collect();
        for z in all(zs) {
            for y in &ys {
                let row = (z * self.counts[1] + y) * self.counts[0];
                for [first, last] in &xs {
                    let [first, end] =
                        [first, &(last + 1)].map(|x| self.starts[(row + x) as usize]);
                    let entries = &self.entries[first as usize..end as usize];
                    self.add_within(centre, radius, entries, &mut found);
                }
            }
        }
        found.sort_unstable_by(|a: &Around, b| {
            let distances = a.distance_squared.total_cmp(&b.distance_squared);
            distances.then(a.identity.cmp(&b.identity))
        });
        found
    }

    /// Adds those of some points that are in a sphere.
    fn add_within(&self, centre: [f64; 3], radius: f64, entries: &[u32], found: &mut Vec<Around>) {
        for &n in entries {
            let point = &self.points[n as usize];
            let distance_squared = self.space.distance_squared(centre, point.position);
            if distance_squared <= radius * radius {
                found.push(Around {
                    distance_squared,
                    identity: point.identity,
                    mass: point.mass,
                });
            }
        }
    }

    /// Finds spheres of these mean densities around a centre. `mass` is an estimate of the mass of the largest one.
    pub fn surroundings(&self, centre: [f64; 3], densities: &[f64], mass: f64) -> Surroundings {
        let most = self.largest_radius();
        let lowest = densities.iter().copied().fold(f64::INFINITY, f64::min);
        let mut radius = (WIDER * radius_of(mass, lowest)).min(most);
        loop {
            let around = self.around(centre, radius);
            let all = densities.iter();
            let all: Vec<Found> = all
                .map(|&density| sphere(&around, density, radius))
                .collect();
            let wanted = all.iter().fold(0.0, |most, own| f64::max(most, own.wanted));
            if wanted > 0.0 && radius < most {
                radius = (WIDER * wanted).min(most);
                continue;
            }
            let spheres: Vec<Sphere> = all.into_iter().map(|own| own.sphere).collect();
            let steepest = steepest(&around, spheres.last());
            return Surroundings { spheres, steepest };
        }
    }

    /// Returns the distance of the nearest point, or `None` if there is none in the largest sphere.
    pub fn nearest(&self, centre: [f64; 3]) -> Option<f64> {
        let most = self.largest_radius();
        let widths = (0..3).map(|axis| self.space.lengths[axis] / self.counts[axis] as f64);
        let mut radius = widths.fold(most, f64::min);
        loop {
            let around = self.around(centre, radius);
            if let Some(first) = around.first() {
                return Some(first.distance_squared.sqrt());
            }
            if radius >= most || self.points.is_empty() {
                return None;
            }
            radius = (2.0 * radius).min(most);
        }
    }

    /// Returns the radius of the largest sphere without periodic images, or the diagonal of a box that is not periodic.
    fn largest_radius(&self) -> f64 {
        let axes = (0..3).filter(|&axis| self.space.periodic[axis]);
        let half = axes.map(|axis| 0.5 * self.space.lengths[axis]);
        half.fold(squared(self.space.lengths).sqrt(), f64::min)
    }
}

/// Returns the radius of a sphere with this mass and density.
fn radius_of(mass: f64, density: f64) -> f64 {
    nestar_device::math::pow(
        mass / (4.0 / 3.0 * std::f64::consts::PI * density),
        1.0 / 3.0,
    )
}

/// A sphere as far as points are known.
struct Found {
    sphere: Sphere,
    /// Radius up to which points must be known; 0: they are.
    wanted: f64,
}

/// Returns the smallest sphere, among those with ten points or more, beyond which the mean density falls below the given one. If it is
/// below in the sphere of ten points, returns the next smaller sphere that has it. Points are known up to the radius `known`.
fn sphere(around: &[Around], density: f64, known: f64) -> Found {
    let (mut mass, mut sphere) = (0.0, Sphere::NONE);
    for (n, point) in around.iter().enumerate() {
        mass += point.mass;
        let radius = radius_of(mass, density);
        let next = around.get(n + 1).map(|next| next.distance_squared);
        if next.is_some_and(|next| radius * radius >= next) {
            continue;
        }
        if next.is_none() && radius > known {
            return Found {
                sphere: Sphere::NONE,
                wanted: radius,
            };
        }
        if radius * radius >= point.distance_squared {
            sphere = Sphere { radius, mass };
        }
        if n + 1 >= FEW {
            return Found {
                sphere,
                wanted: 0.0,
            };
        }
    }
    Found {
        sphere,
        wanted: 2.0 * known,
    }
}

/// Returns the largest mass within a radius over this radius, of ten points or more, or of all if there are fewer, up to the radius of a
/// sphere.
fn steepest(around: &[Around], sphere: Option<&Sphere>) -> f64 {
    let end = sphere.map_or(f64::NAN, |sphere| sphere.radius);
    let inside = around.partition_point(|point| point.distance_squared.sqrt() <= end);
    let (mut mass, mut most) = (0.0, f64::NAN);
    for (n, point) in around[..inside].iter().enumerate() {
        mass += point.mass;
        if n + 1 >= FEW.min(inside) && point.distance_squared > 0.0 {
            most = f64::max(most, mass / point.distance_squared.sqrt());
        }
    }
    most
}
