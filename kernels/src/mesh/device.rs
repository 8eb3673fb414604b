//! Provides the device programs of the mesh: kernel skeletons, and the text that specialises them for a field.

use super::columns::column_cell;
use super::parameters::ColumnOptions;
use super::prolong::SlopeLimiter;
use super::rule::{GHOST_QUERY, RULES};
use super::{Boundaries, FaceRule, RowShape, RuleText, ShareSets, StateItems, fluxes};
use crate::PATCH;
use crate::criteria::{LIST, LIST_BLOCK, ListText, SECTORS};
use nestar_device::{Face, FaceStencil, Ghost, Item, LAUNCH, Stencil};
use std::fmt::Write;

/// View of a level in kernels; follows [`FieldText::text`].
pub const VIEW: &str = include_str!("view.cuh");
/// Gather of ghost cells; follows [`VIEW`].
pub const GATHER: &str = concat!(
    include_str!("boundary.cuh"),
    include_str!("interpolate.cuh"),
    include_str!("gather.cuh"),
    include_str!("face_ghosts.cuh")
);
/// Gathers of faces for kernels of other fields, see [`gathered_faces`]; follows [`GATHER`].
const GATHER_FACES: &str = include_str!("gather_faces.cu");

/// Returns the text of the kernel `mesh_gather_faces` with `ghosts` ghost layers; follows [`GATHER`].
#[must_use]
pub fn gathered_faces(ghosts: usize) -> String {
    format!("namespace gathered {{ constexpr int GHOSTS = {ghosts}; }}\n{GATHER_FACES}")
}

/// Interpolation into new patches; follows [`GATHER`], like all texts below.
pub const PROLONG: &str = include_str!("prolong.cu");
/// Averages onto the coarser level, and copies of shared face values.
pub const RESTRICT: &str = include_str!("restrict.cu");
/// Flux registers and the flux correction.
pub const FLUXES: &str = include_str!("fluxes.cu");
/// Records circulations along edges; follows [`VIEW`].
pub const CIRCULATIONS: &str = include_str!("circulations.cuh");
/// Circulation registers and the correction of faces; follows [`CIRCULATIONS`] and [`FLUXES`].
pub const CIRCULATION_REGISTERS: &str = include_str!("circulations.cu");
/// Conserved totals.
pub const TOTALS: &str = include_str!("totals.cu");
/// Packing and unpacking of rows.
pub const TRANSFER: &str = include_str!("transfer.cu");
/// Packing and unpacking of fine-side flux registers.
pub const REGISTER_TRANSFER: &str = include_str!("register_transfer.cu");
/// Calls of cell functions; followed by the texts of [`SkeletonFunction::texts`], then by [`MAP`], [`REDUCE`] or [`MARK`].
pub const CELL_FUNCTIONS: &str = include_str!("cells.cuh");
/// Maps: cell functions whose results are written to a field.
pub const MAP: &str = include_str!("map.cu");
/// Writes buffered results back to a field; follows [`MAP`] or [`CONSERVE`].
pub const WRITE_BACK: &str = include_str!("write_back.cu");
/// Calls of face functions; follows [`CELL_FUNCTIONS`], then [`CONSERVE`].
pub const FACE_FUNCTIONS: &str = concat!(
    include_str!("patch_faces.cuh"),
    include_str!("face_functions.cuh")
);
/// Conservative updates by fluxes.
pub const CONSERVE: &str = include_str!("conserve.cu");
/// Sub-cycled cell functions, which may fail or ask to be called again.
pub const SUBCYCLE: &str = include_str!("subcycle.cu");
/// Copy of a gathered row, ghost cells included.
pub const WINDOW: &str = include_str!("window.cu");
/// Reductions.
pub const REDUCE: &str = include_str!("reduce.cu");
/// Calls of the derived inputs of a list; followed by [`COLUMN_SUMS`].
const NUMBERS: &str = include_str!("columns.cuh");
/// Sums along an axis.
pub const COLUMN_SUMS: &str = include_str!("columns.cu");
/// Refinement flags; follows [`SECTORS`].
pub const MARK: &str = include_str!("mark.cu");
/// Records of cells.
pub const CELL_RECORDS: &str = include_str!("cell_records.cu");
/// Values of single cells.
pub const CELL_VALUES: &str = include_str!("cell_values.cu");
/// Topology tables; needs no field.
pub const TOPOLOGY: &str = include_str!("topology.cu");

