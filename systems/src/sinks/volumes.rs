//! Gas within the accretion radius around points, as all ranks know it.

use nestar_engine::Error;
use nestar_engine::comm::Ranks;
use nestar_engine::data::CellAddress;
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::{Domain, Topology};

/// Index of a cell on the finest level.
pub(super) type CellIndex = [i32; 3];

/// A point on the finest level, in cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point(pub [f64; 3]);

impl Point {
    /// Returns the centre of a cell.
    pub fn centre_of(cell: CellIndex) -> Self {
        Self(cell.map(|i| f64::from(i) + 0.5))
    }
}

/// The cells of the finest level and the radius around points.
#[derive(Clone, Copy)]
pub(super) struct Neighbourhood<'a> {
    pub topology: &'a Topology,
    pub level: usize,
    /// Radius, code length.
    pub radius: f64,
    /// Width of a cell along each axis.
    pub width: [f64; 3],
}

/// A cell near a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NearCell {
    pub index: CellIndex,
    /// Position of its centre relative to the point, code length.
    pub offset: [f64; 3],
}

/// Returns the length of a vector.
pub(super) fn length(v: [f64; 3]) -> f64 {
    (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]).sqrt()
}

impl<'a> Neighbourhood<'a> {
    /// Creates it for a radius in cells; the widest axis counts.
    pub fn new(topology: &'a Topology, level: usize, cells: f64) -> Self {
        let width = topology.domain.cell_width(level);
        Self {
            topology,
            level,
            radius: cells * width.iter().copied().fold(0.0, f64::max),
            width,
        }
    }

    fn domain(&self) -> &Domain {
        &self.topology.domain
    }

    /// Returns the vector from `from` to the nearest image of `to`, code length.
    pub fn between(&self, from: Point, to: Point) -> [f64; 3] {
        let cells = self.domain().cells(self.level);
        [0, 1, 2].map(|axis| {
            let mut steps = to.0[axis] - from.0[axis];
            let all = f64::from(cells[axis]);
            if self.domain().periodic[axis] {
                steps -= all * (steps / all).round();
            }
            steps * self.width[axis]
        })
    }

    /// Returns `true` if two points are at most the radius apart.
    pub fn are_near(&self, a: Point, b: Point) -> bool {
        length(self.between(a, b)) <= self.radius
    }

    /// Returns the cells of the domain whose centres are within the radius of a point, x fastest; without values.
    pub fn cells_around(&self, point: Point) -> Volume {
        let cells = self.domain().cells(self.level);
        let reach = self.width.map(|width| (self.radius / width) as i32 + 1);
        let first = point.0.map(|x| x as i32);
        let range = |axis: usize| first[axis] - reach[axis]..=first[axis] + reach[axis];
        let (mut found, mut is_inside_domain) = (Vec::new(), true);
        for z in range(2) {
            for (y, x) in range(1).flat_map(|y| range(0).map(move |x| (y, x))) {
                let mut index = [x, y, z];
                let centre = Point::centre_of(index).0;
                let offset =
                    [0, 1, 2].map(|axis| (centre[axis] - point.0[axis]) * self.width[axis]);
                for axis in (0..3).filter(|&axis| self.domain().periodic[axis]) {
                    index[axis] = index[axis].rem_euclid(cells[axis]);
                }
                let is_inside = (0..3).all(|axis| (0..cells[axis]).contains(&index[axis]));
                let is_near = length(offset) <= self.radius;
                is_inside_domain &= is_inside || !is_near;
                if is_inside && is_near {
                    found.push(NearCell { index, offset });
                }
            }
        }
        Volume {
            values: vec![Vec::new(); found.len()],
            places: found,
            is_inside_domain,
        }
    }

    /// Returns the values of fields in the cells around points; `read` returns the values in cells of this rank, `count` numbers each.
    /// Collective.
    ///
    /// # Errors
    /// The device or another rank has failed.
    pub fn sample(
        &self,
        points: &[Point],
        count: usize,
        read: impl FnOnce(&[CellAddress]) -> Result<Vec<f64>, DeviceError>,
        ranks: &Ranks,
    ) -> Result<Vec<Volume>, Error> {
        let mut volumes: Vec<Volume> = points
            .iter()
            .map(|&point| self.cells_around(point))
            .collect();
        let (mut own, mut addresses) = (Vec::new(), Vec::new());
        for (number, volume) in volumes.iter().enumerate() {
            for (place, near) in volume.places.iter().enumerate() {
                let at = CellAddress::in_own_leaf(self.topology, self.level, near.index);
                addresses.extend(at);
                own.extend(at.map(|_| [number as f64, place as f64]));
            }
        }
        let values = read(&addresses)?;
        let rows = own.iter().zip(values.chunks_exact(count));
        let message: Vec<f64> = rows
            .flat_map(|(place, values)| place.iter().chain(values))
            .copied()
            .collect();
        for row in ranks.gather(&message)?.chunks_exact(2 + count) {
            let (number, place) = (row[0] as usize, row[1] as usize);
            volumes[number].values[place] = row[2..].to_vec();
        }
        Ok(volumes)
    }
}

/// The cells around a point with the values of fields.
#[derive(Clone, Debug)]
pub(super) struct Volume {
    pub places: Vec<NearCell>,
    /// Values of each cell; empty where the cell is no leaf of the level.
    values: Vec<Vec<f64>>,
    /// `true` if no cell lies beyond a face of the domain.
    is_inside_domain: bool,
}

impl Volume {
    /// Returns `true` if all cells within the radius are leaves of the level.
    pub fn is_complete(&self) -> bool {
        self.is_inside_domain && self.values.iter().all(|values| !values.is_empty())
    }

    /// Returns the cells that are leaves of the level, with their values.
    pub fn cells(&self) -> impl Iterator<Item = (&NearCell, &[f64])> {
        let all = self.places.iter().zip(&self.values);
        all.filter(|(_, values)| !values.is_empty())
            .map(|(near, values)| (near, &**values))
    }

    /// Returns the values of the cell with an index.
    pub fn find(&self, index: CellIndex) -> Option<&[f64]> {
        let mut all = self.cells();
        all.find_map(|(near, values)| (near.index == index).then_some(values))
    }
}
