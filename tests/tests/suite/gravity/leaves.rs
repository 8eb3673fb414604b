//! Potential and acceleration in all leaf cells, and their errors.

use nestar::engine::data::Pool;
use nestar::engine::mesh::Topology;
use nestar::engine::step::config::BoundaryKind;
use nestar::kernels::mesh::Rows;
use nestar::kernels::multigrid::ghost_values::PotentialSlopes;
use nestar::kernels::multigrid::stencil::PoissonSource;
use nestar::systems::fields::Potential;
use nestar::systems::gravity::{ExteriorPotential, Matter};
use nestar_tests::Stepper;
use std::f64::consts::PI;

/// A cell that is not refined.
pub(super) struct Leaf {
    pub centre: [f64; 3],
    pub width: f64,
    pub density: f64,
    pub potential: f64,
    pub acceleration: [f64; 3],
}

/// Calls `visit` with every leaf cell of a run with G = 1.
pub(super) fn each_leaf_cell(run: &mut Stepper, mut visit: impl FnMut(Leaf)) {
    let sim = run.0.engine();
    let topology = sim.world.resource::<Topology>();
    let (potential, matter) = (
        Pool::<Potential>::of(&sim.world),
        Pool::<Matter>::of(&sim.world),
    );
    let left = topology.domain.left_edge;
    // only of a domain without open faces a mean is taken away
    let faces = sim.settings.domain.boundary.faces();
    let closed =
        |kind: &BoundaryKind| matches!(kind, BoundaryKind::Periodic | BoundaryKind::Reflecting);
    let mean = if faces.iter().flatten().all(closed) {
        mean(&matter.present::<f64>(0), topology.rows(0))
    } else {
        0.0
    };
    for level in 0..=topology.finest() {
        let width = topology.domain.cell_width(level)[0];
        let slopes = PotentialSlopes {
            view: potential.ghosts::<f64>(topology, level, 2),
            exterior: sim.world.resource::<ExteriorPotential>().on_host(1.0),
            source: PoissonSource {
                density: matter.present::<f64>(level),
                coefficient: 4.0 * PI,
                mean,
            },
            first_child: topology.first_child_table(),
            width: [width; 3],
        };
        let leaves = topology
            .rows(level)
            .iter()
            .filter(|&&row| topology.is_leaf(row));
        for &row in leaves {
            let found = slopes.of(row, true);
            for cell in 0..512 {
                let place = [cell % 8, cell / 8 % 8, cell / 64];
                let centre = std::array::from_fn(|a| {
                    let i = f64::from(8 * topology.index(row)[a]) + place[a] as f64 + 0.5;
                    i * width + left[a]
                });
                visit(Leaf {
                    centre,
                    width,
                    density: slopes.source.density.row(row)[cell],
                    potential: slopes.view.level.row(row)[cell],
                    acceleration: [0, 1, 2].map(|axis| -found[axis][cell]),
                });
            }
        }
    }
}

fn mean(density: &Rows<f64>, rows: &[u32]) -> f64 {
    let sum: f64 = rows.iter().flat_map(|&row| density.row(row)).sum();
    sum / (512 * rows.len()) as f64
}

/// Mean and largest relative error.
#[derive(Debug, Default)]
pub(super) struct Errors {
    sum: f64,
    volume: f64,
    pub most: f64,
}

impl Errors {
    pub fn add(&mut self, error: f64, volume: f64) {
        self.sum += error * volume;
        self.volume += volume;
        self.most = self.most.max(error);
    }

    pub fn mean(&self) -> f64 {
        self.sum / self.volume
    }
}

pub(super) fn norm(x: [f64; 3]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}
