//! Couples the levels by the full approximation scheme (Brandt 1977).
//!
//! For each finer synchronised level the coarser level is the coarser grid. The coarser level gets the fine-grid
//! correction (tau), and its changes are interpolated to the finer level.

use super::kernels::blocks;
use super::level_solver::{LevelSolver, PotentialField, SAVED_BANK, for_each_row, present_bank};
use super::root_level::Root;
use nestar_device::{Address, Lane, Number};
use nestar_engine::data::{Element, Field};
use nestar_engine::mesh::parallel;
use nestar_engine::step::FieldView;
use nestar_engine::{Error, in_precision};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::Rows;
use nestar_kernels::multigrid::composite::{self, LevelPair};
use nestar_kernels::multigrid::device;
use nestar_kernels::multigrid::level::CoarseChange;
use std::ops::RangeInclusive;

impl LevelSolver<'_, '_> {
    /// Performs one cycle over levels with `sweeps` relaxation sweeps on the way down and up. The coarsest level has
    /// boundary values, or is the root level.
    pub(super) fn composite_cycle(
        &mut self,
        levels: &RangeInclusive<usize>,
        sweeps: usize,
        root: &Root,
    ) -> Result<(), Error> {
        let (base, finest) = (*levels.start(), *levels.end());
        for level in (base + 1..=finest).rev() {
            self.smooth(level, sweeps)?;
            self.restrict_to(level - 1)?;
        }
        self.exterior_potential.set_reference();
        self.solve_base(base, sweeps, root)?;
        for level in base + 1..=finest {
            self.add_change(level, &CoarseUpdate::SinceRestriction)?;
            self.smooth(level, sweeps)?;
        }
        Ok(())
    }

    /// Updates the fine-grid correction of each level.
    pub(super) fn update_tau(&mut self, levels: &RangeInclusive<usize>) -> Result<(), Error> {
        let mut finer = (levels.start() + 1..=*levels.end()).rev();
        finer.try_for_each(|level| self.restrict_to(level - 1))
    }

    /// Clears the fine-grid correction of a level without children.
    pub(super) fn clear_tau(&mut self, level: usize) -> Result<(), Error> {
        let rows = self.own_rows(level).to_vec();
        in_precision!(self.tau.precision(), R => {
            let zeros = vec![R::lit(0.0); rows.len() * CELLS];
            self.tau.store_on(level, &rows, &zeros)?;
        });
        Ok(())
    }

    /// Solves the coarsest level of a cycle: the root level by its own solver, others by one cycle.
    fn solve_base(&mut self, base: usize, sweeps: usize, root: &Root) -> Result<(), Error> {
        match base {
            0 => self.solve_root_with_finer(root),
            _ => self.cycle(base, sweeps, None),
        }
    }
}

impl LevelSolver<'_, '_> {
    /// Restricts the next finer level to a level. Covered cells take the averages of its potential, the level is saved
    /// for [`CoarseUpdate::SinceRestriction`], and its fine-grid correction is computed. The averages come first: at
    /// concave corners the boundary values of the finer level are interpolated also from covered cells. The result must
    /// depend only on values that a snapshot holds.
    fn restrict_to(&mut self, level: usize) -> Result<(), Error> {
        self.restrict_solution(level)?;
        self.restrict_residual(level + 1)?;
        if let Some(kernels) = &self.solver.kernels {
            let parameters = self.device_pair(level)?;
            let cells = parameters.octets as usize * CELLS;
            kernels.launch(&kernels.restrict_fine_residual, blocks(cells), &parameters)?;
        } else {
            in_precision!(self.potential.precision(), R => {
                let pair = self.host_pair::<R>(level)?;
                // SAFETY: distinct rows.
                self.each_parent(level, |row, first| unsafe { composite::store_fine_residual(&pair, row, first) });
            });
        }
        self.tau.change_on(level);
        self.tau.send_averages(&mut self.ranks, level)?;
        self.save_level(level)?;
        self.compute_tau(level)
    }

    /// Sets covered cells of a level to the averages of the potential of their children.
    fn restrict_solution(&mut self, level: usize) -> Result<(), Error> {
        self.potential.refresh_on(&mut self.ranks, level)?;
        if let Some(kernels) = &self.solver.kernels {
            let parameters = self.device_pair(level)?;
            let cells = parameters.octets as usize * CELLS;
            kernels.restrict_solution.count_work(cells, cells * 72);
            kernels.launch(&kernels.restrict_solution, blocks(cells), &parameters)?;
        } else {
            in_precision!(self.potential.precision(), R => {
                let pair = self.host_pair::<R>(level)?;
                // SAFETY: distinct rows.
                self.each_parent(level, |row, first| unsafe { composite::restrict_solution(&pair, row, first) });
            });
        }
        self.potential.change_on(level);
        self.differences.change_on(level);
        self.potential.send_averages(&mut self.ranks, level)?;
        if self.is_distributed() {
            self.differences.send_averages(&mut self.ranks, level)?;
            self.differences.refresh_on(&mut self.ranks, level)?;
        }
        self.potential.refresh_on(&mut self.ranks, level)
    }

