//! Lists built at run time: refinement criteria, with one gather and one launch per list, and derived inputs, with
//! their device code.

use super::failure::FaultBox;
use super::field_spec::Components;
pub use super::quantities::{
    CellCriterion, CellFunction, CellQuantity, CriterionFn, NamedQuantity, QuantityFn,
    parameters_of,
};
use super::quantities::{CellCube, Loops, Structures};
use nestar_device::{Item, Real};
use nestar_kernels::CELLS;
use nestar_kernels::criteria::{CellFlags, LIST_BLOCK, ListText};
use std::cmp::Reverse;
use std::fmt::Write as _;

/// Criteria evaluated together, with one gather and one launch.
pub struct CriteriaList {
    pub(super) list: Vec<CellCriterion>,
    /// Positions of the quantities of each criterion, in the cell or in the stored part of a gather.
    places: Vec<Vec<usize>>,
    /// Criterion and position in its state of each stored quantity.
    pub(super) stored: Vec<[usize; 2]>,
    pub(super) written: ListSource,
}

impl CriteriaList {
    /// Creates a list.
    ///
    /// # Panics
    /// If the number of quantities of a criterion is not that of its function.
    #[must_use]
    pub fn new(mut list: Vec<CellCriterion>) -> Self {
        list.retain(|mark| mark.levels.iter().any(Option::is_some));
        for mark in &list {
            let (count, name) = (mark.of.len(), mark.function.item.name);
            assert_eq!(count, mark.function.count, "numbers of {name}");
        }
        let (places, stored, written) = list_text(&list);
        Self {
            list,
            places,
            stored,
            written,
        }
    }

    /// Returns how many cells far the criteria read a field.
    #[must_use]
    pub fn reach(&self) -> usize {
        let reach = self.list.iter().map(|mark| mark.function.reach);
        reach.max().unwrap_or(0)
    }

    /// Returns the device code of the list.
    #[must_use]
    pub fn text(&self) -> &ListText {
        &self.written.text
    }

    /// Computes the stored quantities of a gathered block.
    pub(super) fn store_quantities<R: Loops>(&self, block: &CellCube<R>, out: &mut Vec<R>) {
        out.resize(self.stored.len() * LIST_BLOCK, R::lit(0.0));
        for (&[mark, n], out) in self.stored.iter().zip(out.chunks_mut(LIST_BLOCK)) {
            self.list[mark].of[n].fill(block, out);
        }
    }

    /// Returns the marked cells of a patch. A formula that is not a number is reported as a fault.
    pub(super) fn flags<R: Loops>(
        &self,
        own: &CellCube<R>,
        stored: &CellCube<R>,
        faults: &FaultBox,
    ) -> CellFlags {
        let (mut flags, mut numbers) = (CellFlags::NONE, Vec::new());
        let level = own.geometry.level as usize;
        for (mark, places) in self.list.iter().zip(&self.places) {
            let Some(Some(parameters)) = mark.levels.get(level) else {
                continue;
            };
            let function = &mark.function;
            let mut marked = [false; CELLS];
            if function.count == 0 {
                (function.double)(&own.places(), &[], parameters, &mut marked);
            } else if function.reach > 0 {
                mark.check(stored, places, faults);
                R::mark(function)(stored, places, parameters, &mut marked);
            } else {
                numbers.resize(function.count * CELLS, R::lit(0.0));
                for (number, out) in mark.of.iter().zip(numbers.chunks_mut(CELLS)) {
                    number.fill(own, out);
                }
                let values = &numbers[..];
                let span = CellCube { values, ..*own };
                mark.check(&span, places, faults);
                R::mark(function)(&span, places, parameters, &mut marked);
            }
            flags = flags | CellFlags::from_cells(&marked);
        }
        flags
    }
}

/// Named quantities and formulas, computed from the state of the first field in a cell and from its position.
pub struct DerivedInputs {
    list: Vec<CellQuantity>,
    written: ListSource,
}

impl DerivedInputs {
    /// Creates a list of at least one quantity.
    ///
    /// # Panics
    /// If the list is empty.
    #[must_use]
    pub fn new(list: Vec<CellQuantity>) -> Self {
        assert!(
            !list.is_empty(),
            "a list of derived inputs must not be empty"
        );
        let written = numbers_text(&list);
        Self { list, written }
    }

    /// Returns the number of quantities.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// Returns the device code of the list.
    pub(super) fn text(&self) -> &ListText {
        &self.written.text
    }

    /// Returns the parameter structures of its functions.
    pub(super) fn structures(&self) -> &Structures {
        &self.written.structures
    }

    /// Computes the quantities of a patch, `[quantity][512]`.
    pub(super) fn fill<R: Loops>(&self, own: &CellCube<R>, out: &mut Vec<R>) {
        out.resize(self.list.len() * CELLS, R::lit(0.0));
        for (number, out) in self.list.iter().zip(out.chunks_mut(CELLS)) {
            number.fill(own, out);
        }
    }

