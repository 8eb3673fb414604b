//! Types that provide functions: the implementation of a trait, and its companion.
use crate::companion::{Text, lints, marked};
use crate::errors::Errors;
use crate::{infer, runtime, rust_side, translate};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Error, Ident, ImplItem, ImplItemConst, ImplItemFn, ItemConst, ItemFn, ItemImpl, Result, Type,
    parse_quote,
};

/// Returns the rewritten implementation, and the text of a C++ structure with its functions and constants as members.
pub fn implementation(mut i: ItemImpl) -> TokenStream {
    let runtime = runtime();
    let name = match implementor(&i) {
        Ok(name) => name,
        Err(e) => {
            let e = e.to_compile_error();
            return quote!(#i #e);
        }
    };
    let mut errors = Errors::default();
    let (mut constants, mut functions) = (Vec::new(), Vec::new());
    for member in &mut i.items {
        match member {
            ImplItem::Fn(f) => functions.push(function(f, &runtime, &mut errors)),
            ImplItem::Const(c) => constants.push(constant(c, &mut errors)),
            other => errors.add(Error::new_spanned(
                other,
                "#[device]: only functions and constants",
            )),
        }
    }
    let (prototype, body) = errors.record(translate::implementation(&name, &constants, &functions));
    let text = Text {
        prototype,
        body,
        ..Text::default()
    };
    let item = text.item("Choice", &name, name.span(), &runtime);
    let marked = marked(&name, &item, &runtime);
    let functions = quote!(#[diagnostic::do_not_recommend] impl #runtime::Functions for #name {});
    let (lints, error) = (
        lints(),
        errors.finish(()).err().map(|e| e.to_compile_error()),
    );
    quote!(#lints #i #error #marked #functions)
}

/// Rewrites a function for the Rust side. Returns it as it is translated.
fn function(f: &mut ImplItemFn, runtime: &TokenStream, errors: &mut Errors) -> ItemFn {
    let ImplItemFn {
        attrs,
        vis,
        sig,
        block,
        ..
    } = f.clone();
    let block = Box::new(block);
    let mut source = ItemFn {
        attrs,
        vis,
        sig,
        block,
    };
    errors.record(infer::function(&mut source));
    let (translator, _) = translate::function(&source);
    let mut rust = source.clone();
    errors.record(rust_side::rewrite(&mut rust, &translator, runtime));
    (f.attrs, f.block) = (rust.attrs, *rust.block);
    source
}

/// Does the same for a constant.
fn constant(c: &mut ImplItemConst, errors: &mut Errors) -> ItemConst {
    let ImplItemConst {
        attrs,
        ident,
        ty,
        expr,
        ..
    } = c.clone();
    let mut source: ItemConst = parse_quote!(#(#attrs)* const #ident: #ty = #expr;);
    errors.record(infer::constant(&mut source));
    c.expr = (*source.expr).clone();
    source
}

/// Returns the type that an `impl` is for.
fn implementor(i: &ItemImpl) -> Result<Ident> {
    let why = "#[device]: write `#[device] impl Trait for Type`, with a trait and a type without generic parameters; the functions \
               of the trait may have them (`fn rate<R: Real>(x: R) -> R`)";
    match &*i.self_ty {
        Type::Path(p) if i.trait_.is_some() && i.generics.params.is_empty() => p
            .path
            .get_ident()
            .cloned()
            .ok_or_else(|| Error::new_spanned(p, why)),
        ty => Err(Error::new_spanned(ty, why)),
    }
}
