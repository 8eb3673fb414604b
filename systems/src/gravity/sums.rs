//! Sums over the root level that have the same bits on any number of ranks and on devices.

use super::grids::{Equation, Lag};
use super::kernels::Kernels;
use nestar_device::{Address, Number};
use nestar_engine::comm::{Ranks, Reduction};
use nestar_engine::data::{Element, Field};
use nestar_engine::step::FieldView;
use nestar_engine::{Error, in_precision};
use nestar_kernels::multigrid::device;
use nestar_kernels::multigrid::moments::{self, Moments, add_whole, largest_bits, whole_factor};
use rayon::prelude::*;

/// What is summed on the root level: coefficient * (value - mean) and what the finer level adds, times powers of places.
pub(super) struct Summed<'a, F: Field> {
    pub of: FieldView<'a, F>,
    pub equation: Equation,
    pub tau: Option<FieldView<'a, Lag>>,
    /// Most powers.
    pub order: usize,
    /// Half the width of a cell along the axes, in units of the moments' length.
    pub half: [f64; 3],
}

impl<'a, F: Field> Summed<'a, F> {
    /// The values themselves.
    pub fn plain(of: FieldView<'a, F>) -> Self {
        let equation = Equation {
            coefficient: 1.0,
            mean: 0.0,
        };
        Self {
            of,
            equation,
            tau: None,
            order: 0,
            half: [0.0; 3],
        }
    }

    /// The mean of the values.
    pub fn mean(&self, ranks: &Ranks, kernels: Option<&Kernels>) -> Result<f64, Error> {
        let cells: f64 = self.cells().map(f64::from).iter().product();
        Ok(self.moments(ranks, kernels)?[0] / cells)
    }

    /// The sums of the values times powers of the places of cells about the domain's middle, as
    /// [`first_moment`](moments::first_moment) orders them. All ranks call it.
    pub fn moments(&self, ranks: &Ranks, kernels: Option<&Kernels>) -> Result<Vec<f64>, Error> {
        let communicator = ranks.communicator();
        let mut largest = [self.words(0.0, kernels)?[0]];
        communicator.reduce(Reduction::Max, &mut largest)?;
        let largest = f64::from_bits(largest[0]);
        let count = moments::count(self.order);
        if largest == 0.0 || !largest.is_finite() {
            // what is not a number makes all sums so
            return Ok(vec![0.0 * largest; count]);
        }
        let patches = self.cells().map(|n| n as usize / 8).iter().product();
        let factor = whole_factor(largest, patches);
        let mut sums = self.words(factor, kernels)?.split_off(1);
        communicator.reduce(Reduction::Sum, &mut sums)?;
        let number = |sum: u64| sum as i64 as f64 / factor;
        Ok(sums.into_iter().map(number).collect())
    }

    fn cells(&self) -> [i32; 3] {
        self.of.place().topology.domain.cells(0)
    }

    /// Of the own patches: the bits of the largest sum of sizes over a patch, which no moment exceeds, then the moments as whole numbers if there is
    /// a factor.
    fn words(&self, factor: f64, kernels: Option<&Kernels>) -> Result<Vec<u64>, Error> {
        if let Some(kernels) = kernels {
            return kernels.root.moments(&self.on_device(factor));
        }
        Ok(in_precision!(self.of.precision(), R => {
            let (moments, rows) = (self.on_host::<R>(factor), self.of.rows().par_iter());
            let sums = if factor == 0.0 { 0 } else { moments::count(self.order) };
            let none = || vec![0; 1 + sums];
            let add = |mut words: Vec<u64>, row: &u32| {
                let found = moments.of(*row);
                words[0] = words[0].max(largest_bits(&found));
                add_whole(&found, factor, &mut words[1..]);
                words
            };
            rows.fold(none, add).reduce(none, join)
        }))
    }

    /// Most powers: sums of sizes have none.
    fn order_for(&self, factor: f64) -> usize {
        if factor == 0.0 { 0 } else { self.order }
    }

    fn on_host<R: Element>(&self, factor: f64) -> Moments<'a, R> {
        Moments {
            source: self.equation.on_host(&self.of),
            tau: self.tau.as_ref().map(|tau| tau.present::<R>()),
            index: self.of.place().topology.index_table(),
            cells: self.cells(),
            half: self.half,
            order: self.order_for(factor),
            sizes: factor == 0.0,
        }
    }

    /// The same on a device.
    pub fn on_device(&self, factor: f64) -> device::MomentsParameters<Number> {
        let tables = self.of.place().on_device();
        let tau = self.tau.as_ref();
        device::MomentsParameters {
            source: self.equation.on_device(&self.of),
            tau: tau.map_or(Address::NONE, |tau| {
                tau.device().bank(tau.banks()[0]).into()
            }),
            rows: tables.rows(0).into(),
            index: tables.index().into(),
            words: Address::NONE,
            count: self.of.rows().len() as i32,
            each: 1,
            order: self.order_for(factor) as i32,
            cells: self.cells(),
            half: self.half,
            factor,
        }
    }
}

/// The larger of the first words, the sums of the others.
fn join(mut a: Vec<u64>, b: Vec<u64>) -> Vec<u64> {
    a[0] = a[0].max(b[0]);
    let others = a.iter_mut().zip(b).skip(1);
    others.for_each(|(a, b)| *a = a.wrapping_add(b));
    a
}