    /// Returns a message about the first formula that is not finite in `cell`; `made` holds the quantities of the
    /// patch.
    pub(super) fn fault<R: Real>(
        &self,
        own: &CellCube<R>,
        made: &[R],
        cell: usize,
    ) -> Option<String> {
        let values = made.chunks(CELLS).map(|values| values[cell]);
        let mut wrong = self.list.iter().zip(values).filter(|(_, x)| !x.is_finite());
        wrong.find_map(|(number, _)| number.fault(own.place(cell).centre, own.geometry.time))
    }
}

/// First fault code of a list; the position of the quantity is added. Smaller codes belong to boundary rules.
pub(super) const FAULT: u32 = 16;

/// Device code of a list with the parameter structures of its functions.
pub(super) struct ListSource {
    pub text: ListText,
    pub structures: Structures,
}

/// Generates the code of a list. Also returns where each criterion finds its quantities, and which quantities a gather
/// stores.
pub(super) fn list_text(list: &[CellCriterion]) -> (Vec<Vec<usize>>, Vec<[usize; 2]>, ListSource) {
    let mut writer = ListWriter::default();
    let mut places: Vec<Vec<usize>> = list.iter().map(|m| (0..m.of.len()).collect()).collect();
    // long states first: other criteria reuse parts of them
    let mut around: Vec<usize> = (0..list.len()).collect();
    around.retain(|&n| list[n].function.reach > 0);
    around.sort_by_key(|&n| Reverse(list[n].of.len()));
    for n in around {
        places[n] = writer.stored(n, &list[n]);
    }
    let mut number = 0;
    for (mark, places) in list.iter().zip(&places) {
        writer.mark(mark, places[..].first().copied().unwrap_or(0), number);
        number += mark.of.len();
    }
    let stored = std::mem::take(&mut writer.stored);
    (places, stored, writer.written())
}

/// Generates the code of derived inputs, stored in the order of the list.
pub(super) fn numbers_text(list: &[CellQuantity]) -> ListSource {
    let mut writer = ListWriter::default();
    writer.numbers = list.iter().map(|number| writer.number(number)).collect();
    writer.written()
}

/// Generator of the code of a list.
#[derive(Default)]
struct ListWriter {
    items: Vec<&'static Item>,
    structures: Structures,
    /// Code of the functions that compute quantities.
    functions: String,
    /// Distinct function bodies, for reuse.
    known: Vec<String>,
    /// Function numbers of the quantities that a gather stores, and their positions in the list.
    numbers: Vec<usize>,
    stored: Vec<[usize; 2]>,
    marks: String,
}

impl ListWriter {
    fn written(self) -> ListSource {
        ListSource {
            text: ListText {
                text: self.text(),
                items: self.items,
                kept: self.numbers.len(),
            },
            structures: self.structures,
        }
    }

