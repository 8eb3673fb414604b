//! Ghost cells beyond the physical faces of the domain.

use super::{Block, cell_centre};
use nestar_device::Item;
use std::sync::Arc;

/// Where a ghost cell lies, for rules that depend on place and time.
#[derive(Clone, Copy, Debug)]
pub struct GhostCell {
    /// Axis of the face: 0, 1 or 2.
    pub axis: usize,
    /// 0 at the lower face, 1 at the upper.
    pub side: usize,
    /// Centre of the ghost cell, code length.
    pub centre: [f64; 3],
    /// Simulation time, code units.
    pub time: f64,
}

/// A rule that makes the state of a ghost cell from the state of the nearest cell inside the domain.
pub trait CellRule<R>: Send + Sync {
    /// Fills `state`, which holds the nearest inner cell's components, with the ghost cell's.
    fn apply(&self, cell: GhostCell, state: &mut [R]);

    /// Whether the face is a reflecting wall at this cell, where the rule does not apply.
    fn is_wall(&self, _cell: &GhostCell) -> bool {
        false
    }

    /// The rule of a face (`axis` 0 to 2, `side` 0 at the lower face, 1 at the upper) in the device's language; `None`: the
    /// rule works on the host only.
    fn device(&self, _axis: usize, _side: usize) -> Option<RuleText> {
        None
    }

    /// What is wrong with the rule's values at a cell, where its text for the device left the number of a face.
    fn fault_message(&self, _cell: GhostCell) -> Option<String> {
        None
    }
}

/// A rule in the device's language.
///
/// The functions stand in namespace `field`, behind its type `REAL` and its constant `COMPONENTS`; A is the axis, S the side:
///
/// ```text
/// RS_FN bool wall_A_S(const double* centre, double time, unsigned* fault)             as CellRule::is_wall
/// RS_FN void beyond_A_S(const double* centre, double time, REAL* u, unsigned* fault)  as CellRule::apply
/// ```
///
/// Where a value is not fit to be used they call `launch::leave_fault(fault, code, centre, time)` with the
/// [code of the face](Self::face_code) and go on.
#[derive(Clone, Debug)]
pub struct RuleText {
    /// What the functions call.
    pub items: Vec<&'static Item>,
    /// Their definitions.
    pub functions: String,
}

impl RuleText {
    /// The code of faults beyond a face.
    #[must_use]
    pub const fn face_code(axis: usize, side: usize) -> u32 {
        1 + 2 * axis as u32 + side as u32
    }

    /// The ghost cell that the words of a fault name; `None` where they name no face.
    #[must_use]
    pub fn faulty_cell(fault: &[u32; 9]) -> Option<GhostCell> {
        let face = fault[0].checked_sub(1).filter(|face| *face < 6)? as usize;
        let (centre, time) = fault_place(fault);
        Some(GhostCell {
            axis: face / 2,
            side: face % 2,
            centre,
            time,
        })
    }
}

/// The place and the time in the words of a fault.
#[must_use]
pub fn fault_place(fault: &[u32; 9]) -> ([f64; 3], f64) {
    let number = |n: usize| {
        let (low, high) = (u64::from(fault[1 + 2 * n]), u64::from(fault[2 + 2 * n]));
        f64::from_bits(high << 32 | low)
    };
    ([0, 1, 2].map(number), number(3))
}

/// What stands beyond one face of the domain.
pub enum FaceRule<R> {
    /// The domain continues at the opposite face.
    Periodic,
    /// Zero gradient: the nearest cell's state.
    Outflow,
    /// Mirror image; components listed in [`Boundaries::normal`] change sign.
    Reflecting,
    /// A rule for every ghost cell (diode, inflow and users' own).
    Rule(Arc<dyn CellRule<R>>),
}

/// The rules of the six faces and what they need to know of the components.
pub struct Boundaries<R> {
    /// `[axis][side]`.
    pub faces: [[FaceRule<R>; 2]; 3],
    /// Per axis: the components that are normal to that axis' faces (a vector's own component), as a bit mask.
    pub normal: [u64; 3],
}

impl<R: Copy + std::ops::Neg<Output = R>> Boundaries<R> {
    /// Fills the cells of `values` (`[component][n][n][n]`, components `stride` apart) outside the domain, axis by axis in
    /// the order x, y, z, so that edges and corners follow from faces. Where the ghost region is wider than the domain the
    /// mirror image is folded again.
    pub fn fill(
        &self,
        block: &Block,
        time: f64,
        values: &mut [R],
        stride: usize,
        components: usize,
        state: &mut [R],
    ) {
        for axis in 0..3 {
            let outside = block.outside(axis);
            for (side, &layers) in outside.iter().enumerate() {
                // beyond a periodic face the neighbours' own cells were gathered
                if layers > 0 && !matches!(self.faces[axis][side], FaceRule::Periodic) {
                    let slab = Slab {
                        block,
                        axis,
                        side,
                        layers,
                        time,
                        stride,
                        components,
                    };
                    self.fill_slab(&slab, values, state);
                }
            }
        }
    }

