//! The device's side of the mesh: launch skeletons, and the text that tells them about a field.

mod states;

use super::fluxes;
use super::prolong::SlopeLimiter;
use super::rule::{GHOST_QUERY, RULES};
use super::{Boundaries, FaceRule, RowShape, RuleText, StateItems};
use crate::PATCH;
use crate::criteria::{LIST, LIST_BLOCK, ListText, SECTORS};
use nestar_device::{Face, FaceStencil, Ghost, Item, LAUNCH, Stencil};
use std::fmt::Write;

/// What kernels see of a level; follows [`FieldText::text`].
pub const VIEW: &str = include_str!("view.cuh");
/// The gather of ghost cells; follows [`VIEW`].
pub const GATHER: &str = concat!(
    include_str!("boundary.cuh"),
    include_str!("interpolate.cuh"),
    include_str!("gather.cuh")
);
/// Interpolation into new patches; follows [`GATHER`], as all that stand below.
pub const PROLONG: &str = include_str!("prolong.cu");
/// Averages onto the coarser level, and one owner of shared faces.
pub const RESTRICT: &str = include_str!("restrict.cu");
/// Flux registers and the correction.
pub const FLUXES: &str = include_str!("fluxes.cu");
/// Conserved totals.
pub const TOTALS: &str = include_str!("totals.cu");
/// Rows into and out of contiguous memory.
pub const TRANSFER: &str = include_str!("transfer.cu");
/// Fine-side flux registers into and out of contiguous memory.
pub const REGISTER_TRANSFER: &str = include_str!("register_transfer.cu");
/// Functions of one cell; what [`SkeletonFunction::texts`] says follows, then [`MAP`], [`REDUCE`] or [`MARK`].
pub const CELL_FUNCTIONS: &str = include_str!("cells.cuh");
/// Maps.
pub const MAP: &str = include_str!("map.cu");
/// Results that waited beside a field go into it; follows [`MAP`] or [`CONSERVE`].
pub const WRITE_BACK: &str = include_str!("write_back.cu");
/// Functions of a face; follows [`CELL_FUNCTIONS`], then [`CONSERVE`].
pub const FACE_FUNCTIONS: &str = concat!(
    include_str!("patch_faces.cuh"),
    include_str!("face_functions.cuh")
);
/// Changes by fluxes.
pub const CONSERVE: &str = include_str!("conserve.cu");
/// Calls that may fail or want to be repeated.
pub const SUBCYCLE: &str = include_str!("subcycle.cu");
/// What stands around a row, ghost cells included.
pub const WINDOW: &str = include_str!("window.cu");
/// Reductions.
pub const REDUCE: &str = include_str!("reduce.cu");
/// Marks; follows [`SECTORS`].
pub const MARK: &str = include_str!("mark.cu");
/// Topology tables; needs no field.
pub const TOPOLOGY: &str = include_str!("topology.cu");

/// Patches that a block of `mesh_assign_coarse`, `mesh_assign_fine` and the kernels of [`TOPOLOGY`] works on.
pub const PATCHES_PER_BLOCK: usize = 256;
/// Values that a block of `mesh_commit` works on.
pub const COMMIT_PER_BLOCK: usize = 4096;