    fn text(&self) -> String {
        let keep = self.numbers.iter().enumerate();
        let keep: String = keep
            .map(|(n, number)| format!("    numbers[{n}] = (REAL)number_{number}(at, u, 1);\n"))
            .collect();
        format!(
            "namespace cells {{
{}struct List {{
  static constexpr int KEPT = {};
  static RS_MEMBER void keep(const Spot& at, const REAL* u, REAL* numbers) {{
{keep}  }}
  static RS_MEMBER bool marks(const Spot& at, const REAL* u, const REAL* around) {{
    const int level = at.input.geometry.level;
    bool marked = false;
{}    return marked;
  }}
}};
}}
",
            self.functions,
            self.numbers.len(),
            self.marks,
        )
    }

    /// Stores the quantities of a criterion side by side, unless they already are. Returns their places.
    fn stored(&mut self, n: usize, mark: &CellCriterion) -> Vec<usize> {
        let wanted: Vec<usize> = mark.of.iter().map(|number| self.number(number)).collect();
        let known = self.numbers.windows(wanted.len()).position(|w| w == wanted);
        let first = known.unwrap_or(self.numbers.len());
        if known.is_none() {
            self.stored
                .extend((0..wanted.len()).map(|place| [n, place]));
            self.numbers.extend(&wanted);
        }
        (first..first + wanted.len()).collect()
    }

    /// Writes a criterion whose quantities start at number `first` of the list; `place` is that of its stored
    /// quantities.
    fn mark(&mut self, mark: &CellCriterion, place: usize, first: usize) {
        self.items.push(mark.function.item);
        let active = mark.levels.iter().enumerate();
        let active = active.fold(0u32, |all, (l, p)| all | u32::from(p.is_some()) << l);
        let _ = writeln!(self.marks, "    if ({active:#x}u >> level & 1u) {{");
        let (numbers, stride, real) = match (mark.function.count, mark.function.reach) {
            (0, _) => ("nullptr".to_string(), "0", "double"),
            (_, 0) => (self.state(mark), "1", "REAL"),
            _ => (
                format!("around + {place} * LIST_BLOCK"),
                "LIST_BLOCK",
                "REAL",
            ),
        };
        let _ = writeln!(self.marks, "      const REAL* numbers = {numbers};");
        let formulas = mark.of.iter().enumerate().filter(|(_, of)| of.is_formula());
        for (n, _) in formulas {
            let code = FAULT as usize + first + n;
            let check = format!("check(at, numbers[{n} * {stride}], {code}u);");
            let _ = writeln!(self.marks, "      {check}");
        }
        let (path, arguments) = (mark.function.item.path(), by_level(&mark.levels));
        let call = format!("Call<&::{path}<{real}>>::of(at, numbers{arguments})");
        let _ = writeln!(self.marks, "      if ({call}) marked = true;\n    }}");
    }

    /// Writes the quantities of a criterion in its own cell. Returns the name of the array.
    fn state(&mut self, mark: &CellCriterion) -> String {
        let numbers = mark.of.iter().map(|number| self.number(number));
        let calls = numbers.map(|n| format!("(REAL)number_{n}(at, u, CELLS)"));
        let calls = calls.collect::<Vec<_>>().join(", ");
        let _ = writeln!(self.marks, "      const REAL state[] = {{{calls}}};");
        "state".into()
    }

    /// Returns the number of the function that computes a quantity.
    fn number(&mut self, number: &CellQuantity) -> usize {
        let (formula, arguments) = match number {
            CellQuantity::Named(named) => return self.named(named),
            CellQuantity::Formula(formula, arguments, _) => (formula, arguments),
        };
        let arguments = arguments.iter().map(|named| self.named(named));
        let arguments: Vec<String> = arguments
            .map(|n| format!("(double)number_{n}(at, u, stride)"))
            .collect();
        let arguments = arguments.join(", ");
        let n = self.known.len();
        if let Some(known) = self.find(format!("{}({arguments})", formula.text())) {
            return known;
        }
        let function = formula.device_text(&format!("formula_{n}"));
        self.items.extend(function.items);
        // not inlined: a gather calls it in several places
        let _ = write!(
            self.functions,
            "{}RS_NOINLINE REAL number_{n}(const Spot& at, const REAL* u, int stride) {{
  return (REAL)formula_{n}({arguments});
}}
",
            function.text
        );
        n
    }

    fn named(&mut self, named: &NamedQuantity) -> usize {
        let (path, n) = (named.function.item.path(), self.known.len());
        let (real, state, numbers) = match named.function.count {
            0 => ("double", String::new(), "nullptr"),
            _ => {
                let member = |c: &usize| match *c {
                    Components::ZERO => "0".into(),
                    c => format!("u[{c} * stride]"),
                };
                let state: Vec<String> = named.components.iter().map(member).collect();
                let state = format!("  const REAL state[] = {{{}}};\n", state.join(", "));
                ("REAL", state, "state")
            }
        };
        let arguments: String = named
            .parameters
            .iter()
            .map(|x| format!(", {}", bits(*x)))
            .collect();
        let call = match &named.function.structure {
            None => format!("of(at, {numbers}{arguments})"),
            Some(structure) => {
                let place = self.structures.place(structure);
                format!("by(at, {numbers}, at.input.parameters + {place})")
            }
        };
        let body = format!("{state}  return Call<&::{path}<{real}>>::{call};\n");
        if let Some(known) = self.find(body.clone()) {
            return known;
        }
        self.items.push(named.function.item);
        let _ = write!(
            self.functions,
            "RS_FN {real} number_{n}(const Spot& at, const REAL* u, int stride) {{\n{body}}}\n"
        );
        n
    }

    /// Returns the number of a known function body, or remembers a new one.
    fn find(&mut self, what: String) -> Option<usize> {
        let known = self.known.iter().position(|other| *other == what);
        if known.is_none() {
            self.known.push(what);
        }
        known
    }
}

/// Returns the parameters as arguments that depend on the level.
fn by_level(levels: &[Option<Vec<f64>>]) -> String {
    let arguments: Vec<_> = levels
        .iter()
        .enumerate()
        .filter_map(|(l, p)| Some((l, p.as_ref()?)))
        .collect();
    let Some(((_, last), others)) = arguments.split_last() else {
        return String::new();
    };
    let one = |n: usize| {
        let mut text = bits(last[n]);
        for (level, p) in others.iter().rev().filter(|(_, p)| p[n] != last[n]) {
            text = format!("level == {level} ? {} : {text}", bits(p[n]));
        }
        format!(", ({text})")
    };
    (0..last.len()).map(one).collect()
}

/// Returns a literal with the exact bits of a number.
fn bits(x: f64) -> String {
    format!(
        "rs::from_bits((rs::u64)0x{:016x}ull /* {x} */)",
        x.to_bits()
    )
}
