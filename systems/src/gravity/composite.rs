//! The equation on several levels at once: one cycle of the full approximation scheme (Brandt 1977) over levels that stand at one time,
//! with the coarser level as the coarser grid.

use super::border::Unknowns;
use super::change::Added;
use super::grids::{Equation, Grids};
use super::root_fft::RootSolver;
use super::root_level::RootGrid;
use nestar_device::{Lane, Real};
use nestar_engine::comm::Ranks;
use nestar_engine::{Error, in_precision};
use nestar_kernels::CELLS;
use nestar_kernels::multigrid::stencil::source_of;
use rayon::prelude::*;
use std::ops::RangeInclusive;

/// What solves the root level.
pub(super) enum RootMethods {
    Fft(RootSolver),
    Multigrid(RootGrid),
}

/// The same with the ranks that it works on.
pub(super) struct Root<'a> {
    pub solver: &'a RootMethods,
    pub ranks: &'a Ranks,
}

impl Grids<'_, '_> {
    /// One cycle over some levels, with so many sweeps on the way down and up, of which the coarsest has borders, or is the root.
    pub(super) fn composite_cycle(
        &mut self,
        levels: &RangeInclusive<usize>,
        sweeps: usize,
        root: &Root,
    ) -> Result<(), Error> {
        let (base, finest) = (*levels.start(), *levels.end());
        for level in (base + 1..=finest).rev() {
            self.smooth(level, sweeps)?;
            self.tell(level - 1)?;
        }
        self.beyond.keep();
        self.solve_base(base, sweeps, root)?;
        for level in base + 1..=finest {
            self.add_change(level, &Added::Correction)?;
            self.smooth(level, sweeps)?;
        }
        Ok(())
    }

    /// Lets each level know anew what the finer ones add to its right-hand side.
    pub(super) fn renew_lag(&mut self, levels: &RangeInclusive<usize>) -> Result<(), Error> {
        let mut finer = (levels.start() + 1..=*levels.end()).rev();
        finer.try_for_each(|level| self.tell(level - 1))
    }

    /// Nothing is added to a level whose children have gone.
    pub(super) fn clear_lag(&mut self, level: usize) -> Result<(), Error> {
        let rows = self.own_rows(level).to_vec();
        in_precision!(self.tau.precision(), R => {
            let zeros = vec![R::lit(0.0); rows.len() * CELLS];
            self.tau.store_on(level, &rows, &zeros)?;
        });
        Ok(())
    }

    /// Solves the coarsest of some levels: exactly if it is the root, else by a cycle.
    fn solve_base(&mut self, base: usize, sweeps: usize, root: &Root) -> Result<(), Error> {
        match base {
            0 => self.solve_root(root),
            _ => self.cycle(base, sweeps, None),
        }
    }
}

impl<P: Unknowns> Grids<'_, '_, P> {
    /// Solves the root level for its present right-hand side: exactly, or by cycles that begin with its present potential.
    pub(super) fn solve_root(&mut self, root: &Root) -> Result<(), Error> {
        match root.solver {
            RootMethods::Fft(solver) => self.transform_root(solver, root.ranks),
            RootMethods::Multigrid(grid) => self.cycle_root(grid, root.ranks, grid.cycles),
        }
    }

    /// The root level at the start of its step: the potential before it is where cycles begin.
    pub(super) fn solve_root_in_step(&mut self, root: &Root) -> Result<(), Error> {
        if let RootMethods::Multigrid(_) = root.solver {
            self.repeat_root()?;
        }
        self.solve_root(root)
    }

    /// The root level where nothing is known of its potential, by `cold` cycles if it takes any.
    pub(super) fn solve_root_cold(&mut self, root: &Root, cold: usize) -> Result<(), Error> {
        match root.solver {
            RootMethods::Fft(solver) => self.transform_root(solver, root.ranks),
            RootMethods::Multigrid(grid) => {
                self.clear_root()?;
                self.cycle_root(grid, root.ranks, cold)
            }
        }
    }

    fn transform_root(&mut self, solver: &RootSolver, ranks: &Ranks) -> Result<(), Error> {
        let (matter, tau) = (self.matter.own_on(0), self.lag_of(0));
        let rows = matter.rows().to_vec();
        let patches: Vec<[i32; 3]> = rows.iter().map(|&row| matter.index(row)).collect();
        in_precision!(matter.precision(), R => {
            let Equation { coefficient, mean } = *self.equation;
            let (coefficient, mean) = (R::lit(coefficient), R::lit(mean));
            let matter = matter.host::<R>(&rows)?;
            let of_level = |density: &R| source_of(*density, coefficient, mean);
            let source: Vec<f64> = match tau {
                Some(tau) => {
                    let sum = |(density, tau): (&R, &R)| (of_level(density) + *tau).to_f64();
                    matter.par_iter().zip(&tau.host::<R>(&rows)?).map(sum).collect()
                }
                None => matter.par_iter().map(|density| of_level(density).to_f64()).collect(),
            };
            let mut potential = vec![0.0; source.len()];
            let grown = solver.solve(ranks, &patches, &source, &mut potential)?;
            self.beyond.renew(&self.ranks, (&patches, &grown), self.solver.kernels.as_ref())?;
            let potential: Vec<R> = potential.into_par_iter().map(R::lit).collect();
            self.potential.store_on(0, &rows, &potential)?;
        });
        Ok(())
    }

    /// What is beyond the domain after a restart.
    pub(super) fn restore_beyond(&mut self) -> Result<(), Error> {
        self.beyond
            .tabulate(&self.ranks, self.solver.kernels.as_ref())
    }
}