/// What kernels of a skeleton call.
#[derive(Clone, Copy, Debug)]
pub enum SkeletonFunction<'a> {
    /// A function of a cell, or of what surrounds it so many cells far.
    Cell(&'static Item, usize),
    /// A function of what lies beside a face so many cells far, and the components that flow through the face.
    Face(&'static Item, usize, usize),
    /// A function of a cell's state and of the numbers of a list there, which are made of the state and the place.
    WithInputs(&'static Item, &'a ListText),
    /// The criteria of a list.
    List(&'a ListText),
    /// None: the states so many cells around a patch are wanted themselves, by [`WINDOW`].
    Window(usize),
}

impl SkeletonFunction<'_> {
    /// What tells it from others.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Cell(item, _) | Self::Face(item, ..) => item.path(),
            Self::WithInputs(item, list) => item.path() + &list.text,
            Self::List(list) => list.text.clone(),
            Self::Window(reach) => reach.to_string(),
        }
    }

    /// Values of a block with ghost cells of a field, and of what stands behind it; none where the function reads no ghost cells.
    #[must_use]
    pub fn block_values(&self, field: &FieldText) -> usize {
        let states = |reach: usize| field.components * (PATCH + 2 * reach).pow(3);
        match *self {
            Self::Cell(_, 0) | Self::WithInputs(..) => 0,
            Self::Cell(_, reach) | Self::Window(reach) => states(reach),
            Self::Face(_, reach, fluxes) => states(reach) + 3 * fluxes * fluxes::FACES,
            Self::List(ListText { kept: 0, .. }) => 0,
            // at a wall the state stands in the block while it is gathered
            Self::List(list) if field.bounded() => list.kept.max(field.components) * LIST_BLOCK,
            Self::List(list) => list.kept * LIST_BLOCK,
        }
    }

    /// Texts of a skeleton that calls it; whether blocks with ghost cells stand in shared memory.
    #[must_use]
    pub fn texts(&self, in_shared: bool, skeleton: &[&str]) -> Vec<String> {
        let path = |item: &Item| format!("&::{}<field::REAL>", item.path());
        let states = format!("states_around<F, {in_shared}>");
        let (before, function, around) = match self {
            Self::Cell(item, _) => (vec![], format!("Function<{}>", path(item)), states),
            Self::Face(item, ..) => {
                let function = format!("FaceFunction<{}>", path(item));
                (vec![FACE_FUNCTIONS], function, states)
            }
            Self::WithInputs(item, list) => {
                let function = format!("WithInputs<{}, List>", path(item));
                (vec![LIST, &*list.text], function, states)
            }
            Self::List(list) => {
                let around = format!("F::around<{in_shared}>");
                (vec![LIST, &*list.text], "ListFunction<List>".into(), around)
            }
            Self::Window(reach) => (vec![], format!("Window<{reach}>"), states),
        };
        let named = format!(
            "namespace cells {{\n\
             typedef {function} F;\n\
             RS_FN REAL* around(const Input& p, int row) {{ return {around}(p, row); }}\n\
             }}\n"
        );
        let texts = [CELL_FUNCTIONS, SECTORS].into_iter().chain(before);
        let texts = texts.chain([&*named]).chain(skeleton.iter().copied());
        texts.map(String::from).collect()
    }

    /// The items that the texts name.
    #[must_use]
    pub fn items(&self) -> Vec<&'static Item> {
        let mut items = vec![Stencil, FaceStencil, Face];
        match self {
            Self::Cell(item, _) | Self::Face(item, ..) => items.push(item),
            Self::WithInputs(item, list) => {
                items.push(item);
                items.extend(&list.items);
            }
            Self::List(list) => items.extend(&list.items),
            Self::Window(_) => (),
        }
        items
    }
}

/// What stands beyond one face, in the device's language.
#[derive(Clone, Debug)]
pub enum FaceText {
    /// As [`FaceRule::Periodic`].
    Periodic,
    /// As [`FaceRule::Outflow`].
    Outflow,
    /// As [`FaceRule::Reflecting`].
    Reflecting,
    /// As [`FaceRule::Rule`].
    Rule(RuleText),
}

impl FaceText {
    /// The faces of `boundaries`, `[axis][side]`.
    ///
    /// # Errors
    /// Axis and side of a face whose rule works on the host only.
    pub fn of<R>(boundaries: &Boundaries<R>) -> Result<[[Self; 2]; 3], (usize, usize)> {
        let mut faces = [const { [Self::Periodic, Self::Periodic] }; 3];
        for (axis, sides) in faces.iter_mut().enumerate() {
            for (side, face) in sides.iter_mut().enumerate() {
                *face = match &boundaries.faces[axis][side] {
                    FaceRule::Periodic => Self::Periodic,
                    FaceRule::Outflow => Self::Outflow,
                    FaceRule::Reflecting => Self::Reflecting,
                    FaceRule::Rule(rule) => {
                        Self::Rule(rule.device(axis, side).ok_or((axis, side))?)
                    }
                };
            }
        }
        Ok(faces)
    }

    /// The number that `mesh::PERIODIC` and its like have.
    fn code(&self) -> u32 {
        match self {
            Self::Periodic => 0,
            Self::Outflow => 1,
            Self::Reflecting => 2,
            Self::Rule(_) => 3,
        }
    }
}

/// What the skeletons must know of a field.
#[derive(Clone, Debug)]
pub struct FieldText {
    /// Whether values are `f64`.
    pub double: bool,
    /// Number of components.
    pub components: usize,
    /// How rows are cut.
    pub shape: RowShape,
    /// What stands beyond the domain, `[axis][side]`.
    pub faces: [[FaceText; 2]; 3],
    /// Per axis: the components that change sign under its mirror image, as a bit mask.
    pub normal: [u64; 3],
    /// Limiter of the interpolation between levels.
    pub limiter: SlopeLimiter,
    /// What is known of states; without it all are sound, and they are interpolated as they are.
    pub states: Option<StateItems>,
}

