//! Translates generic parameters and function signatures.
use super::types::BY_TYPE;
use super::{Binding, FunctionText, GenericKind, Tail, Translator};
use crate::code::{CppCode, list, text};
use crate::subset::{cpp_name, docs};
use std::collections::HashMap;
use syn::{
    Attribute, Block, FnArg, GenericParam, Generics, ItemFn, Pat, PatType, ReturnType, Signature,
    Type, TypeParam, TypeParamBound, visit::Visit,
};

/// Traits of the standard library that users may try.
const STANDARD: &[&str] = &[
    "Add",
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "Display",
    "Div",
    "Eq",
    "From",
    "Into",
    "Iterator",
    "Mul",
    "Neg",
    "Num",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Send",
    "Sized",
    "Sub",
    "Sync",
];

/// Returns `true` if one of the bounds is the named trait.
fn bounded(p: &TypeParam, name: &str) -> bool {
    p.bounds.iter().any(|bound| match bound {
        TypeParamBound::Trait(t) => t.path.segments.last().is_some_and(|s| s.ident == name),
        _ => false,
    })
}

impl Translator {
    fn generics(&mut self, generics: &Generics, unbounded: bool) -> CppCode {
        if let Some(clause) = &generics.where_clause {
            self.err(
                clause,
                "no `where` clauses; write the bound inline (`R: Real`)",
            );
        }
        let mut parameters = Vec::new();
        for p in &generics.params {
            match p {
                GenericParam::Lifetime(l) => {
                    let why = "named lifetimes are not supported; \
                               pass `&[R; N]` with elided lifetimes and return values";
                    self.err(l, why);
                }
                GenericParam::Type(t) => {
                    parameters.push(self.type_parameter(t, unbounded));
                }
                GenericParam::Const(k) => {
                    let ty = self.ty(&k.ty);
                    self.used.insert(k.ident.to_string());
                    self.generics.push(GenericKind::Const(k.ident.to_string()));
                    parameters.push(ty.t(format!(" {}", k.ident)));
                }
            }
        }
        if parameters.is_empty() {
            return CppCode::default();
        }
        text("template<").c(list(parameters)).t("> ")
    }

    fn type_parameter(&mut self, t: &TypeParam, unbounded: bool) -> CppCode {
        let name = t.ident.to_string();
        self.used.insert(name.clone());
        let lane = bounded(t, "Lane");
        self.lane |= lane;
        let generic = if lane || bounded(t, "Real") || unbounded && t.bounds.is_empty() {
            GenericKind::Real(name)
        } else {
            self.choice(t, unbounded);
            GenericKind::Choice(name)
        };
        self.generics.push(generic);
        text(format!("class {}", t.ident))
    }

    /// Translates a type parameter that provides functions.
    fn choice(&mut self, t: &TypeParam, structure: bool) {
        let bound = match t.bounds.first() {
            Some(TypeParamBound::Trait(bound)) => bound.path.segments.last(),
            _ => None,
        };
        let Some(bound) = bound.filter(|_| !structure) else {
            let why = "a type parameter is a number, bounded by `Real` or `Lane` (`R: Real`), or provides functions, \
                       bounded by your own trait";
            return self.err(t, why);
        };
        if ["Fn", "FnMut", "FnOnce"].iter().any(|f| bound.ident == f) {
            self.err(t, BY_TYPE);
        } else if STANDARD.iter().any(|known| bound.ident == known) {
            let why = format!(
                "a type parameter must be bounded by `Real` or `Lane` (`R: Real`) or by your own trait; \
                 `{}` has no CUDA counterpart",
                bound.ident
            );
            self.err(t, why);
        }
    }

    /// Translates the generics of a structure, whose type parameters need no bound.
    pub(super) fn structure_generics(&mut self, generics: &Generics) -> CppCode {
        self.generics(generics, true)
    }