    /// Calls `work` with each parent of own patches of the next finer level (also parents of other ranks) and its first
    /// child.
    fn each_parent(&self, level: usize, work: impl Fn(u32, u32) + Sync) {
        let topology = self.rows.view_of(level).topology;
        let own = |row: &u32| {
            topology
                .first_child(*row)
                .filter(|&first| topology.is_owned(first))
        };
        for rows in [topology.rows(level), topology.copies(level)] {
            parallel::for_each(rows, |row| {
                if let Some(first) = own(row) {
                    work(*row, first);
                }
            });
        }
    }

    /// Returns a level and its children on the host.
    fn host_pair<R: Element>(&self, level: usize) -> Result<LevelPair<'_, R>, Error> {
        let differences = || self.differences.own_on(level).present::<R>();
        Ok(LevelPair {
            coarse: self.host_level::<R>(level)?,
            tau: self.tau.own_on(level).present::<R>(),
            fine: self.potential.own_on(level + 1).present::<R>(),
            residual: self.coarse_4.own_on(level + 1).scratch::<R>(0),
            first_child: self.rows.view_of(level).topology.first_child_table(),
            differences: self.is_distributed().then(differences),
        })
    }

    fn device_pair(&self, level: usize) -> Result<device::LevelPairParameters<Number>, Error> {
        let fine = self.potential.own_on(level + 1);
        Ok(device::LevelPairParameters {
            coarse: self.device_level(level)?,
            fine: present_bank(&self.potential, level + 1),
            residual: self.coarse_4.own_on(level + 1).device().bank(1).into(),
            fine_rows: fine.place().on_device().rows(level + 1).into(),
            octets: fine.rows().len() as i32 / 8,
            differences: match self.is_distributed() {
                true => present_bank(&self.differences, level),
                false => Address::NONE,
            },
        })
    }

    /// Saves a level, halo patches included.
    fn save_level(&mut self, level: usize) -> Result<(), Error> {
        let view = self.potential.own_on(level);
        let topology = view.place().topology;
        if let Some(kernels) = &self.solver.kernels {
            let tables = view.place().on_device();
            let own = (tables.rows(level), view.rows().len());
            let copies = kernels.list(topology.copies(level))?;
            let banks = [view.banks()[0], SAVED_BANK].map(|n| view.device().bank(n).into());
            for (rows, count) in [own, copies] {
                let parameters = self.copy_parameters(level, banks, rows, count);
                kernels.launch(&kernels.copy, count, &parameters)?;
            }
            return Ok(());
        }
        in_precision!(view.precision(), R => {
            let (from, to) = (view.present::<R>(), view.scratch::<R>(0));
            for rows in [view.rows(), topology.copies(level)] {
                // SAFETY: distinct rows.
                parallel::for_each(rows, |&row| unsafe { to.row_mut(row) }.copy_from_slice(from.row(row)));
            }
        });
        Ok(())
    }

    /// Computes the fine-grid correction of a level from the restricted residual.
    fn compute_tau(&mut self, level: usize) -> Result<(), Error> {
        if let Some(kernels) = &self.solver.kernels {
            let parameters = self.device_pair(level)?;
            kernels.launch(&kernels.tau, parameters.coarse.count as usize, &parameters)?;
        } else {
            in_precision!(self.potential.precision(), R => {
                let pair = self.host_pair::<R>(level)?;
                // SAFETY: distinct rows.
                for_each_row(self.own_rows(level), |row| unsafe { composite::compute_tau(&pair, row) });
            });
        }
        self.tau.change_on(level);
        Ok(())
    }
}

/// Change of the coarser level that is prolonged.
pub(super) enum CoarseUpdate {
    /// This fraction of the change in the latest step of the coarser level, added to the potential before the step.
    Step(f64),
    /// The change since [`LevelSolver::restrict_to`], added to the present potential.
    SinceRestriction,
}

impl CoarseUpdate {
    fn in_step(&self) -> bool {
        matches!(self, Self::Step(_))
    }

