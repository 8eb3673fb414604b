//! Tables in the parameters of functions.
use crate::{Generic, Item, Kind, Parameter, Precise, Real, TextPiece, device};
use std::marker::PhantomData;
use std::sync::Arc;

/// Table of values for `#[device]` functions, read with `table.at(n)` or [`interpolate`]. It is a member of a parameter structure. Clones
/// share the values; a device receives them once, and again if another table replaces them.
#[derive(Clone, Debug)]
pub struct Table<R> {
    values: Arc<[f64]>,
    /// Address on the launch's device.
    address: u64,
    precision: PhantomData<R>,
}

impl Table<f64> {
    /// Creates a table of these values.
    #[must_use]
    pub fn new(values: impl Into<Arc<[f64]>>) -> Self {
        Self {
            values: values.into(),
            address: 0,
            precision: PhantomData,
        }
    }
}

impl<R> Table<R> {
    /// Returns the number of values.
    #[inline(always)]
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "the device subset has no use for it"
    )]
    pub fn len(&self) -> usize {
        self.values.len()
    }
}

impl<R: Real> Table<R> {
    /// Returns value `n`, from 0.
    ///
    /// # Panics
    /// If `n` is out of range; on a device the result is undefined.
    #[inline(always)]
    #[must_use]
    pub fn at<I: TryInto<usize>>(&self, n: I) -> R {
        R::from_f64(self.values[n.try_into().unwrap_or(usize::MAX)])
    }
}

impl Precise for Table<f64> {
    type In<R: Real> = Table<R>;
    fn precise<R: Real>(&self) -> Table<R> {
        Table {
            values: self.values.clone(),
            address: self.address,
            precision: PhantomData,
        }
    }
}

impl<R: Sync> Parameter for Table<R> {
    const BYTES: usize = 16;
    const ALIGNMENT: usize = 8;
    fn write(&self, to: &mut [u8]) {
        self.address.write(to);
        (self.values.len() as i64).write(&mut to[8..]);
    }
    fn bind(&mut self, place: &mut dyn FnMut(&Arc<[f64]>) -> u64) {
        self.address = place(&self.values);
    }
}

/// CUDA counterpart of [`Table`].
#[allow(
    non_upper_case_globals,
    reason = "the companion of a structure has its name"
)]
#[doc(hidden)]
pub const Table: &Item = &Item {
    module: module_path!(),
    name: "Table",
    file: file!(),
    line: line!(),
    kind: Kind::Struct,
    generics: &[Generic::Real("R")],
    proto: &[],
    body: &[TextPiece::Text(include_str!("table.cuh"))],
};

/// Interpolates linearly in a table of values `ys` at ascending positions `xs`. Outside the range it returns the first or last value. Both
/// tables have the same number of values, at least two.
#[device]
pub fn interpolate<R: Real>(xs: &Table<R>, ys: &Table<R>, x: R) -> R {
    let (mut low, mut high) = (0, xs.len() - 1);
    while low + 1 < high {
        let middle = (low + high) / 2;
        if xs.at(middle) <= x {
            low = middle;
        } else {
            high = middle;
        }
    }
    let weight = (x - xs.at(low)) / (xs.at(high) - xs.at(low));
    ys.at(low) + weight.clamp(0.0, 1.0) * (ys.at(high) - ys.at(low))
}
