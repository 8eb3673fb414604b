//! The criteria of a run in the device's language: namespace `criteria` as `flags.cu` wants it.

use super::columns::{FieldFormula, Quantity, speed};
use super::compiled::Compiled;
use super::config::{Criterion, PerLevel};
use nestar_device::Item;
use nestar_device::math::sum3;
use nestar_kernels::hydro::eos;
use std::fmt::Write as _;

/// Codes of faults: this and the number of the criterion. Smaller ones are those of boundary rules.
pub(super) const FAULT: u32 = 16;

/// The criteria as text.
pub(super) struct CriteriaText {
    /// What the text calls.
    pub items: Vec<&'static Item>,
    /// Fields of which criteria read the surroundings of a cell.
    pub fields: usize,
    functions: String,
    keep: String,
    own: String,
    around: String,
    reads_state: bool,
    /// What each of the fields is.
    kept: Vec<String>,
}

impl CriteriaText {
    /// Writes the criteria `list`.
    pub fn new(list: &[Compiled], gamma: f64) -> Self {
        let mut items = nestar_kernels::criteria::device_items();
        items.extend([
            sum3::ITEM,
            speed::ITEM,
            eos::primitive_from_conserved::ITEM,
            eos::sound_speed::ITEM,
            eos::temperature::ITEM,
            eos::entropy::ITEM,
        ]);
        let mut text = Self {
            items,
            fields: 0,
            functions: gas(gamma),
            keep: String::new(),
            own: String::new(),
            around: String::new(),
            reads_state: false,
            kept: Vec::new(),
        };
        for (n, compiled) in list.iter().enumerate() {
            text.criterion(n, compiled);
        }
        text
    }

