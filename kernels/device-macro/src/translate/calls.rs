//! Translates calls of functions and methods.
use super::types::BY_TYPE;
use super::{Binding, Translator};
use crate::code::{CppCode, CppPart, list, text};
use crate::subset::{METHODS, OWN_METHODS, TRANSCENDENTAL, bare, cpp_name, ident_of, primitive};
use syn::{Expr, ExprCall, ExprMethodCall, ExprPath, Path};

/// Values that look like function calls.
const VARIANTS: &[&str] = &["Some", "Ok", "Err"];

/// Methods of tables and stencils, which have the same name in both languages.
const READS: [&str; 2] = ["at", "around"];

impl Translator {
    pub(super) fn method_call(&mut self, m: &ExprMethodCall) -> CppCode {
        let name = m.method.to_string();
        if READS.contains(&name.as_str()) {
            let (receiver, arguments) =
                (self.expr(&m.receiver, false), self.expr_list(m.args.iter()));
            return receiver.t(format!(".{name}(")).c(arguments).t(")");
        }
        let known = METHODS
            .iter()
            .chain(OWN_METHODS)
            .find(|known| known.name == name);
        let Some(method) = known else {
            let why = if TRANSCENDENTAL.contains(&name.as_str()) {
                format!(
                    "`{name}` differs between CUDA and every libm in the last bits; \
                     call the device functions of `math` instead (exp, ln, pow, sin, …)"
                )
            } else {
                let known = METHODS.iter().chain(OWN_METHODS).map(|m| m.name);
                let known: Vec<_> = known.collect();
                format!(
                    "method `{name}` is not in the device list; for one of your own write a #[device] function \
                     and call `{name}(x, …)`; the list: {}, {}",
                    known.join(", "),
                    READS.join(", ")
                )
            };
            return self.bad(&m.method, why);
        };
        if method.arguments != m.args.len() {
            return self.bad(
                m,
                format!("`{name}` takes {} argument(s)", method.arguments),
            );
        }
        let arguments = self.expr_list(std::iter::once(&*m.receiver).chain(m.args.iter()));
        text(format!("rs::{name}(")).c(arguments).t(")")
    }

    pub(super) fn call(&mut self, c: &ExprCall, top: bool) -> CppCode {
        let Expr::Path(ExprPath {
            qself: None, path, ..
        }) = &*c.func
        else {
            let why = "only named #[device] functions can be called, and functions of a type parameter (`L::rate(x)`)";
            return self.bad(&c.func, why);
        };
        let first = path.segments[0].ident.to_string();
        if path.segments.len() == 2 && self.is_type(&first) {
            return self.associated_function(c, path, &first);
        }
        if path.segments.len() == 2 && path.segments[1].ident == "from_bits" {
            return self.bit_pattern(c, path, &first);
        }
        if let Some(why) = self.uncallable(path, &first) {
            return self.bad(path, why);
        }
        let generic = match path.segments.last() {
            Some(last) => self.generic_arguments(&last.arguments),
            None => CppCode::default(),
        };
        let arguments: Vec<_> = c.args.iter().map(|a| self.argument(a, top)).collect();
        let function = match (self.owner(path, CppPart::Owner), path.segments.last()) {
            (Some(owner), Some(last)) => {
                // C++ cannot yet know that a member of a parameter is a template
                let template = self.is_choice(&first) && !generic.parts.is_empty();
                owner
                    .t(if template { "template " } else { "" })
                    .t(cpp_name(&last.ident))
            }
            _ => CppCode::of(CppPart::Value(bare(path))),
        };
        function.c(generic).t("(").c(list(arguments)).t(")")
    }

    /// Returns the reason why a path cannot name a device function, if any.
    fn uncallable(&self, path: &Path, first: &str) -> Option<&'static str> {
        let mut owners = path.segments.iter().rev().skip(1);
        let library = ["std", "core"].contains(&first) || primitive(first).is_some();
        if path.segments.len() > 1 && library {
            Some(
                "functions of the standard library have no CUDA text; \
                 use the methods of the device list or a #[device] fn",
            )
        } else if path.get_ident().is_some() && self.lookup(first).is_some() {
            Some(BY_TYPE)
        } else if owners.any(|s| !s.arguments.is_none()) {
            Some(
                "a structure has no functions here; write a #[device] function that takes the structure",
            )
        } else if VARIANTS.contains(&first) {
            Some("enums with data are not supported; return a tuple with a flag")
        } else if self.is_itself(path) {
            Some("a device function may not call itself; write a loop")
        } else {
            None
        }
    }

    /// Returns `true` for the path of the function being translated.
    fn is_itself(&self, path: &Path) -> bool {
        let mut names = path.segments.iter().rev().map(|s| &s.ident);
        let named = names.next().is_some_and(|n| *n == self.name);
        match (names.next(), names.next()) {
            (None, _) => named && self.of.is_none(),
            (Some(of), None) => named && self.is_own(of),
            _ => false,
        }
    }

    fn argument(&mut self, a: &Expr, top: bool) -> CppCode {
        let mutable = match a {
            Expr::Reference(r) if r.mutability.is_some() => Some(&*r.expr),
            e => {
                let local = ident_of(e).and_then(|i| self.lookup(&i.to_string()));
                local
                    .is_some_and(|l| l.binding == Binding::Mutable)
                    .then_some(e)
            }
        };
        let Some(place) = mutable else {
            return self.expr(a, false);
        };
        if !top {
            let why = "a call with a `&mut` argument must stand alone (`f(&mut x);` or \
                       `let y = f(&mut x);`): C++ does not fix the order of evaluation inside an expression";
            self.err(a, why);
        }
        self.place(place)
    }

    /// Translates `R::lit(…)` and similar.
    fn associated_function(&mut self, c: &ExprCall, path: &Path, ty: &str) -> CppCode {
        let [argument] = &c.args.iter().collect::<Vec<_>>()[..] else {
            return self.bad(c, "one argument expected");
        };
        let name = path.segments[1].ident.to_string();
        let value = match name.as_str() {
            "lit" | "from_f64" => self.double(argument),
            "from_i32" | "from_u32" | "from_usize" => self.expr(argument, false),
            _ => {
                let why = format!(
                    "`{ty}::{name}` is not known on the device; write methods as `x.{name}()`; \
                     associated functions are lit, from_f64, from_i32, from_u32, from_usize"
                );
                return self.bad(path, why);
            }
        };
        text(format!("{ty}(")).c(value).t(")")
    }

    /// Translates an argument of type `f64`, whose literals are doubles for any `R`.
    fn double(&mut self, e: &Expr) -> CppCode {
        let outer = std::mem::replace(&mut self.doubles, true);
        let value = self.expr(e, false);
        self.doubles = outer;
        value
    }

    /// Translates `f64::from_bits(…)` and `f32::from_bits(…)`.
    fn bit_pattern(&mut self, c: &ExprCall, path: &Path, ty: &str) -> CppCode {
        let bits = match ty {
            "f32" => "unsigned",
            "f64" => "rs::u64",
            _ => return self.bad(path, "only `f32::from_bits` and `f64::from_bits`"),
        };
        let arguments = self.expr_list(c.args.iter());
        text(format!("rs::from_bits({bits}(")).c(arguments).t("))")
    }
}
