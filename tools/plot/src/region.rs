//! Part of the domain whose cells enter a profile or a phase diagram.

use crate::PlotOptions;
use crate::error::Result;
use crate::view::{domain, periodic, zoomed};
use nestar_snapshot::{LevelHeader, Snapshot};

/// A box or sphere about a centre.
pub(crate) struct Region {
    /// The centre.
    pub centre: [f64; 3],
    /// Half of the sides; the radius of a sphere is the largest of them.
    pub half: [f64; 3],
    /// `true` if the region is a sphere.
    is_sphere: bool,
    /// Lengths of the domain along periodic axes, otherwise infinite.
    periods: [f64; 3],
    low: [f64; 3],
    has_all: bool,
}

impl Region {
    /// Returns the region of the options about `centre`: by default the whole domain, or the sphere whose diameter is its longest side.
    pub fn new(
        snapshot: &Snapshot,
        options: &PlotOptions,
        centre: [f64; 3],
        is_sphere: bool,
    ) -> Result<Self> {
        let (low, high) = domain(snapshot);
        let sides: [f64; 3] = std::array::from_fn(|i| high[i] - low[i]);
        let zoomed = zoomed(sides, options.zoom)?;
        let has_all = !is_sphere && options.zoom.is_none();
        let is_periodic = periodic(snapshot);
        Ok(Self {
            centre,
            half: zoomed.map(|side| 0.5 * side),
            is_sphere,
            periods: std::array::from_fn(|i| match is_periodic[i] && !has_all {
                true => sides[i],
                false => f64::INFINITY,
            }),
            low,
            has_all,
        })
    }

    /// Returns the largest half side: the radius of a sphere.
    pub fn radius(&self) -> f64 {
        self.half.into_iter().fold(0.0, f64::max)
    }

    /// Returns a point relative to the centre; along periodic axes that of its nearest image.
    pub fn offset(&self, point: [f64; 3]) -> [f64; 3] {
        std::array::from_fn(|i| {
            let (from, period) = (point[i] - self.centre[i], self.periods[i]);
            match period.is_finite() {
                true => from - (from / period).round() * period,
                false => from,
            }
        })
    }

    /// Returns `true` if a point, relative to the centre, is in the region.
    pub fn contains(&self, offset: [f64; 3]) -> bool {
        match self.is_sphere {
            true => length(offset) <= self.radius(),
            false => self.has_all || (0..3).all(|i| offset[i].abs() <= self.half[i]),
        }
    }

    /// Returns `true` if a patch may have cells in the region.
    pub fn may_meet(&self, level: &LevelHeader, origin: [i32; 3], cells: usize) -> bool {
        let half: [f64; 3] = level.cell_width.map(|width| 0.5 * cells as f64 * width);
        let middle = |i: usize| self.low[i] + f64::from(origin[i]) * level.cell_width[i] + half[i];
        let offset = self.offset(std::array::from_fn(middle));
        let reach = match self.is_sphere {
            true => [self.radius(); 3],
            false => self.half,
        };
        self.has_all || (0..3).all(|i| offset[i].abs() <= reach[i] + half[i])
    }
}

/// Returns the length of a vector.
pub(crate) fn length([x, y, z]: [f64; 3]) -> f64 {
    (x * x + y * y + z * z).sqrt()
}
