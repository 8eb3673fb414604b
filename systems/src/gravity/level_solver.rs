//! Poisson solver of a level: relaxation, residual and boundary values, as loops on the host or kernels on a device.

use super::config::OVER_RELAXATION;
use super::exterior_potential::ExteriorPotential;
use super::kernels::GravityKernels;
use crate::fields::{
    InnerMatter, InnerPotential, Matter, OuterMatter, OuterPotential, OwnPotential, Potential,
};
use bevy_ecs::prelude::*;
use bevy_ecs::system::{StaticSystemParam, SystemParam, SystemParamItem};
use nestar_device::{Address, Lane, Number};
use nestar_engine::comm::Comm;
use nestar_engine::comm::halo::RowList;
use nestar_engine::data::device::DeviceView;
use nestar_engine::data::{Element, Field, LevelRows};
use nestar_engine::mesh::parallel;
use nestar_engine::step::{FieldView, Read, Write};
use nestar_engine::{Error, in_precision};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::GhostView;
use nestar_kernels::multigrid::device;
use nestar_kernels::multigrid::exterior::Exterior;
use nestar_kernels::multigrid::level::{self, LevelGrid};
use nestar_kernels::multigrid::stencil::PoissonSource;

/// Fine-grid correction (tau) of the right-hand side of a level.
pub struct FineCorrection;

impl Field for FineCorrection {
    const NAME: &'static str = "poisson_lag";
}

/// Differences of the fine potential along x, y, z in covered cells, for exchange between ranks.
pub struct FineDifferences;

impl Field for FineDifferences {
    const NAME: &'static str = "poisson_differences";
}

/// Energy still to be added to the gas: the work of the mass fluxes in a step minus that of the first kick.
pub struct PendingEnergy;

impl Field for PendingEnergy {
    const NAME: &'static str = "gravity_due";
}

/// Corrections of a level on a grid of `N`^3 cells per row, and their right-hand side as scratch.
pub struct CoarseCorrection<const N: usize>;

impl Field for CoarseCorrection<4> {
    const NAME: &'static str = "poisson_correction_4";
}
impl Field for CoarseCorrection<2> {
    const NAME: &'static str = "poisson_correction_2";
}
impl Field for CoarseCorrection<1> {
    const NAME: &'static str = "poisson_correction_1";
}

/// Right-hand side of Poisson's equation: coefficient * (density - mean).
#[derive(Resource, Clone, Copy)]
pub(super) struct PoissonEquation {
    /// 4 pi G.
    pub coefficient: f64,
    /// Mean density of a domain without isolated faces; otherwise 0.
    pub mean: f64,
    /// The same for [`OuterMatter`].
    pub outer_mean: f64,
}

impl PoissonEquation {
    /// Returns the source on the host, for the density `matter` of a level.
    pub fn on_host<'a, R: Element, F: Field>(
        self,
        matter: &FieldView<'a, F>,
    ) -> PoissonSource<'a, R> {
        PoissonSource {
            density: matter.present::<R>(),
            coefficient: R::lit(self.coefficient),
            mean: R::lit(self.mean),
        }
    }

    /// Returns the source for a device.
    pub fn on_device<F: Field>(self, matter: &FieldView<F>) -> device::SourceParameters<Number> {
        device::SourceParameters {
            density: matter.device().bank(matter.banks()[0]).into(),
            coefficient: self.coefficient,
            mean: self.mean,
        }
    }
}

/// Means of the solver on its level.
#[derive(Resource)]
pub struct DeviceSolver {
    /// Kernels, if the fields are on a device.
    pub(super) kernels: Option<GravityKernels>,
    /// Bit mask of the mirrored faces of the domain.
    pub(super) mirrored: i32,
}

/// Residual of a root level without finer levels after its latest solve. The same residual later means that neither
/// matter nor potential have changed. NaN: unknown.
#[derive(Resource)]
pub struct SolvedRoot(pub(super) f64);

