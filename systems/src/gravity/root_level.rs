//! The root level by multigrid cycles.

use super::border::Unknowns;
use super::copy::When;
use super::grids::{Equation, Grids, each};
use super::lowest::Lowest;
use super::root_fft::{Bottom, Expansion};
use super::sums::Summed;
use crate::fields::Potential;
use nestar_device::Lane;
use nestar_engine::comm::Ranks;
use nestar_engine::data::Field;
use nestar_engine::mesh::Domain;
use nestar_engine::{Error, in_precision};
use nestar_kernels::PATCH;
use nestar_kernels::multigrid::coarse::mirror;
use nestar_kernels::multigrid::stencil::source_of;

/// Most that the highest orders of the expansion around the domain may say at a face, as a share of what the mass says alone: beyond it they are no
/// correction any more.
const MOST_REST: f64 = 1.0;

/// How it is done.
pub(super) struct RootGrid {
    bottom: Bottom,
    /// Order of the expansion around an isolated domain.
    order: Option<usize>,
    /// Half the width of a cell along the axes, in units of half the domain's longest edge.
    half: [f64; 3],
    /// How far the faces are from the middle of the domain, in these units.
    faces: [f64; 3],
    /// Volume of a cell over that length.
    weight: f64,
    /// Sweeps before and after the coarser grids.
    pub sweeps: usize,
    /// Cycles of a solve that begins with a potential.
    pub cycles: usize,
}

impl RootGrid {
    /// In a domain, isolated if an order is given.
    pub fn new(domain: &Domain, order: Option<usize>, sweeps: usize, cycles: usize) -> Self {
        let (cells, width) = (domain.cells(0), domain.cell_width(0));
        let edges = [0, 1, 2].map(|axis| f64::from(cells[axis]) * width[axis]);
        let length = 0.5 * edges.into_iter().fold(0.0, f64::max);
        let wide = width.map(|width| width * PATCH as f64);
        Self {
            bottom: Bottom::new(
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

    /// Refuses an expansion of which the highest orders are as much as the mass.
    fn require_convergence(&self, expansion: &Expansion) -> Result<(), Error> {
        let rest = expansion.rest(self.faces);
        if rest <= MOST_REST {
            return Ok(());
        }
        Err(Error::Fault(format!(
            "gravity.root = \"multigrid\": the expansion around the domain does not converge: at a face its highest orders, of \
             gravity.multipole_order = {}, are {rest:.1} times what the mass alone gives, as matter is farther from the centre of mass than that face is; \
             take gravity.root = \"fft\", a lower gravity.multipole_order, or a box whose faces are beyond the matter",
            expansion.order
        )))
    }
}

impl<P: Unknowns> Grids<'_, '_, P> {
    /// Brings the root level nearer to the solution for its present right-hand side by so many cycles, or half of them if the right-hand side is that
    /// of the solve before. All ranks call it.
    pub(super) fn cycle_root(
        &mut self,
        root: &RootGrid,
        ranks: &Ranks,
        cycles: usize,
    ) -> Result<(), Error> {
        let cycles = match root.order {
            Some(order) if !self.expand(root, order, ranks)? => cycles.div_ceil(2),
            _ => cycles,
        };
        let bottom = &root.bottom;
        for _ in 0..cycles {
            self.cycle(0, root.sweeps, Some(&Lowest { bottom, ranks }))?;
        }
        match root.order {
            None => self.take_mean_away(ranks),
            Some(_) => Ok(()),
        }
    }

    /// Finds the potential around an isolated domain; whether it is another one. It follows from moments as whole numbers: what changes none of
    /// them does not count.
    fn expand(&mut self, root: &RootGrid, order: usize, ranks: &Ranks) -> Result<bool, Error> {
        let kernels = self.solver.kernels.as_ref();
        let summed = Summed {
            of: self.matter.own_on(0),
            equation: *self.equation,
            tau: self.lag_of(0),
            order,
            half: root.half,
        };
        let moments = summed.moments(ranks, kernels)?;
        let expansion = Expansion::new(&moments, order, root.weight, root.half);
        // what particles' own potential is made of may lie anywhere, and is little
        if P::NAME == Potential::NAME {
            root.require_convergence(&expansion)?;
        }
        self.beyond.expand(&self.ranks, expansion, kernels)
    }

    /// Brings the mean of the root level's potential to 0.
    fn take_mean_away(&mut self, ranks: &Ranks) -> Result<(), Error> {
        let kernels = self.solver.kernels.as_ref();
        let mut summed = Summed::plain(self.potential.own_on(0));
        summed.equation.mean = summed.mean(ranks, kernels)?;
        let Equation { coefficient, mean } = summed.equation;
        if let Some(kernels) = kernels {
            kernels.root.shift(&summed.on_device(0.0))?;
        } else {
            in_precision!(self.potential.precision(), R => {
                let values = summed.of.present::<R>();
                each(summed.of.rows(), |row| {
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

    /// The root level begins its cycles with nothing.
    pub(super) fn clear_root(&mut self) -> Result<(), Error> {
        let rows = self.own_rows(0).to_vec();
        in_precision!(self.potential.precision(), R => {
            let zeros = vec![R::lit(0.0); rows.len() * PATCH * PATCH * PATCH];
            self.potential.store_on(0, &rows, &zeros)?;
        });
        Ok(())
    }

    /// Or with the potential before its step.
    pub(super) fn repeat_root(&mut self) -> Result<(), Error> {
        self.copy(&self.potential.own_on(0), When::Before)?;
        self.potential.change_on(0);
        Ok(())
    }
}
