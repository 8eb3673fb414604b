//! Translates types and generic arguments.
use super::Translator;
use crate::code::{CppCode, CppPart, list, text};
use crate::subset::{bare, primitive};
use syn::{Expr, GenericArgument, PathArguments, Stmt, Type, TypePath};

const OTHER_SCALARS: &[&str] = &[
    "u8", "i8", "u16", "i16", "isize", "u128", "i128", "char", "str", "String", "Self",
];
/// Explains how to pass functions to functions.
pub(super) const BY_TYPE: &str = "functions are selected by type: write `trait Law { fn rate<R: Real>(x: R) -> R; }`, \
    `#[device] impl Law for Power { … }`, a generic parameter `L: Law`, and call `L::rate(x)`";
const CONTAINERS: &[&str] = &["Vec", "Option", "Box", "Result"];

impl Translator {
    /// Returns the C++ type.
    pub(super) fn ty(&mut self, t: &Type) -> CppCode {
        match t {
            Type::Paren(p) => self.ty(&p.elem),
            Type::Group(p) => self.ty(&p.elem),
            Type::Array(a) => {
                let (element, length) = (self.ty(&a.elem), self.expr(&a.len, false));
                text("rs::arr<").c(element).t(", ").c(length).t(">")
            }
            Type::Tuple(u) if (2..=4).contains(&u.elems.len()) => {
                let elements: Vec<_> = u.elems.iter().map(|e| self.ty(e)).collect();
                text("rs::tup<").c(list(elements)).t(">")
            }
            Type::Tuple(u) => self.bad(
                u,
                "tuples of 2 to 4 elements only; use a #[device] structure",
            ),
            Type::Path(p) if p.qself.is_none() => self.path_type(p),
            Type::Reference(r) => self.bad(
                r,
                "references are allowed only as parameter types `&T` and `&mut T`",
            ),
            Type::Slice(s) => {
                let why = "slices are not supported; \
                           use `&[R; N]` (with `const N: usize` when generic)";
                self.bad(s, why)
            }
            Type::TraitObject(_) | Type::ImplTrait(_) | Type::BareFn(_) => self.bad(t, BY_TYPE),
            other => self.bad(other, "unsupported type"),
        }
    }

    fn path_type(&mut self, p: &TypePath) -> CppCode {
        let Some(last) = p.path.segments.last() else {
            return self.bad(p, "empty path");
        };
        let name = last.ident.to_string();
        if p.path.get_ident().is_some() {
            if self.is_type(&name) || self.is_choice(&name) || self.is_const(&name) {
                return text(name);
            }
            if let Some(cpp) = primitive(&name) {
                return text(cpp);
            }
            if OTHER_SCALARS.contains(&name.as_str()) {
                let why = format!(
                    "type `{name}` is not supported; scalars are R, f32, f64, bool, i32, u32, i64, u64 \
                     and usize (C++ promotes 8- and 16-bit integers differently)"
                );
                return self.bad(p, why);
            }
        }
        if CONTAINERS.contains(&name.as_str()) {
            let why = format!(
                "`{name}` is not supported on the device; use fixed arrays `[R; N]`, tuples or a flag"
            );
            return self.bad(p, why);
        }
        if name == "Address" {
            return self.address(p, &last.arguments);
        }
        let path = bare(&p.path);
        match &last.arguments {
            PathArguments::None => CppCode::of(CppPart::Value(path)),
            arguments => CppCode::of(CppPart::Type(path)).c(self.generic_arguments(arguments)),
        }
    }

    /// Returns a pointer into device memory.
    fn address(&mut self, p: &TypePath, arguments: &PathArguments) -> CppCode {
        let PathArguments::AngleBracketed(a) = arguments else {
            return self.bad(p, "name the type of the values: `Address<T>`");
        };
        match a.args.first() {
            Some(GenericArgument::Type(Type::Path(t))) if t.path.is_ident("u8") => {
                text("unsigned char*")
            }
            Some(GenericArgument::Type(t)) => self.ty(t).t("*"),
            _ => self.bad(p, "name the type of the values: `Address<T>`"),
        }
    }

    /// Returns `<A, B>`, or nothing.
    pub(super) fn generic_arguments(&mut self, arguments: &PathArguments) -> CppCode {
        match arguments {
            PathArguments::None => CppCode::default(),
            PathArguments::AngleBracketed(a) => {
                let all: Vec<_> = a.args.iter().map(|g| self.generic_argument(g)).collect();
                text("<").c(list(all)).t(">")
            }
            other => self.bad(other, "unsupported generic arguments"),
        }
    }

    fn generic_argument(&mut self, argument: &GenericArgument) -> CppCode {
        match argument {
            GenericArgument::Type(Type::Infer(i)) => {
                let why = "write the generic argument explicitly (C++ has no `_`), \
                           or leave out the whole `::<…>` when the arguments determine it";
                self.bad(i, why)
            }
            GenericArgument::Type(t) => self.ty(t),
            GenericArgument::Const(Expr::Block(b)) => match &b.block.stmts[..] {
                [Stmt::Expr(e, None)] => self.expr(e, false),
                _ => self.bad(b, "unsupported generic argument"),
            },
            GenericArgument::Const(e) => self.expr(e, false),
            other => self.bad(other, "unsupported generic argument"),
        }
    }
}