    /// Centre of a ghost cell beyond a face, for rules that depend on the place: along the face the cell is taken into the
    /// domain, by wrapping where it is periodic and to the edge elsewhere, so that no rule is asked about places beyond the
    /// rim of its face.
    fn centre_beyond(&self, s: &Slab, cell: [usize; 3]) -> [f64; 3] {
        let b = s.block;
        std::array::from_fn(|a| {
            let (i, cells) = (b.origin[a] + cell[a] as i32, b.domain_cells[a]);
            let i = if a == s.axis {
                i
            } else if matches!(self.faces[a][0], FaceRule::Periodic) {
                i.rem_euclid(cells)
            } else {
                i.clamp(0, cells - 1)
            };
            cell_centre(i, cells, b.left_edge[a], b.right_edge[a])
        })
    }

    fn fill_slab(&self, s: &Slab, values: &mut [R], state: &mut [R]) {
        let (n, axis) = (s.block.n, s.axis);
        let steps = [1, n, n * n];
        let (step, others) = (steps[axis], [steps[(axis + 1) % 3], steps[(axis + 2) % 3]]);
        for layer in 0..s.layers {
            let cells = s.layer(layer);
            for b in 0..n {
                for a in 0..n {
                    let base = a * others[0] + b * others[1];
                    self.fill_cell(s, values, state, cells.map(|c| base + c * step));
                }
            }
        }
    }

    /// Fills the first of three cells: ghost, nearest inside the domain, mirror image.
    fn fill_cell(
        &self,
        s: &Slab,
        values: &mut [R],
        state: &mut [R],
        [to, nearest, mirror]: [usize; 3],
    ) {
        let rule = self.applied(s, to);
        let from = if matches!(rule, Applied::Wall) {
            mirror
        } else {
            nearest
        };
        for c in 0..s.components {
            state[c] = values[c * s.stride + from];
        }
        match rule {
            Applied::Copy => {}
            Applied::Wall => {
                for (c, v) in state[..s.components].iter_mut().enumerate() {
                    if self.normal[s.axis] >> c & 1 == 1 {
                        *v = -*v;
                    }
                }
            }
            Applied::Rule(rule, cell) => rule.apply(cell, &mut state[..s.components]),
        }
        for c in 0..s.components {
            values[c * s.stride + to] = state[c];
        }
    }

    /// What the rule of a face makes of the cell `to` of a block.
    fn applied(&self, s: &Slab, to: usize) -> Applied<'_, R> {
        let rule = match &self.faces[s.axis][s.side] {
            FaceRule::Periodic | FaceRule::Outflow => return Applied::Copy,
            FaceRule::Reflecting => return Applied::Wall,
            FaceRule::Rule(rule) => rule,
        };
        let n = s.block.n;
        let cell = GhostCell {
            axis: s.axis,
            side: s.side,
            centre: self.centre_beyond(s, [to % n, to / n % n, to / (n * n)]),
            time: s.time,
        };
        if rule.is_wall(&cell) {
            Applied::Wall
        } else {
            Applied::Rule(&**rule, cell)
        }
    }
}

/// What a face does to one ghost cell.
enum Applied<'a, R> {
    Copy,
    Wall,
    Rule(&'a dyn CellRule<R>, GhostCell),
}

/// The ghost layers beyond one face of a block.
struct Slab<'a> {
    block: &'a Block,
    axis: usize,
    side: usize,
    layers: usize,
    time: f64,
    stride: usize,
    components: usize,
}

impl Slab<'_> {
    /// Block indices along the axis of ghost layer `layer` (0 next to the face), of the nearest layer inside the domain, and
    /// of the mirror image.
    fn layer(&self, layer: usize) -> [usize; 3] {
        let n = self.block.n;
        let inner = (self.block.domain_cells[self.axis] as usize).min(n - self.layers);
        // a ghost region wider than what the block holds of the domain reuses its last layer
        let depth = layer.min(inner - 1);
        if self.side == 0 {
            [self.layers - 1 - layer, self.layers, self.layers + depth]
        } else {
            let first = n - self.layers;
            [first + layer, first - 1, first - 1 - depth]
        }
    }
}
