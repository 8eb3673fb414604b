//! Sums over the root level that are bitwise identical on any number of ranks and on devices.

use super::kernels::GravityKernels;
use super::level_solver::{FineCorrection, PoissonEquation};
use nestar_device::{Address, Number};
use nestar_engine::comm::{Ranks, Reduction};
use nestar_engine::data::{Element, Field};
use nestar_engine::mesh::parallel;
use nestar_engine::step::FieldView;
use nestar_engine::{Error, in_precision};
use nestar_kernels::multigrid::device;
use nestar_kernels::multigrid::moments::{
    self, Moments, add_fixed_point, fixed_point_factor, largest_bits,
};

/// Source of moments: coefficient * (value - mean) plus the fine-grid correction, times powers of coordinates.
pub(super) struct RootSums<'a, F: Field> {
    pub of: FieldView<'a, F>,
    pub equation: PoissonEquation,
    pub tau: Option<FieldView<'a, FineCorrection>>,
    /// Largest sum of powers.
    pub order: usize,
    /// Half the cell width along the axes, in units of the length of the moments.
    pub half: [f64; 3],
}

impl<'a, F: Field> RootSums<'a, F> {
    /// Sums the values themselves.
    pub fn plain(of: FieldView<'a, F>) -> Self {
        let equation = PoissonEquation {
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

    /// Returns the mean of the values.
    pub fn mean(&self, ranks: &Ranks, kernels: Option<&GravityKernels>) -> Result<f64, Error> {
        let cells: f64 = self.cells().map(f64::from).iter().product();
        Ok(self.moments(ranks, kernels)?[0] / cells)
    }

    /// Returns the moments about the centre of the domain, in the order of [`first_moment`](moments::first_moment).
    /// Collective over all ranks.
    pub fn moments(
        &self,
        ranks: &Ranks,
        kernels: Option<&GravityKernels>,
    ) -> Result<Vec<f64>, Error> {
        let communicator = ranks.communicator();
        let mut largest = [self.words(0.0, kernels)?[0]];
        communicator.reduce(Reduction::Max, &mut largest)?;
        let largest = f64::from_bits(largest[0]);
        let count = moments::count(self.order);
        if largest == 0.0 || !largest.is_finite() {
            // a value that is not finite makes all sums so
            return Ok(vec![0.0 * largest; count]);
        }
        let patches = self.cells().map(|n| n as usize / 8).iter().product();
        let factor = fixed_point_factor(largest, patches);
        let mut sums = self.words(factor, kernels)?.split_off(1);
        communicator.reduce(Reduction::Sum, &mut sums)?;
        let number = |sum: u64| sum as i64 as f64 / factor;
        Ok(sums.into_iter().map(number).collect())
    }

    fn cells(&self) -> [i32; 3] {
        self.of.place().topology.domain.cells(0)
    }

    /// Returns the bits of the largest sum of absolute values over an own patch, an upper bound of its moments. The
    /// fixed-point moments follow if there is a factor.
    fn words(&self, factor: f64, kernels: Option<&GravityKernels>) -> Result<Vec<u64>, Error> {
        if let Some(kernels) = kernels {
            return kernels.root.moments(&self.on_device(factor));
        }
        Ok(in_precision!(self.of.precision(), R => {
            let moments = self.on_host::<R>(factor);
            let sums = if factor == 0.0 { 0 } else { moments::count(self.order) };
            let mut words = vec![0; 1 + sums];
            for found in parallel::map(self.of.rows(), |row| moments.of(*row)) {
                words[0] = words[0].max(largest_bits(&found));
                add_fixed_point(&found, factor, &mut words[1..]);
            }
            words
        }))
    }

    /// Returns the order; sums of absolute values have order 0.
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
            absolute: factor == 0.0,
        }
    }

    /// Returns the parameters for a device.
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
