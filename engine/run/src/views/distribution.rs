//! Distributions: the volume, or the integral of a weight, of the cells in bins of one or two fields.

use super::bins::{BinSums, BinnedRegion, Bins, times_volume};
use super::{
    Accumulator, PatchCells, Quantity, View, ViewArray, ViewConfig, ViewContext, ViewKind,
    ViewLayout, ViewOutput,
};
use nestar_deck::DeckError;
use nestar_kernels::CELLS;
use nestar_kernels::mesh::block::LevelGeometry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest number of bins of two fields.
const MAX_BINS: usize = 1 << 20;
/// Name of the array.
const NAME: &str = "distribution";

/// Distribution: volume, or integral of `weight`, of the cells in bins of one or two fields, such as a phase diagram. Divided by its
/// sum and the widths of the bins it is normalised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct PdfConfig {
    #[serde(flatten)]
    pub common: ViewConfig,
    /// Number of bins, for each field.
    #[schemars(inner(range(min = 1, max = 65536)))]
    pub bins: Vec<u32>,
    /// Range, for each field: `[[1e-4, 1e2], [10, 1e8]]`.
    #[schemars(extend("unit" = "of the field"))]
    pub ranges: Vec<[f64; 2]>,
    /// Bins of equal ratio instead of equal width, for each field; default: none.
    #[serde(default)]
    pub logarithmic: Vec<bool>,
    /// Field or formula that is integrated over the cells, with the volume; default: 1, for the volume alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
}

impl ViewKind for PdfConfig {
    const NAME: &'static str = "pdf";

    fn common(&self) -> &ViewConfig {
        &self.common
    }

    fn view(&self, context: &ViewContext) -> Result<ViewOutput, DeckError> {
        let mut quantities = context.fields()?;
        let fields = quantities.len();
        if fields > 2 {
            return Err(context.error("fields", "must name one or two fields"));
        }
        if let Some(n) = quantities.iter().position(|own| own.name == NAME) {
            let why = format!("must not be named \"{NAME}\"");
            return Err(context.error(&format!("fields[{n}]"), &why));
        }
        let logarithmic = match self.logarithmic.is_empty() {
            true => vec![false; fields],
            false => self.logarithmic.clone(),
        };
        let lengths = [
            ("bins", self.bins.len()),
            ("ranges", self.ranges.len()),
            ("logarithmic", logarithmic.len()),
        ];
        if let Some((key, count)) = lengths.into_iter().find(|(_, count)| *count != fields) {
            let why =
                format!("must have one element for each of the {fields} fields, found {count}");
            return Err(context.error(key, &why));
        }
        let bins = (0..fields).map(|n| {
            let key = format!("ranges[{n}]");
            Bins::new(context, &key, self.ranges[n], self.bins[n], logarithmic[n])
        });
        let bins: Vec<Bins> = bins.collect::<Result<_, _>>()?;
        if bins.iter().map(Bins::len).product::<usize>() > MAX_BINS {
            return Err(context.error("bins", &format!("must give at most {MAX_BINS} bins")));
        }
        if let Some(weight) = &self.weight {
            quantities.push(context.quantity("weight", "weight", weight)?);
        }
        Ok(ViewOutput::series(Distribution {
            bins,
            region: BinnedRegion::of(context),
            quantities,
            level: context.level(),
        }))
    }
}

/// A distribution.
struct Distribution {
    /// Bins of each field.
    bins: Vec<Bins>,
    region: BinnedRegion,
    /// The fields, then the weight if there is one.
    quantities: Vec<Quantity>,
    level: usize,
}

impl View for Distribution {
    fn layout(&self) -> ViewLayout {
        let mut layout = ViewLayout::default();
        for (own, bins) in self.quantities.iter().zip(&self.bins) {
            let coordinates = bins.coordinates(&own.name, own.units.clone(), &own.long_name);
            layout.coordinates.extend(coordinates);
        }
        let (units, of) = match self.quantities.get(self.bins.len()) {
            Some(own) => (own.units.clone(), own.long_name.clone()),
            None => (Some("1".into()), "1".into()),
        };
        let fields = self.quantities[..self.bins.len()].iter().rev();
        layout.arrays.push(ViewArray {
            name: NAME.into(),
            dimensions: fields.map(|own| own.name.clone()).collect(),
            units: units.as_ref().map(|units| times_volume(units)),
            long_name: format!("integral of {of} over the cells of the bin"),
        });
        layout
    }

    fn quantities(&self) -> &[Quantity] {
        &self.quantities
    }

    fn finest(&self) -> usize {
        self.level
    }

    fn uses(&self, geometry: &LevelGeometry, patch: [i32; 3]) -> bool {
        self.region.meets(geometry, patch)
    }

    fn accumulator(&self) -> Box<dyn Accumulator + '_> {
        Box::new(DistributionSums {
            distribution: self,
            sums: BinSums::new(1),
        })
    }
}

/// Sums of a distribution.
struct DistributionSums<'a> {
    distribution: &'a Distribution,
    sums: BinSums,
}

impl Accumulator for DistributionSums<'_> {
    fn add(&mut self, cells: &PatchCells) {
        let Distribution {
            bins,
            region,
            quantities,
            ..
        } = self.distribution;
        for (cell, _, volume) in region.cells(cells) {
            let value = |quantity: usize| cells.values[CELLS * quantity + cell];
            // the bins of the second field are the rows
            let mut fields = bins.iter().enumerate().rev();
            let place = fields.try_fold(0, |place, (field, bins)| {
                Some(place * bins.len() + bins.find(value(field))?)
            });
            let Some(place) = place else {
                continue;
            };
            let weight = match quantities.len() > bins.len() {
                true => value(bins.len()) * volume,
                false => volume,
            };
            self.sums.add(place, std::iter::once(weight));
        }
    }

    fn pack(&self) -> Vec<u8> {
        self.sums.pack()
    }

    fn join(&mut self, bytes: &[u8]) -> Option<()> {
        self.sums.join(bytes)
    }

    fn values(&self) -> Vec<Vec<f64>> {
        let bins = self.distribution.bins.iter().map(Bins::len);
        let bins = 0..bins.product();
        vec![bins.map(|bin| self.sums.value(bin, 0)).collect()]
    }
}