/// Patches per block of the kernels that assign slots of registers and of those of [`TOPOLOGY`].
pub const PATCHES_PER_BLOCK: usize = 256;
/// Values per block of `mesh_commit`.
pub const COMMIT_PER_BLOCK: usize = 4096;

/// Selects the function that the kernels of a skeleton call.
#[derive(Clone, Copy, Debug)]
pub enum SkeletonFunction<'a> {
    /// A function of a cell or of its stencil; with the reach of the stencil in cells.
    Cell(&'static Item, usize),
    /// A function of a face; with the reach of its stencil in cells and the number of flux components.
    Face(&'static Item, usize, usize),
    /// A function of a cell's state and of derived inputs, which are computed from the state and the place.
    WithInputs(&'static Item, &'a ListText),
    /// A list of refinement criteria.
    List(&'a ListText),
    /// The derived inputs of a list, for [`COLUMN_SUMS`].
    Numbers(&'a ListText),
    /// No function: the gathered states of a patch, with this many ghost layers, for [`WINDOW`].
    Window(usize),
}

impl SkeletonFunction<'_> {
    /// Returns a key that identifies the function.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Cell(item, _) | Self::Face(item, ..) => item.path(),
            Self::WithInputs(item, list) => item.path() + &list.text,
            Self::List(list) | Self::Numbers(list) => list.text.clone(),
            Self::Window(reach) => reach.to_string(),
        }
    }

    /// Returns the number of values in a gathered block and its appendix; 0 if the function reads no ghost cells.
    #[must_use]
    pub fn block_values(&self, field: &FieldText) -> usize {
        let states = |reach: usize| field.components * field.block_values(reach);
        match *self {
            Self::Cell(_, 0) | Self::WithInputs(..) | Self::Numbers(_) => 0,
            Self::Cell(_, reach) | Self::Window(reach) => states(reach),
            Self::Face(_, reach, fluxes) => states(reach) + 3 * fluxes * fluxes::FACES,
            Self::List(ListText { kept: 0, .. }) => 0,
            // at a wall the block holds the state while it is gathered
            Self::List(list) if field.bounded() => list.kept.max(field.components) * LIST_BLOCK,
            Self::List(list) => list.kept * LIST_BLOCK,
        }
    }

    /// Returns the texts of a skeleton that calls the function; `in_shared` places gathered blocks in shared memory.
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
            Self::Numbers(list) => {
                let before = vec![LIST, &*list.text, NUMBERS];
                (before, "Numbers<List>".into(), states)
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

    /// Returns the items that the texts name.
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
            Self::Numbers(list) => {
                items.extend(&list.items);
                items.extend([column_cell::ITEM, ColumnOptions]);
            }
            Self::Window(_) => (),
        }
        items
    }
}

/// Defines the boundary condition of one face in the device's language.
#[derive(Clone, Debug)]
pub enum FaceText {
    /// See [`FaceRule::Periodic`].
    Periodic,
    /// See [`FaceRule::Outflow`].
    Outflow,
    /// See [`FaceRule::Reflecting`].
    Reflecting,
    /// See [`FaceRule::Rule`].
    Rule(RuleText),
}

impl FaceText {
    /// Translates the faces of `boundaries`, `[axis][side]`.
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

    /// Returns the value of `mesh::PERIODIC`, `mesh::OUTFLOW`, `mesh::REFLECTING` or `mesh::RULE`.
    fn code(&self) -> u32 {
        match self {
            Self::Periodic => 0,
            Self::Outflow => 1,
            Self::Reflecting => 2,
            Self::Rule(_) => 3,
        }
    }
}

/// Describes a field for kernel skeletons.
#[derive(Clone, Debug)]
pub struct FieldText {
    /// `true` if values are `f64`.
    pub double: bool,
    /// Number of components.
    pub components: usize,
    /// Shape of rows.
    pub shape: RowShape,
    /// Boundary conditions, `[axis][side]`.
    pub faces: [[FaceText; 2]; 3],
    /// Per axis, a bit mask of the components that change sign in a mirror image.
    pub normal: [u64; 3],
    /// Limiter of the interpolation between levels.
    pub limiter: SlopeLimiter,
    /// State functions. Without them all states are physical and interpolated as they are.
    pub states: Option<StateItems>,
}

