//! Rules for what stands beyond a face of the domain, and what they are asked about.

use super::block::LevelGeometry;
use nestar_device::{Item, MAX_INNER_CELLS, Real};

/// What the functions of a [`RuleText`] are asked about; in namespace `field`.
pub const GHOST_QUERY: &str = include_str!("ghost_query.cuh");
/// `#[device]` functions beyond faces; follows [`GHOST_QUERY`].
pub(super) const RULES: &str = include_str!("boundary_functions.cuh");

/// A ghost cell beyond a face, and where it lies.
#[derive(Clone, Copy, Debug, Default)]
pub struct GhostCell {
    /// Axis of the face: 0, 1 or 2.
    pub axis: usize,
    /// 0 at the lower face, 1 at the upper.
    pub side: usize,
    /// Cells between it and the face.
    pub layer: i32,
    /// Its index on the level.
    pub index: [i32; 3],
    /// Centre of the ghost cell, code length.
    pub centre: [f64; 3],
    /// Simulation time, code units.
    pub time: f64,
    /// What places on the level are made of.
    pub level: LevelGeometry,
}

/// The inner cells along the normal of a face.
#[derive(Clone, Copy, Debug)]
pub struct InnerStates<'a, R> {
    pub(super) values: &'a [R],
    /// From a component to the next.
    pub(super) stride: usize,
    /// Where the nearest one stands, and from there to the next.
    pub(super) first: usize,
    pub(super) step: isize,
}

/// No cells.
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
    /// A component of cell `n`, from 0 beside the face to `MAX_INNER_CELLS - 1`.
    #[must_use]
    pub fn value(&self, n: usize, component: usize) -> R {
        debug_assert!(n < MAX_INNER_CELLS);
        let cell = self.first.wrapping_add_signed(n as isize * self.step);
        self.values[component * self.stride + cell]
    }
}

/// A rule that makes the state of a ghost cell from the states of cells inside the domain.
pub trait CellRule<R>: Send + Sync {
    /// Fills `state`, which holds the nearest inner cell's components, with the ghost cell's.
    fn apply(&self, cell: &GhostCell, inner: &InnerStates<R>, state: &mut [R]);

    /// Whether the face is a reflecting wall at this cell, where the rule does not apply.
    fn is_wall(&self, _cell: &GhostCell) -> bool {
        false
    }

    /// The rule of a face (`axis` 0 to 2, `side` 0 at the lower face, 1 at the upper) in the device's language; `None`: the
    /// rule works on the host only.
    fn device(&self, _axis: usize, _side: usize) -> Option<RuleText> {
        None
    }

    /// What is wrong with the rule's values at a place, where its text for the device left a fault.
    fn fault_message(&self, _fault: &RuleFault) -> Option<String> {
        None
    }
}

/// A rule in the device's language.
///
/// The functions stand in namespace `field`, behind its type `REAL` and its constant `COMPONENTS`; A is the axis, S the side:
///
/// ```text
/// RS_FN bool wall_A_S(const double* centre, double time, unsigned* fault)             as CellRule::is_wall
/// RS_FN void ghost_A_S(const GhostQuery& at, REAL* u, unsigned* fault)                    as CellRule::apply
/// ```
///
/// Where a value is not fit to be used they call `launch::leave_fault(fault, code, centre, time)`, or the same with the state and the
/// number of its components, with the [code of the face](Self::face_code) and go on.
#[derive(Clone, Debug)]
pub struct RuleText {
    /// What the functions call.
    pub items: Vec<&'static Item>,
    /// Their definitions.
    pub functions: String,
    /// Inner cells that `beyond` reads, 1 to `MAX_INNER_CELLS`.
    pub inner: usize,
}

impl RuleText {
    /// The code of faults beyond a face.
    #[must_use]
    pub const fn face_code(axis: usize, side: usize) -> u32 {
        1 + 2 * axis as u32 + side as u32
    }
}

/// Words of a fault that a kernel leaves: its code, then the place, the time and the leading numbers of a state.
pub const FAULT_WORDS: usize = 9 + 2 * 8;

/// A fault beyond a face.
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
    /// The leading numbers of the state, if the rule has left them.
    pub state: [f64; 8],
}

impl RuleFault {
    /// What the words of a fault say; `None` where they name no face.
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

/// The place and the time in the words of a fault.
#[must_use]
pub fn fault_place(fault: &[u32; FAULT_WORDS]) -> ([f64; 3], f64) {
    (
        [0, 1, 2].map(|n| fault_number(fault, n)),
        fault_number(fault, 3),
    )
}
