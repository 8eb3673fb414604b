//! Force of discs of finite height, and of all mass of a sphere with discs.

use super::super::error::{SphereError, in_range};
use super::super::profile::Profile;
use super::super::radial_function::integrals;
use super::grid::{Axis, PlaneTable};
use super::shape::{DiscShape, END, sech_square};
use super::thin;
use nestar_device::math::exp;
use rayon::prelude::*;

/// Intervals of the tables along height.
const HEIGHTS: usize = 96;
/// Vertical distance of the mass that attracts, in heights; 2e-8 of the mass are beyond it.
const REACH: f64 = 9.0;
/// Half the width of a difference of logarithms of radius.
const DIFFERENCE: f64 = 0.02;

/// Force of an exponential disc of finite height, per unit mass and for a gravitational constant of 1.
#[derive(Clone, Debug, PartialEq)]
struct DiscForce {
    shape: DiscShape,
    /// Force towards the centre and the plane for unit mass and scale radius.
    table: PlaneTable<2>,
}

impl DiscForce {
    /// Averages the force of thin discs over the vertical density.
    fn new(shape: DiscShape) -> Self {
        let thin = thin::table();
        let height = shape.height / shape.radius;
        let heights = Axis::new(height, thin::FAR, HEIGHTS);
        let weight = |z: f64| sech_square(z / height) / (2.0 * height);
        let value = |radius: usize, z: f64| {
            let ends = [(z - REACH * height).max(0.0), z + REACH * height];
            let intervals = ((ends[1] - ends[0]) / height) as usize + 1;
            // a thin disc at this distance below the point, and one above it
            integrals(ends, intervals, |distance| {
                let (below, above) = (weight(z - distance), weight(z + distance));
                let [across, up] = thin.along(radius, &thin.axes()[1].around(distance));
                [(below + above) * across, (below - above) * up]
            })
        };
        let radii = thin.axes()[0];
        let column = |n: usize| heights.nodes().map(|z| value(n, z)).collect();
        let columns = (0..=radii.intervals()).into_par_iter().map(column);
        Self {
            shape,
            table: PlaneTable::of_columns([radii, heights], columns.collect()),
        }
    }

    /// Returns the force towards the centre and towards the plane, at a height of at least 0.
    fn at(&self, r: f64, z: f64) -> [f64; 2] {
        let DiscShape { mass, radius, .. } = self.shape;
        let (x, y) = (r / radius, z / radius);
        let scaled = match x.max(y) < thin::FAR {
            true => self.table.at(x, y),
            false => {
                let square = x * x + y * y;
                [x, y].map(|along| along / (square * square.sqrt()))
            }
        };
        scaled.map(|force| force * mass / (radius * radius))
    }
}

/// Gravity of all mass of a sphere with discs, without truncations.
#[derive(Clone, Debug, PartialEq)]
pub struct GalaxyForce {
    spheres: Vec<Profile>,
    discs: Vec<DiscForce>,
    gravity: f64,
}

impl GalaxyForce {
    /// Combines spherical components and discs. `gravity` is Newton's constant.
    ///
    /// # Errors
    /// Newton's constant is outside 1e-60 to 1e60.
    pub fn new(
        spheres: &[Profile],
        discs: &[DiscShape],
        gravity: f64,
    ) -> Result<Self, SphereError> {
        Ok(Self {
            spheres: spheres.to_vec(),
            discs: discs.iter().map(|disc| DiscForce::new(*disc)).collect(),
            gravity: in_range("gravity", gravity)?,
        })
    }

    /// Returns the accelerations towards the axis and towards the plane, length/time^2, at a radius above 0 and
    /// a height of at least 0.
    #[must_use]
    pub fn at(&self, r: f64, z: f64) -> [f64; 2] {
        let distance = (r * r + z * z).sqrt();
        let mass: f64 = self.spheres.iter().map(|part| part.mass(distance)).sum();
        let pull = mass / (distance * distance * distance);
        let mut sum = [pull * r, pull * z];
        for disc in &self.discs {
            for (sum, force) in sum.iter_mut().zip(disc.at(r, z)) {
                *sum += force;
            }
        }
        sum.map(|force| self.gravity * force)
    }

    /// Returns the speed of circular orbits in the plane, length/time, at a radius above 0.
    #[must_use]
    pub fn circular_speed(&self, r: f64) -> f64 {
        self.circular_square(r, 0.0).max(0.0).sqrt()
    }

    /// Returns the radius times the acceleration towards the axis.
    pub(super) fn circular_square(&self, r: f64, z: f64) -> f64 {
        r * self.at(r, z)[0]
    }

    /// Returns the square of the epicyclic frequency over four times the square of the angular frequency, in
    /// the plane.
    pub(super) fn epicyclic_ratio(&self, r: f64) -> f64 {
        let [inner, middle, outer] =
            [-DIFFERENCE, 0.0, DIFFERENCE].map(|step| self.circular_square(r * exp(step), 0.0));
        0.5 + 0.25 * (outer - inner) / (2.0 * DIFFERENCE * middle)
    }

    /// Returns Newton's constant.
    pub(super) fn gravity(&self) -> f64 {
        self.gravity
    }

    /// Tabulates the pressure over the density that supports a disc against vertical gravity: the integral of
    /// the density times the acceleration from a height upwards, over the density.
    pub(super) fn support(&self, shape: &DiscShape) -> PlaneTable<1> {
        let radii = Axis::new(0.1 * shape.radius, END * shape.radius, 96);
        let heights = Axis::new(shape.height, END * shape.height, 32);
        let column = |r: f64| {
            let r = r.max(1e-6 * shape.radius);
            let rate = |z: f64| [shape.density(r, z) * self.at(r, z)[1]];
            let levels: Vec<f64> = heights.nodes().collect();
            let top = levels[levels.len() - 1];
            // far above the plane the density falls as exp(-2 z/height)
            let mut pressure = 0.5 * shape.height * rate(top)[0];
            let mut ratios = vec![[pressure / shape.density(r, top)]];
            for ends in levels.windows(2).rev() {
                pressure += integrals([ends[0], ends[1]], 1, rate)[0];
                ratios.push([pressure / shape.density(r, ends[0])]);
            }
            ratios.reverse();
            ratios
        };
        PlaneTable::of_columns([radii, heights], radii.nodes().map(column).collect())
    }
}