impl FieldText {
    /// The `#[device]` functions that the text and the skeletons of the mesh call.
    #[must_use]
    pub fn items(&self) -> Vec<&'static Item> {
        let mut items = super::device_items();
        items.push(nestar_device::math::sum3::ITEM);
        items.extend(self.states.iter().flat_map(|states| states.items));
        let follow = self.states.iter().flat_map(|states| states.dependents);
        items.extend(follow.flatten());
        for (_, _, rule) in self.rules() {
            items.extend(&rule.items);
            items.push(Ghost);
        }
        items
    }

    /// A program whose skeletons see levels of this field: the text of `items` and of everything that the gather needs, the
    /// language of skeletons, the namespaces `field` and `mesh`, then the given texts.
    #[must_use]
    pub fn program(&self, items: &[&'static Item], skeletons: &[impl AsRef<str>]) -> String {
        let mut roots = self.items();
        roots.extend(items);
        let mut program = nestar_device::program(&roots);
        let (text, skeletons) = (self.text(), skeletons.iter().map(AsRef::as_ref));
        let texts = [LAUNCH, &text, VIEW, GATHER];
        for (n, part) in texts.into_iter().chain(skeletons).enumerate() {
            // messages of the compiler count lines from here
            let _ = write!(program, "#line 1 \"part {n}\"\n{part}\n");
        }
        program
    }

    /// Whether any face of the domain is not periodic.
    #[must_use]
    pub fn bounded(&self) -> bool {
        let mut faces = self.faces.iter().flatten();
        faces.any(|face| !matches!(face, FaceText::Periodic))
    }

    /// The faces with rules, each with axis and side.
    fn rules(&self) -> impl Iterator<Item = (usize, usize, &RuleText)> {
        let faces = self.faces.iter().flatten().enumerate();
        faces.filter_map(|(n, face)| match face {
            FaceText::Rule(rule) => Some((n / 2, n % 2, rule)),
            _ => None,
        })
    }

    /// The namespace `field`:
    ///
    /// ```text
    /// typedef … REAL; constexpr int COMPONENTS, LIMITER, CENTRING, SIDE; constexpr bool BOUNDED
    /// int kind(int axis, int side)                                                 // 0 to 3, as FaceRule
    /// rs::u64 normal(int axis)                                                     // bit mask of components
    /// constexpr int LEADING                       // components that are no shares; 0: nothing is known of states
    /// constexpr int SETS; int set_of(int component)                                // as ShareSets
    /// bool physical(const REAL* u)
    /// void to_primitive(REAL* u); void to_conserved(REAL* w); void mend(REAL* u, const REAL* w)      // as States
    /// constexpr bool FOLLOWS; void follow(const REAL* before, REAL* u); void settle(REAL* u)         // the same
    /// struct GhostQuery; constexpr int INNER           // what rules are asked about; inner cells that they read
    /// bool wall(int axis, int side, const double* centre, double time, unsigned* fault)
    /// void ghost(int axis, int side, const GhostQuery& at, REAL* u, unsigned* fault)
    /// ```
    #[must_use]
    pub fn text(&self) -> String {
        let faces = || self.faces.iter().flatten();
        let kinds = faces().enumerate();
        let kinds: u32 = kinds.map(|(n, face)| face.code() << (4 * n)).sum();
        let (bounded, [x, y, z]) = (self.bounded(), self.normal);
        let mut text = format!(
            "namespace field {{\n\
             typedef {} REAL;\n\
             constexpr int COMPONENTS = {}, LIMITER = {}, CENTRING = {}, SIDE = {};\n\
             constexpr bool BOUNDED = {bounded};\n\
             RS_FN constexpr int kind(int axis, int side) {{ return (int)({kinds:#x}u >> (4 * (2 * axis + side)) & 15u); }}\n\
             RS_FN constexpr rs::u64 normal(int axis) {{ return axis == 0 ? {x:#x}ull : axis == 1 ? {y:#x}ull : {z:#x}ull; }}\n",
            if self.double { "double" } else { "float" },
            self.components,
            self.limiter.code(),
            self.shape.centring as u32,
            self.shape.side,
        );
        text.push_str(&states::text(self.states.as_ref()));
        text.push_str(&self.rules_text());
        text.push_str("}\n");
        text
    }

    fn rules_text(&self) -> String {
        let inner = self.rules().map(|(_, _, rule)| rule.inner).max();
        let mut text = format!(
            "{GHOST_QUERY}constexpr int INNER = {};\n",
            inner.unwrap_or(1)
        );
        if inner.is_some() {
            text.push_str(RULES);
        }
        for (_, _, rule) in self.rules() {
            text.push_str(&rule.functions);
            text.push('\n');
        }
        text.push_str(&self.dispatch(
            "bool wall",
            "const double* centre, double time, unsigned* fault",
            "return wall",
            "centre, time, fault",
            "return false;",
        ));
        text.push_str(&self.dispatch(
            "void ghost",
            "const GhostQuery& at, REAL* u, unsigned* fault",
            "return ghost",
            "at, u, fault",
            "",
        ));
        text
    }

    /// A function of axis and side that calls that of the face.
    fn dispatch(
        &self,
        function: &str,
        parameters: &str,
        call: &str,
        arguments: &str,
        otherwise: &str,
    ) -> String {
        let mut text = format!("RS_FN {function}(int axis, int side, {parameters}) {{\n");
        for (axis, side, _) in self.rules() {
            let _ = writeln!(
                text,
                "  if (axis == {axis} && side == {side}) {call}_{axis}_{side}({arguments});"
            );
        }
        let _ = writeln!(text, "  {otherwise}\n}}");
        text
    }
}