impl FieldText {
    /// Returns the `#[device]` functions that the text and the mesh skeletons call.
    #[must_use]
    pub fn items(&self) -> Vec<&'static Item> {
        let mut items = super::device_items();
        items.push(nestar_device::math::sum3::ITEM);
        items.extend(self.states.iter().flat_map(|states| states.items));
        let dependents = self.states.iter().flat_map(|states| states.dependents);
        items.extend(dependents.flatten());
        items.extend(self.states.iter().filter_map(|states| states.remainder));
        for (_, _, rule) in self.rules() {
            items.extend(&rule.items);
            items.push(Ghost);
        }
        items
    }

    /// Builds a program whose skeletons see levels of this field. It consists of the text of `items` and of all that the gather needs, the
    /// skeleton language, the namespaces `field` and `mesh`, then `skeletons`.
    #[must_use]
    pub fn program(&self, items: &[&'static Item], skeletons: &[impl AsRef<str>]) -> String {
        let mut roots = self.items();
        roots.extend(items);
        let mut program = nestar_device::program(&roots);
        let (text, skeletons) = (self.text(), skeletons.iter().map(AsRef::as_ref));
        let texts = [LAUNCH, &text, VIEW, GATHER];
        for (n, part) in texts.into_iter().chain(skeletons).enumerate() {
            // compiler messages count lines from here
            let _ = write!(program, "#line 1 \"part {n}\"\n{part}\n");
        }
        program
    }

    /// Returns the number of values of a component in a block with `ghosts` ghost layers.
    fn block_values(&self, ghosts: usize) -> usize {
        let cells = [PATCH + 2 * ghosts; 3];
        self.shape.centring.lengths(0, cells).iter().product()
    }

    /// Returns `true` if any face of the domain is not periodic.
    #[must_use]
    pub fn bounded(&self) -> bool {
        let mut faces = self.faces.iter().flatten();
        faces.any(|face| !matches!(face, FaceText::Periodic))
    }

    /// Iterates over the faces with rules, with axis and side.
    fn rules(&self) -> impl Iterator<Item = (usize, usize, &RuleText)> {
        let faces = self.faces.iter().flatten().enumerate();
        faces.filter_map(|(n, face)| match face {
            FaceText::Rule(rule) => Some((n / 2, n % 2, rule)),
            _ => None,
        })
    }

    /// Builds the namespace `field`:
    ///
    /// ```text
    /// typedef … REAL; constexpr int COMPONENTS, LIMITER, CENTRING, SIDE; constexpr bool BOUNDED
    /// int kind(int axis, int side)                                                 // 0 to 3, as FaceRule
    /// rs::u64 normal(int axis)                                                     // bit mask of components
    /// constexpr int LEADING                       // components before the scalars; 0: no state functions
    /// constexpr int SETS; int set_of(int component)                                // as ShareSets
    /// bool physical(const REAL* u)
    /// void to_primitive(REAL* u); void to_conserved(REAL* w); void repair(REAL* u, const REAL* w)      // as States
    /// constexpr bool HAS_DEPENDENTS; void update_dependents(const REAL* before, REAL* u); void reconcile(REAL* u)         // as States
    /// struct GhostQuery; constexpr int INNER      // input of rules; number of inner cells that they read
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
        text.push_str(&state_functions(self.states.as_ref()));
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

    /// Writes a function of axis and side that calls the function of the face.
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

/// Returns the state functions of the namespace `field`. Without `states` all states are physical and interpolated as they are.
fn state_functions(states: Option<&StateItems>) -> String {
    let Some(states) = states else {
        return sets_text(&ShareSets::default())
            + "constexpr int LEADING = 0;\n\
               RS_FN bool physical(const REAL*) { return true; }\n\
               RS_FN void to_primitive(REAL*) {}\n\
               RS_FN void to_conserved(REAL*) {}\n\
               RS_FN void repair(REAL*, const REAL*) {}\n"
            + NO_REMAINDER
            + NO_DEPENDENTS;
    };
    let n = states.leading;
    let [physical, primitive, conserved, repaired] = states.items.map(Item::path);
    let (u, w) = (leading(n, "u"), leading(n, "w"));
    format!(
        "{}\
         constexpr int LEADING = {n};\n\
         typedef rs::arr<REAL, {n}> Leading;\n\
         RS_FN bool physical(const REAL* u) {{\n\
         \x20 bool finite = true;\n\
         \x20 for (int c = {n}; c < COMPONENTS; ++c) finite = finite && rs::is_finite(u[c]);\n\
         \x20 return finite && ::{physical}<REAL>({u});\n\
         }}\n\
         RS_FN void put(REAL* u, const Leading& from) {{ for (int c = 0; c < {n}; ++c) u[c] = from.d[c]; }}\n\
         RS_FN void to_primitive(REAL* u) {{\n\
         \x20 for (int c = {n}; c < COMPONENTS; ++c) u[c] = u[c] / u[0];\n\
         \x20 put(u, ::{primitive}<REAL>({u}));\n\
         }}\n\
         RS_FN void to_conserved(REAL* w) {{\n\
         \x20 put(w, ::{conserved}<REAL>({w}));\n\
         \x20 for (int c = {n}; c < COMPONENTS; ++c) w[c] = w[c] * w[0];\n\
         }}\n\
         RS_FN void repair(REAL* u, const REAL* w) {{ put(u, ::{repaired}<REAL>({u}, {w})); }}\n\
         {}{}",
        sets_text(&states.sets),
        remainder_text(states),
        dependents_text(states),
    )
}

const NO_REMAINDER: &str = "constexpr bool HAS_REMAINDER = false;\n\
    RS_FN void to_remainder(REAL*) {}\n";

/// Returns the text of the function that replaces a state by its remainder.
fn remainder_text(states: &StateItems) -> String {
    let Some(remainder) = states.remainder.map(Item::path) else {
        return NO_REMAINDER.into();
    };
    let u = leading(states.leading, "u");
    format!(
        "constexpr bool HAS_REMAINDER = true;\n\
         RS_FN void to_remainder(REAL* u) {{\n\
         \x20 put(u, ::{remainder}<REAL>({u}));\n\
         \x20 for (int c = {}; c < COMPONENTS; ++c) u[c] = REAL(0);\n\
         }}\n",
        states.leading
    )
}

const NO_DEPENDENTS: &str = "constexpr bool HAS_DEPENDENTS = false;\n\
    RS_FN void update_dependents(const REAL*, REAL*) {}\n\
    RS_FN void reconcile(REAL*) {}\n";

/// Returns an expression for the leading components at `name` as one value.
fn leading(n: usize, name: &str) -> String {
    let values: Vec<String> = (0..n).map(|c| format!("{name}[{c}]")).collect();
    format!("rs::arr<REAL, {n}>{{{{{}}}}}", values.join(", "))
}

/// Returns the text of the functions that update dependent components.
fn dependents_text(states: &StateItems) -> String {
    let Some(items) = states.dependents else {
        return NO_DEPENDENTS.into();
    };
    let [with_dependents, reconciled] = items.map(Item::path);
    let [first, second] = states.thresholds;
    let (before, u) = (
        leading(states.leading, "before"),
        leading(states.leading, "u"),
    );
    format!(
        "constexpr bool HAS_DEPENDENTS = true;\n\
         RS_FN void update_dependents(const REAL* before, REAL* u) {{ put(u, ::{with_dependents}<REAL>({before}, {u})); }}\n\
         RS_FN void reconcile(REAL* u) {{ put(u, ::{reconciled}<REAL>({u}, rs::arr<REAL, 2>{{{{(REAL){first:.17e}, (REAL){second:.17e}}}}})); }}\n"
    )
}

/// Returns the text that maps components to their sets.
fn sets_text(sets: &ShareSets) -> String {
    let members = (1..=sets.count()).flat_map(|set| sets.members(set).map(move |c| (c, set)));
    let mut of = String::new();
    members.for_each(|(c, set)| {
        let _ = write!(of, "c == {c} ? {set} : ");
    });
    format!(
        "constexpr int SETS = {};\n\
         RS_FN constexpr int set_of(int c) {{ return {of}0; }}\n",
        sets.count()
    )
}