    /// The namespace; `in_shared`: whether a block's values fit into shared memory.
    pub fn text(&self, in_shared: bool) -> String {
        let Self {
            functions,
            keep,
            own,
            around,
            ..
        } = self;
        let (fields, reads_state) = (self.fields, self.reads_state);
        format!(
            "namespace criteria {{
constexpr int FIELDS = {fields};
constexpr bool READS_STATE = {reads_state}, IN_SHARED = {in_shared};
{functions}
RS_FN void fields(const REAL* u, const Place& at, REAL* values) {{
{keep}}}
RS_FN bool own(const REAL* u, const Place& at, unsigned* fault) {{
  bool flagged = false;
{own}  return flagged;
}}
RS_FN bool around(const REAL* block, int c, const Place& at, unsigned* fault) {{
  bool flagged = false;
{around}  return flagged;
}}
}}
"
        )
    }

    fn criterion(&mut self, n: usize, compiled: &Compiled) {
        use Criterion::{Box, Jeans, Sphere, Vorticity};
        let region = "at.centre(), at.widths()";
        match &compiled.criterion {
            Vorticity { threshold } => {
                let velocity = [0, 1, 2].map(|axis| value_of(Quantity::Velocity(axis)));
                let [x, y, z] = velocity.map(|value| self.kept(value));
                let estimate = format!("relative_vorticity({x}, {y}, {z}, at.level)");
                self.flag_around(threshold, &estimate);
            }
            Jeans { threshold, gravity } => self.jeans(threshold, *gravity),
            Box { left, right, level } => {
                let (left, right) = (point(left), point(right));
                let meets = format!("cell::meets_box<double>({region}, {left}, {right})");
                self.region(*level, &meets);
            }
            Sphere {
                centre,
                radius,
                level,
            } => {
                let (centre, radius) = (point(centre), double(*radius));
                let meets = format!("cell::meets_sphere<double>({region}, {centre}, {radius})");
                self.region(*level, &meets);
            }
            criterion => {
                if let Some(field) = &compiled.field {
                    self.of_field(n, criterion, field);
                }
            }
        }
    }

    /// A criterion on one field.
    fn of_field(&mut self, n: usize, criterion: &Criterion, field: &FieldFormula) {
        let (threshold, filter) = match criterion {
            Criterion::Gradient { threshold, .. } => (threshold, None),
            Criterion::Lohner {
                threshold, filter, ..
            } => (threshold, Some(*filter)),
            _ => return self.value(n, criterion, field),
        };
        let f = self.neighbourhood(n, field);
        let estimate = match filter {
            None => format!("relative_gradient({f})"),
            Some(filter) => format!("lohner_error({f}, {})", real(filter)),
        };
        self.flag_around(threshold, &estimate);
    }

    /// A criterion on the value of a field in the cell.
    fn value(&mut self, n: usize, criterion: &Criterion, field: &FieldFormula) {
        let (value, check) = self.field(n, field);
        self.reads_state |= match field.plain() {
            Some(quantity) => reads_state(quantity),
            None => field.formula().1.iter().copied().any(reads_state),
        };
        let (active, wanted) = match criterion {
            Criterion::Threshold {
                threshold, below, ..
            } => {
                let sign = if *below { '<' } else { '>' };
                let (active, threshold) = per_level(threshold);
                (active, format!("q {sign} {threshold}"))
            }
            // a formula of its own: any value but 0
            _ => ("true".into(), "(q > REAL(0) || q < REAL(0))".into()),
        };
        let check = if check {
            format!("    at.check(q, fault, {}u);\n", code(n))
        } else {
            String::new()
        };
        let _ = write!(
            self.own,
            "  {{\n    const REAL q = {value};\n{check}    if ({active} && {wanted}) flagged = true;\n  }}\n"
        );
    }

    fn jeans(&mut self, threshold: &PerLevel<f64>, gravity: f64) {
        self.reads_state = true;
        let (active, cells) = per_level(threshold);
        let (gravity, sound) = (real(gravity), value_of(Quantity::SoundSpeed));
        let _ = writeln!(
            self.own,
            "  if ({active} && cell::jeans_cells<REAL>(u[0], {sound}, {gravity}, (REAL)at.level.widest) < {cells}) flagged = true;"
        );
    }

    /// A region that asks for levels up to `finest`.
    fn region(&mut self, finest: Option<u32>, condition: &str) {
        let active = finest.map_or_else(
            || "true".into(),
            |finest| format!("at.level.number < {finest}"),
        );
        let _ = writeln!(self.own, "  if ({active} && {condition}) flagged = true;");
    }

    fn flag_around(&mut self, threshold: &PerLevel<f64>, estimate: &str) {
        let (active, threshold) = per_level(threshold);
        let _ = writeln!(
            self.around,
            "  if ({active} && {estimate} > {threshold}) flagged = true;"
        );
    }

    /// The address, at a cell, of the field of criterion `n` in the block.
    fn neighbourhood(&mut self, n: usize, field: &FieldFormula) -> String {
        let (value, check) = self.field(n, field);
        let f = self.kept(value);
        if check {
            let _ = writeln!(self.around, "  at.check(*({f}), fault, {}u);", code(n));
        }
        f
    }

    /// The address, at a cell, of the field `value`, which is stored once.
    fn kept(&mut self, value: String) -> String {
        let known = self.kept.iter().position(|other| *other == value);
        let f = known.unwrap_or_else(|| {
            let _ = writeln!(self.keep, "  values[{}] = {value};", self.fields);
            self.kept.push(value);
            self.fields += 1;
            self.fields - 1
        });
        format!("block + {f} * BLOCK + c")
    }

    /// The value of the field of criterion `n` in a cell, and whether it may be no number by a fault of its formula.
    fn field(&mut self, n: usize, field: &FieldFormula) -> (String, bool) {
        if let Some(quantity) = field.plain() {
            return (value_of(quantity), false);
        }
        let (formula, arguments) = field.formula();
        let function = formula.device_text(&format!("formula_{n}"));
        self.items.extend(function.items);
        let arguments: Vec<String> = arguments.iter().map(|&q| exact_of(q)).collect();
        // a function of its own, which a gather calls in several places
        let _ = write!(
            self.functions,
            "{}RS_NOINLINE REAL field_{n}(const REAL* u, const Place& at) {{
  return (REAL)formula_{n}({});
}}
",
            function.text,
            arguments.join(", ")
        );
        (format!("field_{n}(u, at)"), true)
    }
}