/// Fields of the solver, as a system parameter.
#[derive(SystemParam)]
pub struct LevelSolver<'w, 's, P: PotentialField = Potential> {
    /// The current or visited level.
    pub rows: LevelRows<'w, 's>,
    /// The potential.
    pub potential: Write<'w, 's, P, 2>,
    /// The density.
    pub matter: Read<'w, 's, <P as PotentialField>::Source>,
    /// Coefficient and mean of the right-hand side.
    pub(super) equation: Res<'w, PoissonEquation>,
    /// Fine-grid correction, if [`PotentialField::USES_TAU`].
    pub tau: Write<'w, 's, FineCorrection>,
    pub(super) differences: Write<'w, 's, FineDifferences, 1>,
    pub(super) coarse_4: Write<'w, 's, CoarseCorrection<4>, 1>,
    pub(super) coarse_2: Write<'w, 's, CoarseCorrection<2>, 1>,
    pub(super) coarse_1: Write<'w, 's, CoarseCorrection<1>, 1>,
    /// The other ranks.
    pub ranks: Comm<'w>,
    pub(super) solver: Res<'w, DeviceSolver>,
    pub(super) exterior_potential: ResMut<'w, ExteriorPotential<P>>,
    pub(super) solved_root: ResMut<'w, SolvedRoot>,
    /// Source of boundary values, if not the potential itself.
    pub(super) coarser: StaticSystemParam<'w, 's, <P as PotentialField>::CoarserPotential>,
}

/// Returns 1 / width^2 along the axes, for cells `times` as wide as `width`.
pub(super) fn weights(width: [f64; 3], times: f64) -> [f64; 3] {
    width.map(|w| 1.0 / ((w * times) * (w * times)))
}

/// Returns a list of rows for kernels, and its length.
pub(super) fn row_list(rows: &RowList) -> (Address<i32>, i32) {
    (rows.device_list.into(), rows.rows.len() as i32)
}

impl<P: PotentialField> LevelSolver<'_, '_, P> {
    /// Returns the own rows of a level.
    pub(super) fn own_rows(&self, level: usize) -> &[u32] {
        self.potential.own_on(level).rows()
    }

    /// Returns the equation of the field.
    pub(super) fn equation(&self) -> PoissonEquation {
        PoissonEquation {
            mean: P::mean(&self.equation),
            ..*self.equation
        }
    }