    fn factor(&self) -> f64 {
        match *self {
            Self::Step(factor) => factor,
            Self::SinceRestriction => 1.0,
        }
    }
}

/// Returns a level after and before its change on the host.
fn level_states<'a, R: Element, F: Field>(
    view: &FieldView<'a, F>,
    update: &CoarseUpdate,
) -> [Rows<'a, R>; 2] {
    let before = match update.in_step() {
        true => view.next::<R>(),
        false => view.scratch::<R>(0),
    };
    [view.present::<R>(), before]
}

/// Returns a level after and before its change on a device.
fn level_states_on_device<F: Field>(
    view: &FieldView<F>,
    update: &CoarseUpdate,
) -> [Address<Number>; 2] {
    let [after, before] = view.banks();
    let before = if update.in_step() { before } else { SAVED_BANK };
    [after, before].map(|n| view.device().bank(n).into())
}

impl<P: PotentialField> LevelSolver<'_, '_, P> {
    /// Adds the prolonged change of the coarser level to the potential of a level.
    pub(super) fn add_change(&mut self, level: usize, update: &CoarseUpdate) -> Result<(), Error> {
        self.potential.refresh_on(&mut self.ranks, level)?;
        if let Some(kernels) = &self.solver.kernels {
            let parameters = self.device_change(level, update)?;
            let rows = parameters.count as usize;
            kernels
                .add_change
                .count_work(rows * CELLS, rows * CELLS * 24);
            kernels.launch(&kernels.add_change, rows, &parameters)?;
        } else {
            in_precision!(self.potential.precision(), R => {
                let view = self.potential.get_on(level, 1)?;
                let change = self.host_change::<R>(level, update);
                let to = view.present::<R>();
                let from = if update.in_step() { view.next::<R>() } else { to };
                // SAFETY: distinct rows, each read by its own task alone.
                for_each_row(view.rows(), |row| unsafe { change.add(row, &from, &to) });
            });
        }
        self.potential.change_on(level);
        Ok(())
    }

    fn host_change<R: Element>(&self, level: usize, update: &CoarseUpdate) -> CoarseChange<'_, R> {
        let topology = self.rows.view_of(level).topology;
        let [after, before] = self.changed(level - 1, update);
        CoarseChange {
            neighbours: topology.neighbour_table(),
            parent: topology.parent_table(),
            index: topology.index_table(),
            after,
            before,
            exterior: match update.in_step() {
                true => {
                    (self.weights_of_step(level - 1)).map(|weight| self.exterior(level, weight))
                }
                false => [
                    self.exterior_potential.reference_on_host(),
                    self.exterior_potential.on_host(1.0),
                ],
            },
            number: level as i32 - 1,
            factor: R::lit(update.factor()),
        }
    }

    /// Returns the weights of the newer root state before and after the latest step of a level.
    fn weights_of_step(&self, level: usize) -> [f64; 2] {
        self.potential.own_on(level).weights_on(0)
    }

    fn device_change(
        &self,
        level: usize,
        update: &CoarseUpdate,
    ) -> Result<device::CoarseChangeParameters<Number>, Error> {
        let view = self.potential.get_on(level, 1)?;
        let [present, old] = view.banks();
        let [after, before] = self.changed_on_device(level - 1, update);
        let bank = |n| Address::<Number>::from(view.device().bank(n));
        let [exterior_before, exterior_after] = match update.in_step() {
            true => (self.weights_of_step(level - 1))
                .map(|weight| self.exterior_on_device(level, weight)),
            false => [
                self.exterior_potential.reference_on_device(),
                self.exterior_potential.on_device(1.0),
            ],
        };
        Ok(device::CoarseChangeParameters {
            exterior_after,
            exterior_before,
            view: view.on_device(),
            from: bank(if update.in_step() { old } else { present }),
            to: bank(present),
            after,
            before,
            rows: view.place().on_device().rows(level).into(),
            count: view.rows().len() as i32,
            factor: update.factor(),
        })
    }

    /// Returns the coarser level `level` after and before its change.
    fn changed<R: Element>(&self, level: usize, update: &CoarseUpdate) -> [Rows<'_, R>; 2] {
        match P::coarser(&self.coarser) {
            Some(coarser) => level_states(&coarser.potential.own_on(level), update),
            None => level_states(&self.potential.own_on(level), update),
        }
    }

    fn changed_on_device(&self, level: usize, update: &CoarseUpdate) -> [Address<Number>; 2] {
        match P::coarser(&self.coarser) {
            Some(coarser) => level_states_on_device(&coarser.potential.own_on(level), update),
            None => level_states_on_device(&self.potential.own_on(level), update),
        }
    }
}
