//! Solves the root level, by Fourier transforms or by multigrid cycles.

use super::direct_solver::DirectSolver;
use super::level_solver::{
    CoarseCorrection, DeviceSolver, LevelSolver, LevelState, PoissonEquation, PotentialField,
    for_each_row,
};
use super::multipole::MultipoleExpansion;
use super::root_fft::RootSolver;
use super::root_sums::RootSums;
use crate::fields::Potential;
use nestar_device::{Address, Lane, Real};
use nestar_engine::comm::{Comm, Ranks};
use nestar_engine::data::Field;
use nestar_engine::mesh::Domain;
use nestar_engine::step::Write;
use nestar_engine::{Error, in_precision};
use nestar_kernels::PATCH;
use nestar_kernels::multigrid::coarse::mirror;
use nestar_kernels::multigrid::device::CoarsestLevelParameters;
use nestar_kernels::multigrid::stencil::source_of;
use rayon::prelude::*;

/// Solver of the root level.
pub(super) enum RootMethods {
    Fft(RootSolver),
    Multigrid(RootMultigrid),
}

/// Solver of the root level and the ranks that share it.
pub(super) struct Root<'a> {
    pub solver: &'a RootMethods,
    pub ranks: &'a Ranks,
}

impl<P: PotentialField> LevelSolver<'_, '_, P> {
    /// Solves the root level for its present right-hand side: directly, or by cycles from the present potential.
    pub(super) fn solve_root(&mut self, root: &Root) -> Result<(), Error> {
        match root.solver {
            RootMethods::Fft(solver) => self.transform_root(solver, root.ranks),
            RootMethods::Multigrid(grid) => self.cycle_root(grid, root.ranks, grid.cycles),
        }
    }

    /// Solves the root level in its step; cycles start from the potential before the step.
    pub(super) fn solve_root_in_step(&mut self, root: &Root) -> Result<(), Error> {
        if let RootMethods::Multigrid(_) = root.solver {
            self.restart_root_from_previous()?;
        }
        self.solve_root(root)
    }

    /// Solves the root level without an initial guess, by `cold` cycles if it uses any.
    pub(super) fn solve_root_initially(&mut self, root: &Root, cold: usize) -> Result<(), Error> {
        match root.solver {
            RootMethods::Fft(solver) => self.transform_root(solver, root.ranks),
            RootMethods::Multigrid(grid) => {
                self.clear_root()?;
                self.cycle_root(grid, root.ranks, cold)
            }
        }
    }

    fn transform_root(&mut self, solver: &RootSolver, ranks: &Ranks) -> Result<(), Error> {
        let (matter, tau) = (self.matter.own_on(0), self.tau_of(0));
        let rows = matter.rows().to_vec();
        let patches: Vec<[i32; 3]> = rows.iter().map(|&row| matter.index(row)).collect();
        in_precision!(matter.precision(), R => {
            let PoissonEquation { coefficient, mean } = *self.equation;
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
            self.exterior_potential.update_from_patches(&self.ranks, &patches, &grown, self.solver.kernels.as_ref())?;
            let values: Vec<R> = potential.into_par_iter().map(R::lit).collect();
            self.potential.store_on(0, &rows, &values)?;
        });
        Ok(())
    }

    /// Restores the exterior potential after a restart.
    pub(super) fn restore_beyond(&mut self) -> Result<(), Error> {
        self.exterior_potential
            .tabulate(&self.ranks, self.solver.kernels.as_ref())
    }
}

/// Largest ratio of the highest orders of the expansion to the monopole at a face; a larger ratio means that the
/// expansion diverges.
const MAX_TAIL_RATIO: f64 = 1.0;

/// Settings of the root solver.
pub(super) struct RootMultigrid {
    direct: DirectSolver,
    /// Order of the multipole expansion around an isolated domain; `None`: periodic.
    order: Option<usize>,
    /// Half the cell width along the axes, in units of half the longest edge of the domain.
    half: [f64; 3],
    /// Distance of the faces from the centre of the domain, in these units.
    faces: [f64; 3],
    /// Cell volume over that length.
    weight: f64,
    /// Sweeps before and after the coarser grids.
    pub sweeps: usize,
    /// Cycles per solve with an initial guess.
    pub cycles: usize,
}