    /// Returns the fine-grid correction of a level, if it is used.
    pub(super) fn tau_of(&self, level: usize) -> Option<FieldView<'_, FineCorrection>> {
        P::USES_TAU.then(|| self.tau.own_on(level))
    }

    /// Returns `true` if several ranks share the hierarchy.
    pub(super) fn is_distributed(&self) -> bool {
        !self.ranks.is_single()
    }

    fn width(&self, level: usize) -> [f64; 3] {
        self.rows.view_of(level).clock.cell_width
    }

    /// Returns the equation of a level on the host.
    pub(super) fn host_level<R: Element>(&self, level: usize) -> Result<LevelGrid<'_, R>, Error> {
        let view = self.potential.get_on(level, 1)?;
        Ok(LevelGrid {
            view: self.with_border(level, view.ghosts::<R>())?,
            exterior: self.exterior(level, view.weights_on(0)[1]),
            source: self.equation().on_host(&self.matter.own_on(level)),
            tau: self.tau_of(level).map(|tau| tau.present::<R>()),
            weights: weights(self.width(level), 1.0).map(R::lit),
        })
    }

    /// Returns the equation of a level for a device.
    pub(super) fn device_level(
        &self,
        level: usize,
    ) -> Result<device::LevelParameters<Number>, Error> {
        self.device_level_of(level, &self.potential.get_on(level, 1)?)
    }

    /// Returns the equation of a level for a device, by a view.
    fn device_level_of(
        &self,
        level: usize,
        view: &FieldView<P>,
    ) -> Result<device::LevelParameters<Number>, Error> {
        let (place, coarse_4) = (view.place(), self.coarse_4.own_on(level));
        Ok(device::LevelParameters {
            view: self.with_border_on_device(level, view.on_device())?,
            exterior: self.exterior_on_device(level, view.weights_on(0)[1]),
            source: self.equation().on_device(&self.matter.own_on(level)),
            tau: self
                .tau_of(level)
                .map_or(Address::NONE, |tau| bank_of(&tau)),
            residual: coarse_4.device().bank(1).into(),
            correction: coarse_4.device().bank(0).into(),
            rows: place.on_device().rows(level).into(),
            count: view.rows().len() as i32,
            colour: 0,
            weights: weights(self.width(level), 1.0),
            omega: OVER_RELAXATION,
        })
    }

    /// Relaxes one colour of a level.
    fn relax(&mut self, level: usize, colour: usize) -> Result<(), Error> {
        let split = self.potential.begin_refresh(&mut self.ranks, level)?;
        let split = split.filter(|_| self.solver.kernels.is_some());
        if let Some(split) = &split {
            let view = self.potential.interior(level, split);
            self.relax_rows(level, colour, &view, Some(&split.interior))?;
        }
        self.potential.finish_refresh(&mut self.ranks, level)?;
        let border = split.as_ref().map(|split| &split.boundary);
        self.relax_rows(level, colour, &self.potential.get_on(level, 1)?, border)?;
        self.potential.change_on(level);
        Ok(())
    }

    /// Relaxes one colour of some rows, or of all.
    fn relax_rows(
        &self,
        level: usize,
        colour: usize,
        view: &FieldView<P>,
        some: Option<&RowList>,
    ) -> Result<(), Error> {
        if let Some(kernels) = &self.solver.kernels {
            let all = self.device_level_of(level, view)?;
            let (rows, count) = some.map_or((all.rows, all.count), row_list);
            let parameters = device::LevelParameters {
                colour: colour as i32,
                rows,
                count,
                ..all
            };
            let rows = count as usize;
            kernels
                .relax
                .count_work(rows * CELLS / 2, rows * CELLS * 16);
            return kernels.launch(&kernels.relax, rows, &parameters);
        }
        in_precision!(self.potential.precision(), R => {
            let grid = self.host_level::<R>(level)?;
            // SAFETY: one colour of distinct rows.
            for_each_row(self.own_rows(level), |row| unsafe { level::relax(&grid, row, colour, R::lit(OVER_RELAXATION)) });
        });
        Ok(())
    }

    /// Performs `times` red-black relaxation sweeps on a level.
    pub(super) fn smooth(&mut self, level: usize, times: usize) -> Result<(), Error> {
        (0..2 * times).try_for_each(|n| self.relax(level, n % 2))
    }

    /// Restricts the residual to the right-hand side of the corrections on 4^3 cells per row.
    pub(super) fn restrict_residual(&mut self, level: usize) -> Result<(), Error> {
        self.potential.refresh_on(&mut self.ranks, level)?;
        if let Some(kernels) = &self.solver.kernels {
            let parameters = self.device_level(level)?;
            let count = parameters.count as usize;
            kernels
                .restrict_residual
                .count_work(count * CELLS, count * CELLS * 24);
            kernels.launch(&kernels.restrict_residual, count, &parameters)?;
        } else {
            in_precision!(self.potential.precision(), R => {
                let (grid, coarse_4) = (self.host_level::<R>(level)?, self.coarse_4.own_on(level));
                let (rhs, values) = (coarse_4.scratch::<R>(0), coarse_4.present::<R>());
                // SAFETY: distinct rows.
                for_each_row(self.own_rows(level), |row| unsafe {
                    level::restrict_residual(&grid, row, &rhs, &values);
                });
            });
        }
        self.coarse_4.change_on(level);
        Ok(())
    }

    /// Returns the largest residual of the leaves of a level over the largest right-hand side of the level. Covered
    /// cells are included in the latter, as leaves may be almost empty.
    ///
    /// # Errors
    /// As [`Write::refresh_on`](nestar_engine::step::Write::refresh_on).
    pub fn residual(&mut self, level: usize) -> Result<f64, Error> {
        self.largest_residual(level, false)
    }

    /// Returns [`LevelSolver::residual`], of covered cells too if `covered`.
    pub(super) fn largest_residual(&mut self, level: usize, covered: bool) -> Result<f64, Error> {
        self.potential.refresh_on(&mut self.ranks, level)?;
        let [residual, source] = if let Some(kernels) = &self.solver.kernels {
            kernels.largest_residual(self.device_level(level)?, covered)?
        } else {
            in_precision!(self.potential.precision(), R => {
                let grid = self.host_level::<R>(level)?;
                let topology = self.rows.view_of(level).topology;
                let largest = parallel::map(self.own_rows(level), |&row| {
                    level::largest_residual(&grid, row, covered || topology.is_leaf(row))
                });
                largest.into_iter().fold([0.0; 2], |a, b| [0, 1].map(|n| level::larger(a[n], b[n])))
            })
        };
        let [residual, source] = [self.largest(residual)?, self.largest(source)?];
        // also if it is not finite
        Ok(if source == 0.0 && residual.is_finite() {
            0.0
        } else {
            residual / source
        })
    }

    /// Returns the largest value of all ranks; the value must not be negative.
    fn largest(&self, value: f64) -> Result<f64, Error> {
        // non-negative numbers are ordered as their bits
        Ok(f64::from_bits(self.ranks.max(value.to_bits())?))
    }
}

