//! Chooses and runs the solver of the root level: Fourier transforms or multigrid cycles.

use super::config::RootMethod;
use super::direct_solver::DirectSolver;
use super::kernels::GravityKernels;
use super::level_solver::{
    CoarseCorrection, DeviceSolver, FineCorrection, LevelSolver, LevelState, PoissonEquation,
    PotentialField, for_each_row,
};
use super::multipole::MultipoleExpansion;
use super::root_fft::RootSolver;
use super::surroundings::{FaceCondition, Surroundings};
use crate::fields::Potential;
use nestar_device::{Address, Lane, Number, Real};
use nestar_engine::comm::{Comm, Ranks, Reduction};
use nestar_engine::data::{Element, Field};
use nestar_engine::mesh::{Domain, parallel};
use nestar_engine::step::{FieldView, Write};
use nestar_engine::{Error, in_precision};
use nestar_kernels::PATCH;
use nestar_kernels::multigrid::coarse::mirror;
use nestar_kernels::multigrid::device::{self, CoarsestLevelParameters};
use nestar_kernels::multigrid::moments::{
    self, Moments, add_fixed_point, fixed_point_factor, largest_bits,
};
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
    /// Solves the root level in a cycle over all levels, unless it is alone and nothing has changed since the latest
    /// solve.
    pub(super) fn solve_root_with_finer(&mut self, root: &Root) -> Result<(), Error> {
        match self.rows.finest() {
            0 if self.residual(0)? == self.solved_root.0 => Ok(()),
            0 => self.solve_root(root, 0),
            _ => self.solve_root(root, LEAST_WITH_FINER),
        }
    }

    /// Solves the root level for its present right-hand side: directly, or by at least `least` cycles from the present
    /// potential.
    pub(super) fn solve_root(&mut self, root: &Root, least: usize) -> Result<(), Error> {
        let residual = match root.solver {
            RootMethods::Fft(solver) => {
                self.transform_root(solver, root.ranks)?;
                None
            }
            RootMethods::Multigrid(grid) => self.cycle_root(grid, root.ranks, least)?,
        };
        self.solved_root.0 = match (self.rows.finest(), residual) {
            (0, Some(residual)) => residual,
            (0, None) => self.residual(0)?,
            _ => f64::NAN,
        };
        Ok(())
    }

    /// Solves the root level in its step; cycles start from the potential before the step.
    pub(super) fn solve_root_in_step(&mut self, root: &Root) -> Result<(), Error> {
        if let RootMethods::Multigrid(_) = root.solver {
            self.restart_root_from_previous()?;
        }
        self.solve_root(root, 0)
    }

    /// Solves the root level without an initial guess.
    pub(super) fn solve_root_initially(&mut self, root: &Root) -> Result<(), Error> {
        if let RootMethods::Multigrid(_) = root.solver {
            self.clear_root()?;
        }
        self.solve_root(root, 0)
    }

    fn transform_root(&mut self, solver: &RootSolver, ranks: &Ranks) -> Result<(), Error> {
        let (matter, tau) = (self.matter.own_on(0), self.tau_of(0));
        let rows = matter.rows().to_vec();
        let patches: Vec<[i32; 3]> = rows.iter().map(|&row| matter.index(row)).collect();
        in_precision!(matter.precision(), R => {
            let PoissonEquation { coefficient, mean, .. } = self.equation();
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
/// Relaxation sweeps before and after the coarser grids in a cycle of the root level.
pub(super) const SWEEPS: usize = 1;
/// Upper bound of the factor by which such a cycle reduces the residual, on cells that are nearly cubes.
const REDUCTION: f64 = 0.12;
/// Factor below which a cycle rarely reduces the residual. The residual is not measured, which a GPU would wait for, while even such
/// cycles would leave too much.
const BEST_REDUCTION: f64 = 0.04;
/// Least number of cycles of a root level in a cycle over all levels, whose errors are smaller than those of the root level
/// alone.
const LEAST_WITH_FINER: usize = 2;
/// Largest residual after a solve over the largest right-hand side, times the largest number of cells along an axis. The
/// error is then below a tenth of the truncation error of the longest wave, as tests of boxes of 16 to 128 cells show.
const TOLERANCE: f64 = 0.01;

/// Settings of the root solver.
pub(super) struct RootMultigrid {
    direct: DirectSolver,
    /// Order of the multipole expansion around an isolated domain; `None` without isolated faces.
    order: Option<usize>,
    /// Half the cell width along the axes, in units of half the longest edge of the domain.
    half: [f64; 3],
    /// Centres of the isolated faces relative to that of the domain, in these units.
    faces: Vec<[f64; 3]>,
    /// Positions of mirrors along the axes, likewise.
    mirrors: [Option<f64>; 3],
    /// Cell volume over that length.
    weight: f64,
    /// Largest residual after a solve, relative to the largest right-hand side.
    tolerance: f64,
    /// Largest number of cycles per solve.
    cycles: usize,
}

impl RootMultigrid {
    /// Builds the solver for a domain with an expansion of order `order` beyond isolated faces.
    pub fn new(domain: &Domain, surroundings: Surroundings, order: usize, cycles: usize) -> Self {
        let (cells, width) = (domain.cells(0), domain.cell_width(0));
        let edges = [0, 1, 2].map(|axis| f64::from(cells[axis]) * width[axis]);
        let length = 0.5 * edges.into_iter().fold(0.0, f64::max);
        let wide = width.map(|width| width * PATCH as f64);
        let far = edges.map(|edge| 0.5 * edge / length);
        let ghost = |face| match face {
            FaceCondition::Periodic => None,
            FaceCondition::Mirrored => Some(1.0),
            FaceCondition::Isolated => Some(mirror(PATCH as f64, 0.5)),
        };
        let ends = surroundings
            .faces()
            .map(|[lower, upper]| Some([ghost(lower)?, ghost(upper)?]));
        Self {
            direct: DirectSolver::new(
                cells.map(|n| n as usize / PATCH),
                wide.map(|width| 1.0 / (width * width)),
                ends,
            ),
            order: (!surroundings.is_closed()).then_some(order),
            half: width.map(|width| 0.5 * width / length),
            weight: width.iter().product::<f64>() / length,
            faces: isolated_faces(surroundings, far),
            mirrors: mirrors(surroundings, far),
            tolerance: tolerance(cells),
            cycles,
        }
    }

    /// Checks that the highest orders of an expansion are smaller than the monopole.
    fn require_convergence(&self, expansion: &MultipoleExpansion) -> Result<(), Error> {
        let rest = expansion.tail_ratio(&self.faces);
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

/// Returns the positions of mirrors along the axes, for faces at the distances `far` from the centre of the domain. Along
/// an axis with two mirrors there is no isolated face, and no position is needed.
fn mirrors(surroundings: Surroundings, far: [f64; 3]) -> [Option<f64>; 3] {
    let faces = surroundings.mirrored();
    std::array::from_fn(|axis| match faces[axis] {
        [true, false] => Some(-far[axis]),
        [false, true] => Some(far[axis]),
        _ => None,
    })
}

/// Returns the centres of the isolated faces of the domain and its mirror images.
fn isolated_faces(surroundings: Surroundings, far: [f64; 3]) -> Vec<[f64; 3]> {
    let middle = mirrors(surroundings, far).map(|at| at.unwrap_or(0.0));
    let isolated = (surroundings.faces().into_iter().flatten().enumerate())
        .filter(|(_, face)| *face == FaceCondition::Isolated);
    let centre = |(n, _): (usize, FaceCondition)| {
        let (axis, mut centre) = (n / 2, middle);
        centre[axis] = if n % 2 == 1 { far[axis] } else { -far[axis] };
        centre
    };
    isolated.map(centre).collect()
}

/// Returns the largest residual of a root level of `cells` cells after a solve, relative to the right-hand side.
fn tolerance(cells: [i32; 3]) -> f64 {
    TOLERANCE / f64::from(cells.into_iter().fold(1, i32::max))
}

/// Returns the number of cycles after which a relative residual is below the tolerance for `cells` root cells.
pub(super) fn expected_cycles(residual: f64, cells: [i32; 3]) -> usize {
    let (mut left, mut cycles) = (residual, 0);
    while left > tolerance(cells) {
        left *= REDUCTION;
        cycles += 1;
    }
    cycles
}

impl<P: PotentialField> LevelSolver<'_, '_, P> {
    /// Performs cycles on the root level, at least `least`, until its residual is small. Returns the final residual if it was measured.
    /// Collective over all ranks.
    fn cycle_root(
        &mut self,
        root: &RootMultigrid,
        ranks: &Ranks,
        least: usize,
    ) -> Result<Option<f64>, Error> {
        if let Some(order) = root.order {
            self.update_exterior(root, order, ranks)?;
        }
        let direct = &root.direct;
        let mut measured = Some(self.largest_residual(0, true)?);
        // the bounds of the present residual
        let [mut low, mut high] = [measured.unwrap_or_default(); 2];
        for cycle in 0..root.cycles {
            if cycle >= least && high <= root.tolerance {
                break;
            }
            self.cycle(0, SWEEPS, Some(&CoarsestSolve { direct, ranks }))?;
            (low, high, measured) = (BEST_REDUCTION * low, REDUCTION * high, None);
            if cycle + 1 >= least && low <= root.tolerance {
                let residual = self.largest_residual(0, true)?;
                // the measured residual is never below the round-off of the potential
                (low, high, measured) = (residual, high.min(residual), Some(residual));
            }
        }
        if root.order.is_none() {
            self.subtract_mean(ranks)?;
            return Ok(None);
        }
        Ok(measured)
    }

    /// Updates the potential around an isolated domain.
    fn update_exterior(
        &mut self,
        root: &RootMultigrid,
        order: usize,
        ranks: &Ranks,
    ) -> Result<(), Error> {
        let kernels = self.solver.kernels.as_ref();
        let summed = RootSums {
            of: self.matter.own_on(0),
            equation: self.equation(),
            tau: self.tau_of(0),
            order,
            half: root.half,
        };
        let moments = summed.moments(ranks, kernels)?;
        let expansion =
            MultipoleExpansion::new(&moments, order, root.weight, root.half, root.mirrors);
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
        let PoissonEquation {
            coefficient, mean, ..
        } = summed.equation;
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
    fn clear_root(&mut self) -> Result<(), Error> {
        let rows = self.own_rows(0).to_vec();
        in_precision!(self.potential.precision(), R => {
            let zeros = vec![R::lit(0.0); rows.len() * PATCH * PATCH * PATCH];
            self.potential.store_on(0, &rows, &zeros)?;
        });
        Ok(())
    }

    /// Sets the potential of the root level to that before its step.
    fn restart_root_from_previous(&mut self) -> Result<(), Error> {
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
            outer_mean: 0.0,
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

/// Smallest number of root cells for which cycles are chosen: 128^3. Smaller root levels are solved faster by transforms
/// on a CPU, and take a small part of the time on a GPU.
const MANY_CELLS: f64 = 2_097_152.0;
/// Largest ratio of the root cell widths along two axes for which cycles converge as fast as on cubes.
const NEARLY_CUBES: f64 = 1.1;

/// Solver of the root level and the reason for it.
pub(super) struct RootChoice {
    pub method: RootMethod,
    /// A note to the user.
    pub reason: String,
}

impl RootChoice {
    /// Chooses the solver by the root level alone, so that results do not depend on the device.
    pub fn of(domain: &Domain, surroundings: Surroundings) -> Self {
        let cells = domain.cells(0);
        let width = domain.cell_width(0);
        let [least, most] = [f64::min, f64::max].map(|of| width.into_iter().fold(width[0], of));
        let count: f64 = cells.map(f64::from).iter().product();
        let [x, y, z] = cells;
        let (method, reason) = if !surroundings.is_closed() {
            let reason = "\"fft\" is used, which is exact for matter anywhere in an isolated domain; on a GPU \"multigrid\" is faster, for matter that keeps away from the faces";
            (RootMethod::Fft, reason.into())
        } else if most > NEARLY_CUBES * least {
            let reason = "\"fft\" is used, because root cells are not cubes, on which multigrid cycles converge slowly";
            (RootMethod::Fft, reason.into())
        } else if count < MANY_CELLS {
            let reason =
                format!("\"fft\" is used for {x} x {y} x {z} root cells, fewer than 128^3");
            (RootMethod::Fft, reason)
        } else {
            let reason = format!(
                "\"multigrid\" is used for a periodic or mirrored domain of {x} x {y} x {z} root cells, at least 128^3; on a CPU \"fft\" is faster"
            );
            (RootMethod::Multigrid, reason)
        };
        Self {
            method,
            reason: format!("gravity.root = \"auto\": {reason}"),
        }
    }
}