impl RootMultigrid {
    /// Builds the solver for a domain, isolated if an order is given.
    pub fn new(domain: &Domain, order: Option<usize>, sweeps: usize, cycles: usize) -> Self {
        let (cells, width) = (domain.cells(0), domain.cell_width(0));
        let edges = [0, 1, 2].map(|axis| f64::from(cells[axis]) * width[axis]);
        let length = 0.5 * edges.into_iter().fold(0.0, f64::max);
        let wide = width.map(|width| width * PATCH as f64);
        Self {
            direct: DirectSolver::new(
                cells.map(|n| n as usize / PATCH),
                wide.map(|width| 1.0 / (width * width)),
                order.map(|_| mirror(PATCH as f64, 0.5)),
            ),
            order,
            half: width.map(|width| 0.5 * width / length),
            weight: width.iter().product::<f64>() / length,
            faces: edges.map(|edge| 0.5 * edge / length),
            sweeps,
            cycles,
        }
    }

    /// Checks that the highest orders of an expansion are smaller than the monopole.
    fn require_convergence(&self, expansion: &MultipoleExpansion) -> Result<(), Error> {
        let rest = expansion.tail_ratio(self.faces);
        if rest <= MAX_TAIL_RATIO {
            return Ok(());
        }
        Err(Error::Fault(format!(
            "gravity.root = \"multigrid\": the multipole expansion around the domain diverges: at a face its highest orders (gravity.multipole_order = {}) \
             are {rest:.1} times the monopole, because matter is farther from the centre of mass than that face; \
             use gravity.root = \"fft\", a lower gravity.multipole_order, or a larger domain",
            expansion.order
        )))
    }
}

impl<P: PotentialField> LevelSolver<'_, '_, P> {
    /// Performs `cycles` cycles on the root level, or half of them if its right-hand side is that of the previous
    /// solve. Collective over all ranks.
    pub(super) fn cycle_root(
        &mut self,
        root: &RootMultigrid,
        ranks: &Ranks,
        cycles: usize,
    ) -> Result<(), Error> {
        let cycles = match root.order {
            Some(order) if !self.update_exterior(root, order, ranks)? => cycles.div_ceil(2),
            _ => cycles,
        };
        let direct = &root.direct;
        for _ in 0..cycles {
            self.cycle(0, root.sweeps, Some(&CoarsestSolve { direct, ranks }))?;
        }
        match root.order {
            None => self.subtract_mean(ranks),
            Some(_) => Ok(()),
        }
    }

    /// Updates the potential around an isolated domain. Returns `true` if it has changed. Moments are fixed-point
    /// numbers; a source that changes none of them does not count.
    fn update_exterior(
        &mut self,
        root: &RootMultigrid,
        order: usize,
        ranks: &Ranks,
    ) -> Result<bool, Error> {
        let kernels = self.solver.kernels.as_ref();
        let summed = RootSums {
            of: self.matter.own_on(0),
            equation: *self.equation,
            tau: self.tau_of(0),
            order,
            half: root.half,
        };
        let moments = summed.moments(ranks, kernels)?;
        let expansion = MultipoleExpansion::new(&moments, order, root.weight, root.half);
        // the source of the own potential of particles may lie anywhere, and is small
        if P::NAME == Potential::NAME {
            root.require_convergence(&expansion)?;
        }
        self.exterior_potential
            .update_from_expansion(&self.ranks, expansion, kernels)
    }