impl<P: PotentialField> LevelSolver<'_, '_, P> {
    /// Replaces the boundary values of a view by those of the coarser potential.
    fn with_border<'a, R: Element>(
        &'a self,
        level: usize,
        view: GhostView<'a, R>,
    ) -> Result<GhostView<'a, R>, Error> {
        let Some(coarser) = P::coarser(&self.coarser) else {
            return Ok(view);
        };
        let border = coarser.potential.get_on(level, 1)?.ghosts::<R>();
        Ok(GhostView {
            coarse_old: border.coarse_old,
            coarse_new: border.coarse_new,
            weight: border.weight,
            ..view
        })
    }

    /// Replaces the boundary values of a view for a device.
    fn with_border_on_device(&self, level: usize, view: DeviceView) -> Result<DeviceView, Error> {
        let Some(coarser) = P::coarser(&self.coarser) else {
            return Ok(view);
        };
        let border = coarser.potential.get_on(level, 1)?.on_device();
        Ok(DeviceView {
            coarse_old: border.coarse_old,
            coarse_new: border.coarse_new,
            weight: border.weight,
            ..view
        })
    }

    /// Returns the exterior potential for a level; `weight` is that of the newer root state. The root level uses that
    /// of its own field.
    pub(super) fn exterior<R: Element>(&self, level: usize, weight: f64) -> Exterior<'_, R> {
        match P::coarser(&self.coarser) {
            Some(coarser) if level > 0 => coarser.exterior_potential.on_host(weight),
            _ => self.exterior_potential.on_host(weight),
        }
    }

    /// Returns the exterior potential for a level on a device.
    pub(super) fn exterior_on_device(
        &self,
        level: usize,
        weight: f64,
    ) -> device::ExteriorParameters<Number> {
        match P::coarser(&self.coarser) {
            Some(coarser) if level > 0 => coarser.exterior_potential.on_device(weight),
            _ => self.exterior_potential.on_device(weight),
        }
    }
}

/// Bank of the potential in which a level is saved.
pub(super) const SAVED_BANK: usize = 2;

/// Returns the address of the present bank of a field.
pub(super) fn present_bank<F: Field, const D: usize>(
    field: &Write<'_, '_, F, D>,
    level: usize,
) -> Address<Number> {
    bank_of(&field.own_on(level))
}

fn bank_of<F: Field>(view: &FieldView<F>) -> Address<Number> {
    view.device().bank(view.banks()[0]).into()
}

/// Calls `work` with each row, in parallel.
pub(super) fn for_each_row(rows: &[u32], work: impl Fn(u32) + Sync) {
    parallel::for_each(rows, |&row| work(row));
}

/// State of a level.
#[derive(Clone, Copy)]
pub(super) enum LevelState {
    /// Present state.
    Present,
    /// State before the step.
    Before,
}

impl<P: PotentialField> LevelSolver<'_, '_, P> {
    /// Copies own rows of a level to the present potential; the caller marks these as changed.
    pub(super) fn copy<F: Field>(
        &self,
        from: &FieldView<F>,
        when: LevelState,
    ) -> Result<(), Error> {
        let (level, to) = (from.level(), self.potential.own_on(from.level()));
        if let Some(kernels) = &self.solver.kernels {
            let bank = from.banks()[when as usize];
            let banks = [from.device().bank(bank), to.device().bank(to.banks()[0])];
            let (rows, count) = (to.place().on_device().rows(level), to.rows().len());
            let parameters = self.copy_parameters(level, banks.map(Address::from), rows, count);
            return kernels.launch(&kernels.copy, count, &parameters);
        }
        in_precision!(to.precision(), R => {
            let from = match when {
                LevelState::Present => from.present::<R>(),
                LevelState::Before => from.next::<R>(),
            };
            let values = to.present::<R>();
            // SAFETY: distinct rows.
            for_each_row(to.rows(), |row| unsafe { values.row_mut(row) }.copy_from_slice(from.row(row)));
        });
        Ok(())
    }

