//! Bins of profiles and distributions, and exact sums in them.

use super::{PatchCells, ViewContext, ViewCoordinate};
use nestar_deck::DeckError;
use nestar_device::math::{exp, ln};
use nestar_kernels::mesh::block::{LevelGeometry, cell_place};
use nestar_kernels::mesh::exact_sum::ExactSum;
use std::collections::BTreeMap;

/// Bins between ascending edges.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bins {
    edges: Vec<f64>,
    is_logarithmic: bool,
}

impl Bins {
    /// Creates bins of equal width, or of equal ratio if they are logarithmic. `key` is that of the range.
    ///
    /// # Errors
    /// The range is empty; it is not positive, but logarithmic.
    pub fn new(
        context: &ViewContext,
        key: &str,
        [low, high]: [f64; 2],
        count: u32,
        is_logarithmic: bool,
    ) -> Result<Self, DeckError> {
        if high <= low {
            let why = format!("must ascend, found {low} to {high}");
            return Err(context.error(key, &why));
        }
        if is_logarithmic && low <= 0.0 {
            let why = format!("must be positive for logarithmic bins, found {low} to {high}");
            return Err(context.error(key, &why));
        }
        let edge = |n: u32| {
            let part = f64::from(n) / f64::from(count);
            match (n == 0, n == count, is_logarithmic) {
                (true, ..) => low,
                (_, true, _) => high,
                (.., true) => exp(ln(low) + part * (ln(high) - ln(low))),
                (.., false) => low + part * (high - low),
            }
        };
        Ok(Self {
            edges: (0..=count).map(edge).collect(),
            is_logarithmic,
        })
    }

    /// Returns the number of bins.
    pub fn len(&self) -> usize {
        self.edges.len() - 1
    }

    /// Returns the bin of a number; the last bin includes its upper edge.
    pub fn find(&self, x: f64) -> Option<usize> {
        let last = self.len();
        if x == self.edges[last] {
            return Some(last - 1);
        }
        let above = self.edges.partition_point(|&edge| edge <= x);
        (1..=last).contains(&above).then(|| above - 1)
    }

    /// Returns the coordinates of the centres of the bins and of their edges.
    pub fn coordinates(
        &self,
        name: &str,
        units: Option<String>,
        long_name: &str,
    ) -> [ViewCoordinate; 2] {
        let middle = |edges: &[f64]| match self.is_logarithmic {
            true => edges[0].sqrt() * edges[1].sqrt(),
            false => 0.5 * (edges[0] + edges[1]),
        };
        let coordinate = |name: String, what: &str, values| ViewCoordinate {
            name,
            units: units.clone(),
            long_name: format!("{long_name}, {what}"),
            values,
        };
        let centres = self.edges.windows(2).map(middle).collect();
        [
            coordinate(name.into(), "centre of the bin", centres),
            coordinate(format!("{name}_edge"), "edge of a bin", self.edges.clone()),
        ]
    }
}

/// An exact sum that may contain numbers that are not finite.
#[derive(Clone, Default)]
struct BinSum {
    exact: ExactSum,
    is_nan: bool,
}

/// Exact sums in bins, some in each bin.
pub(super) struct BinSums {
    /// Number of sums of a bin.
    count: usize,
    bins: BTreeMap<u32, Vec<BinSum>>,
}

impl BinSums {
    /// Creates empty bins with `count` sums each.
    pub fn new(count: usize) -> Self {
        Self {
            count,
            bins: BTreeMap::new(),
        }
    }

    /// Adds numbers to the sums of a bin.
    pub fn add(&mut self, bin: usize, numbers: impl Iterator<Item = f64>) {
        let empty = || vec![BinSum::default(); self.count];
        let sums = self.bins.entry(bin as u32).or_insert_with(empty);
        for (sum, x) in sums.iter_mut().zip(numbers) {
            match x.is_finite() {
                true => sum.exact.add(x),
                false => sum.is_nan = true,
            }
        }
    }

    /// Returns a sum of a bin.
    pub fn value(&self, bin: usize, sum: usize) -> f64 {
        match self.bins.get(&(bin as u32)).map(|sums| &sums[sum]) {
            Some(sum) if sum.is_nan => f64::NAN,
            Some(sum) => sum.exact.value(),
            None => 0.0,
        }
    }

    /// Returns all sums as bytes.
    pub fn pack(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (bin, sums) in &self.bins {
            bytes.extend(bin.to_le_bytes());
            for sum in sums {
                bytes.extend(sum.exact.to_bytes());
                bytes.push(u8::from(sum.is_nan));
            }
        }
        bytes
    }

    /// Adds packed sums; `None` if they are damaged.
    pub fn join(&mut self, mut bytes: &[u8]) -> Option<()> {
        while let Some((bin, rest)) = bytes.split_first_chunk::<4>() {
            bytes = rest;
            let empty = || vec![BinSum::default(); self.count];
            let own = self.bins.entry(u32::from_le_bytes(*bin));
            for sum in own.or_insert_with(empty) {
                let exact = bytes.split_off(..ExactSum::BYTES)?;
                sum.exact.merge(&ExactSum::from_bytes(exact)?);
                sum.is_nan |= *bytes.split_off_first()? != 0;
            }
        }
        bytes.is_empty().then_some(())
    }
}

/// Part of the box whose cells are binned.
#[derive(Clone, Copy, Debug)]
pub(super) struct BinnedRegion(Option<[[f64; 3]; 2]>);

impl BinnedRegion {
    /// Returns the region of a view.
    pub fn of(context: &ViewContext) -> Self {
        let region = context.config.region.as_ref();
        Self(region.map(|region| [region.left, region.right]))
    }

    /// Returns `true` if a patch has cells in the region.
    pub fn meets(&self, geometry: &LevelGeometry, patch: [i32; 3]) -> bool {
        let Some([left, right]) = self.0 else {
            return true;
        };
        let [first, last] = [0, 511].map(|cell| cell_place::<f64>(geometry, patch, cell).centre);
        (0..3).all(|a| first[a] <= right[a] && last[a] >= left[a])
    }

    /// Returns the cells of a patch whose centres are in the region: the index, the centre and the volume of each.
    pub fn cells<'a>(
        &'a self,
        cells: &'a PatchCells,
    ) -> impl Iterator<Item = (usize, [f64; 3], f64)> + 'a {
        let volume = cells.geometry.width.iter().product();
        let is_inside = |x: &[f64; 3]| {
            let within =
                |[left, right]: [[f64; 3]; 2]| (0..3).all(|a| left[a] <= x[a] && x[a] < right[a]);
            self.0.is_none_or(within)
        };
        let all = (0..nestar_kernels::CELLS).map(move |cell| {
            let place = cell_place::<f64>(cells.geometry, cells.patch, cell as i32);
            (cell, place.centre, volume)
        });
        all.filter(move |(_, centre, _)| is_inside(centre))
    }
}

/// Returns the unit of an integral over a volume.
pub(super) fn times_volume(units: &str) -> String {
    match units {
        "1" => "length**3".into(),
        _ => format!("{units}*length**3"),
    }
}
