//! A boundary rule whose result encodes position, time and inner cells: any difference in its arguments changes the bits.

use nestar::device_runtime::Real;
use nestar::kernels::mesh::{CellRule, GhostCell, InnerStates, RuleText};

/// A wall in part of the face; elsewhere the nearest state, changed by place, time, layer and the cells further in.
pub struct Patchwork;

impl<R: Real> CellRule<R> for Patchwork {
    fn apply(&self, cell: &GhostCell, inner: &InnerStates<R>, state: &mut [R]) {
        let mut sum = cell.time;
        for x in cell.centre {
            sum = 0.75 * sum + x;
        }
        for u in state.iter_mut() {
            *u *= R::lit(1.0 + 0.125 * sum);
        }
        state[1] += state[2] * R::lit(0.0625);
        for n in 1..4 {
            state[0] += inner.value(n, 0) * R::lit(0.03125);
        }
        state[0] +=
            R::lit(0.5 * cell.level.width[cell.axis] * f64::from(cell.layer + cell.level.level));
    }

    fn is_wall(&self, cell: &GhostCell) -> bool {
        cell.centre[(cell.axis + 1) % 3] < 0.4 + 0.1 * cell.time
    }

    fn device(&self, axis: usize, side: usize) -> Option<RuleText> {
        let along = (axis + 1) % 3;
        Some(RuleText {
            items: Vec::new(),
            inner: 4,
            functions: format!(
                "RS_FN bool wall_{axis}_{side}(const double* centre, double time, unsigned*) {{\n\
                 \x20 return centre[{along}] < 0.4 + 0.1 * time;\n\
                 }}\n\
                 RS_FN void ghost_{axis}_{side}(const GhostQuery& at, REAL* u, unsigned*) {{\n\
                 \x20 double sum = at.time;\n\
                 \x20 for (int a = 0; a < 3; ++a) sum = 0.75 * sum + at.centre[a];\n\
                 \x20 for (int c = 0; c < COMPONENTS; ++c) u[c] *= (REAL)(1.0 + 0.125 * sum);\n\
                 \x20 u[1] += u[2] * (REAL)0.0625;\n\
                 \x20 for (int n = 1; n < 4; ++n) u[0] += at.inner[n * COMPONENTS] * (REAL)0.03125;\n\
                 \x20 const double width = (at.right[{axis}] - at.left[{axis}]) / (double)at.cells[{axis}];\n\
                 \x20 u[0] += (REAL)(0.5 * width * (double)(at.layer + at.level));\n\
                 }}\n"
            ),
        })
    }
}
