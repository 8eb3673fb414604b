//! Assembles CUDA C++ programs from the items that `#[device]` generates.

use std::collections::HashSet;
use std::fmt::Write;

/// Part of an item's text.
#[derive(Clone, Copy, Debug)]
pub enum TextPiece {
    /// Literal text.
    Text(&'static str),
    /// The qualified name of another item.
    Item(&'static Item),
    /// The qualified name of a structure whose generic arguments Rust infers, in a function with the given real type.
    Inferred(&'static Item, &'static str),
    /// A number computed by Rust.
    Number(usize),
}

/// Kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A function.
    Fn,
    /// A structure.
    Struct,
    /// A constant.
    Const,
    /// A type that provides functions: its prototype is a structure, its body defines the functions.
    Choice,
}

/// A generic parameter of an item, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generic {
    /// A floating type.
    Real(&'static str),
    /// An integer or bool constant.
    Const(&'static str),
    /// A type that provides functions.
    Choice(&'static str),
}

impl Generic {
    fn name(&self) -> &'static str {
        match self {
            Generic::Real(name) | Generic::Const(name) | Generic::Choice(name) => name,
        }
    }
}

/// CUDA C++ text of one `#[device]` item, and the items that it names.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// Module path, which becomes the C++ namespace.
    pub module: &'static str,
    /// Name within the module.
    pub name: &'static str,
    /// Rust source file.
    pub file: &'static str,
    /// Line of the item in that file.
    pub line: u32,
    /// Function, structure or constant.
    pub kind: Kind,
    /// Generic parameters in order.
    pub generics: &'static [Generic],
    /// Declaration without body; empty for a constant.
    pub proto: &'static [TextPiece],
    /// Body of a function, or the whole definition.
    pub body: &'static [TextPiece],
}

/// A type with a known [`Item`]: the companion of a function or constant, a structure or enum without generic parameters, or a type that
/// provides functions.
///
/// ```compile_fail,E0277
/// # use nestar_device::{Real, device};
/// fn half<R: Real>(x: R) -> R {
///     R::lit(0.5) * x
/// }
///
/// #[device]
/// fn quarter<R: Real>(x: R) -> R {
///     half(half(x)) // mark this item with `#[device]`
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`#[device]` code names an item that has no `#[device]`",
    label = "mark this item with `#[device]`",
    note = "functions, structures, enums and constants that device code names need the attribute, and so does the `impl` of a trait \
            whose functions it calls; what has no CUDA text cannot run on a GPU"
)]
pub trait Marked {
    /// Text of the item.
    const ITEM: &'static Item;
}

/// A type that provides functions, by a `#[device] impl Trait for Type`.
///
/// ```compile_fail,E0277
/// # use nestar_device::{Real, device};
/// #[device]
/// struct Gas {
///     density: f64,
/// }
///
/// impl Gas {
///     fn half(&self) -> f64 {
///         0.5 * self.density
///     }
/// }
///
/// #[device]
/// fn quarter(gas: &Gas) -> f64 {
///     0.5 * Gas::half(gas) // write a `#[device] fn half(gas: &Gas) -> f64`
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "device code calls a function of `{Self}`, which has no `#[device]` functions",
    label = "no `#[device] impl Trait for {Self}`",
    note = "write a free `#[device] fn` that takes the value, or, to select functions by type, `#[device] impl Trait for {Self}`"
)]
pub trait Functions: Marked {
    /// Text of the item.
    const ITEM: &'static Item = <Self as Marked>::ITEM;
}

/// Fallback for paths without `#[device]`, see [`Marked`].
#[doc(hidden)]
#[allow(
    non_camel_case_types,
    non_upper_case_globals,
    reason = "stands in for functions and structures"
)]
pub mod unmarked {
    /// Replaces the type of a function.
    pub enum marked {}
    /// Replaces the item of a structure.
    pub const marked: MarkThisStructureWithDevice = MarkThisStructureWithDevice;
    /// Its name tells the user what to do if an item is missing.
    pub struct MarkThisStructureWithDevice;
}

/// Start of every program: the types and functions of namespace `rs` that generated text uses.
pub const PRELUDE: &str = include_str!("prelude.cuh");

/// Language of kernel skeletons; follows a [`program`].
pub const LAUNCH: &str = include_str!("launch.cuh");

impl Item {
    /// Returns the qualified C++ name without the leading colons: a skeleton calls `::kernels::hydro::hllc<T>(…)`.
    ///
    /// It is the Rust path. Names that are reserved in C++ get an underscore (`double_::sum`).
    pub fn path(&self) -> String {
        let names: Vec<_> = self
            .module
            .split("::")
            .chain([self.name])
            .map(cpp_name)
            .collect();
        names.join("::")
    }

    /// Returns the generic arguments that the source leaves to inference: the real type of the surrounding function, and the structure's
    /// own names for the rest.
    fn inferred_arguments(&self, real: &str) -> String {
        let types = self
            .generics
            .iter()
            .filter(|g| matches!(g, Generic::Real(_)))
            .count();
        let argument = |g: &Generic| match g {
            Generic::Real(_) if types == 1 && !real.is_empty() => real.to_string(),
            other => other.name().to_string(),
        };
        let list: Vec<String> = self.generics.iter().map(argument).collect();
        if list.is_empty() {
            String::new()
        } else {
            format!("<{}>", list.join(", "))
        }
    }

    fn text(pieces: &[TextPiece]) -> String {
        let mut text = String::new();
        for piece in pieces {
            match piece {
                TextPiece::Text(t) => text.push_str(t),
                TextPiece::Item(item) => {
                    text.push_str("::");
                    text.push_str(&item.path());
                }
                TextPiece::Inferred(item, real) => {
                    text.push_str("::");
                    text.push_str(&item.path());
                    text.push_str(&item.inferred_arguments(real));
                }
                TextPiece::Number(n) => text.push_str(&n.to_string()),
            }
        }
        text
    }

