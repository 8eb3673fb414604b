//! Assembly of CUDA C++ programs from the items that `#[device]` leaves behind.
use crate::names::cpp_name;
use std::collections::HashSet;
use std::fmt::Write;

/// A piece of an item's text.
#[derive(Clone, Copy, Debug)]
pub enum TextPiece {
    /// Literal text.
    Text(&'static str),
    /// The qualified name of another item.
    Item(&'static Item),
    /// The qualified name of a structure whose generic arguments Rust infers, in a function with the named real type.
    Inferred(&'static Item, &'static str),
    /// A number that Rust has computed.
    Number(usize),
}

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A function.
    Fn,
    /// A structure.
    Struct,
    /// A constant.
    Const,
    /// A type that brings functions: its prototype is a structure, its body defines the functions.
    Choice,
}

/// A generic parameter of an item, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generic {
    /// A floating type.
    Real(&'static str),
    /// An integer or bool constant.
    Const(&'static str),
    /// A type that brings functions.
    Choice(&'static str),
}

impl Generic {
    fn name(&self) -> &'static str {
        match self {
            Generic::Real(name) | Generic::Const(name) | Generic::Choice(name) => name,
        }
    }
}

/// The CUDA C++ text of one `#[device]` item, and the items that it names.
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

/// A type whose [`Item`] is known: the companion of a function or a constant, a structure or enum without generic parameters,
/// a type that brings functions.
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
    /// The text.
    const ITEM: &'static Item;
}

/// A type that brings functions: one with a `#[device] impl Trait for Type`.
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
    message = "device code calls a function of `{Self}`, which brings none",
    label = "no `#[device] impl Trait for {Self}`",
    note = "write a free `#[device] fn` that takes the value, or, where functions are handed over by type, `#[device] impl Trait for {Self}`"
)]
pub trait Functions: Marked {
    /// The text.
    const ITEM: &'static Item = <Self as Marked>::ITEM;
}

/// What a path without `#[device]` is taken for: see [`Marked`].
#[doc(hidden)]
#[allow(
    non_camel_case_types,
    non_upper_case_globals,
    reason = "stands in for functions and structures"
)]
pub mod unmarked {
    /// In place of the type of a function.
    pub enum marked {}
    /// In place of the item of a structure.
    pub const marked: MarkThisStructureWithDevice = MarkThisStructureWithDevice;
    /// Says what to do where an item is expected.
    pub struct MarkThisStructureWithDevice;
}

/// What every program starts with: the types and functions of namespace `rs` that generated text uses.
pub const PRELUDE: &str = include_str!("prelude.cuh");

/// What launch skeletons are written in; follows a [`program`].
pub const LAUNCH: &str = include_str!("launch.cuh");

impl Item {
    /// Qualified C++ name without the leading colons: a skeleton calls `::kernels::hydro::hllc<T>(…)`.
    ///
    /// It is the Rust path, with an underscore behind names that mean something in C++ (`double_::sum`).
    pub fn path(&self) -> String {
        let names: Vec<_> = self
            .module
            .split("::")
            .chain([self.name])
            .map(cpp_name)
            .collect();
        names.join("::")
    }

    /// Generic arguments where the source leaves them to inference: the surrounding function's real type and the
    /// structure's own names for the rest.
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

    /// `text` inside the item's namespace, with the Rust source position for the compiler's messages.
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

/// `roots` and everything they need, dependencies first, each once.
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

/// A CUDA C++ program with everything that `roots` need: the prelude, constants and structures in dependency order,
/// prototypes of all functions, bodies. The same roots give the same text. What follows it is counted by its lines in the whole
/// text, so that a compiler does not take it for the Rust source of the last item.
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

/// A program in which the compiler must generate code for every item: see [`instantiate_with`].
///
/// Items with const parameters are compiled only as far as other items call them; list those with values in
/// [`instantiate_with`].
pub fn instantiate(items: &[&'static Item], real: &str) -> String {
    let instances: Vec<_> = items.iter().map(|item| (*item, &[] as &[&str])).collect();
    instantiate_with(&instances, real)
}

/// A program in which the compiler must generate code for every item: one kernel `probe_N` for each.
///
/// Each function is called with the floating type `real` (`"float"` or `"double"`) for its type parameters and the
/// given values for its const parameters, and types for those that bring functions, in order; too few values leave the function out. The kernels read their
/// arguments from memory. They are made to be compiled (for errors, registers, contracted operations), not run.
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