/// A quantity in a cell, a `REAL`.
fn value_of(quantity: Quantity) -> String {
    match quantity {
        Quantity::Component(c) => format!("u[{c}]"),
        Quantity::Pressure => "primitive(u)[4]".into(),
        Quantity::Temperature => eos("temperature", "u[0], primitive(u)[4]"),
        Quantity::Entropy => eos("entropy", "u[0], primitive(u)[4], gamma()"),
        Quantity::SoundSpeed => "sound(primitive(u))".into(),
        Quantity::Velocity(axis) => format!("primitive(u)[{}]", 1 + axis),
        Quantity::Speed => "speed(primitive(u))".into(),
        Quantity::Mach => "mach(primitive(u))".into(),
        Quantity::Fraction(c) => format!("u[{c}] / u[0]"),
        other => format!("(REAL){}", exact_of(other)),
    }
}

/// A quantity in a cell, a double.
fn exact_of(quantity: Quantity) -> String {
    match quantity {
        Quantity::Place(axis) => format!("at.centre({axis})"),
        Quantity::Radius => "at.radius()".into(),
        Quantity::Time => "at.view.time".into(),
        Quantity::Level => "(double)at.level.number".into(),
        Quantity::CellWidth => "at.level.smallest".into(),
        other => format!("(double)({})", value_of(other)),
    }
}

/// The fault of criterion `n`.
fn code(n: usize) -> u32 {
    FAULT + n as u32
}

/// Whether a quantity depends on the state of the gas.
fn reads_state(quantity: Quantity) -> bool {
    use Quantity::{CellWidth, Level, Place, Radius, Time};
    !matches!(quantity, Place(_) | Radius | Time | Level | CellWidth)
}

/// What quantities are made of.
fn gas(gamma: f64) -> String {
    format!(
        "RS_FN REAL gamma() {{ return {}; }}
RS_FN rs::arr<REAL, 5> primitive(const REAL* u) {{
  return ::{}<REAL>(rs::arr<REAL, 5>{{{{u[0], u[1], u[2], u[3], u[4]}}}}, gamma());
}}
RS_FN REAL sound(const rs::arr<REAL, 5>& w) {{ return {}; }}
RS_FN REAL speed(const rs::arr<REAL, 5>& w) {{ return ::{}<REAL>(w); }}
RS_FN REAL mach(const rs::arr<REAL, 5>& w) {{ return speed(w) / sound(w); }}
",
        real(gamma),
        eos::primitive_from_conserved::ITEM.path(),
        eos("sound_speed", "w[0], w[4], gamma()"),
        speed::ITEM.path(),
    )
}

fn eos(function: &str, arguments: &str) -> String {
    format!("::nestar_kernels::hydro::eos::{function}<REAL>({arguments})")
}

/// Whether a level is among those with a value, and its value in the precision of the run; both are expressions of `at`.
fn per_level(values: &PerLevel<f64>) -> (String, String) {
    match values {
        PerLevel::Every(value) => ("true".into(), real(*value)),
        PerLevel::Each(list) => {
            let mut value = real(0.0);
            for (level, v) in list.iter().enumerate().rev() {
                value = format!("at.level.number == {level} ? {} : {value}", real(*v));
            }
            (
                format!("at.level.number < {}", list.len()),
                format!("({value})"),
            )
        }
    }
}

fn point(x: &[f64; 3]) -> String {
    let [x, y, z] = x.map(double);
    format!("rs::arr<double, 3>{{{{{x}, {y}, {z}}}}}")
}

/// A number of the deck in the precision of the run.
fn real(x: f64) -> String {
    format!("(REAL){}", double(x))
}

/// A number by its bits.
fn double(x: f64) -> String {
    format!(
        "rs::from_bits((rs::u64)0x{:016x}ull /* {x} */)",
        x.to_bits()
    )
}
