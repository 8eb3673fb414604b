//! Boundary rules: functions that compute ghost cells outside the domain.

use super::block::LevelGeometry;
use nestar_device::{Item, MAX_INNER_CELLS, Real};

/// Input of the functions of a [`RuleText`]; in namespace `field`.
pub const GHOST_QUERY: &str = include_str!("ghost_query.cuh");
/// Calls of `#[device]` boundary functions; follows [`GHOST_QUERY`].
pub(super) const RULES: &str = include_str!("boundary_functions.cuh");

/// Describes a ghost cell outside a face of the domain.
#[derive(Clone, Copy, Debug, Default)]
pub struct GhostCell {
    /// Axis of the face: 0, 1 or 2.
    pub axis: usize,
    /// 0 at the lower face, 1 at the upper.
    pub side: usize,
    /// Number of cells between it and the face.
    pub layer: i32,
    /// Index on the level.
    pub index: [i32; 3],
    /// Centre of the ghost cell, code length.
    pub centre: [f64; 3],
    /// Simulation time, code units.
    pub time: f64,
    /// Geometry of the level.
    pub level: LevelGeometry,
}

/// Gives the states of inner cells along the normal of a face.
#[derive(Clone, Copy, Debug)]
pub struct InnerStates<'a, R> {
    pub(super) values: &'a [R],
    /// Values between two components.
    pub(super) stride: usize,
    /// Position of the nearest cell, and the step to the next.
    pub(super) first: usize,
    pub(super) step: isize,
}

/// Contains no cells.
impl<R> Default for InnerStates<'_, R> {
    fn default() -> Self {
        Self {
            values: &[],
            stride: 0,
            first: 0,
            step: 0,
        }
    }
}

impl<R: Real> InnerStates<'_, R> {
    /// Returns a component of cell `n`, from 0 next to the face to `MAX_INNER_CELLS - 1`.
    #[must_use]
    pub fn value(&self, n: usize, component: usize) -> R {
        debug_assert!(n < MAX_INNER_CELLS);
        let cell = self.first.wrapping_add_signed(n as isize * self.step);
        self.values[component * self.stride + cell]
    }
}

/// Computes the state of a ghost cell from states inside the domain.
pub trait CellRule<R>: Send + Sync {
    /// Replaces `state`, which holds the nearest inner cell, by the state of the ghost cell.
    fn apply(&self, cell: &GhostCell, inner: &InnerStates<R>, state: &mut [R]);

    /// Returns `true` if the face is a reflecting wall at this cell, where the rule does not apply.
    fn is_wall(&self, _cell: &GhostCell) -> bool {
        false
    }

    /// Returns the rule of a face in the device's language (`axis` 0 to 2, `side` 0 at the lower face, 1 at the upper), or `None` if it
    /// works on the host only.
    fn device(&self, _axis: usize, _side: usize) -> Option<RuleText> {
        None
    }

    /// Explains a fault that the rule's device text has reported.
    fn fault_message(&self, _fault: &RuleFault) -> Option<String> {
        None
    }
}

/// Text of a boundary rule in the device's language.
///
/// The functions are in namespace `field`, after its type `REAL` and its constant `COMPONENTS`; A is the axis, S the side:
///
/// ```text
/// RS_FN bool wall_A_S(const double* centre, double time, unsigned* fault)             as CellRule::is_wall
/// RS_FN void ghost_A_S(const GhostQuery& at, REAL* u, unsigned* fault)                as CellRule::apply
/// ```
///
/// For an invalid value they call `launch::leave_fault(fault, code, centre, time)` with the [code of the face](Self::face_code), optionally
/// with the state and its number of components, and continue.
#[derive(Clone, Debug)]
pub struct RuleText {
    /// Items that the functions call.
    pub items: Vec<&'static Item>,
    /// Definitions of the functions.
    pub functions: String,
    /// Number of inner cells that `ghost_A_S` reads, 1 to `MAX_INNER_CELLS`.
    pub inner: usize,
}

impl RuleText {
    /// Returns the code of faults outside a face.
    #[must_use]
    pub const fn face_code(axis: usize, side: usize) -> u32 {
        1 + 2 * axis as u32 + side as u32
    }
}

/// Words of a fault from a kernel: its code, then position, time and leading values of a state.
pub const FAULT_WORDS: usize = 9 + 2 * 8;

/// Describes a fault of a boundary rule.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleFault {
    /// Axis of the face: 0, 1 or 2.
    pub axis: usize,
    /// 0 at the lower face, 1 at the upper.
    pub side: usize,
    /// Centre of the ghost cell, code length.
    pub centre: [f64; 3],
    /// Simulation time, code units.
    pub time: f64,
    /// Leading values of the state, if the rule has stored them.
    pub state: [f64; 8],
}

impl RuleFault {
    /// Decodes the words of a fault; `None` if they name no face.
    #[must_use]
    pub fn of_words(fault: &[u32; FAULT_WORDS]) -> Option<Self> {
        let face = fault[0].checked_sub(1).filter(|face| *face < 6)? as usize;
        let (centre, time) = fault_place(fault);
        Some(Self {
            axis: face / 2,
            side: face % 2,
            centre,
            time,
            state: std::array::from_fn(|n| fault_number(fault, 4 + n)),
        })
    }
}

fn fault_number(fault: &[u32; FAULT_WORDS], n: usize) -> f64 {
    let (low, high) = (u64::from(fault[1 + 2 * n]), u64::from(fault[2 + 2 * n]));
    f64::from_bits(high << 32 | low)
}

/// Returns the position and time in the words of a fault.
#[must_use]
pub fn fault_place(fault: &[u32; FAULT_WORDS]) -> ([f64; 3], f64) {
    (
        [0, 1, 2].map(|n| fault_number(fault, n)),
        fault_number(fault, 3),
    )
}
