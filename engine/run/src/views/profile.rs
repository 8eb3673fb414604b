//! Profiles: means of fields in shells around a centre or in layers along an axis.

use super::bins::{BinSums, BinnedRegion, Bins, times_volume};
use super::config::AXES;
use super::{
    Accumulator, Axis, PatchCells, Quantity, View, ViewArray, ViewConfig, ViewContext, ViewKind,
    ViewLayout, ViewOutput,
};
use nestar_deck::DeckError;
use nestar_kernels::CELLS;
use nestar_kernels::mesh::block::LevelGeometry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Profile: means of fields by the distance from a centre, or along an axis. Cells belong to the bin of their centre.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct ProfileConfig {
    #[serde(flatten)]
    pub common: ViewConfig,
    /// Centre of spherical shells; the distance does not continue across periodic faces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("unit" = "length"))]
    pub centre: Option<[f64; 3]>,
    /// Axis along which layers lie, in place of `centre`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axis: Option<Axis>,
    /// Number of bins.
    #[serde(default = "bins")]
    #[schemars(range(min = 1, max = 65536))]
    pub bins: u32,
    /// Range of the distance or the coordinate; default: the whole box.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("unit" = "length"))]
    pub range: Option<[f64; 2]>,
    /// Bins of equal ratio instead of equal width.
    #[serde(default)]
    pub logarithmic: bool,
    /// Field or formula that weights the mean in addition to the volume of the cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
}

fn bins() -> u32 {
    64
}

impl ViewKind for ProfileConfig {
    const NAME: &'static str = "profile";

    fn common(&self) -> &ViewConfig {
        &self.common
    }

    fn view(&self, context: &ViewContext) -> Result<ViewOutput, DeckError> {
        let [left, right] = [context.domain.left_edge, context.domain.right_edge];
        let (along, whole) = match (self.centre, self.axis) {
            (Some(centre), None) => {
                for axis in 0..3 {
                    context.require_inside(&format!("centre[{axis}]"), axis, centre[axis])?;
                }
                let far = |a: usize| (centre[a] - left[a]).max(right[a] - centre[a]);
                let far = distance([0, 1, 2].map(far), [0.0; 3]);
                (ProfileAxis::Radius(centre), [0.0, far])
            }
            (None, Some(axis)) => {
                let a = axis.number();
                (ProfileAxis::Along(a), [left[a], right[a]])
            }
            _ => {
                let path = context.path;
                let message = format!("`{path}` needs either a centre or an axis");
                return Err(context.deck.error_at(path, message));
            }
        };
        let key = if self.range.is_some() {
            "range"
        } else {
            "logarithmic"
        };
        let range = self.range.unwrap_or(whole);
        let bins = Bins::new(context, key, range, self.bins, self.logarithmic)?;
        let mut quantities = context.fields()?;
        let fields = quantities.len();
        if let Some(n) = quantities.iter().position(|own| own.name == "weight") {
            return Err(context.error(&format!("fields[{n}]"), "must not be named \"weight\""));
        }
        if let Some(weight) = &self.weight {
            quantities.push(context.quantity("weight", "weight", weight)?);
        }
        Ok(ViewOutput::series(Profile {
            along,
            bins,
            region: BinnedRegion::of(context),
            quantities,
            fields,
            level: context.level(),
        }))
    }
}

/// What the bins of a profile divide.
#[derive(Clone, Copy)]
enum ProfileAxis {
    /// The distance from a centre.
    Radius([f64; 3]),
    /// The coordinate along an axis.
    Along(usize),
}

impl ProfileAxis {
    fn name(self) -> &'static str {
        match self {
            Self::Radius(_) => "radius",
            Self::Along(axis) => AXES[axis],
        }
    }

    fn at(self, centre: [f64; 3]) -> f64 {
        match self {
            Self::Radius(origin) => distance(centre, origin),
            Self::Along(axis) => centre[axis],
        }
    }
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    let [x, y, z] = [0, 1, 2].map(|n| (a[n] - b[n]) * (a[n] - b[n]));
    (x + y + z).sqrt()
}

/// A profile.
struct Profile {
    along: ProfileAxis,
    bins: Bins,
    region: BinnedRegion,
    /// The fields, then the weight if there is one.
    quantities: Vec<Quantity>,
    fields: usize,
    level: usize,
}

impl Profile {
    fn weight(&self) -> Option<&Quantity> {
        self.quantities.get(self.fields)
    }
}

impl View for Profile {
    fn layout(&self) -> ViewLayout {
        let name = self.along.name();
        let array = |own: &Quantity| ViewArray {
            name: own.name.clone(),
            dimensions: vec![name.into()],
            units: own.units.clone(),
            long_name: format!("{}, mean", own.long_name),
        };
        let (units, of) = match self.weight() {
            Some(own) => (own.units.clone(), own.long_name.clone()),
            None => (Some("1".into()), "1".into()),
        };
        let weight = ViewArray {
            name: "weight".into(),
            dimensions: vec![name.into()],
            units: units.as_ref().map(|units| times_volume(units)),
            long_name: format!("integral of {of} over the bin"),
        };
        let arrays = self.quantities[..self.fields].iter().map(array);
        ViewLayout {
            coordinates: self
                .bins
                .coordinates(name, Some("length".into()), name)
                .to_vec(),
            arrays: arrays.chain([weight]).collect(),
        }
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
        Box::new(ProfileSums {
            profile: self,
            sums: BinSums::new(self.fields + 1),
        })
    }
}

/// Sums of a profile: those of the fields times the weight, and that of the weight.
struct ProfileSums<'a> {
    profile: &'a Profile,
    sums: BinSums,
}

impl Accumulator for ProfileSums<'_> {
    fn add(&mut self, cells: &PatchCells) {
        let fields = self.profile.fields;
        for (cell, centre, volume) in self.profile.region.cells(cells) {
            let Some(bin) = self.profile.bins.find(self.profile.along.at(centre)) else {
                continue;
            };
            let value = |quantity: usize| cells.values[CELLS * quantity + cell];
            let weight = match self.profile.weight() {
                Some(_) => value(fields) * volume,
                None => volume,
            };
            let numbers = (0..fields).map(|field| value(field) * weight);
            self.sums.add(bin, numbers.chain([weight]));
        }
    }

    fn pack(&self) -> Vec<u8> {
        self.sums.pack()
    }

    fn join(&mut self, bytes: &[u8]) -> Option<()> {
        self.sums.join(bytes)
    }

    fn values(&self) -> Vec<Vec<f64>> {
        let (bins, fields) = (0..self.profile.bins.len(), self.profile.fields);
        let sum = |bin: usize, n: usize| self.sums.value(bin, n);
        let mean = |field: usize| {
            let means = bins.clone().map(|bin| sum(bin, field) / sum(bin, fields));
            means.collect()
        };
        let weights = bins.clone().map(|bin| sum(bin, fields)).collect();
        (0..fields).map(mean).chain([weights]).collect()
    }
}
