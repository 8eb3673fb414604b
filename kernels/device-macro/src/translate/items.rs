//! Translates structures, enums, constants and implementations.
use super::{GenericKind, Translator, member};
use crate::code::{CppCode, list, text};
use crate::errors::Errors;
use crate::subset::{cpp_name, docs, integer_literal};
use quote::ToTokens;
use std::collections::HashMap;
use syn::{
    Error, Expr, Fields, Ident, ItemConst, ItemEnum, ItemFn, ItemStruct, Result, Type,
    visit::{self, Visit},
};

/// Returns the text of a constant, possibly of the type `of`.
pub fn constant(c: &ItemConst, of: Option<&Ident>) -> Result<CppCode> {
    let single = c.ty.to_token_stream().to_string().contains("f32");
    let float = Some(if single { "f32" } else { "f64" });
    let mut t = Translator {
        scopes: vec![HashMap::new()],
        of: of.cloned(),
        float,
        ..Default::default()
    };
    t.constant_value(&c.expr);
    let ty = t.ty(&c.ty);
    let array = matches!(&*c.ty, Type::Array(_));
    let value = if array {
        t.table(&c.expr)
    } else {
        t.expr(&c.expr, true)
    };
    let storage = if array { "RS_TABLE " } else { "RS_CONST " };
    let definition = text(docs(&c.attrs)).t(storage).c(ty);
    t.finish(
        definition
            .t(format!(" {} = ", cpp_name(&c.ident)))
            .c(value)
            .t(";"),
    )
}

impl Translator {
    /// Checks that C++ can compute a constant at compile time: from literals, other constants, operators and casts.
    fn constant_value(&mut self, e: &Expr) {
        struct Refused<'a>(Vec<&'a Expr>);
        impl<'a> Visit<'a> for Refused<'a> {
            fn visit_expr(&mut self, e: &'a Expr) {
                use Expr::*;
                match e {
                    Struct(_) | Index(_) | Field(_) | Call(_) | Match(_) | Block(_) => {
                        self.0.push(e)
                    }
                    e => visit::visit_expr(self, e),
                }
            }
        }
        let mut refused = Refused(Vec::new());
        refused.visit_expr(e);
        for e in refused.0 {
            let why = "a constant is made of literals, other constants, operators and casts; \
                       write a #[device] function that returns the value";
            self.err(e, why);
        }
    }
}

/// Returns the text of a structure: its generics, declaration and definition.
pub fn structure(s: &ItemStruct) -> Result<(Vec<GenericKind>, CppCode, CppCode)> {
    let mut t = Translator::default();
    let head = t.structure_generics(&s.generics);
    let name = cpp_name(&s.ident);
    let mut body = text(docs(&s.attrs))
        .c(head.clone())
        .t(format!("struct {name} {{"));
    if let Fields::Named(fields) = &s.fields {
        for field in &fields.named {
            body.push(docs(&field.attrs).replace("//", "\n  //"));
            body.push("\n  ");
            body.add(t.ty(&field.ty));
            if let Some(name) = &field.ident {
                body.push(format!(" {};", cpp_name(name)));
            }
        }
    } else {
        let why = "a structure must have named fields \
                   (a tuple structure would collide with its companion in the value namespace)";
        t.err(&s.ident, why);
    }
    let generics = t.generics.clone();
    t.finish((generics, head.t(format!("struct {name};")), body.t("\n};")))
}

/// Returns the text of an enum without data: an `int` with names.
pub fn enumeration(e: &ItemEnum) -> Result<CppCode> {
    let mut t = Translator::default();
    if !e.generics.params.is_empty() {
        t.err(&e.generics, "an enum has no generic parameters here");
    }
    let mut variants = Vec::new();
    for v in &e.variants {
        if !matches!(v.fields, Fields::Unit) {
            let why =
                "a variant cannot hold data; put the data into a separate #[device] structure";
            t.err(v, why);
        }
        let mut variant = text(cpp_name(&v.ident));
        if let Some((_, n)) = &v.discriminant {
            if integer_literal(n).is_none() {
                t.err(n, "the value of a variant must be a literal");
            }
            variant = variant.t(" = ").c(t.expr(n, false));
        }
        variants.push(variant);
    }
    let head = format!(
        "{}enum class {} : int {{ ",
        docs(&e.attrs),
        cpp_name(&e.ident)
    );
    t.finish(text(head).c(list(variants)).t(" };"))
}

/// Returns the text of a type that provides functions and constants: its declaration, and the functions.
pub fn implementation(
    of: &Ident,
    constants: &[ItemConst],
    functions: &[ItemFn],
) -> Result<(CppCode, CppCode)> {
    let name = cpp_name(of);
    let mut errors = Errors::default();
    let (mut declaration, mut definitions) =
        (text(format!("struct {name} {{")), CppCode::default());
    for c in constants {
        if matches!(&c.ty.as_ref(), Type::Array(_)) {
            let why = "#[device]: put the array into a #[device] const outside the `impl`";
            errors.add(Error::new_spanned(&c.ty, why));
        }
        declaration = declaration.t("\n").c(errors.record(constant(c, Some(of))));
    }
    for f in functions {
        let m = errors.record(member(f, Some(of)).1);
        let head = text(m.docs).c(m.template);
        declaration.add(text("\n").c(head.clone()).t("RS_MEMBER static "));
        declaration.add(m.result.clone().t(" ").c(m.call.clone()).t(";"));
        definitions.add(head.t("RS_MEMBER ").c(m.result).t(format!(" {name}::")));
        definitions.add(m.call.t(" ").c(m.body).t("\n"));
    }
    errors.finish((declaration.t("\n}"), definitions))
}