    /// Subtracts the mean from the potential of the root level.
    fn subtract_mean(&mut self, ranks: &Ranks) -> Result<(), Error> {
        let kernels = self.solver.kernels.as_ref();
        let mut summed = RootSums::plain(self.potential.own_on(0));
        summed.equation.mean = summed.mean(ranks, kernels)?;
        let PoissonEquation { coefficient, mean } = summed.equation;
        if let Some(kernels) = kernels {
            kernels.root.shift(&summed.on_device(0.0))?;
        } else {
            in_precision!(self.potential.precision(), R => {
                let values = summed.of.present::<R>();
                for_each_row(summed.of.rows(), |row| {
                    // SAFETY: distinct rows.
                    for value in unsafe { values.row_mut(row) } {
                        *value = source_of(*value, R::lit(coefficient), R::lit(mean));
                    }
                });
            });
        }
        self.potential.change_on(0);
        Ok(())
    }

    /// Sets the potential of the root level to zero.
    pub(super) fn clear_root(&mut self) -> Result<(), Error> {
        let rows = self.own_rows(0).to_vec();
        in_precision!(self.potential.precision(), R => {
            let zeros = vec![R::lit(0.0); rows.len() * PATCH * PATCH * PATCH];
            self.potential.store_on(0, &rows, &zeros)?;
        });
        Ok(())
    }

    /// Sets the potential of the root level to that before its step.
    pub(super) fn restart_root_from_previous(&mut self) -> Result<(), Error> {
        self.copy(&self.potential.own_on(0), LevelState::Before)?;
        self.potential.change_on(0);
        Ok(())
    }
}

/// Direct solver and the ranks that share the root level.
pub(super) struct CoarsestSolve<'a> {
    pub direct: &'a DirectSolver,
    pub ranks: &'a Ranks,
}

impl CoarsestSolve<'_> {
    /// Solves for the corrections of the root level. Collective over all ranks.
    pub fn solve(
        &self,
        one: &mut Write<'_, '_, CoarseCorrection<1>, 1>,
        solver: &DeviceSolver,
        others: &Comm,
    ) -> Result<(), Error> {
        let view = one.own_on(0);
        if let Some(kernels) = &solver.kernels {
            let (place, pool) = (view.place(), view.device());
            let tables = place.on_device();
            let rhs = CoarsestLevelParameters {
                rows: tables.rows(0).into(),
                index: tables.index().into(),
                values: pool.bank(1).into(),
                count: view.rows().len() as i32,
                cells: [0; 3],
                pairs: Address::NONE,
                whole: Address::NONE,
            };
            kernels
                .direct
                .solve(self.direct, others, rhs, pool.bank(0).into())?;
        } else {
            let [nx, ny, _] = self.direct.cells();
            let place = |row: &u32| {
                let [x, y, z] = view.index(*row).map(|i| i as usize);
                x + nx * (y + ny * z)
            };
            let places: Vec<usize> = view.rows().iter().map(place).collect();
            in_precision!(view.precision(), R => {
                let (rhs, values) = (view.scratch::<R>(0), view.present::<R>());
                let own: Vec<f64> = view.rows().iter().map(|&row| rhs.get(row, 0).to_f64()).collect();
                let found = self.direct.solve(self.all(&places, &own)?);
                for (&row, place) in view.rows().iter().zip(places) {
                    // SAFETY: nobody else uses the corrections.
                    unsafe { values.set(row, 0, R::lit(found[place])) };
                }
            });
        }
        one.change_on(0);
        Ok(())
    }

    /// Gathers the values of all ranks by position.
    fn all(&self, places: &[usize], own: &[f64]) -> Result<Vec<f64>, Error> {
        let pairs = places.iter().zip(own);
        let mut all = vec![0.0; self.direct.cells().iter().product()];
        let message: Vec<f64> = pairs.flat_map(|(&n, value)| [n as f64, *value]).collect();
        let communicator = self.ranks.communicator();
        for bytes in communicator.all_gather(bytemuck::cast_slice(&message))? {
            let numbers: Vec<f64> = bytemuck::pod_collect_to_vec(&bytes);
            for [place, value] in numbers.as_chunks().0 {
                all[*place as usize] = *value;
            }
        }
        Ok(all)
    }
}