    /// Sets own rows of a level to the potential before its step plus the change of another potential in the step; the caller
    /// marks these as changed.
    pub(super) fn follow<F: Field>(&self, other: &FieldView<F>) -> Result<(), Error> {
        let level = other.level();
        let own = self.potential.own_on(level);
        if let Some(kernels) = &self.solver.kernels {
            let bank = |field: &FieldView<F>, n: usize| {
                Address::from(field.device().bank(field.banks()[n]))
            };
            let banks = own
                .banks()
                .map(|bank| Address::from(own.device().bank(bank)));
            let (rows, count) = (own.place().on_device().rows(level), own.rows().len());
            let parameters = device::CoarseChangeParameters {
                after: bank(other, 0),
                before: bank(other, 1),
                ..self.copy_parameters(level, [banks[1], banks[0]], rows, count)
            };
            return kernels.launch(&kernels.copy, count, &parameters);
        }
        in_precision!(own.precision(), R => {
            let [from, to] = [own.next::<R>(), own.present::<R>()];
            let [before, after] = [other.next::<R>(), other.present::<R>()];
            for_each_row(own.rows(), |row| {
                let change = after.row(row).iter().zip(before.row(row)).map(|(after, before)| *after - *before);
                // SAFETY: distinct rows.
                let to = unsafe { to.row_mut(row) }.iter_mut();
                to.zip(from.row(row)).zip(change).for_each(|((to, from), change)| *to = *from + change);
            });
        });
        Ok(())
    }

    /// Returns the parameters of the copy kernel.
    pub(super) fn copy_parameters(
        &self,
        level: usize,
        [from, to]: [Address<Number>; 2],
        rows: u64,
        count: usize,
    ) -> device::CoarseChangeParameters<Number> {
        device::CoarseChangeParameters {
            view: self.potential.own_on(level).on_device(),
            from,
            to,
            after: Address::NONE,
            before: Address::NONE,
            exterior_after: self.exterior_potential.on_device(1.0),
            exterior_before: self.exterior_potential.on_device(1.0),
            rows: rows.into(),
            count: count as i32,
            factor: 0.0,
        }
    }
}

/// A potential that is solved for.
pub trait PotentialField: Field {
    /// `true` if the fine-grid correction is part of the right-hand side.
    const USES_TAU: bool;
    /// Density of the source.
    type Source: Field;
    /// Potential of the coarser level that gives the boundary values.
    type Border: Field;
    /// Potential whose values around an isolated domain are those of the field.
    type Exterior: Field;
    /// Source of boundary values if not the field itself: `()` or [`CoarserPotential`].
    type CoarserPotential: SystemParam + 'static;

    /// Returns the source of boundary values from the system parameter.
    fn coarser<'a, 'w, 's>(
        coarser: &'a SystemParamItem<'w, 's, Self::CoarserPotential>,
    ) -> Option<&'a CoarserPotential<'w, 's, Self::Border>>;

    /// Returns the mean density of the source in a periodic domain.
    fn mean(equation: &PoissonEquation) -> f64 {
        equation.mean
    }
}

/// Potential of the coarser level, and that around the domain.
#[derive(SystemParam)]
pub struct CoarserPotential<'w, 's, P: Field = Potential> {
    pub(super) potential: Read<'w, 's, P, 2>,
    pub(super) exterior_potential: Res<'w, ExteriorPotential<P>>,
}

impl PotentialField for Potential {
    const USES_TAU: bool = true;
    type Source = Matter;
    type Border = Self;
    type Exterior = Self;
    type CoarserPotential = ();

    fn coarser<'w, 's>((): &()) -> Option<&CoarserPotential<'w, 's>> {
        None
    }
}

impl PotentialField for OwnPotential {
    const USES_TAU: bool = false;
    type Source = Matter;
    type Border = Potential;
    type Exterior = Self;
    type CoarserPotential = CoarserPotential<'static, 'static>;

    fn coarser<'a, 'w, 's>(
        coarser: &'a SystemParamItem<'w, 's, Self::CoarserPotential>,
    ) -> Option<&'a CoarserPotential<'w, 's>> {
        Some(coarser)
    }
}

impl PotentialField for OuterPotential {
    const USES_TAU: bool = false;
    type Source = OuterMatter;
    type Border = Self;
    type Exterior = Self;
    type CoarserPotential = ();

    fn coarser<'w, 's>((): &()) -> Option<&CoarserPotential<'w, 's, Self>> {
        None
    }

    fn mean(equation: &PoissonEquation) -> f64 {
        equation.outer_mean
    }
}

impl PotentialField for InnerPotential {
    const USES_TAU: bool = false;
    type Source = InnerMatter;
    type Border = OuterPotential;
    type Exterior = OuterPotential;
    type CoarserPotential = CoarserPotential<'static, 'static, OuterPotential>;

    fn coarser<'a, 'w, 's>(
        coarser: &'a SystemParamItem<'w, 's, Self::CoarserPotential>,
    ) -> Option<&'a CoarserPotential<'w, 's, OuterPotential>> {
        Some(coarser)
    }

    fn mean(equation: &PoissonEquation) -> f64 {
        equation.outer_mean
    }
}