    fn qualifiers(&mut self, s: &Signature) {
        if let Some(x) = &s.asyncness {
            self.err(x, "async functions are not supported");
        }
        if let Some(x) = &s.unsafety {
            self.err(x, "unsafe functions are not supported");
        }
        if let Some(x) = &s.abi {
            self.err(x, "extern functions are not supported");
        }
        if let Some(x) = &s.variadic {
            self.err(x, "variadic functions are not supported");
        }
    }

    /// Returns the result type, `None` without a value.
    fn result(&mut self, output: &ReturnType) -> Option<CppCode> {
        let ReturnType::Type(_, ty) = output else {
            return None;
        };
        match &**ty {
            Type::Tuple(unit) if unit.elems.is_empty() => None,
            Type::Reference(r) => Some(self.bad(r, "functions return values, not references")),
            ty => Some(self.ty(ty)),
        }
    }

    fn parameter(&mut self, p: &PatType) -> CppCode {
        let name = match &*p.pat {
            Pat::Ident(name) => name,
            Pat::Wild(_) => {
                let ty = match &*p.ty {
                    Type::Reference(r) => self.ty(&r.elem),
                    ty => self.ty(ty),
                };
                return text("const ").c(ty).t("&");
            }
            other => {
                let why = "parameters must be plain names; destructure in the body with `let`";
                return self.bad(other, why);
            }
        };
        if let Type::Reference(r) = &*p.ty {
            if name.mutability.is_some() {
                let why =
                    "a reference parameter cannot be `mut` (C++ references cannot be rebound)";
                self.err(name, why);
            }
            let ty = self.ty(&r.elem);
            return if r.mutability.is_some() {
                ty.t(format!("& {}", self.declare(&name.ident, Binding::Mutable)))
            } else {
                text("const ")
                    .c(ty)
                    .t(format!("& {}", self.declare(&name.ident, Binding::Value)))
            };
        }
        let qualifier = if name.mutability.is_some() {
            ""
        } else {
            "const "
        };
        let ty = self.ty(&p.ty);
        text(qualifier)
            .c(ty)
            .t(format!(" {}", self.declare(&name.ident, Binding::Value)))
    }

    /// Returns the text of a function.
    pub(super) fn function(&mut self, f: &ItemFn) -> FunctionText {
        let s = &f.sig;
        self.name = s.ident.to_string();
        self.qualifiers(s);
        self.scopes.push(HashMap::new());
        let head = self.generics(&s.generics, false);
        if self.types().next().is_none() {
            self.float = Some("f64");
        }
        let result = self.result(&s.output);
        let tail = if result.is_some() {
            Tail::Return
        } else {
            Tail::Discard
        };
        let mut parameters = Vec::new();
        for input in &s.inputs {
            match input {
                FnArg::Receiver(r) => {
                    self.err(r, "no methods; write a free function taking the structure")
                }
                FnArg::Typed(p) => parameters.push(self.parameter(p)),
            }
        }
        let name = format!("{}(", cpp_name(&s.ident));
        self.body_attributes(&f.block);
        let mut body = text("{");
        self.block(&f.block, tail, &mut body);
        FunctionText {
            docs: docs(&f.attrs),
            template: head,
            result: result.unwrap_or_else(|| text("void")),
            call: text(name).c(list(parameters)).t(")"),
            body: body.t("\n}"),
        }
    }

    /// Rejects `#[cfg]`: rustc removes it only after this macro, so that the two sides would silently differ.
    fn body_attributes(&mut self, block: &Block) {
        struct AttributeFinder<'a>(Vec<&'a Attribute>);
        impl<'a> Visit<'a> for AttributeFinder<'a> {
            fn visit_attribute(&mut self, a: &'a Attribute) {
                if !["allow", "expect", "doc"]
                    .iter()
                    .any(|known| a.path().is_ident(known))
                {
                    self.0.push(a);
                }
            }
        }
        let mut found = AttributeFinder(Vec::new());
        found.visit_block(block);
        for attribute in found.0 {
            let why = "attributes inside the body (such as #[cfg]) would act on the Rust side only; \
                       put #[cfg] on the whole item";
            self.err(attribute, why);
        }
    }
}
