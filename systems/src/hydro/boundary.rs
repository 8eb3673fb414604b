//! What the gas does beyond the faces of the domain.

use super::initial::StateFormulas;
use crate::fields::{GAS_COMPONENTS, GasModel};
use nestar_device::Real;
use nestar_engine::config::BoundaryKind;
use nestar_engine::field::FieldSpec;
use nestar_engine::{Error, Simulation};
use nestar_kernels::mesh::{Boundaries, CellRule, FaceRule, GhostCell};

/// Names of the faces, as the tables `[inflow.FACE]` spell them.
pub const FACES: [[&str; 2]; 3] = [
    ["x_lower", "x_upper"],
    ["y_lower", "y_upper"],
    ["z_lower", "z_upper"],
];

/// Outflow that lets nothing in: the velocity into the domain is taken away, with its kinetic energy.
struct Diode;

impl<R: Real> CellRule<R> for Diode {
    fn apply(&self, cell: GhostCell, state: &mut [R]) {
        let zero = R::lit(0.0);
        let momentum = state[1 + cell.axis];
        let inward = if cell.side == 0 {
            momentum > zero
        } else {
            momentum < zero
        };
        if inward {
            state[4] -= R::lit(0.5) * momentum * momentum / state[0];
            state[1 + cell.axis] = zero;
        }
    }
}

/// A state given by formulas.
struct Inflow {
    formulas: StateFormulas,
    gamma: f64,
}

impl<R: Real> CellRule<R> for Inflow {
    fn apply(&self, cell: GhostCell, state: &mut [R]) {
        let primitive = self.formulas.at(cell.centre, cell.time);
        let mut conserved = [0.0; nestar_kernels::mesh::prolong::MAX_COMPONENTS];
        primitive.conserved(self.gamma, &mut conserved[..GAS_COMPONENTS]);
        for (value, c) in state[..GAS_COMPONENTS].iter_mut().zip(conserved) {
            *value = R::lit(c);
        }
        for (n, value) in state[GAS_COMPONENTS..].iter_mut().enumerate() {
            *value = R::lit(self.formulas.scalar_at(n, cell.centre, cell.time) * primitive.density);
        }
    }
}

/// The rules of the six faces.
///
/// # Errors
/// A formula of an inflow face is missing or wrong.
pub fn rules<R: Real>(
    sim: &mut Simulation,
    model: &GasModel,
    spec: &FieldSpec,
) -> Result<Boundaries<R>, Error> {
    let kinds = sim.settings.domain.boundary.faces();
    let mut faces = [const { [const { FaceRule::Periodic }; 2] }; 3];
    for axis in 0..3 {
        for side in 0..2 {
            faces[axis][side] = match kinds[axis][side] {
                BoundaryKind::Periodic => FaceRule::Periodic,
                BoundaryKind::Outflow => FaceRule::Outflow,
                BoundaryKind::Reflecting => FaceRule::Reflecting,
                BoundaryKind::Diode => FaceRule::Rule(Box::new(Diode)),
                BoundaryKind::Inflow => {
                    let table = format!("inflow.{}", FACES[axis][side]);
                    let formulas = StateFormulas::take(&mut sim.deck, &table, &model.scalars)?;
                    FaceRule::Rule(Box::new(Inflow {
                        formulas,
                        gamma: model.gamma,
                    }))
                }
            };
        }
    }
    Ok(Boundaries {
        faces,
        normal: spec.normal_masks(),
    })
}
