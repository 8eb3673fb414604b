//! What a level hears from the finer one.

use super::grids::{Grids, KEPT, each, present_bank};
use super::kernels::blocks;
use nestar_device::{Address, Number};
use nestar_engine::data::Element;
use nestar_engine::{Error, in_precision};
use nestar_kernels::CELLS;
use nestar_kernels::multigrid::composite::{self, Pair};
use nestar_kernels::multigrid::device;
use rayon::prelude::*;

impl Grids<'_, '_> {
    /// Tells a level what its children have: covered cells take the means of their unknowns; then the level is kept as it is, for
    /// [`Added::Correction`](super::change::Added::Correction), and learns what the finer level adds to its right-hand side. The means come
    /// first: where the finer level has corners that point inwards, its border is interpolated from covered cells, too, and what is told must
    /// follow from the unknowns that a snapshot holds.
    pub(super) fn tell(&mut self, level: usize) -> Result<(), Error> {
        self.take_means(level)?;
        self.restrict_residual(level + 1)?;
        if let Some(kernels) = &self.solver.kernels {
            let given = self.device_pair(level)?;
            let cells = given.octets as usize * CELLS;
            kernels.launch(&kernels.tell, blocks(cells), &given)?;
        } else {
            in_precision!(self.potential.precision(), R => {
                let pair = self.host_pair::<R>(level)?;
                // SAFETY: distinct rows.
                self.each_parent(level, |row, first| unsafe { composite::tell(&pair, row, first) });
            });
        }
        self.tau.change_on(level);
        self.tau.send_averages(&mut self.ranks, level)?;
        self.keep(level)?;
        self.make_lag(level)
    }

    /// Covered cells of a level take the means of their children's unknowns.
    fn take_means(&mut self, level: usize) -> Result<(), Error> {
        self.potential.refresh_on(&mut self.ranks, level)?;
        if let Some(kernels) = &self.solver.kernels {
            let given = self.device_pair(level)?;
            let cells = given.octets as usize * CELLS;
            kernels.means.count_work(cells, cells * 72);
            kernels.launch(&kernels.means, blocks(cells), &given)?;
        } else {
            in_precision!(self.potential.precision(), R => {
                let pair = self.host_pair::<R>(level)?;
                // SAFETY: distinct rows.
                self.each_parent(level, |row, first| unsafe { composite::means(&pair, row, first) });
            });
        }
        self.potential.change_on(level);
        self.differences.change_on(level);
        self.potential.send_averages(&mut self.ranks, level)?;
        if self.shares() {
            self.differences.send_averages(&mut self.ranks, level)?;
            self.differences.refresh_on(&mut self.ranks, level)?;
        }
        self.potential.refresh_on(&mut self.ranks, level)
    }

    /// Calls `work` with each parent of own patches of the next finer level, also one that another rank owns, and its first child.
    fn each_parent(&self, level: usize, work: impl Fn(u32, u32) + Sync) {
        let topology = self.rows.view_of(level).topology;
        let own = |row: &u32| {
            topology
                .first_child(*row)
                .filter(|&first| topology.is_owned(first))
        };
        let rows = topology
            .rows(level)
            .par_iter()
            .chain(topology.copies(level));
        rows.for_each(|row| {
            if let Some(first) = own(row) {
                work(*row, first);
            }
        });
    }

    /// A level and its children on the host.
    fn host_pair<R: Element>(&self, level: usize) -> Result<Pair<'_, R>, Error> {
        let differences = || self.differences.own_on(level).present::<R>();
        Ok(Pair {
            coarse: self.host_level::<R>(level)?,
            tau: self.tau.own_on(level).present::<R>(),
            fine: self.potential.own_on(level + 1).present::<R>(),
            residual: self.four.own_on(level + 1).scratch::<R>(0),
            first_child: self.rows.view_of(level).topology.first_child_table(),
            differences: self.shares().then(differences),
        })
    }

    fn device_pair(&self, level: usize) -> Result<device::LevelPairParameters<Number>, Error> {
        let fine = self.potential.own_on(level + 1);
        Ok(device::LevelPairParameters {
            coarse: self.device_level(level)?,
            fine: present_bank(&self.potential, level + 1),
            residual: self.four.own_on(level + 1).device().bank(1).into(),
            fine_rows: fine.place().on_device().rows(level + 1).into(),
            octets: fine.rows().len() as i32 / 8,
            differences: match self.shares() {
                true => present_bank(&self.differences, level),
                false => Address::NONE,
            },
        })
    }

    /// Keeps a level as it is, copies included.
    fn keep(&mut self, level: usize) -> Result<(), Error> {
        let view = self.potential.own_on(level);
        let topology = view.place().topology;
        if let Some(kernels) = &self.solver.kernels {
            let tables = view.place().on_device();
            let own = (tables.rows(level), view.rows().len());
            let copies = kernels.list(topology.copies(level))?;
            let banks = [view.banks()[0], KEPT].map(|n| view.device().bank(n).into());
            for (rows, count) in [own, copies] {
                let given = self.copied(level, banks, (rows, count));
                kernels.launch(&kernels.keep, count, &given)?;
            }
            return Ok(());
        }
        in_precision!(view.precision(), R => {
            let (from, to) = (view.present::<R>(), view.scratch::<R>(0));
            let all = view.rows().par_iter().chain(topology.copies(level));
            // SAFETY: distinct rows.
            all.for_each(|&row| unsafe { to.row_mut(row) }.copy_from_slice(from.row(row)));
        });
        Ok(())
    }

    /// Makes the tau of a level of what its children have told.
    fn make_lag(&mut self, level: usize) -> Result<(), Error> {
        if let Some(kernels) = &self.solver.kernels {
            let given = self.device_pair(level)?;
            kernels.launch(&kernels.tau, given.coarse.count as usize, &given)?;
        } else {
            in_precision!(self.potential.precision(), R => {
                let pair = self.host_pair::<R>(level)?;
                // SAFETY: distinct rows.
                each(self.own_rows(level), |row| unsafe { composite::tau(&pair, row) });
            });
        }
        self.tau.change_on(level);
        Ok(())
    }
}
