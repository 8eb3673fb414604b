//! A boundary rule that shows where and when it was asked: any difference in place, time or source changes the bits.

use nestar::device_runtime::Real;
use nestar::kernels::mesh::{CellRule, GhostCell, RuleText};

/// A wall in part of the face; elsewhere the nearest state, changed by place and time.
pub struct Patchwork;

impl<R: Real> CellRule<R> for Patchwork {
    fn apply(&self, cell: GhostCell, state: &mut [R]) {
        let mut sum = cell.time;
        for x in cell.centre {
            sum = 0.75 * sum + x;
        }
        for u in state.iter_mut() {
            *u *= R::lit(1.0 + 0.125 * sum);
        }
        state[1] += state[2] * R::lit(0.0625);
    }

    fn is_wall(&self, cell: &GhostCell) -> bool {
        cell.centre[(cell.axis + 1) % 3] < 0.4 + 0.1 * cell.time
    }

    fn device(&self, axis: usize, side: usize) -> Option<RuleText> {
        let along = (axis + 1) % 3;
        Some(RuleText {
            items: Vec::new(),
            functions: format!(
                "RS_FN bool wall_{axis}_{side}(const double* centre, double time, unsigned*) {{\n\
                 \x20 return centre[{along}] < 0.4 + 0.1 * time;\n\
                 }}\n\
                 RS_FN void beyond_{axis}_{side}(const double* centre, double time, REAL* u, unsigned*) {{\n\
                 \x20 double sum = time;\n\
                 \x20 for (int a = 0; a < 3; ++a) sum = 0.75 * sum + centre[a];\n\
                 \x20 for (int c = 0; c < COMPONENTS; ++c) u[c] *= (REAL)(1.0 + 0.125 * sum);\n\
                 \x20 u[1] += u[2] * (REAL)0.0625;\n\
                 }}\n"
            ),
        })
    }
}