    /// Returns `text` inside the item's namespace, with the Rust source position for compiler messages.
    fn within(&self, text: &str) -> String {
        let (mut open, mut close) = (String::new(), String::new());
        for module in self.module.split("::") {
            let _ = write!(open, "namespace {} {{ ", cpp_name(module));
            close.push_str(" }");
        }
        format!(
            "{open}\n#line {} \"{}\"\n{text}\n{close}\n",
            self.line, self.file
        )
    }

    fn dependencies(&self) -> impl Iterator<Item = &'static Item> {
        self.proto
            .iter()
            .chain(self.body)
            .filter_map(|piece| match piece {
                TextPiece::Text(_) | TextPiece::Number(_) => None,
                TextPiece::Item(item) | TextPiece::Inferred(item, _) => Some(*item),
            })
    }
}

/// Returns `roots` and everything they need, each once, dependencies first.
fn ordered(roots: &[&'static Item]) -> Vec<&'static Item> {
    fn visit(item: &'static Item, seen: &mut HashSet<String>, order: &mut Vec<&'static Item>) {
        if !seen.insert(item.path()) {
            return;
        }
        for dependency in item.dependencies() {
            visit(dependency, seen, order);
        }
        order.push(item);
    }
    let (mut seen, mut order) = (HashSet::new(), Vec::new());
    for root in roots {
        visit(root, &mut seen, &mut order);
    }
    order
}

/// Builds a CUDA C++ program with everything that `roots` need: the prelude, constants and structures in dependency order, prototypes of
/// all functions, bodies.
///
/// The same roots give the same text. Lines after it are numbered within the whole text, so that a compiler does not attribute them to the
/// Rust source of the last item.
pub fn program(roots: &[&'static Item]) -> String {
    let order = ordered(roots);
    let (functions, others): (Vec<&Item>, Vec<&Item>) = order
        .into_iter()
        .partition(|i| matches!(i.kind, Kind::Fn | Kind::Choice));
    let mut text = String::from(PRELUDE);
    for item in others {
        text.push_str(&item.within(&Item::text(item.body)));
    }
    for item in &functions {
        text.push_str(&item.within(&format!("{};", Item::text(item.proto))));
    }
    for item in &functions {
        let definition = match item.kind {
            Kind::Choice => Item::text(item.body),
            _ => format!("{} {}", Item::text(item.proto), Item::text(item.body)),
        };
        text.push_str(&item.within(&definition));
    }
    let next = text.lines().count() + 2;
    let _ = writeln!(text, "#line {next} \"skeletons\"");
    text
}

/// Calls a function with arguments read from memory and stores its result there.
const PROBE: &str = r#"
namespace rs {
template<usize... I> struct seq {};
template<usize N, usize... I> struct count : count<N - 1, N - 1, I...> {};
template<usize... I> struct count<0, I...> { typedef seq<I...> t; };
template<class T> struct is_void { static constexpr bool v = false; };
template<> struct is_void<void> { static constexpr bool v = true; };
template<auto F> struct probe;
template<class T, class... A, T (*F)(A...)> struct probe<F> {
  template<usize... I> static RS_MEMBER void at(char* m, seq<I...>) {
    if constexpr (is_void<T>::v) F(*(val<A>*)(m + 4096 * (I + 1))...);
    else *(T*)m = F(*(val<A>*)(m + 4096 * (I + 1))...);
  }
  static RS_MEMBER void go(char* m) { at(m, typename count<sizeof...(A)>::t()); }
};
}
"#;

/// Builds a program in which the compiler must generate code for every item, see [`instantiate_with`].
///
/// Items with const parameters are compiled only as far as other items call them. List those with values in [`instantiate_with`].
pub fn instantiate(items: &[&'static Item], real: &str) -> String {
    let instances: Vec<_> = items.iter().map(|item| (*item, &[] as &[&str])).collect();
    instantiate_with(&instances, real)
}

/// Builds a program in which the compiler must generate code for every item: one kernel `probe_N` for each.
///
/// Type parameters become `real` (`"float"` or `"double"`). Const parameters and types that provide functions take the given values in
/// order; functions with too few values are left out. The kernels read their arguments from memory. They are meant to be compiled (for
/// errors, registers, contracted operations), not run.
pub fn instantiate_with(instances: &[(&'static Item, &[&str])], real: &str) -> String {
    let roots: Vec<_> = instances.iter().map(|(item, _)| *item).collect();
    let mut text = program(&roots);
    text.push_str(PROBE);
    text.push_str("\n#line 1 \"probes\"\n");
    for (number, (item, values)) in instances.iter().enumerate() {
        let mut values = values.iter();
        let arguments: Option<Vec<&str>> = item
            .generics
            .iter()
            .map(|g| match g {
                Generic::Real(_) => Some(real),
                Generic::Const(_) | Generic::Choice(_) => values.next().copied(),
            })
            .collect();
        if let (Kind::Fn, Some(arguments)) = (item.kind, arguments) {
            let list = if arguments.is_empty() {
                String::new()
            } else {
                format!("<{}>", arguments.join(", "))
            };
            let call = format!("rs::probe<&::{}{list}>::go(m)", item.path());
            let _ = writeln!(text, "RS_KERNEL void probe_{number}(char* m) {{ {call}; }}");
        }
    }
    text
}

include!("../../device-macro/src/words.rs");

/// Returns the C++ name of a module or item.
pub fn cpp_name(name: &str) -> String {
    mangled(name)
}
